"""Cost edges."""

from .dsl import *

ABOUT = "cost: 0 spends nothing, above the limit never passes; max 0 means never"

FOUR = ["3/min", "3/min window", "3/min counter", "3/min fixed"]


def cases():
    for text in FOUR:
        yield case(
            f"a cost of 0 spends nothing and makes no row, by {text}", policy(text),
            hit(0, cost=0, due=yes(3, limit=3, reset_after_ms=0), repeat=9), stats(0, due=None),
            hit(0, cost=3, due=yes(0)), hit(0, cost=0, due=yes(0)), check(0, cost=0, due=yes(0)),
        )
        yield case(
            f"a cost above the limit is denied for ever and counts as nothing, by {text}",
            policy(text),
            hit(0, cost=4, due=no("cost", None, limit=3, remaining=3, reset_after_ms=0)),
            hit(0, cost=1_000_000_000, due=no("cost", None)), stats(0, due=None),
            hit(0, due=yes(2)),
            hit(0, cost=4, due=no("cost", None, limit=3, remaining=2)), hit(0, cost=2, due=yes(0)),
        )
        name = text.replace("3", "0")
        yield case(
            f"max 0 means never, by {name}", policy(name),
            hit(0, due=no("0/min", None, limit=0, remaining=0)), hit(DAY, due=no("0/min", None)),
            check(DAY, due=no("0/min", None)), peek(DAY, due=no("0/min", None)),
            allow(DAY, due=False),
            is_limited(DAY, due=True),
        )
    yield case(
        "a cost above the burst is denied for ever though max is larger", policy("100/s burst 20"),
        hit(0, cost=21, due=no("cost", None, limit=20, remaining=20)), hit(0, cost=20, due=yes(0)),
    )
    yield case(
        "a cost between max and a larger burst passes", policy("10/s burst 50"),
        hit(0, cost=11, due=yes(39)), hit(0, cost=50, due=no("10/s", 1100)),
    )
    yield case(
        "the smallest limit decides what can never pass",
        policy({"big": "100/min window", "small": "4/s window", "mid": "10/s fixed"}),
        hit(0, cost=5, due=no("cost", None, limit=4, remaining=4)), hit(0, cost=3, due=yes(1)),
        hit(0, cost=5, due=no("cost", None, limit=4, remaining=1)),
    )
    yield case(
        "of equally small limits the first declared is reported with reason cost",
        policy({"x": "4/min", "y": "4/s"}),
        hit(0, cost=2, due=yes(2)), hit(400, cost=5, due=no("cost", None, limit=4, remaining=2)),
    )
    yield case(
        "max 0 beside other limits is named, and nothing is taken",
        policy({"ok": "5/min window", "never": {"max": 0, "per": "1m"}}),
        hit(0, due=no("never", None, limit=0, remaining=0), repeat=3), stats(0, due=None),
    )
    yield case(
        "a denial by max 0 is told and counted like others",
        policy({"l": {"max": 0, "per": "1m"}}, alert={"violations": 2, "within": "1m"},
               notify="once"),
        hit(0, due=no("l", None, notify=True, alert=False)),
        hit(0, due=no("l", None, notify=False, alert=True)),
    )
    yield case(
        "the largest cost passes the largest limit", policy("1000000000/day fixed"),
        hit(0, cost=1_000_000_000, due=yes(0, limit=1_000_000_000)),
        hit(0, due=no("1000000000/day", DAY)),
    )
    yield case(
        "a cost of 0 is refused in a cooldown", policy("1/s", cooldown="5s"),
        hit(0, due=yes(0)), hit(0, due=no("1/s", 5000)),
        hit(1000, cost=0, due=no("cooldown", 4000)),
        hit(5000, cost=0, due=yes(1)),
    )
    yield case(
        "a cost of 0 is refused when the budget is spent", policy("1/s", budget={"daily": 1}),
        spend(0, 1), hit(0, cost=0, due=no("budget", 12 * HOUR)), wall_ms=NOON,
    )
