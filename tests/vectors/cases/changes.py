"""A state that is read under other numbers, or later, than it was written under."""

from .dsl import *

ABOUT = (
    "changed numbers grant nothing and deny no longer than their own fill time; what has aged out "
    "is not given back"
)

# A new rate applies from the last charge on, to within a tick of the word: the waits are left open.
ABOUT_A_TICK = ("retry_after_ms", "reset_after_ms")
VAGUE = ("limit", "remaining", "reason", "retry_after_ms", "reset_after_ms", "notify")
X = {"attributes": {"t": "x"}}


def cases():
    yield from lowered_buckets()
    yield from raised_buckets()
    yield from windows()
    yield from permits()
    yield from counters()
    yield from reservations()
    yield from rounding()


def override(at_ms, limits):
    return step("set_override", at_ms, "a", limits=limits)


def when(limits):
    return [{"match": {"t": "x"}, "limits": limits}]


def denied(at_ms, reason, cost=None, **fields):
    return hit(at_ms, cost=cost, due=no(reason, remaining=0), leave=ABOUT_A_TICK, **fields)


def passes(at_ms, cost=None, **fields):
    return hit(at_ms, cost=cost, due={"allowed": True}, leave=ABOUT_A_TICK + ("remaining",),
               **fields)


def leaves(at_ms, remaining, cost=None, **fields):
    return hit(at_ms, cost=cost, due={"allowed": True, "remaining": remaining}, leave=ABOUT_A_TICK,
               **fields)


def lowered_buckets():
    for text, drained, change, after in [
        ("100000/min", 100_000, {"max": 1000}, 61_000),
        ("10000/min", 10_000, {"max": 1000}, 61_000),
        ("2000000/min", 2_000_000, {"max": 200_000}, 300_000),
        ("1000000/3s burst 4000000", 4_000_000, {"per": "8h"}, 40 * HOUR),
        ("100000000/min", 100_000_000, {"max": 5}, HOUR),
        ("5000/s", 5000, {"per": "1h"}, HOUR + MINUTE),
    ]:
        name, size = text.split(" ")[0], change.get("max", drained)
        yield case(
            f"a drained bucket of {text} has nothing by an override of {change}", policy(text),
            hit(0, cost=drained, due=yes(0)), override(0, {name: change}),
            denied(0, name, size), denied(0, name), passes(after, size), denied(after, name),
        )
    yield case(
        "a drained bucket has nothing by a smaller max of one call", policy("10000/min"),
        hit(0, cost=10_000, due=yes(0)), denied(0, "10000/min", max=1000),
        denied(0, "10000/min", 1000, max=1000),
        passes(61_000, 1000, max=1000),
    )
    yield case(
        "a drained bucket has nothing by a smaller default", policy("100000/min"),
        hit(0, cost=100_000, due=yes(0)),
        step("set_default", 0, limits={"100000/min": {"max": 10}}),
        denied(0, "100000/min"), passes(61_000, 10), denied(61_000, "100000/min"),
    )
    yield case(
        "numbers that go to and fro grant nothing",
        policy("100000/min", when=when({"100000/min": {"max": 100}})),
        hit(0, cost=100_000, due=yes(0)),
        [[denied(0, "100000/min", **X), denied(0, "100000/min")] for _ in range(4)],
    )
    yield case(
        "a slower rate counts from the last charge on", policy("100/s"),
        hit(0, cost=100, due=yes(0)), override(10_000, {"100/s": {"per": "100s"}}),
        hit(10_000, cost=11, due=no("100/s"), leave=ABOUT_A_TICK + ("remaining",)),
        passes(10_100, 9),
    )


