"""Warnings."""

from .dsl import *

ABOUT = "warn_at: an allowed hit that leaves less than 1 - warn_at of a limit sets warning"

CALM, WARNED = {"allowed": True, "warning": False}, {"allowed": True, "warning": True}


def cases():
    for text in ("60/min", "60/min window", "60/min fixed", "60/min counter"):
        yield case(
            f"0.8 of 60 warns below 12 left, by {text}", policy(text, warn_at=0.8),
            hit(0, cost=48, due=CALM | {"remaining": 12}), hit(0, due=WARNED | {"remaining": 11}),
            hit(0, cost=11, due=WARNED | {"remaining": 0}), hit(0, due=no("60/min", warning=False)),
        )
    # warn_at, size, the least that is left without a warning
    for warn_at, size, least in [
        (0.9, 10, 1), (0.7, 10, 3), (0.5, 2, 1), (0.1, 10, 9), (0.95, 100, 5), (0.35, 20, 13),
        (0.6, 5, 2),
    ]:
        yield case(
            f"warn_at {warn_at} of {size} is compared exactly",
            policy(f"{size}/min window", warn_at=warn_at),
            hit(0, cost=size - least, due=CALM | {"remaining": least}),
            hit(0, due=WARNED | {"remaining": least - 1}),
        )
    yield case(
        "a hit of nothing warns of what it finds", policy("10/min", warn_at=0.8),
        hit(0, cost=0, due=CALM), hit(0, cost=9, due=WARNED),
        hit(0, cost=0, due=WARNED | {"remaining": 1}),
        peek(0, cost=0, due=WARNED),
    )
    yield case(
        "no warning without warn_at", policy("2/min"),
        hit(0, due=CALM), hit(0, due=CALM | {"remaining": 0}),
        hit(0, due=no("2/min", warning=False)),
    )
    yield case(
        "warn_at 1 never warns", policy("2/min", warn_at=1),
        hits(0, 2), peek(30_000, due=CALM | {"remaining": 0}),
    )
    yield case(
        "warn_at 0 warns on all but an untouched limit", policy("2/min", warn_at=0),
        hit(0, cost=0, due=CALM), hit(0, due=WARNED),
    )
    yield case(
        "any limit of the rule may warn", policy("60/min, 4/s", warn_at=0.5),
        hit(0, cost=2, due=CALM), hit(0, due=WARNED | {"remaining": 1}),
        hit(1000, due=CALM | {"remaining": 3}),
    )
    yield case(
        "a limit that is not the one with the least left may warn",
        policy({"large": "100/min window", "small": "10/s window"}, warn_at=0.8),
        [hit(at * 1000, cost=8, due=CALM) for at in range(10)],
        hit(10_000, due=WARNED | {"limit": 10, "remaining": 9}),
    )
    yield case(
        "the size of a bucket with a burst is what warn_at is a part of",
        policy("60/min burst 10", warn_at=0.8),
        hit(0, cost=8, due=CALM | {"remaining": 2}), hit(0, due=WARNED | {"remaining": 1}),
        hit(2000, due=CALM | {"remaining": 2}),
    )
    yield case(
        "a peek says whether a hit would warn", policy("5/min", warn_at=0.8),
        hit(0, cost=3, due=CALM), peek(0, due=CALM | {"remaining": 1}),
        peek(0, cost=2, due=WARNED | {"remaining": 0}), hit(0, cost=2, due=WARNED),
    )
    yield case(
        "a permit may warn", policy("5 concurrent", warn_at=0.6),
        permit(0, "p", due=CALM), permit(0, "q", due=CALM),
        permit(0, "r", due=CALM | {"remaining": 2}),
        permit(0, "s", due=WARNED),
    )
    yield case(
        "warnings stop when the window has slid", policy("4/s window", warn_at=0.5),
        hits(0, 2), hit(999, due=WARNED), hit(1000, due=CALM | {"remaining": 2}),
    )
