"""A rule at work: judgement, and the operations on a key."""

from dataclasses import dataclass
from fractions import Fraction
from math import ceil

from . import penalty as penalties
from .algorithms import NEVER, NEW
from .changes import Standing, frozen, shown_key, thawed
from .changing import Changing
from .headers import headers
from .limits import parse_limits
from .match import best, matches
from .options import Options, resolve
from .penalty import Penalty
from .refused import Refused

DAY_MS, HOUR_MS = 86_400_000, 3_600_000


@dataclass
class Call:
    parts: tuple
    subject: dict
    options: Options
    now: int
    cells: list  # each limit's state, in declared order

    def pairs(self):
        return list(zip(self.options.limits, self.cells))

    def waits(self, cost):
        return [cell.wait(limit, limit.of(cost), self.now) for limit, cell in self.pairs()]

    def reset_after(self):
        return max(cell.reset(limit, self.now) for limit, cell in self.pairs())

    def exact(self):
        return all(cell.exact(limit, self.now) for limit, cell in self.pairs())

    def least(self):
        """The limit with the least left, the first declared of equals. Costs and hits have no
        common measure but the share of their limit's size."""
        mixed = len({limit.counts for limit in self.options.limits}) > 1

        def left(pair):
            limit, cell = pair
            remaining = cell.remaining(limit, self.now)
            return Fraction(remaining, max(1, limit.size)) if mixed else remaining

        return min(self.pairs(), key=left)


