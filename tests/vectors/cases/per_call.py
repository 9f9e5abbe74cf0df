"""Per-call max, and the ceiling."""

from .dsl import *

ABOUT = (
    "max: a per-call max for rules of one limit; ceiling: the largest that may be asked of a window"
)


def cases():
    yield case(
        "a per-call max is this call's limit", policy("5/min window", ceiling=50),
        hit(0, max=3, due=yes(2, limit=3)), hit(0, max=3, due=yes(1)), hit(0, max=3, due=yes(0)),
        hit(0, max=3, due=no("5/min", 60_000, limit=3, remaining=0)), hit(0, due=yes(1, limit=5)),
        hit(0, max=50, due=yes(45, limit=50)), hit(0, max=4, due=no("5/min", limit=4, remaining=0)),
    )
    yield case(
        "a per-call max of a bucket moves an unwritten burst and the rate", policy("60/min"),
        hit(0, max=120, due=yes(119, limit=120, reset_after_ms=500)),
        hit(0, "b", max=6, due=yes(5, limit=6, reset_after_ms=10_000)),
    )
    yield case(
        "a per-call max of a bucket leaves a written burst", policy("60/min burst 5"),
        hit(0, cost=5, max=120, due=yes(0, limit=5, reset_after_ms=2500)),
        hit(0, max=120, due=no("60/min", 500, limit=5)),
    )
    yield case(
        "a bucket is cut to the per-call max", policy("60/min"),
        hit(0, cost=10, due=yes(50)), hit(0, max=20, due=yes(19, limit=20)),
        hit(0, due=yes(18, limit=60)),
    )
    yield case(
        "a per-call max of a counter and of a fixed window",
        rules(c={"limits": "10/min counter"}, f={"limits": "10/min fixed"}),
        [
            [
                hit(0, rule=rule, cost=4, due=yes(6)),
                hit(0, rule=rule, max=4, due=no("10/min", limit=4, remaining=0)),
                hit(0, rule=rule, max=1000, due=yes(995, limit=1000)),
            ]
            for rule in "cf"
        ],
    )
    yield case(
        "a per-call max of 0 denies for ever", policy("5/min"),
        hit(0, max=0, due=no("5/min", None, limit=0, remaining=0)), hit(0, due=yes(4)),
    )
    yield case(
        "a cost above the per-call max can never pass", policy("5/min"),
        hit(0, cost=4, max=3, due=no("cost", None, limit=3)), hit(0, cost=8, max=10, due=yes(2)),
    )
    yield case(
        "a per-call max on a rule of several limits is an error", policy("5/min, 2/s"),
        hit(0, max=3, error="max"), hit(0, due=yes(1, limit=2)),
    )
    yield case(
        "a per-call max above the ceiling is an error and changes nothing",
        policy("5/min window", ceiling=10),
        hit(0, max=11, error="ceiling"), hit(0, max=10, due=yes(9, limit=10)),
        stats(0, due={"limits": {"5/min": {"used": 1}}}),
    )
    yield case(
        "the ceiling is the window's max unless said", policy("5/min window"),
        hit(0, max=6, error="ceiling"), hit(0, max=5, due=yes(4)),
    )
    yield case(
        "the ceiling is the largest max of the rule's entries unless said",
        policy("5/min window", when=[{"match": {"t": "x"}, "limits": {"5/min": {"max": 9}}}]),
        hit(0, max=10, error="ceiling"), hit(0, max=9, due=yes(8, limit=9)),
    )
    yield case(
        "a per-call max wins over when and overrides",
        policy("5/min window", ceiling=50,
               when=[{"match": {"t": "x"}, "limits": {"5/min": {"max": 6}}}]),
        step("set_override", 0, "a", limits={"5/min": {"max": 7}}),
        hit(0, max=9, due=yes(8, limit=9), attributes={"t": "x"}),
        hit(0, due=yes(5, limit=7), attributes={"t": "x"}),
        hit(0, "b", due=yes(5, limit=6), attributes={"t": "x"}),
    )
    yield case(
        "a bucket has no ceiling", policy("5/min"),
        hit(0, max=1_000_000, due=yes(999_999, limit=1_000_000)),
    )
    yield case(
        "a denial by a per-call max starts the cooldown", policy("5/min window", cooldown="10s"),
        hit(0, due=yes(4)), hit(0, max=1, due=no("5/min", 60_000)),
        hit(1, due=no("cooldown", 9999)),
    )
