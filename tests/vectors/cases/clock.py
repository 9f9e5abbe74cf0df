"""Clocks that misbehave. A surface whose manual clock can't go back may leave this file out."""

from .dsl import *

ABOUT = (
    "time only moves forward: a clock that stands still or goes back grants nothing extra and "
    "wedges nothing"
)

REFUSED, PASSES = {"allowed": False}, {"allowed": True}
VAGUE = (
    "limit", "remaining", "reason", "retry_after_ms", "reset_after_ms", "notify", "warning",
    "alert",
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
        hit(DAY * 3650 + 2999, due=no("20/min", 1)), hit(DAY * 3650 + 3000, due=yes(0)),
        start_ms=DAY * 3650,
    )
    yield case(
        "a wall clock that is set back changes no limit", policy("2/s"),
        hits(0, 2), step("set_wall", 0, wall_ms=NOON - DAY), hit(0, due=no("2/s", 500)),
        hit(500, due=yes(0)),
        wall_ms=NOON,
    )
    yield case(
        "a key that slept for a year is as new", policy("3/s, 100/h window"),
        hit(0, cost=3, due=yes(0)), stats(365 * DAY, due=None), hit(365 * DAY, cost=3, due=yes(0)),
    )
    yield from notes()
    yield from days()
    yield from changed()


def notes():
    """What denials lead to, under a clock that goes back by 90,000 s. A `max` of 0
    denies and spends nothing."""
    then, now = 100_000 * SECOND, 10_000 * SECOND
    yield case(
        "a cooldown that began ahead of the clock begins now and lasts its own time",
        policy("5/s", cooldown="1m"),
        hit(then, max=0, due=no("5/s", None)), hit(then + 30_000, due=no("cooldown", 30_000)),
        hit(now, due=no("cooldown", 60_000)), hit(now + 59_999, due=no("cooldown", 1)),
        hit(now + 60_000, due=yes(4)), start_ms=then,
    )
    yield case(
        "a look at a cooldown that began ahead of the clock reports no more than it, and leaves it",
        policy("5/s", cooldown="1m"),
        hit(then, max=0, due=no("5/s", None)), peek(now, due=no("cooldown", 60_000)),
        is_limited(now, due=True),
        stats(now, due={"cooldown_left_ms": 60_000}), peek(now + 1000, due=no("cooldown", 60_000)),
        hit(then + 10_000, due=no("cooldown", 50_000)), start_ms=then,
    )
    firm = {"steps": ["7s"], "quiet": "1m", "enforce": True}
    yield case(
        "an enforced step that began ahead of the clock lasts its own time",
        policy("1/s", backoff=firm),
        hit(then, due=yes(0)), hit(then, due=no("1/s", 7000)), refund(then),
        hit(now, due=no("backoff", 7000)),
        hit(now + 6999, due=no("backoff", 1)), hit(now + 7000, due=yes(0)), start_ms=then,
    )
    yield case(
        "quiet ends a run that began ahead of the clock",
        policy("5/s", backoff={"steps": ["1s", "2s"], "quiet": "1m"}),
        hit(then, max=0, due=no("5/s", None)), hit(now, due=yes(4)),
        is_limited(now + 59_999, due=True),
        is_limited(now + 60_000, due=False), start_ms=then,
    )
    yield case(
        "a span of violations that began ahead of the clock forgets none, and lasts its own time",
        policy("5/s", alert={"violations": 3, "within": "1m"}),
        hit(then, max=0, due=no("5/s", None, alert=False), repeat=2),
        stats(now, due={"violations": 2}),
        hit(now, max=0, due=no("5/s", None, alert=True)),
        stats(now + 59_999, due={"violations": 3}),
        stats(now + 60_000, due=None), start_ms=then,
    )