class Rule:
    def __init__(self, name, spec, clock, trail):
        self.name, self.spec, self.clock, self.trail = name, spec, clock, trail
        self.limits = parse_limits(spec["limits"])
        self.names = tuple(spec.get("key", ["key"]))
        self.standing = Standing()
        self.forget()

    def forget(self):
        self.cells, self.penalties, self.spent = {}, {}, {}

    # Who calls, and what holds for them.

    def call(self, key, attributes=None, per_call_max=None):
        parts, subject = self.identify(key, dict(attributes or {}))
        if per_call_max is not None:
            self.check_max(per_call_max)
        options = resolve(self, parts, subject, per_call_max)
        cells = [self.cell(limit, parts) for limit in options.limits]
        return Call(parts, subject, options, self.clock.now, cells)

    def identify(self, key, attributes):
        parts = tuple(key) if isinstance(key, list) else (key,)
        classify = self.spec.get("classify")
        if classify:
            given = attributes.get(classify["from"])
            value = classify["map"].get(given, classify["default"])
            if classify["to"] == self.names[-1]:
                parts += (value,)
            else:
                attributes[classify["to"]] = value
        if len(parts) != len(self.names):
            raise Refused("part")
        return parts, attributes | dict(zip(self.names, parts))

    def scoped(self, parts, scope):
        named = dict(zip(self.names, parts))
        return parts if scope is None else tuple(named[name] for name in scope)

    def cell(self, limit, parts):
        place = (limit.name, self.scoped(parts, limit.scope))
        return self.cells.setdefault(place, NEW[limit.algorithm]())

    def check_max(self, most):
        if len(self.limits) > 1:
            raise Refused("max")
        self.check_ceiling(self.limits[0], most)

    def check_ceiling(self, limit, most):
        if limit.algorithm != "window":
            return
        whens = [entry.get("limits", {}).get(limit.name, {}) for entry in self.spec.get("when", [])]
        largest = max([limit.max] + [fields["max"] for fields in whens if "max" in fields])
        if most > self.spec.get("ceiling", largest):
            raise Refused("ceiling")

    def penalty_place(self, call):
        return self.scoped(call.parts, self.spec.get("penalty_scope"))

    def penalty(self, call):
        """As the clock has it; what is stored may be ahead of that."""
        return penalties.mended(self.stored_penalty(call), call.now)

    def stored_penalty(self, call):
        return self.penalties.get(self.penalty_place(call), Penalty())

    def is_exempt(self, subject):
        return self.exemption(subject) is not None

    def exempts(self):
        """As (match, the change that it comes from or None)."""
        return self.changes().exempts(self.own_exempts())

    def own_exempts(self):
        return [frozen(match) for match in self.spec.get("exempt", [])]

    def exemption(self, subject):
        fit = [one for one in self.exempts() if matches(thawed(one[0]), subject) is not None]
        return fit[0] if fit else None

    # What stands changed now.

    def changes(self):
        return self.standing.at(self.clock.now)

    def changed(self, *place):
        return self.changes().get(*place)

    def override_by_match(self, subject):
        overrides = self.changes().all("override")
        entries = [{"match": thawed(target[1]), "change": change}
                   for target, change in overrides if target[0] == "match"]
        entry = best(entries, subject)
        return entry and entry["change"]

    def block_of(self, call):
        return self.changed("block", call.parts)

    def blocks(self):
        blocks = self.changes().all("block")
        return [{"key": shown_key(parts)} | self.shown_block(block) for parts, block in blocks]

    def shown_block(self, block):
        left = block.left(self.clock.now)
        until = None if left is None else self.clock.wall + left
        return {"until_ms": until, "by": block.by, "reason": block.reason}

    # Judgement.

    def judge(self, call, cost, looks=False):
        """The decision (without `remaining` after a hit) and the penalty that it would leave."""
        options, penalty = call.options, self.penalty(call)
        if options.mode == "off":
            return _plain("off"), penalty
        if self.is_exempt(call.subject):
            return _plain("exempt"), penalty
        costly = _is_too_much(options.limits, cost)
        if costly and not self.block_of(call):
            return self.too_much(call), self.stored_penalty(call)
        waits = [NEVER] if costly else call.waits(cost)
        decision, penalty = self.refusal(call, penalty, waits) or self.by_limits(call, penalty,
                                                                                 waits, looks)
        if decision["allowed"]:
            return decision, penalties.after_allowed(penalty)
        penalty, decision["notify"] = penalties.told(penalty, options.notify, call.now)
        return decision, penalty

    def too_much(self, call):
        by_cost = [pair for pair in call.pairs() if pair[0].counts == "cost"]
        limit, cell = min(by_cost, key=lambda pair: pair[0].size)
        decision = _denied(call, "cost", limit.size, cell.remaining(limit, call.now), NEVER)
        return decision | {"notify": call.options.notify == "always"}

    def refusal(self, call, penalty, waits):
        """Denials that come before the limits, and count as nothing."""
        cooldown = penalties.cooldown_left(penalty, call.now)
        enforced = penalties.enforced_left(penalty, call.now)
        longest = max(waits
                      + [cooldown, enforced, self.budget_left(call) if self.is_over(call) else 0])
        block = self.block_of(call)
        if block:
            left = block.left(call.now)
            return _denied(call, "blocked", None, 0,
                           NEVER if left is None else max(longest, left)), penalty
        if self.is_over(call):
            return _denied(call, "budget", None, 0, longest), penalty
        if cooldown:
            limit = next(l for l in call.options.limits if l.name == penalty.cooldown_limit)
            return _denied(call, "cooldown", limit.size, 0, longest), penalty
        if enforced:
            return _denied(call, "backoff", None, 0, longest), penalty
        return None

    def by_limits(self, call, penalty, waits, looks):
        denying = [(limit, cell, wait) for (limit, cell), wait in zip(call.pairs(), waits)
                   if wait > 0]
        if not denying:
            return _allowed(), penalty
        limit, cell, _ = max(denying, key=lambda d: max(d[2], d[0].cooldown or 0))
        penalty, retry, alert = penalties.after_denial(
            penalty, call.options, [d[0] for d in denying], max(waits), call.now)
        if looks:
            retry = max(waits)  # a cooldown or a step that has not begun is nothing to wait for
        decision = _denied(call, limit.name, limit.size, cell.remaining(limit, call.now), retry)
        return decision | {"alert": alert}, penalty

    # Operations that decide.

    def hit(self, call, cost, spends=True):
        self.refuse_permit_rules()
        return self.decide(call, cost, spends)

    def decide(self, call, cost, spends=True, permit=None):
        decision, penalty = self.judge(call, cost)
        if decision["reason"] in ("off", "exempt"):
            return decision | {"limits": []}
        self.penalties[self.penalty_place(call)] = penalty
        if decision["reason"] != "cost" and decision["would_deny"] != "cost":
            self.mend_spent(call)
        if decision["allowed"] and spends:
            _take(call, cost, permit)
        return self.finished(call, decision)

    def peek(self, call, cost):
        decision, _ = self.judge(call, cost, looks=True)
        if decision["reason"] in ("off", "exempt"):
            return decision | {"limits": []}
        if decision["allowed"]:
            call.cells = [_copied(cell) for cell in call.cells]
            _take(call, cost, "peek")
        return self.finished(call, decision) | {"alert": False, "notify": False}

    def finished(self, call, decision):
        decision["reset_after_ms"] = ceil(call.reset_after()) if call.exact() else ...
        if decision["allowed"]:
            limit, cell = call.least()
            decision |= {"limit": limit.size, "remaining": cell.remaining(limit, call.now)}
            decision["warning"] = _warns(call)
        elif not call.exact() and decision["retry_after_ms"] is not None:
            decision["retry_after_ms"] = ...
        decision["limits"] = self.left(call) if call.exact() else ...
        if any(limit.max == 0 for limit in call.options.limits):
            decision["reset_after_ms"] = ...  # the contract does not say when nothing is all back
            decision["limits"] = ...
        return _shadowed(decision) if call.options.mode == "shadow" else decision

    def why(self, call, cost):
        """What a peek gets, and each step of the judgement."""
        decision = self.peek(call, cost)
        call.cells = [self.cell(limit, call.parts) for limit in call.options.limits]
        return {"decision": decision, "steps": list(self.steps(call, cost))}

    def steps(self, call, cost):
        options, sources, penalty = call.options, call.options.sources, self.penalty(call)

        def step(name, outcome, limit=None, value=None, source=None, by=None, left=None):
            until = None if left is None or left == NEVER else int(self.clock.wall + left)
            return {"step": name, "outcome": outcome, "limit": limit, "value": value,
                    "source": source,
                    "until_ms": until, "by": by}

        def sized(name, outcome, limit, left=None):
            stated = [sources.get((limit.name, field)) for field in ("burst", "max")]
            return step(name, outcome, limit.name, limit.size, *(stated[0] or stated[1]), left)

        yield step("mode", "allow" if options.mode == "off" else "pass", None, options.mode,
                   *sources["mode"])
        if options.mode == "off":
            return
        exemption = self.exemption(call.subject)
        if exemption:
            match, change = exemption
            source = "rule" if match in self.own_exempts() else "change"
            yield step("exempt", "allow", None, thawed(match), source, change and change.by)
            return
        yield step("exempt", "pass" if self.exempts() else "none")
        block = self.block_of(call)
        if block:
            yield step("blocked", "deny", None, block.reason, "change", block.by,
                       block.left(call.now))
        else:
            yield step("blocked", "none")
        by_cost = [limit for limit in options.limits if limit.counts == "cost"
                   and limit.algorithm != "concurrent"]
        if by_cost and all(limit.max for limit in options.limits):
            smallest = min(by_cost, key=lambda limit: limit.size)
            yield sized("cost", "deny" if cost > smallest.size else "pass", smallest)
        else:
            yield step("cost", "none")
        if "budget" in self.spec:
            over = self.is_over(call)
            yield step("budget", "deny" if over else "pass", None, self.spec["budget"]["daily"],
                       "rule",
                       left=self.budget_left(call) if over else None)
        else:
            yield step("budget", "none")
        left = penalties.cooldown_left(penalty, call.now)
        if left:
            limit = next(l for l in options.limits if l.name == penalty.cooldown_limit)
            source = sources.get((limit.name, "cooldown")) or sources["cooldown"]
            yield step("cooldown", "deny", limit.name, limit.cooldown, *source, left)
        else:
            yield step("cooldown",
                       "pass" if any(limit.cooldown for limit in options.limits) else "none")
        left = penalties.enforced_left(penalty, call.now)
        enforced = bool(options.backoff and options.backoff.get("enforce"))
        yield step("backoff", "deny" if left else "pass" if enforced else "none", left=left or None)
        for limit, wait in zip(options.limits, call.waits(cost)):
            yield sized("limit", "deny" if wait > 0 else "pass", limit,
                        ceil(wait) if 0 < wait < NEVER and limit.of(cost) <= limit.size else None)

    def views(self, call):
        """Each limit, what is left of it, and the wait for one more."""
        for limit, cell in call.pairs():
            left = cell.remaining(limit, call.now)
            yield limit, cell, left, 0 if left >= limit.size else cell.wait(limit, left + 1,
                                                                            call.now)

    def left(self, call):
        return [{"name": limit.name, "max": limit.size, "remaining": left,
                 "reset_after_ms": ceil(cell.reset(limit, call.now)),
                 "more_after_ms": None if more == NEVER else ceil(more)}
                for limit, cell, left, more in self.views(call)]

    def headers(self, call, decision, style):
        views = [(limit, left, more) for limit, _, left, more in self.views(call)]
        return headers(decision, views, style, self.clock.wall)

    def permit(self, call, permit):
        if not any(limit.algorithm == "concurrent" for limit in self.limits):
            raise Refused("concurrent")
        return self.decide(call, 1, permit=permit)

    def refuse_permit_rules(self):
        if any(limit.algorithm == "concurrent" for limit in self.limits):
            raise Refused("permit")

    # Operations that don't.

    def record(self, call, cost):
        self.refuse_permit_rules()
        if call.options.mode == "off" or self.is_exempt(call.subject):
            return ...
        for limit, cell in call.pairs():
            cell.record(limit, limit.of(cost), call.now)
        limit, cell = call.least()
        return {
            "used": cell.used(limit, call.now),
            "limit": limit.size,
            "remaining": cell.remaining(limit, call.now),
            "reset_after_ms": ceil(call.reset_after()) if call.exact() else ...,
        }

    def record_cost(self, call, cost):
        """What a reservation cost more than its estimate."""
        if call.options.mode != "off" and not self.is_exempt(call.subject):
            for limit, cell in call.pairs():
                if limit.counts == "cost":
                    cell.record(limit, cost, call.now)

    def refund(self, call, cost):
        if call.options.mode == "off" or self.is_exempt(call.subject):
            return
        for limit, cell in call.pairs():
            if limit.counts == "cost":
                cell.refund(limit, cost, call.now)

    def is_limited(self, call):
        if self.block_of(call) and call.options.mode != "off" and not self.is_exempt(call.subject):
            return True
        if call.options.backoff:
            return penalties.in_run(self.penalty(call), call.options.backoff, call.now)
        return not self.peek(call, 1)["allowed"]

    def stats(self, call):
        penalty, options, now = self.penalty(call), call.options, call.now
        new = all(cell.is_new(limit, now) for limit, cell in call.pairs())
        block = self.block_of(call)
        if new and not penalties.in_force(penalty, options,
                                          now) and not self.spent_today(call) and not block:
            return None
        found = {
            "limits": {limit.name: _stats(limit, cell, now) for limit, cell in call.pairs()},
            "cooldown_left_ms": penalties.cooldown_left(penalty, now),
            "violations": penalties.violations(penalty, options, now),
            "blocked": self.shown_block(block) if block else None,
        }
        if "budget" in self.spec:
            found["budget"] = {name: value for name, value in self.budget(call).items()
                               if name != "over_per_hit"}
        return found

    def reset(self, call):
        for limit in self.limits:
            if limit.scope is None or set(limit.scope) == set(self.names):
                self.cells.pop((limit.name, self.scoped(call.parts, limit.scope)), None)
        scope = self.spec.get("penalty_scope")
        if scope is None or set(scope) == set(self.names):
            self.penalties.pop(self.penalty_place(call), None)
        self.spent.pop(call.parts, None)
        Changing(self, {"op": "unblock"}).unblock(call.parts)

    def reset_all(self):
        self.forget()
        Changing(self, {"op": "unblock"}).unblock_all()

    # Budget.

    def day(self):
        return (self.clock.wall - self.spec["budget"].get("reset_hour_utc", 0) * HOUR_MS) // DAY_MS

    def budget_left(self, call):
        shift = self.spec["budget"].get("reset_hour_utc", 0) * HOUR_MS
        return (self.day() + 1) * DAY_MS + shift - self.clock.wall

    def spent_today(self, call):
        if "budget" not in self.spec:
            return 0
        day, spent = self.spent.get(call.parts, (self.day(), 0))
        return spent if day >= self.day() else 0  # a day ahead counts as today

    def mend_spent(self, call):
        """A day ahead, left by a wall clock that went back, becomes today."""
        if "budget" in self.spec and self.spent.get(call.parts, (0, 0))[0] > self.day():
            self.spent[call.parts] = (self.day(), self.spent_today(call))

    def is_over(self, call):
        return "budget" in self.spec and self.spent_today(call) >= self.spec["budget"]["daily"]

    def budget(self, call, amount=0):
        if "budget" not in self.spec:
            raise Refused("budget")
        spent, daily = self.spent_today(call) + amount, self.spec["budget"]["daily"]
        if amount:
            self.spent[call.parts] = (self.day(), spent)
        return {
            "spent": spent,
            "remaining": max(0, daily - spent),
            "over": spent >= daily,
            "over_per_hit": amount > self.spec["budget"].get("per_hit", NEVER),
            "reset_after_ms": self.budget_left(call),
        }


