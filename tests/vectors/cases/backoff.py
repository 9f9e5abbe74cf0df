"""Growing waits."""

from .dsl import *

ABOUT = "backoff: each denial in a run reports at least the next step; advice, or enforced"

STEPS = {"steps": ["1s", "2s", "5s", "10s", "30s"], "quiet": "60s"}
ROUND = STEPS | {"round": "1s"}
FIRM = {"steps": ["1s", "4s", "10s"], "quiet": "30s", "enforce": True}


def cases():
    yield from advice()
    yield from rounding()
    yield from enforced()
    yield from with_cooldown()


def advice():
    fast = policy("10/s burst 1", backoff=STEPS)
    yield case(
        "denials report step after step and the last repeats", fast,
        hit(0, due=yes(0)),
        [hit(1, due=no("10/s", wait))
         for wait in (1000, 2000, 5000, 10_000, 30_000, 30_000, 30_000)],
        hit(100, due=yes(0)),
    )
    yield case(
        "an allowed hit does not start a backoff over", fast,
        hit(0, due=yes(0)), hit(0, due=no("10/s", 1000)), hit(1000, due=yes(0)),
        hit(1000, due=no("10/s", 2000)), hit(3000, due=yes(0)), hit(3000, due=no("10/s", 5000)),
    )
    yield case(
        "quiet starts a backoff over, a millisecond less does not", fast,
        hit(0, due=yes(0)), hit(0, due=no("10/s", 1000)), hit(59_999, due=yes(0)),
        hit(59_999, due=no("10/s", 2000)), hit(119_999, due=yes(0)),
        hit(119_999, due=no("10/s", 1000)),
    )
    yield case(
        "quiet is counted from the last denial", fast,
        [
            [hit(at, due=yes(0)), hit(at, due=no("10/s", wait))]
            for at, wait in [(0, 1000), (50_000, 2000), (100_000, 5000), (150_000, 10_000),
                             (210_000, 1000)]
        ],
    )
    yield case(
        "a limit's longer wait wins over the step", policy("1/min window", backoff=STEPS),
        hit(0, due=yes(0)), hit(0, due=no("1/min", 60_000)), hit(58_500, due=no("1/min", 2000)),
        hit(59_000, due=no("1/min", 5000)), hit(60_000, due=yes(0)),
    )
    yield case(
        "a wait that is only advised is not enforced",
        policy("10/s burst 1", backoff={"steps": ["30s"], "quiet": "5m"}),
        hit(0, due=yes(0)), hit(0, due=no("10/s", 30_000)), hit(100, due=yes(0)),
        hit(100, due=no("10/s", 30_000)),
    )
    yield case(
        "check counts as a denial for backoff, peek does not", fast,
        hit(0, due=yes(0)), peek(0, due=no("10/s", 100)), peek(0, due=no("10/s", 100)),
        check(0, due=no("10/s", 1000)), peek(0, due=no("10/s", 100)), hit(0, due=no("10/s", 2000)),
    )
    yield case(
        "a cost that can never pass counts for no backoff", fast,
        hit(0, cost=2, due=no("cost", None), repeat=3), hit(0, due=yes(0)),
        hit(0, due=no("10/s", 1000)),
    )
    yield case(
        "keys back off each on its own", fast,
        hits(0, 1, "a"), hits(0, 1, "b"), hit(0, "a", due=no("10/s", 1000)),
        hit(0, "a", due=no("10/s", 2000)), hit(0, "b", due=no("10/s", 1000)),
    )
    yield case(
        "is_limited with backoff: a denial less than quiet ago", fast,
        is_limited(0, due=False), hit(0, due=yes(0)), is_limited(0, due=False),
        hit(0, due=no("10/s", 1000)),
        is_limited(1, due=True), hit(40_000, due=yes(0)), is_limited(59_999, due=True),
        is_limited(60_000, due=False),
    )
    yield case(
        "a suspended key's denial has no wait, backoff or not",
        policy({"l": {"max": 0, "per": "1m"}}, backoff=STEPS),
        hit(0, due=no("l", None), repeat=3), is_limited(59_999, due=True),
    )


def rounding():
    yield case(
        "round rounds a wait up to whole seconds", policy("1/10s window", backoff=ROUND),
        hit(0, due=yes(0)), hit(1, due=no("1/10s", 10_000)), hit(2500, due=no("1/10s", 8000)),
        hit(9500, due=no("1/10s", 5000)),
    )
    yield case(
        "round leaves a whole wait as it is", policy("1/10s window", backoff=ROUND),
        hit(0, due=yes(0)), hit(4000, due=no("1/10s", 6000)), hit(4001, due=no("1/10s", 6000)),
    )
    yield case(
        "round works on the step too",
        policy("10/s burst 1", backoff={"steps": ["1500ms", "7s"], "quiet": "1m", "round": "2s"}),
        hit(0, due=yes(0)), hit(0, due=no("10/s", 2000)), hit(0, due=no("10/s", 8000)),
    )


