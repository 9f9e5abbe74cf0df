"""Cooldowns."""

from .dsl import *

ABOUT = "cooldown: a denial by the limit refuses the whole key during [t, t + cooldown)"


def cases():
    for text in ("2/s", "2/s window", "2/s fixed"):
        yield case(
            f"a denial by {text} starts the cooldown, and reports it", policy(text, cooldown="60s"),
            hits(0, 2), hit(100, due=no("2/s", 60_000, limit=2, remaining=0)),
            hit(101, due=no("cooldown", 59_999, limit=2, remaining=0)),
            hit(60_099, due=no("cooldown", 1)),
            hit(60_100, due=yes(1)),
        )
    yield from running()
    yield from several()


def running():
    yield case(
        "refusals meanwhile don't extend a cooldown", policy("1/s window", cooldown="10s"),
        hit(0, due=yes(0)), hit(500, due=no("1/s", 10_000)),
        [hit(at, due=no("cooldown", 10_500 - at)) for at in range(1500, 10_500, 1000)],
        hit(10_499, due=no("cooldown", 1)), hit(10_500, due=yes(0)),
    )
    yield case(
        "a cooldown shorter than the limit's own wait reports the longer",
        policy("1/min window", cooldown="5s"),
        hit(0, due=yes(0)), hit(1000, due=no("1/min", 59_000)),
        hit(5999, due=no("cooldown", 54_001)),
        hit(6000, due=no("1/min", 54_000)), hit(10_999, due=no("cooldown", 49_001)),
        hit(11_000, due=no("1/min", 49_000)), hit(60_000, due=yes(0)),
    )
    yield case(
        "a second denial after a cooldown starts another", policy("1/10s window", cooldown="2s"),
        hit(0, due=yes(0)), hit(1000, due=no("1/10s", 9000)), hit(2999, due=no("cooldown", 7001)),
        hit(3000, due=no("1/10s", 7000)), hit(4999, due=no("cooldown", 5001)),
        hit(9000, due=no("1/10s", 2000)), hit(10_999, due=no("cooldown", 1)),
        hit(11_000, due=yes(0)),
    )
    yield case(
        "a cooldown refuses though the bucket has refilled", policy("10/s", cooldown="30s"),
        hits(0, 10), hit(0, due=no("10/s", 30_000)),
        hit(29_999, due=no("cooldown", 1, remaining=0, reset_after_ms=0)), hit(30_000, due=yes(9)),
    )
    yield case(
        "a large cost in a cooldown waits for its tokens too",
        policy("1/s burst 10", cooldown="2s"),
        hit(0, cost=10, due=yes(0)), hit(0, due=no("1/s", 2000)),
        hit(1000, cost=10, due=no("cooldown", 9000)), hit(1000, due=no("cooldown", 1000)),
        hit(2000, due=yes(1)),
    )
    yield case(
        "without a cooldown only the limit refuses", policy("1/s"),
        hit(0, due=yes(0)), hit(500, due=no("1/s", 500)), hit(1000, due=yes(0)),
    )
    yield case(
        "a cooldown is the key's own", policy("1/s", cooldown="1m"),
        hit(0, "a", due=yes(0)), hit(0, "a", due=no("1/s", 60_000)), hit(1, "b", due=yes(0)),
        hit(1, "a", due=no("cooldown", 59_999)),
    )
    yield case(
        "check starts a cooldown as a hit does", policy("1/s", cooldown="1m"),
        hit(0, due=yes(0)), check(0, due=no("1/s", 60_000)), hit(1000, due=no("cooldown", 59_000)),
        check(1000, due=no("cooldown", 59_000)),
    )
    yield case(
        "peek starts no cooldown and reports one only when it runs", policy("1/s", cooldown="1m"),
        hit(0, due=yes(0)), peek(0, due=no("1/s", 1000)), peek(500, due=no("1/s", 500)),
        hit(1000, due=yes(0)), hit(1000, due=no("1/s", 60_000)),
        peek(1001, due=no("cooldown", 59_999)),
        peek(1001, cost=0, due=no("cooldown", 59_999)),
    )
    yield case(
        "peek names the limit that a hit would, and reports the longest wait of the limits alone",
        policy({
            "short": {"max": 1, "per": "1s", "algorithm": "window", "cooldown": "20s"},
            "long": {"max": 1, "per": "10s", "algorithm": "window"},
        }),
        hit(0, due=yes(0)), peek(1, due=no("short", 9999)), hit(1, due=no("short", 20_000)),
        peek(2, due=no("cooldown", 19_999)),
    )
    yield case(
        "a cost that can never pass starts no cooldown", policy("2/s", cooldown="1m"),
        hit(0, cost=3, due=no("cost", None)), hit(0, due=yes(1)),
    )
    yield case(
        "a cost that can never pass is denied as such in a cooldown too",
        policy("2/s", cooldown="1m"),
        hits(0, 2), hit(0, due=no("2/s", 60_000)),
        hit(1000, cost=3, due=no("cost", None, limit=2, remaining=2)),
        hit(1000, due=no("cooldown", 59_000)),
    )


