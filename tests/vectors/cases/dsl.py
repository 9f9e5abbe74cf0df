"""Words for writing cases shortly.

A step is `op(at_ms, key, …, due=…)`. `due` holds literal values, reasoned from the contract by
hand, that the model's answer must have; the model fills in the other fields. `leave` names
fields that are left open.
"""

SECOND, MINUTE, HOUR, DAY = 1000, 60_000, 3_600_000, 86_400_000
NOON = 1_700_000_000_000 // DAY * DAY + 12 * HOUR  # a day's noon, UTC


def policy(limits, **options):
    """A policy of one rule, `default`."""
    return rules(default={"limits": limits} | options)


def rules(fallback=None, **named):
    found = {"version": 1, "rules": named}
    return found | {"fallback": fallback} if fallback else found


def case(name, policy, *steps, start_ms=0, wall_ms=None):
    """Steps may be nested lists, as the helpers below return them."""
    found = {"name": name, "start_ms": start_ms}
    if wall_ms is not None:
        found["wall_ms"] = wall_ms
    return found | {"policy": policy, "steps": _flat(steps)}


def refused(name, policy, *paths):
    """A policy that is an error at each of these paths."""
    return {"name": name, "policy": policy, "policy_error": list(paths)}


def _flat(steps):
    return [one for step in steps
            for one in (_flat(step) if isinstance(step, (list, tuple)) else [step])]


def step(op, at_ms, key=None, due=..., leave=(), **fields):
    found = {"at_ms": at_ms, "op": op}
    if key is not None:
        found["key"] = key
    found |= {name: value for name, value in fields.items() if value is not None}
    return found | {"_due": due, "_leave": tuple(leave)}


def _keyed(op):
    def make(at_ms, key="a", cost=None, due=..., **fields):
        return step(op, at_ms, key, due, cost=cost, **fields)
    return make


hit, check, peek, allow = _keyed("hit"), _keyed("check"), _keyed("peek"), _keyed("allow")
record, refund, stats = _keyed("record"), _keyed("refund"), _keyed("stats")
why = _keyed("why")
is_limited, reset, budget = _keyed("is_limited"), _keyed("reset"), _keyed("budget")


def hits(at_ms, number, key="a", **fields):
    """Several allowed hits of 1 in one line."""
    return hit(at_ms, key, due={"allowed": True}, repeat=number, **fields)


def permit(at_ms, id, key="a", due=..., **fields):
    return step("permit", at_ms, key, due, id=id, **fields)


def release(at_ms, id, due=...):
    return step("release", at_ms, due=... if due is ... else {"released": due}, id=id)


def renew(at_ms, id, due=...):
    return step("renew", at_ms, due=... if due is ... else {"renewed": due}, id=id)


def reserve(at_ms, id, cost, key="a", due=..., **fields):
    return step("reserve", at_ms, key, due, id=id, cost=cost, **fields)


def settle(at_ms, id, actual):
    return step("settle", at_ms, id=id, actual=actual)


def cancel(at_ms, id):
    return step("cancel", at_ms, id=id)


def spend(at_ms, amount, key="a", due=...):
    return step("spend", at_ms, key, due, amount=amount)


# Changes at run time. They take `for_ms`, `by` and `reason`; `due` is the change's number.


def _change(op, at_ms, due=..., **fields):
    return step(op, at_ms, due=... if due is ... else {"number": due}, **fields)


def _aim(target):
    """A key, or a match if it is a map."""
    return {"match": target} if isinstance(target, dict) else {"key": target}


def override(at_ms, target, limits, due=..., **fields):
    return _change("set_override", at_ms, due, limits=limits, **_aim(target), **fields)


def clear_override(at_ms, target, due=..., **fields):
    return _change("clear_override", at_ms, due, **_aim(target), **fields)


def set_default(at_ms, limits, due=..., **fields):
    return _change("set_default", at_ms, due, limits=limits, **fields)


def add_exempt(at_ms, match, due=..., **fields):
    return _change("add_exempt", at_ms, due, match=match, **fields)


def remove_exempt(at_ms, match, due=..., **fields):
    return _change("remove_exempt", at_ms, due, match=match, **fields)


def set_exempts(at_ms, matches, due=..., **fields):
    return _change("set_exempts", at_ms, due, matches=matches, **fields)


def set_mode(at_ms, mode, due=..., **fields):
    return _change("set_mode", at_ms, due, mode=mode, **fields)


def clear_mode(at_ms, due=..., **fields):
    return _change("clear_mode", at_ms, due, **fields)


def block(at_ms, key="a", due=..., **fields):
    return _change("block", at_ms, due, key=key, **fields)


def unblock(at_ms, key="a", due=..., **fields):
    return step("unblock", at_ms, key, ... if due is ... else {"unblocked": due}, **fields)


def blocks(at_ms, due=..., **fields):
    """`due`: each as `blocked(…)`."""
    return step("blocks", at_ms, due=due, **fields)


def blocked(key, until=None, by=None, reason=None):
    return {"key": key if isinstance(key, list) else [key], "until_ms": until, "by": by,
            "reason": reason}


def changes(at_ms, due, next, since=None):
    """`due`: each as `told(…)`."""
    return step("changes", at_ms, due={"changes": due, "next": next, "missed": 0}, since=since)


def told(number, at, op, target, before, after, until=None, by=None, reason=None, rule="default"):
    return {"number": number, "at_ms": at, "rule": rule, "op": op, "target": target,
            "before": before,
            "after": after, "until_ms": until, "by": by, "reason": reason}


def yes(remaining=..., **fields):
    """Plainly allowed."""
    left = {} if remaining is ... else {"remaining": remaining}
    return {"allowed": True, "reason": None, "retry_after_ms": 0} | left | fields


def no(reason, retry=..., **fields):
    """Denied, and for how long."""
    wait = {} if retry is ... else {"retry_after_ms": retry}
    return {"allowed": False, "reason": reason} | wait | fields


def denied_until(at_ms, reason, wait, key="a", cost=None, **fields):
    """Denied; still so a millisecond before the wait is over; and allowed when it is."""
    return [
        hit(at_ms, key, cost, no(reason, wait), **fields),
        peek(at_ms + wait - 1, key, cost, {"allowed": False}, **fields),
        hit(at_ms + wait, key, cost, {"allowed": True}, **fields),
    ]


def left(at_ms, remaining, key="a", **fields):
    """What is left now, changing nothing."""
    return peek(at_ms, key, 0, yes(remaining), **fields)