def enforced():
    yield case(
        "an enforced backoff refuses until its wait is over", policy("10/s burst 1", backoff=FIRM),
        hit(0, due=yes(0)), hit(0, due=no("10/s", 1000)),
        hit(500, due=no("backoff", 500, limit=None, remaining=0)), hit(999, due=no("backoff", 1)),
        hit(1000, due=yes(0)), hit(1000, due=no("10/s", 4000)), hit(4999, due=no("backoff", 1)),
        hit(5000, due=yes(0)),
    )
    yield case(
        "refusals by an enforced backoff don't count", policy("10/s burst 1", backoff=FIRM),
        hit(0, due=yes(0)), hit(0, due=no("10/s", 1000)),
        hit(500, due=no("backoff", 500), repeat=5),
        hit(1000, due=yes(0)), hit(1000, due=no("10/s", 4000)),
        hit(2000, due=no("backoff", 3000), repeat=5),
        hit(5000, due=yes(0)), hit(5000, due=no("10/s", 10_000)), hit(15_000, due=yes(0)),
        hit(15_000, due=no("10/s", 10_000)),
    )
    yield case(
        "an enforced backoff lasts as long as the limit's own wait if that is longer",
        policy("1/20s window", backoff=FIRM),
        hit(0, due=yes(0)), hit(5000, due=no("1/20s", 15_000)),
        hit(10_000, due=no("backoff", 10_000)),
        hit(19_999, due=no("backoff", 1)), hit(20_000, due=yes(0)),
    )
    yield case(
        "an enforced wait is the rounded one",
        policy("1/10s window", backoff=FIRM | {"round": "5s"}),
        hit(0, due=yes(0)), hit(7000, due=no("1/10s", 5000)), hit(10_000, due=no("backoff", 2000)),
        hit(11_999, due=no("backoff", 1)), hit(12_000, due=yes(0)),
    )
    yield case(
        "a large cost during an enforced backoff waits for its tokens too",
        policy("1/s burst 5", backoff=FIRM),
        hit(0, cost=5, due=yes(0)), hit(0, due=no("1/s", 1000)),
        hit(500, cost=5, due=no("backoff", 4500)),
        hit(500, due=no("backoff", 500)),
    )
    yield case(
        "quiet starts an enforced backoff over", policy("10/s burst 1", backoff=FIRM),
        hit(0, due=yes(0)), hit(0, due=no("10/s", 1000)), hit(1000, due=yes(0)),
        hit(1000, due=no("10/s", 4000)), hit(31_000, due=yes(0)), hit(31_000, due=no("10/s", 1000)),
        hit(32_000, due=yes(0)),
    )
    yield case(
        "peek sees an enforced backoff and enforces none", policy("10/s burst 1", backoff=FIRM),
        hit(0, due=yes(0)), peek(0, due=no("10/s", 100)), hit(100, due=yes(0)),
        hit(100, due=no("10/s", 1000)), peek(600, due=no("backoff", 500)), peek(1100, due=yes(0)),
    )


def with_cooldown():
    yield case(
        "the longest of wait, cooldown and step is reported",
        policy("10/s burst 1", cooldown="3s", backoff=STEPS),
        hit(0, due=yes(0)), hit(0, due=no("10/s", 3000)), hit(3000, due=yes(0)),
        hit(3000, due=no("10/s", 3000)), hit(6000, due=yes(0)), hit(6000, due=no("10/s", 5000)),
        hit(8999, due=no("cooldown", 1)), hit(9000, due=yes(0)), hit(9000, due=no("10/s", 10_000)),
    )
    yield case(
        "refusals in a cooldown don't count for backoff",
        policy("10/s burst 1", cooldown="2s", backoff=STEPS),
        hit(0, due=yes(0)), hit(0, due=no("10/s", 2000)),
        hit(1000, due=no("cooldown", 1000), repeat=6),
        hit(2000, due=yes(0)), hit(2000, due=no("10/s", 2000)), hit(4000, due=yes(0)),
        hit(4000, due=no("10/s", 5000)),
    )
    yield case(
        "after the cooldown an enforced backoff goes on to its own end",
        policy("10/s burst 1", cooldown="2s",
               backoff={"steps": ["5s"], "quiet": "1m", "enforce": True}),
        hit(0, due=yes(0)), hit(0, due=no("10/s", 5000)),
        hit(1999, due=no("cooldown", 3001, limit=1)),
        hit(2000, due=no("backoff", 3000, limit=None)), hit(4999, due=no("backoff", 1)),
        hit(5000, due=yes(0)),
    )