def raised_buckets():
    yield case(
        "a fast rate keeps what a slow one left",
        policy("5000/s", when=when({"5000/s": {"per": "1d"}})),
        leaves(0, 4999, **X), leaves(0, 4998),
        passes(1000, 5000),
    )
    yield case(
        "a slow rate works off no debt that a fast one left",
        policy("5000/s", when=when({"5000/s": {"per": "1h"}})),
        leaves(7, 0, 5000), denied(7, "5000/s", **X), passes(1500, **X),
    )
    yield case(
        "a faster rate finds what it would have refilled since",
        policy("10/h", when=when({"10/h": {"per": "10s"}})),
        hit(0, cost=10, due=yes(0)), denied(0, "10/h", **X),
        hit(3000, cost=4, due=no("10/h"), leave=ABOUT_A_TICK + ("remaining",), **X),
        passes(3500, 3, **X),
    )


def windows():
    entry = when({"5/h": {"per": "1s"}})
    yield case(
        "units that a shorter period no longer counts are kept for the longer one",
        policy("5/h window", when=entry),
        hits(0, 4), [[hits(10_000 + i, 1, **X), refund(10_000 + i, **X)] for i in range(12)],
        hit(10_020, due=yes(0)), hit(10_020, due=no("5/h", HOUR - 10_020)), hit(HOUR, due=yes(3)),
    )
    yield case(
        "a refund by a shorter period gives back no older units", policy("5/h window", when=entry),
        hits(0, 5), refund(10_000, cost=5, **X), hit(10_000, due=no("5/h", HOUR - 10_000)),
        refund(10_000, cost=1), hit(10_000, due=yes(0)),
    )
    yield case(
        "a window by other numbers counts what was spent in it",
        policy("3/s window", ceiling=9, when=when({"3/s": {"max": 9, "per": "10s"}})),
        hits(0, 3), hits(1000, 3), left(1000, 3, **X), hits(1999, 1, **X),
        hit(1999, due=no("3/s", 1)),
        left(2000, 2), left(9999, 2, **X), left(10_000, 5, **X),
    )


def permits():
    short = policy("1 concurrent lease 60s", when=when({"1": {"lease": "1s"}}))
    yield case(
        "a denied permit of a shorter lease leaves one that is out as it was", short,
        permit(0, "p", due=yes(0)), permit(0, "q", due=no("1", 60_000), **X),
        permit(2000, "r", due=no("1", 58_000)), permit(2000, "s", due=no("1", 58_000), **X),
        renew(2000, "p", True), permit(61_999, "t", due=no("1", 1), **X),
        release(61_999, "p", True),
        permit(61_999, "u", due=yes(0), **X), permit(62_999, "v", due=yes(0)),
    )
    yield case(
        "a permit that is out keeps its lease when the default changes",
        policy("1 concurrent lease 60s"),
        permit(0, "p", due=yes(0)), step("set_default", 0, limits={"1": {"lease": "30s"}}),
        permit(30_000, "q", due=no("1", 30_000)), release(30_000, "p", True),
        permit(30_000, "r", due=yes(0, reset_after_ms=30_000)), release(30_001, "r", True),
    )
    yield case(
        "a permit of a short lease is free after it by longer ones", short,
        permit(0, "p", due=yes(0, reset_after_ms=1000), **X), permit(999, "q", due=no("1", 1)),
        permit(1000, "r", due=yes(0, reset_after_ms=60_000)), release(1000, "p", False),
        release(1000, "r", True),
    )
    yield case(
        "a permit whose lease is over is not released", policy("2 concurrent lease 1s"),
        permit(0, "p", due=yes(1)), release(1000, "p", False), permit(1000, "q", due=yes(1)),
        release(1999, "q", True),
    )


