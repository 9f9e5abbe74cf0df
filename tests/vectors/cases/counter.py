"""Two-cell sliding counter."""

from .dsl import *

ABOUT = "counter: this cell's count plus the previous cell's weighted by its overlap, rounded up"

FORMS = [("10/min counter", 10, MINUTE), ("100/s counter", 100, SECOND),
         ("4/100ms counter", 4, 100)]


def cases():
    for text, most, per in FORMS:
        name = text.split(" ")[0]
        yield case(
            f"a counter {text} grants its max in a cell", policy(text),
            hits(0, most), hit(0, due=no(name, limit=most, remaining=0, reset_after_ms=2 * per)),
            left(2 * per - 1, most - 1), left(2 * per, most),
        )
        yield case(
            f"a full cell of {text} weighs fully at the start of the next", policy(text),
            hit(per - 1, cost=most, due=yes(0, reset_after_ms=per + 1)),
            hit(per, due=no(name, per // most)),
            hit(per + per // most, due=yes(0)),
        )
    yield from weights()
    yield from more()


def weights():
    yield case(
        "half a cell later half of the previous cell counts", policy("10/min counter"),
        hit(0, cost=8, due=yes(2)),
        peek(90_000, cost=0, due=yes(6, reset_after_ms=30_000)),
        hit(90_000, cost=6, due=yes(0, reset_after_ms=90_000)),
        hit(90_000, due=no("10/min", 7500)),
        hit(97_499, due=no("10/min", 1)),
        hit(97_500, due=yes(0)),
    )
    yield case(
        "the previous cell's part is rounded up", policy("10/min counter"),
        hit(0, cost=3, due=yes(7)), left(60_000, 7), left(60_001, 7), left(80_000, 8),
        left(80_001, 8),
        left(100_000, 9), left(119_999, 9), left(120_000, 10),
    )
    yield case(
        "a counter that is full by its own cell waits for the next one", policy("10/min counter"),
        hit(30_000, cost=10, due=yes(0)),
        hit(30_000, due=no("10/min", 36_000)),
        hit(30_000, cost=10, due=no("10/min", 90_000)),
        hit(65_999, due=no("10/min", 1)),
        hit(66_000, due=yes(0)),
    )
    yield case(
        "a counter waits for a large cost beyond the next cell's start", policy("10/s counter"),
        hit(0, cost=6, due=yes(4)),
        hit(500, cost=8, due=no("10/s", 1167)),
        hit(1666, cost=8, due=no("10/s", 1)),
        hit(1667, cost=8, due=yes(0)),
    )


def more():
    yield case(
        "cells are counted from the clock's zero, wherever it starts", policy("6/min counter"),
        hit(45_000, cost=6, due=yes(0, reset_after_ms=75_000)),
        hit(60_000, due=no("6/min", 10_000)),
        hit(70_000, due=yes(0)),
        start_ms=45_000,
    )
    yield case(
        "a counter forgets a cell after the next one", policy("3/s counter"),
        hit(999, cost=3, due=yes(0)), left(1999, 2), left(2000, 3), hit(2000, cost=3, due=yes(0)),
    )
    yield case(
        "two million a minute by counter", policy("2000000/min counter"),
        hit(0, cost=2_000_000, due=yes(0, limit=2_000_000)),
        peek(90_000, cost=0, due=yes(1_000_000)),
        hit(90_000, cost=1_000_000, due=yes(0)),
        peek(90_000, due={"allowed": False}),
    )
    yield case(
        "keys of a counter are apart", policy("1/min counter"),
        hit(0, "a", due=yes(0)), hit(0, "b", due=yes(0)), hit(1, "a", due=no("1/min", 119_999)),
    )
