"""What is known of a key."""

from .dsl import *

ABOUT = (
    "stats: each limit's numbers, cooldown left, violations, budget; none for a key as good as new"
)


def cases():
    # limit, and what still counts in the last millisecond
    for text, last in [("4/min", 1), ("4/min window", 4), ("4/min fixed", 4), ("4/min counter", 1)]:
        gone = 120_000 if "counter" in text else 60_000
        yield case(
            f"stats of {text} until it is as new", policy(text),
            stats(0, due=None), hit(0, cost=4, due=yes(0)),
            stats(
                0,
                due={
                    "limits": {"4/min": {
                        "used": 4, "max": 4, "remaining": 0, "reset_after_ms": gone,
                    }},
                    "cooldown_left_ms": 0, "violations": 0,
                },
            ),
            stats(
                gone - 1,
                due={"limits": {"4/min": {"used": last, "reset_after_ms": 1}}},
            ),
            stats(gone, due=None),
        )
    yield case(
        "a denial, a peek and a check of cost 0 make no stats", policy("4/min"),
        hit(0, cost=5, due=no("cost", None)), hit(0, cost=0, due=yes(4)), peek(0, due=yes(3)),
        check(0, due=yes(4)), stats(0, due=None),
    )
    yield case(
        "stats of several limits, by name",
        policy({"a": "10/s", "b": "5/min window", "c": "60/h fixed"}),
        hit(0, cost=2, due=yes(3, limit=5)),
        stats(
            100,
            due={"limits": {
                "a": {"used": 1, "max": 10, "remaining": 9, "reset_after_ms": 100},
                "b": {"used": 2, "max": 5, "remaining": 3, "reset_after_ms": 59_900},
                "c": {"used": 2, "max": 60, "remaining": 58, "reset_after_ms": HOUR - 100},
            }},
        ),
    )
    yield case(
        "what a bucket has used is rounded up as what is left is rounded down", policy("10/s"),
        hit(0, cost=3, due=yes(7)),
        stats(50, due={"limits": {"10/s": {"used": 3, "remaining": 7, "reset_after_ms": 250}}}),
    )
    yield case(
        "stats of a bucket with a burst count from its size", policy("60/min burst 100"),
        hit(0, cost=30, due=yes(70)),
        stats(0,
              due={"limits": {"60/min": {"used": 30, "remaining": 70, "reset_after_ms": 30_000}}}),
    )
    yield case(
        "the cooldown left is in the stats though the limit is as new",
        policy("10/s", cooldown="20s"),
        hits(0, 10), hit(0, due=no("10/s", 20_000)), stats(500, due={"cooldown_left_ms": 19_500}),
        stats(19_999, due={"cooldown_left_ms": 1, "limits": {"10/s": {"used": 0}}}),
        stats(20_000, due=None),
    )
    yield case(
        "violations are those of the open alert span",
        policy("1/s", alert={"violations": 10, "within": "30s"}),
        hit(0, due=yes(0)), hit(0, due=no("1/s"), repeat=3), stats(0, due={"violations": 3}),
        stats(29_999, due={"violations": 3}), stats(30_000, due=None),
    )
    yield case(
        "violations without an alert are those of the backoff's run",
        policy("1/s", backoff={"steps": ["1s"], "quiet": "10s"}),
        hit(0, due=yes(0)), hit(0, due=no("1/s"), repeat=2), stats(0, due={"violations": 2}),
        hit(5000, due=yes(0)), hit(5000, due=no("1/s")), stats(14_999, due={"violations": 3}),
        stats(15_000, due=None),
    )
    yield case(
        "violations without alert or backoff are none", policy("1/min window", cooldown="5s"),
        hit(0, due=yes(0)), hit(0, due=no("1/min"), repeat=1),
        stats(0, due={"violations": 0, "cooldown_left_ms": 5000}),
    )
    yield case(
        "the budget is in the stats", policy("10/s", budget={"daily": 100}),
        spend(0, 30),
        stats(
            0,
            due={
                "budget": {"spent": 30, "remaining": 70, "over": False,
                           "reset_after_ms": 12 * HOUR},
                "limits": {"10/s": {"used": 0}},
            },
        ),
        stats(12 * HOUR - 1, due={"budget": {"spent": 30}}), stats(12 * HOUR, due=None),
        wall_ms=NOON,
    )
    yield case(
        "stats show what an override makes of a key", policy("10/min window", ceiling=50),
        hit(0, cost=4, due=yes(6)), step("set_override", 0, "a", limits={"10/min": {"max": 30}}),
        stats(0, due={"limits": {"10/min": {"used": 4, "max": 30, "remaining": 26}}}),
    )
    yield case(
        "stats of a key of parts with a wider limit",
        policy({"own": "5/min",
                "all": {"max": 100, "per": "1m", "algorithm": "window", "scope": []}}),
        hit(0, "a", 2, due=yes(3)), hit(0, "b", 3, due=yes(2)),
        stats(0, "a", due={"limits": {"own": {"used": 2}, "all": {"used": 5, "remaining": 95}}}),
    )
    yield case(
        "a key that was refunded fully is as new", policy("5/min, 10/h window"),
        hit(0, cost=3, due=yes(2)), refund(0, cost=3), stats(0, due=None),
    )
