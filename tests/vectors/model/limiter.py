"""A policy at work under a manual clock: one method for each operation of a step."""

import ipaddress

from .changes import Trail
from .changing import Changing
from .refused import Refused
from .reservation import Claims
from .rule import Rule


class Clock:
    def __init__(self, start, wall):
        self.now, self.wall = start, wall

    def set(self, now):
        self.wall += now - self.now
        self.now = now


class Limiter:
    def __init__(self, policy, start, wall):
        self.clock = Clock(start, wall)
        self.trail = Trail(self.clock)
        self.rules = {name: Rule(name, spec, self.clock, self.trail)
                      for name, spec in policy["rules"].items()}
        self.fallback = policy.get("fallback")
        self.taken = {}  # reservations and permits by id: (rule, call, cost or None)

    def apply(self, step):
        """What the step answers, or raises Refused. `...` stands for a field that is left open."""
        self.clock.set(step["at_ms"])
        return getattr(self, step["op"])(step)

    def rule(self, step):
        name = step.get("rule", "default")
        found = self.rules.get(name) or self.rules.get(self.fallback)
        if found is None:
            raise Refused(name)
        return found

    def call(self, step):
        rule = self.rule(step)
        return rule, rule.call(_key(step["key"]), step.get("attributes"), step.get("max"))

    # Decisions.

    def hit(self, step):
        rule, call = self.call(step)
        return self.with_headers(step, rule, call, rule.hit(call, step.get("cost", 1)))

    def check(self, step):
        rule, call = self.call(step)
        return rule.hit(call, step.get("cost", 1), spends=False)

    def peek(self, step):
        rule, call = self.call(step)
        return rule.peek(call, step.get("cost", 1))

    def why(self, step):
        rule, call = self.call(step)
        found = rule.why(call, step.get("cost", 1))
        decision = {name: value for name, value in found["decision"].items() if value is not ...}
        return found | {"decision": decision}

    def allow(self, step):
        return self.hit(step)["allowed"]

    def with_headers(self, step, rule, call, decision):
        if "style" in step:
            decision = decision | {"headers": rule.headers(call, decision, step["style"])}
        return decision

    def permit(self, step):
        rule, call = self.call(step)
        decision = rule.permit(call, step["id"])
        self.taken[step["id"]] = (rule, call, 1)
        return self.with_headers(step, rule, call, decision)

    def release(self, step):
        _, call, _ = self.taken[step["id"]]
        return {"released": any([cell.release(step["id"], self.clock.now)
                                 for _, cell in _permits(call)])}

    def renew(self, step):
        _, call, _ = self.taken[step["id"]]
        renewed = [cell.renew(limit, step["id"], self.clock.now) for limit, cell in _permits(call)]
        return {"renewed": any(renewed)}

    def reserve(self, step):
        rule, call = self.call(step)
        decision = rule.hit(call, step["cost"])
        spent = (
            decision["allowed"] and decision["reason"] is None and decision["would_deny"] is None
        )
        self.taken[step["id"]] = (rule, step, Claims(call, step["cost"])) if spent else None
        return decision

    def settle(self, step):
        taken = self.taken.get(step["id"])
        self.taken[step["id"]] = None
        if not taken:
            return None
        rule, reserved, claims = taken
        _, call = self.call(reserved)
        if step["actual"] < claims.estimate:
            claims.give_back(call, claims.estimate - step["actual"])
        else:
            rule.record_cost(call, step["actual"] - claims.estimate)
        return None

    def cancel(self, step):
        taken = self.taken.get(step["id"])
        self.taken[step["id"]] = None
        if taken:
            _, reserved, claims = taken
            claims.cancel(self.call(reserved)[1])

    # The rest.

    def record(self, step):
        rule, call = self.call(step)
        return rule.record(call, step.get("cost", 1))

    def refund(self, step):
        rule, call = self.call(step)
        return rule.refund(call, step.get("cost", 1))

    def spend(self, step):
        rule, call = self.call(step)
        return rule.budget(call, step["amount"])

    def budget(self, step):
        rule, call = self.call(step)
        return rule.budget(call)

    def is_limited(self, step):
        rule, call = self.call(step)
        return rule.is_limited(call)

    def stats(self, step):
        rule, call = self.call(step)
        return rule.stats(call)

    def reset(self, step):
        rule, call = self.call(step)
        rule.reset(call)

    def reset_all(self, step):
        self.rule(step).reset_all()

    # Changes at run time.

    def changing(self, step):
        return Changing(self.rule(step), step)

    def set_override(self, step):
        return {"number": self.changing(step).set_override(_target(step), step["limits"])}

    def clear_override(self, step):
        return {"number": self.changing(step).clear_override(_target(step))}

    def set_default(self, step):
        return {"number": self.changing(step).set_default(step["limits"])}

    def add_exempt(self, step):
        return {"number": self.changing(step).add_exempt(step["match"])}

    def remove_exempt(self, step):
        return {"number": self.changing(step).remove_exempt(step["match"])}

    def set_exempts(self, step):
        return {"number": self.changing(step).set_exempts(step["matches"])}

    def set_mode(self, step):
        return {"number": self.changing(step).set_mode(step["mode"])}

    def clear_mode(self, step):
        return {"number": self.changing(step).clear_mode()}

    def block(self, step):
        _, call = self.call(step)
        return {"number": self.changing(step).block(call.parts)}

    def unblock(self, step):
        _, call = self.call(step)
        return {"unblocked": self.changing(step).unblock(call.parts) > 0}

    def blocks(self, step):
        return self.rule(step).blocks()

    def changes(self, step):
        return self.trail.since(step.get("since", 0))

    def set_wall(self, step):
        self.clock.wall = step["wall_ms"]


def _permits(call):
    return [(limit, cell) for limit, cell in call.pairs() if limit.algorithm == "concurrent"]


def _target(step):
    return {"match": step["match"]} if "match" in step else {"key": _key(step["key"])}


def _key(key):
    """Text and bytes are one key if their bytes are; a whole number is its decimal digits."""
    if isinstance(key, list):
        return [_key(part) for part in key]
    if isinstance(key, dict):
        if "hex" not in key:
            return key.get("whole") or str(ipaddress.ip_address(key["address"]))
        return bytes.fromhex(key["hex"]).decode("utf-8", "surrogateescape")
    return str(key) if isinstance(key, int) else key
