"""Header fields of a decision: legacy, and the IETF draft's structured fields."""


def headers(decision, limits, style, wall_ms):
    """`limits` is one (limit, remaining, wait for one more) for each limit, in declared order."""
    if decision["reason"] in ("off", "exempt"):
        return {}
    fields = {}
    if style in ("legacy", "both"):
        fields |= _legacy(decision, wall_ms)
    if style in ("ietf", "both"):
        fields |= _ietf(decision, limits)
    if not decision["allowed"] and decision["retry_after_ms"] is not None:
        fields["Retry-After"] = str(max(1, _seconds(decision["retry_after_ms"])))
    return fields


def _legacy(decision, wall_ms):
    fields = {}
    for name, field in (("X-RateLimit-Limit", "limit"), ("X-RateLimit-Remaining", "remaining")):
        if decision[field] is not None:
            fields[name] = str(decision[field])
    after = decision["reset_after_ms" if decision["allowed"] else "retry_after_ms"]
    if after is not None:
        fields["X-RateLimit-Reset"] = str(_seconds(wall_ms + after))
    return fields


def _ietf(decision, limits):
    policy = [f'"{limit.name}";q={limit.size};{_window(limit)}' for limit, _, _ in limits]
    now = [f'"{limit.name}";' + _left(decision, left, wait) for limit, left, wait in limits]
    return {"RateLimit-Policy": ", ".join(policy), "RateLimit": ", ".join(now)}


def _window(limit):
    if limit.algorithm == "concurrent":
        return 'qu="concurrent-requests"'
    return f"w={max(1, _seconds(limit.per))}"


def _left(decision, remaining, wait):
    if decision["reason"] in ("blocked", "cooldown", "backoff", "budget"):
        remaining, wait = 0, decision["retry_after_ms"]
        if wait is None:
            return "r=0"
    return f"r={remaining};t={_seconds(wait)}"


def _seconds(ms):
    """Rounded up; `ms` may be a fraction, never a float."""
    return int(-(-ms // 1000))