def several():
    chat = {
        "burst": {"max": 2, "per": "10s", "algorithm": "window", "cooldown": "60s"},
        "per-minute": {"max": 3, "per": "1m", "algorithm": "window"},
    }
    yield case(
        "only the limit with a cooldown starts one", policy(chat),
        hits(0, 2), hit(10_000, due=yes(0, limit=3)), hit(20_000, due=no("per-minute", 40_000)),
        hit(59_999, due=no("per-minute", 1)), hits(60_000, 2), hit(60_001, due=no("burst", 60_000)),
        hit(60_002, due=no("cooldown", 59_999, limit=2)), hit(120_001, due=yes(1)),
    )
    two = {
        "a": {"max": 1, "per": "1s", "algorithm": "window", "cooldown": "10s"},
        "b": {"max": 1, "per": "5s", "algorithm": "window", "cooldown": "7s"},
    }
    yield case(
        "a hit that several limits deny starts the longest of their cooldowns", policy(two),
        hit(0, due=yes(0)), hit(500, due=no("a", 10_000)),
        hit(501, due=no("cooldown", 9999, limit=1)),
        hit(10_500, due=yes(0)), hit(12_000, due=no("b", 7000)), hit(18_999, due=no("cooldown", 1)),
        hit(19_000, due=yes(0)),
    )
    named = {
        "short": {"max": 1, "per": "1s", "algorithm": "window", "cooldown": "20s"},
        "long": {"max": 1, "per": "10s", "algorithm": "window"},
    }
    yield case(
        "the longest wait is named with its cooldown included", policy(named),
        hit(0, due=yes(0)), hit(1, due=no("short", 20_000)), hit(20_001, due=yes(0)),
        hit(22_000, due=no("long", 8001)),
    )
    tied = {
        "x": {"max": 1, "per": "10s", "algorithm": "window"},
        "y": {"max": 1, "per": "1s", "algorithm": "window", "cooldown": "10s"},
    }
    yield case(
        "a cooldown that ties with a wait leaves the name to the declared order", policy(tied),
        hit(0, due=yes(0)), hit(0, due=no("x", 10_000)), hit(1, due=no("cooldown", 9999)),
        hit(10_000, due=yes(0)),
    )
    yield case(
        "a limit's own cooldown wins over the rule's",
        policy(
            {
                "a": {"max": 1, "per": "1s", "cooldown": "3s"},
                "b": {"max": 3, "per": "1m", "algorithm": "window"},
            },
            cooldown="90s",
        ),
        hit(0, due=yes(0)), hit(0, due=no("a", 3000)), hit(3000, due=yes(0)), hit(4000, due=yes(0)),
        hit(5000, due=no("b", 90_000)), hit(94_999, due=no("cooldown", 1, limit=3)),
        hit(95_000, due=yes(0)),
    )
    yield case(
        "a suspended key's denial starts its cooldown but there is nothing to wait for",
        policy({"l": {"max": 0, "per": "1m"}}, cooldown="10s"),
        hit(0, due=no("l", None, limit=0, remaining=0)),
    )
