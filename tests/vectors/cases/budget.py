"""Daily budgets."""

from .dsl import *

ABOUT = (
    "budget: whole units spent in a UTC day; when spent >= daily, hits are denied until the reset "
    "hour"
)

CENTS = {"daily": 500, "per_hit": 50, "unit": "cents"}


def cases():
    rule = policy("10/s", budget=CENTS)
    yield case(
        "nothing is spent at first", rule,
        budget(
            0,
            due={
                "spent": 0, "remaining": 500, "over": False, "over_per_hit": False,
                "reset_after_ms": 12 * HOUR,
            },
        ),
        wall_ms=NOON,
    )
    yield case(
        "spending adds up and is over at the daily amount", rule,
        spend(0, 100, due={"spent": 100, "remaining": 400, "over": False}),
        spend(0, 399, due={"spent": 499, "remaining": 1, "over": False}), hit(0, due=yes(9)),
        spend(0, 1, due={"spent": 500, "remaining": 0, "over": True}),
        hit(0, due=no("budget", 12 * HOUR, limit=None, remaining=0)), wall_ms=NOON,
    )
    yield case(
        "spend always records, also beyond the budget", rule,
        spend(0, 700, due={"spent": 700, "remaining": 0, "over": True}),
        spend(0, 5, due={"spent": 705, "remaining": 0}),
        budget(
            1000, due={"spent": 705, "over": True, "over_per_hit": False,
                       "reset_after_ms": 12 * HOUR - 1000},
        ),
        wall_ms=NOON,
    )
    yield case(
        "over_per_hit is about this spend", rule,
        spend(0, 50, due={"over_per_hit": False}), spend(0, 51, due={"over_per_hit": True}),
        spend(0, 1, due={"over_per_hit": False}), wall_ms=NOON,
    )
    yield case(
        "a budget starts anew at midnight UTC, not a millisecond before", rule,
        spend(0, 500, due={"over": True}), hit(12 * HOUR - 1, due=no("budget", 1)),
        budget(12 * HOUR - 1, due={"spent": 500, "reset_after_ms": 1}), hit(12 * HOUR, due=yes(9)),
        budget(12 * HOUR, due={"spent": 0, "remaining": 500, "over": False, "reset_after_ms": DAY}),
        wall_ms=NOON,
    )
    yield case(
        "a budget starts anew at its reset hour",
        policy("10/s", budget={"daily": 10, "reset_hour_utc": 18}),
        spend(0, 10, due={"over": True, "reset_after_ms": 6 * HOUR}),
        hit(0, due=no("budget", 6 * HOUR)),
        hit(6 * HOUR - 1, due=no("budget", 1)), hit(6 * HOUR, due=yes(9)),
        budget(6 * HOUR, due={"spent": 0, "reset_after_ms": DAY}), wall_ms=NOON,
    )
    yield case(
        "a reset hour that has passed today resets tomorrow",
        policy("10/s", budget={"daily": 10, "reset_hour_utc": 6}),
        spend(0, 10, due={"reset_after_ms": 18 * HOUR}), hit(12 * HOUR, due=no("budget", 6 * HOUR)),
        hit(18 * HOUR, due=yes(9)), wall_ms=NOON,
    )
    yield case(
        "a budget goes by the wall clock", rule,
        spend(0, 500), hit(0, due=no("budget", 12 * HOUR)),
        step("set_wall", 0, wall_ms=NOON + 11 * HOUR),
        hit(0, due=no("budget", HOUR)), step("set_wall", 0, wall_ms=NOON + 12 * HOUR),
        hit(0, due=yes(9)),
        budget(0, due={"spent": 0}), wall_ms=NOON,
    )
    yield case(
        "budgets are each key's own", rule,
        spend(0, 500, "a"), hit(0, "a", due=no("budget")), hit(0, "b", due=yes(9)),
        budget(0, "b", due={"spent": 0}), wall_ms=NOON,
    )
    yield case(
        "a hit denied by the budget takes nothing from the limits", rule,
        spend(0, 500), hit(0, due=no("budget"), repeat=20),
        stats(0, due={"limits": {"10/s": {"used": 0}}, "budget": {"spent": 500, "remaining": 0}}),
        wall_ms=NOON,
    )
    yield case(
        "a limit's longer wait is reported with a budget's denial",
        policy("1/2day window", budget={"daily": 1}),
        hit(0, due=yes(0)), spend(0, 1), hit(0, due=no("budget", 2 * DAY)), wall_ms=NOON,
    )
    yield case(
        "a budget of 0 denies always", policy("10/s", budget={"daily": 0}),
        hit(0, due=no("budget", 12 * HOUR)), hit(12 * HOUR, due=no("budget", DAY)), wall_ms=NOON,
    )
    yield case(
        "a budget is denied before a cooldown", policy("1/s", cooldown="30s", budget={"daily": 5}),
        hit(0, due=yes(0)), hit(0, due=no("1/s", 30_000)), hit(1, due=no("cooldown", 29_999)),
        spend(1, 5),
        hit(1, due=no("budget", 12 * HOUR - 1)), wall_ms=NOON,
    )
    yield case(
        "a budget's denial starts no cooldown and no backoff",
        policy(
            "10/s", cooldown="1h", backoff={"steps": ["9s"], "quiet": "1m"},
            budget={"daily": 5, "reset_hour_utc": 12},
        ),
        spend(0, 5), hit(0, due=no("budget", 1000), repeat=3), is_limited(0, due=False),
        hit(1000, due=yes(9)), wall_ms=NOON - 1000,
    )
    yield case(
        "a budget's denial may be checked and peeked at", rule,
        check(0, due=yes(10)), spend(0, 500), check(0, due=no("budget", 12 * HOUR, notify=True)),
        peek(0, due=no("budget", 12 * HOUR, notify=False)), is_limited(0, due=True), wall_ms=NOON,
    )
    yield case(
        "a budget of a rule without one is an error", policy("10/s"),
        step("spend", 0, "a", amount=1, error="budget"), step("budget", 0, "a", error="budget"),
        hit(0, due=yes(9)),
    )
    yield case(
        "a reset forgets the budget", rule,
        spend(0, 500), reset(0), budget(0, due={"spent": 0}), hit(0, due=yes(9)), wall_ms=NOON,
    )
    yield case(
        "large amounts add up exactly",
        policy("10/s", budget={"daily": 5_000_000_000, "unit": "tokens"}),
        spend(0, 4_999_999_999, due={"remaining": 1, "over": False}),
        spend(0, 1, due={"spent": 5_000_000_000, "over": True}), wall_ms=NOON,
    )