def _is_too_much(limits, cost):
    return all(limit.max for limit in limits) and any(limit.of(cost) > limit.size
                                                      for limit in limits)


def _take(call, cost, permit):
    for limit, cell in call.pairs() if cost else []:
        if limit.algorithm == "concurrent":
            cell.hold(limit, permit, call.now)
        else:
            cell.take(limit, limit.of(cost), call.now)


def _copied(cell):
    """Deep enough: states are replaced or appended to, their entries never changed."""
    copy = type(cell)()
    for name, value in vars(cell).items():
        setattr(copy, name, value.copy() if isinstance(value, (list, dict)) else value)
    return copy


def _warns(call):
    """Less than 1 − warn_at of some limit is left, whole units compared exactly."""
    if call.options.warn_at is None:
        return False
    least = 1 - call.options.warn_at
    return any(cell.remaining(limit, call.now) < least * limit.size for limit, cell in call.pairs())


def _stats(limit, cell, now):
    found = {"used": cell.used(limit, now), "max": limit.max,
             "remaining": cell.remaining(limit, now)}
    if limit.size != limit.max:
        del found["max"]  # max or size: the contract leaves it open
    if cell.exact(limit, now):
        found["reset_after_ms"] = ceil(cell.reset(limit, now))
    return found


def _plain(reason):
    return _allowed() | {"reason": reason, "limit": None, "remaining": None, "reset_after_ms": 0}


def _allowed():
    return {"allowed": True, "reason": None, "limit": None, "remaining": None, "retry_after_ms": 0,
            "reset_after_ms": 0, "warning": False, "alert": False, "notify": False,
            "would_deny": None, "attach": None}


def _denied(call, reason, limit, remaining, retry):
    return _allowed() | {
        "allowed": False, "reason": reason, "limit": limit, "remaining": remaining,
        "retry_after_ms": None if retry == NEVER else ceil(retry), "attach": call.options.attach,
    }


def _shadowed(decision):
    if decision["allowed"]:
        return decision
    return decision | {"allowed": True, "reason": None, "would_deny": decision["reason"],
                       "retry_after_ms": 0, "warning": False, "notify": False, "attach": ...}
