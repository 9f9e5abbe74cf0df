"""Fixed window."""

from .dsl import *

ABOUT = "fixed: a count that starts at the key's first hit and is forgotten one period later"

FORMS = [
    ("5/10s fixed", 5, 10_000), ("60/min fixed", 60, MINUTE), ("1/day fixed", 1, DAY),
    ("1000000/h fixed", 10**6, HOUR),
]


def cases():
    for text, most, per in FORMS:
        name = text.split(" ")[0]
        yield case(
            f"a fixed window {text} starts at the first hit and is forgotten its period later",
            policy(text),
            hit(1234, due=yes(most - 1, reset_after_ms=per)),
            *([hit(2000, cost=most - 1, due=yes(0, reset_after_ms=per - 766))] if most > 1 else []),
            hit(2000, due=no(name, per - 766, limit=most, remaining=0, reset_after_ms=per - 766)),
            hit(1233 + per, due=no(name, 1)),
            hit(1234 + per, due=yes(most - 1, reset_after_ms=per)),
            start_ms=1000,
        )
    yield case(
        "a fixed window lets twice its max pass around its edge, as such windows do",
        policy("3/s fixed"),
        hit(0, due=yes(2)), hit(999, cost=2, due=yes(0)), hit(999, due=no("3/s", 1)),
        hit(1000, cost=3, due=yes(0)),
    )
    yield case(
        "the next fixed window starts at the next hit, not at the end of the last",
        policy("2/s fixed"),
        hits(0, 2), hit(1700, due=yes(1, reset_after_ms=1000)),
        hit(2699, due=yes(0, reset_after_ms=1)),
        hit(2699, due=no("2/s", 1)), hit(2700, due=yes(1)),
    )
    yield case(
        "a denied hit starts no fixed window", policy("1/s fixed"),
        hit(0, due=yes(0)), hit(999, due=no("1/s", 1)), hit(1500, due=yes(0, reset_after_ms=1000)),
        hit(2499, due=no("1/s", 1)), hit(2500, due=yes(0)),
    )
    yield case(
        "a fixed window's wait is the same for every cost that fits it", policy("10/min fixed"),
        hit(0, cost=8, due=yes(2)), hit(20_000, cost=3, due=no("10/min", 40_000, remaining=2)),
        hit(20_000, cost=10, due=no("10/min", 40_000)), hit(20_000, cost=2, due=yes(0)),
        hit(60_000, cost=10, due=yes(0)),
    )
    yield case(
        "a hit of cost 0 starts no fixed window", policy("2/s fixed"),
        hit(0, cost=0, due=yes(2)), hit(600, due=yes(1, reset_after_ms=1000)),
        hit(1500, due=yes(0)),
        hit(1500, due=no("2/s", 100)),
    )