def days():
    money = policy("1000/s", budget={"daily": 5})
    for years in (1, 4, 56):
        yield case(
            f"what was spent under a wall clock {years} years ahead is spent today and no longer",
            money,
            step("set_wall", 0, wall_ms=NOON + years * 365 * DAY), spend(0, 5),
            step("set_wall", 0, wall_ms=NOON),
            budget(0, due={"spent": 5, "over": True}), hit(0, due=no("budget", 12 * HOUR)),
            hit(12 * HOUR - 1, due=no("budget", 1)), hit(12 * HOUR, due=yes(999)),
            budget(12 * HOUR, due={"spent": 0, "over": False}),
        )
    yield case(
        "what is spent after a wall clock went back is added to what was", money,
        spend(0, 3), step("set_wall", 0, wall_ms=12 * HOUR), hit(0, due=yes(999)),
        spend(0, 2, due={"spent": 5}),
        hit(0, due=no("budget", 12 * HOUR)), hit(12 * HOUR, due=yes(999)), wall_ms=NOON,
    )


def changed():
    """Run-time changes that end, under a clock that goes back."""
    then, now = 100_000 * SECOND, 10_000 * SECOND
    start = {"start_ms": then, "wall_ms": NOON}
    back = NOON + now - then  # the wall clock's time at `now`
    yield case(
        "a block that was made ahead of the clock begins now and lasts its own time",
        policy("5/min"),
        block(then, for_ms=60_000), hit(then + 30_000, due=no("blocked", 30_000)),
        hit(now, due=no("blocked", 60_000)),
        blocks(now + 1000, [blocked("a", back + 60_000)]), hit(now + 59_999, due=no("blocked", 1)),
        hit(now + 60_000, due=yes(4)), blocks(now + 60_000, []), **start,
    )
    yield case(
        "a block that began before the time that a clock went back to ends when it would have",
        policy("5/min"),
        block(10_000, for_ms=60_000), hit(40_000, due=no("blocked", 30_000)),
        hit(20_000, due=no("blocked", 50_000)),
        hit(69_999, due=no("blocked", 1)), hit(70_000, due=yes(4)), start_ms=10_000,
    )
    yield case(
        "a block without an end stays under a clock that goes back", policy("5/min"),
        block(then), hit(now, due=no("blocked", None)), hit(then + DAY, due=no("blocked", None)),
        **start,
    )
    yield case(
        "an override and a default that were made ahead of the clock last their own time",
        policy("5/min window", ceiling=9),
        override(then, "a", {"5/min": {"max": 9}}, for_ms=60_000),
        set_default(then, {"5/min": {"max": 8}}, for_ms=30_000),
        hit(now, "b", due=PASSES | {"limit": 8}), hit(now + 29_999, "b", due=PASSES | {"limit": 8}),
        hit(now + 30_000, "b", due=PASSES | {"limit": 5}),
        hit(now + 59_999, "a", due=PASSES | {"limit": 9}),
        hit(now + 60_000, "a", due=PASSES | {"limit": 5}), **start,
    )
    free = {"allowed": True, "reason": "exempt"}
    yield case(
        "exemptions that were made ahead of the clock last their own time",
        policy("1/h", exempt=[{"key": "root"}]),
        set_exempts(then, [{"key": "a"}], for_ms=60_000),
        add_exempt(then, {"key": "b"}, for_ms=30_000),
        hit(now, due=free),
        hit(now + 29_999, "b", due=free), hit(now + 30_000, "b", due=yes(0)),
        hit(now + 59_999, due=free),
        hit(now + 59_999, "root", due=yes(0)), hit(now + 60_000, due=yes(0)),
        hit(now + 60_000, "root", due=free), **start,
    )
    yield case(
        "a mode that was set ahead of the clock lasts its own time", policy("1/h"),
        set_mode(then, "off", for_ms=60_000), hit(now, cost=9, due={"reason": "off"}),
        hit(now + 59_999, cost=9, due={"reason": "off"}), hit(now + 60_000, cost=9, due=no("cost")),
        **start,
    )
    yield case(
        "a change that is made after a clock went back lasts its own time, beside one that was "
        "made ahead",
        policy("5/min"),
        block(then, "a", for_ms=60_000), block(now, "b", due=2, for_ms=90_000),
        hit(now + 59_999, "a", due=no("blocked", 1)),
        hit(now + 60_000, "a", due=yes(4)), hit(now + 60_000, "b", due=no("blocked", 30_000)),
        hit(now + 90_000, "b", due=yes(4)), **start,
    )
