"""Exact sliding window."""

from .dsl import *

ABOUT = "window: what was spent in (now - per, now] plus the cost is at most max"

FORMS = [("5/10s window", 5, 10_000), ("20/min window", 20, MINUTE), ("1/h window", 1, HOUR),
         ("3/100ms window", 3, 100), ("200/h window", 200, HOUR), ("4096/day window", 4096, DAY),
         ("7/min window", 7, MINUTE), ("1/1ms window", 1, 1)]


def cases():
    for text, most, per in FORMS:
        # A thousand slots and more for each of 65,536 keys would be refused: too much memory.
        yield from edges(text, policy(text, capacity=64) if most > 200 else policy(text), most, per)
    yield from slides()
    yield from costs()


def edges(text, rule, most, per):
    name = text.split(" ")[0]
    yield case(
        f"a window {text} forgets what was spent exactly its period ago", rule,
        hit(7, cost=most, due=yes(0, limit=most, reset_after_ms=per)),
        hit(7, due=no(name, per, limit=most, remaining=0, reset_after_ms=per)),
        hit(6 + per,
            due={"allowed": False} if per > 1 else {"allowed": False, "retry_after_ms": 1}),
        hit(7 + per, due=yes(most - 1)),
        start_ms=7,
    )
    yield case(
        f"a window {text} takes single hits up to its max", rule,
        hits(0, most), hit(0, due=no(name, per)), left(per, most),
    )


def slides():
    yield case(
        "a window gives back hit by hit", policy("3/10s window"),
        hit(0, due=yes(2, reset_after_ms=10_000)),
        hit(3000, due=yes(1, reset_after_ms=10_000)),
        hit(6000, due=yes(0)),
        hit(6000, due=no("3/10s", 4000)),
        hit(9999, due=no("3/10s", 1)),
        hit(10_000, due=yes(0)),
        hit(12_999, due=no("3/10s", 1)),
        hit(13_000, due=yes(0)),
        hit(16_000, due=yes(0)),
        hit(16_000, due=no("3/10s", 4000)),
    )
    yield case(
        "a window has no edge at which twice its max could pass", policy("5/min window"),
        hits(59_000, 5), hit(60_000, due=no("5/min", 59_000)),
        hit(61_000, due=no("5/min", 58_000)), hit(118_999, due=no("5/min", 1)), hits(119_000, 5),
        start_ms=59_000,
    )
    yield case(
        "denials are not logged by a window", policy("2/s window"),
        hits(0, 2), hit(500, due={"allowed": False}, repeat=9), hit(999, due=no("2/s", 1)),
        hits(1000, 2), hit(1000, due=no("2/s", 1000)),
    )
    yield case(
        "reset_after of a window is until its newest entry leaves", policy("5/10s window"),
        hit(0, due=yes(4, reset_after_ms=10_000)),
        hit(4000, due=yes(3, reset_after_ms=10_000)),
        peek(9000, cost=0, due=yes(3, reset_after_ms=5000)),
        peek(13_999, cost=0, due=yes(4, reset_after_ms=1)),
        peek(14_000, cost=0, due=yes(5, reset_after_ms=0)),
    )
    yield case(
        "two keys have two windows", policy("1/min window"),
        hit(0, "a", due=yes(0)), hit(0, "b", due=yes(0)), hit(1, "a", due=no("1/min", 59_999)),
        hit(60_000, "a", due=yes(0)), hit(59_999 + 1, "b", due=yes(0)),
    )
    yield case(
        "a window is used over many periods", policy("2/100ms window"),
        [
            [hit(at, due=yes(1)), hit(at + 50, due=yes(0)), hit(at + 99, due=no("2/100ms", 1))]
            for at in (0, 200, 400)
        ],
        [hit(500 + 50 * turn, due=yes(0)) for turn in range(12)],
    )


def costs():
    yield case(
        "a window waits until enough entries have left", policy("10/min window"),
        hit(0, cost=4, due=yes(6)), hit(1000, cost=4, due=yes(2)), hit(2000, cost=2, due=yes(0)),
        hit(3000, cost=4, due=no("10/min", 57_000)),
        hit(3000, cost=5, due=no("10/min", 58_000)),
        hit(3000, cost=9, due=no("10/min", 59_000)),
        hit(60_000, cost=4, due=yes(0)),
    )
    yield case(
        "a cost of a window's whole max passes when all entries have left", policy("5/s window"),
        hit(300, due=yes(4)), denied_until(301, "5/s", 999, cost=5), start_ms=300,
    )
    yield case(
        "a window's entries of one moment leave together", policy("6/s window"),
        hit(0, cost=5, due=yes(1)), hit(500, due=yes(0)), hit(999, due=no("6/s", 1)),
        hit(1000, cost=5, due=yes(0)), hit(1499, due=no("6/s", 1)), hit(1500, due=yes(0)),
    )