def counters():
    """A surface whose manual clock can't go back may leave this file out, as `clock`."""
    yield case(
        "a counter's clock that goes back into its first cell forgets none",
        policy("5/10s counter"),
        hits(8000, 3), hits(12_000, 2), hit(3000, due={"allowed": False}, leave=VAGUE),
        hit(1, due={"allowed": False}, leave=VAGUE), start_ms=8000,
    )
    yield case(
        "a counter by a longer period finds no more",
        policy("5/s counter", when=when({"5/s": {"per": "1h"}})),
        hits(100, 5), hit(100, due={"allowed": False}, leave=VAGUE, **X), start_ms=100,
    )
    yield case(
        "a counter by a shorter period finds no more at once",
        policy("5/h counter", when=when({"5/h": {"per": "1s"}})),
        hits(100, 5), hit(100, due={"allowed": False}, leave=VAGUE, **X), start_ms=100,
    )


def reservations():
    for text in ("5/10s", "5/10s window", "5/10s fixed"):
        yield case(
            f"a reservation of {text} that has aged out gives nothing back", policy(text),
            reserve(0, "r", 5, due=yes(0)), hits(10_000, 5), cancel(10_000, "r"),
            hit(10_000, due=no("5/10s")),
        )
        yield case(
            f"a reservation of {text} that is settled too late gives nothing back", policy(text),
            reserve(0, "r", 5, due=yes(0)), hits(10_000, 5), settle(10_000, "r", 2),
            hit(10_000, due=no("5/10s")),
        )
    for text in ("5/10s", "5/10s window", "5/10s fixed", "5/10s counter"):
        yield case(
            f"a reservation of {text} that is cancelled at once gives all back", policy(text),
            reserve(0, "r", 5, due=yes(0)), hit(0, due=no("5/10s")), cancel(0, "r"), cancel(0, "r"),
            hit(0, cost=5, due=yes(0)), hit(0, due=no("5/10s")),
        )
        yield case(
            f"a reservation of {text} gives nothing back after a reset", policy(text),
            reserve(0, "r", 4, due=yes(1)), reset(0), hits(0, 5), cancel(0, "r"),
            hit(0, due=no("5/10s")),
        )
        yield case(
            f"a reservation of {text} that is settled above its estimate records the rest",
            policy(text),
            reserve(0, "r", 2, due=yes(3)), settle(0, "r", 4), left(0, 1), cancel(0, "r"),
            left(0, 1),
        )
    yield case(
        "a reservation of a counter gives back in its own cell only", policy("5/10s counter"),
        reserve(0, "r", 5, due=yes(0)), hits(20_000, 5), cancel(20_000, "r"),
        hit(20_000, due=no("5/10s")),
        start_ms=0,
    )
    yield case(
        "a reservation of a bucket gives back the estimate less what was refilled since",
        policy("5/10s"),
        reserve(0, "r", 4, due=yes(1)), hit(0, due=yes(0)), left(4000, 2), cancel(4000, "r"),
        left(4000, 4),
    )
    yield case(
        "a reservation of a bucket gives back no more than was not refilled", policy("5/10s"),
        reserve(0, "r", 4, due=yes(1)), hit(0, due=yes(0)), settle(4000, "r", 3), left(4000, 3),
    )
    yield case(
        "a reservation of a window gives back its own units alone", policy("5/10s window"),
        reserve(0, "r", 2, due=yes(3)), hit(9000, cost=2, due=yes(1)), cancel(10_000, "r"),
        left(10_000, 3),
        left(18_999, 3), left(19_000, 5),
    )
    yield case(
        "a reservation of a window gives back its own units beside newer ones",
        policy("5/10s window"),
        reserve(0, "r", 3, due=yes(2)), hits(1000, 2), cancel(2000, "r"), left(2000, 3),
        left(10_000, 3),
        left(11_000, 5),
    )


def rounding():
    yield case(
        "a time is rounded up once", policy("1/min"),
        hit(7, due=yes(0, reset_after_ms=60_000, headers={
            "RateLimit-Policy": '"1/min";q=1;w=60', "RateLimit": '"1/min";r=0;t=60',
        }), style="ietf"),
        hit(7, due=no("1/min", 60_000)), hit(60_006, due=no("1/min", 1)), hit(60_007, due=yes(0)),
    )
