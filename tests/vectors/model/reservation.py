"""What a reservation took, and what of it can still be given back (promise 9)."""

from fractions import Fraction


class Claims:
    """One claim for each limit of the call that reserved, made right after it was charged."""

    def __init__(self, call, estimate):
        self.estimate = estimate
        self.at, self.cells = call.now, list(call.cells)
        self.marks = [_mark(limit, cell, call.now) for limit, cell in call.pairs()]

    def give_back(self, call, cost):
        """Gives `cost` back by the numbers of `call`, as far as it is still there to be had."""
        self._give(call, lambda limit: cost if limit.counts == "cost" else 0)

    def cancel(self, call):
        """As `give_back` of all, with the hits that were counted."""
        self._give(call, lambda limit: limit.of(self.estimate))

    def _give(self, call, share):
        for (limit, cell), reserved, mark in zip(call.pairs(), self.cells, self.marks):
            if cell is reserved and share(limit):  # else the key was reset since
                _GIVERS[limit.algorithm](limit, cell, mark, share(limit), self, call.now)

    def refilled(self, limit, now):
        return Fraction(limit.max * max(0, now - self.at), limit.per)


def _mark(limit, cell, now):
    """What tells the reservation's own part of a state from all others."""
    return {
        "bucket": lambda: None,
        "window": lambda: cell.log[-1] if cell.log else None,
        "fixed": lambda: cell.began,
        "counter": lambda: now // limit.per,
    }[limit.algorithm]()


def _to_bucket(limit, cell, mark, cost, claims, now):
    """At most the estimate less what was refilled since."""
    back = min(Fraction(cost), limit.of(claims.estimate) - claims.refilled(limit, now))
    if back > 0:
        cell.refund(limit, back, now)


def _to_window(limit, cell, mark, cost, claims, now):
    """Its own entry, while it is inside."""
    if mark is None or mark not in cell.live(limit, now):
        return
    at, spent = mark
    place = cell.log.index(mark)
    cell.log[place:place + 1] = [(at, spent - cost)] if spent > cost else []


def _to_fixed(limit, cell, mark, cost, claims, now):
    if cell.began == mark:
        cell.refund(limit, cost, now)


def _to_counter(limit, cell, mark, cost, claims, now):
    if now // limit.per == mark:
        cell.refund(limit, cost, now)


_GIVERS = {"bucket": _to_bucket, "window": _to_window, "fixed": _to_fixed, "counter": _to_counter}
