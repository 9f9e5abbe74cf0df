"""Order of judgement."""

from .dsl import *

ABOUT = "order of judgement: mode off, exempt, cost, budget, cooldown, enforced backoff, limits"

ALL = {
    "limits": "1/h", "cooldown": "10s", "budget": {"daily": 1},
    "backoff": {"steps": ["20s"], "quiet": "1h", "enforce": True},
}


def trouble(**fields):
    """A key that is denied for every reason there is."""
    return [
        hit(0, due=yes(0), **fields), hit(0, due=no("1/h", HOUR), **fields),
        step("spend", 0, "a", amount=1, **fields),
    ]


def cases():
    yield case(
        "a key in every trouble: each reason in its turn", rules(default=ALL),
        trouble(), hit(1, cost=2, due=no("cost", None)), hit(1, due=no("budget", 12 * HOUR - 1)),
        step("set_wall", 1, wall_ms=NOON + DAY), hit(1, due=no("cooldown", HOUR - 1, limit=1)),
        hit(9999, due=no("cooldown", HOUR - 9999)),
        hit(10_000, due=no("backoff", HOUR - 10_000, limit=None)),
        hit(HOUR - 1, due=no("backoff", 1)), hit(HOUR, due=yes(0)), wall_ms=NOON,
    )
    yield case(
        "exempt comes before every trouble", rules(default=ALL | {"exempt": [{"role": "admin"}]}),
        trouble(), hit(1, due={"allowed": True, "reason": "exempt"}, attributes={"role": "admin"}),
        hit(1, cost=2, due={"allowed": True, "reason": "exempt"}, attributes={"role": "admin"}),
        wall_ms=NOON,
    )
    yield case(
        "mode off comes before exempt",
        rules(default=ALL | {"exempt": [{"role": "admin"}],
                             "when": [{"match": {"off": "yes"}, "mode": "off"}]}),
        trouble(),
        hit(1, due={"allowed": True, "reason": "off"}, attributes={"role": "admin", "off": "yes"}),
        hit(1, due=no("budget"), attributes={"off": "no"}), wall_ms=NOON,
    )
    yield case(
        "cost comes before the budget", policy("2/s", budget={"daily": 1}),
        spend(0, 1), hit(0, cost=3, due=no("cost", None)), hit(0, cost=2, due=no("budget")),
        wall_ms=NOON,
    )
    yield case(
        "the budget comes before the limits", policy("1/s", budget={"daily": 1}),
        hit(0, due=yes(0)), spend(0, 1), hit(0, due=no("budget", 12 * HOUR)), wall_ms=NOON,
    )
    yield case(
        "a cooldown comes before the limits", policy("1/h window", cooldown="10s"),
        hit(0, due=yes(0)), hit(1000, due=no("1/h", HOUR - 1000)),
        hit(1001, due=no("cooldown", HOUR - 1001)),
        hit(11_000, due=no("1/h", HOUR - 11_000)),
    )
    yield case(
        "peek judges in the same order", rules(default=ALL),
        trouble(), peek(1, cost=2, due=no("cost", None)), peek(1, due=no("budget")),
        step("set_wall", 1, wall_ms=NOON + DAY), peek(1, due=no("cooldown")),
        peek(10_000, due=no("backoff")),
        peek(HOUR, due=yes(0)), wall_ms=NOON,
    )
    yield case(
        "check judges in the same order", rules(default=ALL),
        trouble(), check(1, cost=2, due=no("cost", None)), check(1, due=no("budget")),
        step("set_wall", 1, wall_ms=NOON + DAY), check(1, due=no("cooldown")),
        check(10_000, due=no("backoff")), check(HOUR, due=yes(1)), wall_ms=NOON,
    )
