"""Clocks that misbehave. A surface whose manual clock can't go back may leave this file out."""

from .dsl import *

ABOUT = "time only moves forward: a clock that stands still or goes back grants nothing extra and wedges nothing"

REFUSED, PASSES = {"allowed": False}, {"allowed": True}
VAGUE = (
    "limit", "remaining", "reason", "retry_after_ms", "reset_after_ms", "notify", "warning", "alert",
    "would_deny", "attach",
)


def cases():
    for text in ("5/s", "5/s window", "5/s fixed", "5/s counter"):
        yield case(
            f"a clock that stands still grants {text} once", policy(text),
            hits(7000, 5), hit(7000, due=no("5/s"), repeat=30), start_ms=7000,
        )
    for text in ("5/s", "5/s window"):
        yield case(
            f"a clock that goes back grants nothing extra of {text}", policy(text),
            hits(10_000, 5), [hit(at, due=REFUSED, leave=VAGUE) for at in (9999, 9000, 5000, 1)],
            start_ms=10_000,
        )
        yield case(
            f"a clock that went back and comes home finds {text} as it should be", policy(text),
            hits(10_000, 5), hit(4000, due=REFUSED, leave=VAGUE),
            hit(20_000, cost=5, due=PASSES, leave=VAGUE), start_ms=10_000,
        )
    yield case(
        "a clock may start late", policy("2/min window"),
        hits(DAY * 3650, 2), hit(DAY * 3650 + 59_999, due=no("2/min", 1)),
        hit(DAY * 3650 + 60_000, due=yes(1)), start_ms=DAY * 3650,
    )
    yield case(
        "a bucket over a clock that starts late", policy("20/min"),
        hit(DAY * 3650, cost=20, due=yes(0)), hit(DAY * 3650, due=no("20/min", 3000)),
        hit(DAY * 3650 + 2999, due=no("20/min", 1)), hit(DAY * 3650 + 3000, due=yes(0)), start_ms=DAY * 3650,
    )
    yield case(
        "a wall clock that is set back changes no limit", policy("2/s"),
        hits(0, 2), step("set_wall", 0, wall_ms=NOON - DAY), hit(0, due=no("2/s", 500)), hit(500, due=yes(0)),
        wall_ms=NOON,
    )
    yield case(
        "a key that slept for a year is as new", policy("3/s, 100/h window"),
        hit(0, cost=3, due=yes(0)), stats(365 * DAY, due=None), hit(365 * DAY, cost=3, due=yes(0)),
    )
