"""The five algorithms, one key's state each, in exact arithmetic. Times are whole milliseconds.

Every class answers the same questions: `used`, `remaining` (rounded down), `wait` for a cost (NEVER
if it can't be), `reset` until all is back; and is changed by `take`, `record` and `refund`.
"""

from fractions import Fraction
from math import ceil, floor

NEVER = float("inf")


class Fragile(Exception):
    """An expectation that a permitted rounding (1/1000 token for each charge) could turn."""


class Bucket:
    """Tokens at a moment; what came since is added when it is read."""

    def __init__(self):
        self.tokens, self.at = None, 0  # None: never charged, or full again
        self.loss = Fraction(0)  # the most that permitted rounding may have taken

    def content(self, limit, now):
        if self.tokens is None:
            return Fraction(limit.size)
        since = max(0, now - self.at)
        return min(Fraction(limit.size), self.tokens + Fraction(limit.max * since, limit.per))

    def exact(self, limit, now):
        """Whether waits are the same for every implementation, however it rounds."""
        whole_ms = limit.max == 0 or limit.per % limit.max == 0
        return whole_ms and (self.loss == 0 or self.is_new(limit, now))

    def is_new(self, limit, now):
        return self.content(limit, now) == limit.size

    def remaining(self, limit, now):
        content = self.content(limit, now)
        if content < limit.size and floor(content) != floor(max(Fraction(0), content - self.loss)):
            raise Fragile(f"{limit.name} holds {content} or {self.loss} less")
        return floor(content)

    def used(self, limit, now):
        return limit.size - self.remaining(limit, now)

    def wait(self, limit, cost, now):
        if limit.max == 0:
            return NEVER
        lacking = cost - self.content(limit, now)
        if lacking <= 0 and cost > 0:
            self.remaining(limit, now)  # raises if fragile
        return max(Fraction(0), lacking * limit.per / limit.max)

    def reset(self, limit, now):
        return self.wait(limit, limit.size, now) if limit.size else 0

    def take(self, limit, cost, now):
        content = self.content(limit, now)
        if content == limit.size:
            self.loss = Fraction(0)
        elif (content * 1000).denominator != 1 or self.loss:
            self.loss += Fraction(1, 1000)
        self.tokens, self.at = max(Fraction(0), content - cost), now

    record = take

    def refund(self, limit, cost, now):
        content = self.content(limit, now)
        self.take(limit, 0, now)
        self.tokens = min(Fraction(limit.size), content + cost)


class Window:
    """Everything that was spent, with its time."""

    def __init__(self):
        self.log = []

    def live(self, limit, now):
        return [(at, cost) for at, cost in self.log if at + limit.per > now]

    def exact(self, limit, now):
        return True

    def is_new(self, limit, now):
        return not self.live(limit, now)

    def used(self, limit, now):
        return sum(cost for _, cost in self.live(limit, now))

    def remaining(self, limit, now):
        return max(0, limit.max - self.used(limit, now))

    def wait(self, limit, cost, now):
        if limit.max == 0:
            return NEVER
        used = self.used(limit, now)
        if used + cost <= limit.max:
            return 0
        for at, spent in self.live(limit, now):
            used -= spent
            if used + cost <= limit.max:
                return at + limit.per - now
        return NEVER  # more than the window could ever hold

    def reset(self, limit, now):
        return max((at + limit.per - now for at, _ in self.live(limit, now)), default=0)

    def take(self, limit, cost, now):
        if cost:
            self.log.append((now, cost))

    record = take

    def refund(self, limit, cost, now):
        """Newest first. What is too old for these numbers may count by others, and stays."""
        kept = self.live(limit, now)
        older = [entry for entry in self.log if entry not in kept]
        while cost and kept:
            at, spent = kept.pop()
            back = min(cost, spent)
            cost -= back
            if spent > back:
                kept.append((at, spent - back))
        self.log = older + kept


class Counter:
    """Two cells on the clock's multiples of `per`, the older weighted by its
    overlap, rounded up."""

    def __init__(self):
        self.cells = {}

    def exact(self, limit, now):
        return True

    def used(self, limit, now):
        cell, into = divmod(now, limit.per)
        before = self.cells.get(cell - 1, 0)
        current = sum(spent for number, spent in self.cells.items()
                      if number >= cell)  # what is ahead is now
        return current + ceil(Fraction(before * (limit.per - into), limit.per))

    def is_new(self, limit, now):
        return self.used(limit, now) == 0

    def remaining(self, limit, now):
        return max(0, limit.max - self.used(limit, now))

    def wait(self, limit, cost, now):
        """Milliseconds tried one by one: slow, and nothing to get wrong."""
        if limit.max == 0:
            return NEVER
        return next(w for w in range(2 * limit.per + 1)
                    if self.used(limit, now + w) + cost <= limit.max)

    def reset(self, limit, now):
        cell = max(
            (c for c, spent in self.cells.items() if spent and c >= now // limit.per - 1),
            default=None,
        )
        return 0 if cell is None else (cell + 2) * limit.per - now

    def take(self, limit, cost, now):
        cell = now // limit.per
        self.cells[cell] = self.cells.get(cell, 0) + cost

    record = take

    def refund(self, limit, cost, now):
        cell = now // limit.per
        self.cells[cell] = max(0, self.cells.get(cell, 0) - cost)


class Fixed:
    """A count, and when it began."""

    def __init__(self):
        self.count, self.began = 0, 0

    def exact(self, limit, now):
        return True

    def used(self, limit, now):
        return self.count if now < self.began + limit.per else 0

    def is_new(self, limit, now):
        return self.used(limit, now) == 0

    def remaining(self, limit, now):
        return max(0, limit.max - self.used(limit, now))

    def wait(self, limit, cost, now):
        if limit.max == 0:
            return NEVER
        return 0 if self.used(limit, now) + cost <= limit.max else self.reset(limit, now)

    def reset(self, limit, now):
        return self.began + limit.per - now if self.used(limit, now) else 0

    def take(self, limit, cost, now):
        if not cost:
            return
        if self.used(limit, now) == 0:
            self.count, self.began = 0, now
        self.count += cost

    record = take

    def refund(self, limit, cost, now):
        self.count = max(0, self.used(limit, now) - cost)


class Concurrent:
    """Permits that are out, each with the end of its lease."""

    def __init__(self):
        self.ends = {}

    def out(self, now):
        return {permit: end for permit, end in self.ends.items() if end > now}

    def exact(self, limit, now):
        return True

    def is_new(self, limit, now):
        return not self.out(now)

    def used(self, limit, now):
        return len(self.out(now))

    def remaining(self, limit, now):
        return max(0, limit.max - self.used(limit, now))

    def wait(self, limit, cost, now):
        if limit.max == 0:
            return NEVER
        over = self.used(limit, now) + cost - limit.max
        return 0 if over <= 0 else sorted(self.out(now).values())[over - 1] - now

    def reset(self, limit, now):
        return max((end - now for end in self.out(now).values()), default=0)

    def hold(self, limit, permit, now):
        self.ends = self.out(now) | {permit: now + limit.lease}

    def release(self, permit, now):
        held = permit in self.out(now)
        self.ends.pop(permit, None)
        return held

    def renew(self, limit, permit, now):
        held = permit in self.out(now)
        if held:
            self.ends[permit] = now + limit.lease
        return held


NEW = {"bucket": Bucket, "window": Window, "counter": Counter, "fixed": Fixed,
       "concurrent": Concurrent}
