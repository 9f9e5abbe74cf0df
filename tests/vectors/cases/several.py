"""Several limits of one rule."""

from .dsl import *

ABOUT = (
    "several limits: taken all or nothing; the longest wait names the denial, ties in declared "
    "order"
)


def cases():
    yield from all_or_nothing()
    yield from naming()
    yield from mixed()


def all_or_nothing():
    yield case(
        "what one limit denies is taken from none", policy("2/s window, 10/min window"),
        hits(0, 2), hit(0, due=no("2/s", 1000), repeat=20), left(1000, 2),
        hit(1000, due=yes(1, limit=2)),
        stats(1000, due={"limits": {"2/s": {"used": 1}, "10/min": {"used": 3}}}),
    )
    yield case(
        "the five, twenty and two hundred of a chat",
        policy(["5/10s window", "20/min window", "200/h window"]),
        [[hits(at, 5), hit(at, due={"allowed": False})] for at in (0, 10_000, 20_000, 30_000)],
        hit(40_000, due=no("20/min", 20_000, limit=20, remaining=0)),
        hit(59_999, due=no("20/min", 1)),
        hits(60_000, 5), hit(60_000, due=no("5/10s", 10_000)),
    )
    yield case(
        "a bucket keeps its tokens when the window beside it denies", policy("10/s, 2/s window"),
        hits(0, 2), hit(0, due=no("2/s", 1000), repeat=5),
        stats(0, due={"limits": {"10/s": {"used": 2, "remaining": 8},
                                 "2/s": {"used": 2, "remaining": 0}}}),
    )
    yield case(
        "a window logs nothing when the bucket beside it denies", policy("5/min window, 1/s"),
        hit(0, due=yes(0)), hit(0, due=no("1/s", 1000), repeat=10), left(1000, 1),
        stats(1000, due={"limits": {"5/min": {"used": 1}, "1/s": {"used": 0}}}),
    )
    yield case(
        "each key has all limits of its own", policy("1/s, 2/min"),
        hit(0, "a", due=yes(0)), hit(0, "b", due=yes(0)), hit(1200, "a", due=yes(0)),
        hit(1200, "a", due=no("2/min", 28_800)), hit(1200, "b", due=yes(0)),
    )


def naming():
    yield case(
        "the limit with the longest wait is named", policy("2/s, 2/min"),
        hits(0, 2), hit(0, due=no("2/min", 30_000, limit=2, remaining=0, reset_after_ms=60_000)),
        hit(600, due=no("2/min", 29_400)),
    )
    yield case(
        "of equal waits the one declared first is named",
        policy({"second": "1/s window", "first": "1/s fixed"}),
        hit(0, due=yes(0)), hit(300, due=no("second", 700)),
    )
    yield case(
        "of equal waits the one declared first is named, the other way round",
        policy({"first": "1/s fixed", "second": "1/s window"}),
        hit(0, due=yes(0)), hit(300, due=no("first", 700)),
    )
    yield case(
        "an allowed hit reports the limit with the least left", policy("5/s, 3/min"),
        hit(0, due=yes(2, limit=3, reset_after_ms=20_000)), hit(0, due=yes(1, limit=3)),
        hit(0, due=yes(0, limit=3)),
    )
    yield case(
        "of limits with equally little left the first declared is reported",
        policy({"b": "4/min", "a": "4/s"}),
        hit(0, due=yes(3, limit=4, reset_after_ms=15_000)), hit(500, due=yes(2)),
    )
    yield case(
        "equally little left in limits of different size: the first declared is reported",
        policy({"large": "6/min window", "small": "2/10s window"}),
        hit(0, due=yes(1, limit=2)), hit(10_000, due=yes(1, limit=2)),
        hit(20_000, due=yes(1, limit=2)),
        hit(30_000, due=yes(1, limit=2)), hit(40_000, due=yes(1, limit=6)),
        hit(50_000, due=yes(0, limit=6)),
        hit(50_000, due=no("large", 10_000, limit=6)),
    )
    yield case(
        "reset_after is the longest over the limits", policy("10/s, 10/h"),
        hit(0, due=yes(9, reset_after_ms=360_000)),
        peek(360_000, cost=0, due=yes(10, reset_after_ms=0)),
    )
    yield case(
        "a denied hit reports what is left of the limit that denied it",
        policy("100/min, 4/s window"),
        hits(0, 3), hit(0, cost=2, due=no("4/s", 1000, limit=4, remaining=1)),
    )
    yield case(
        "retry_after is the longest of all limits' waits", policy("1/s window, 10/min window"),
        [hit(at * 1000, due=yes()) for at in range(10)],
        hit(9000, due=no("10/min", 51_000)),
        hit(59_999, due=no("10/min", 1)), hit(60_000, due=yes(0)),
    )


def mixed():
    yield case(
        "all four algorithms that count, in one rule",
        policy("60/min, 4/s window, 50/min counter, 6/10s fixed"),
        hits(0, 4), hit(0, due=no("4/s", 1000)), hits(1000, 2), hit(1000, due=no("6/10s", 9000)),
        hits(10_000, 4),
        stats(
            10_000,
            due={"limits": {
                "60/min": {"used": 4}, "4/s": {"used": 4}, "50/min": {"used": 10},
                "6/10s": {"used": 4},
            }},
        ),
    )
    yield case(
        "a cost is taken from every limit", policy("10/s, 20/min window"),
        hit(0, cost=10, due=yes(0)), hit(1000, cost=10, due=yes(0)),
        hit(2000, cost=1, due=no("20/min", 58_000)), hit(60_000, cost=10, due=yes(0)),
    )
    yield case(
        "a cost above the smallest limit is denied for ever", policy("10/s, 5/min window"),
        hit(0, cost=6, due=no("cost", None, limit=5, remaining=5)),
        hit(0, cost=5, due=yes(0, limit=5)),
    )
    yield case(
        "limits given as a list, a text with a comma and a map are the same",
        rules(
            list={"limits": ["1/s", "2/min window"]}, text={"limits": "1/s, 2/min window"},
            map={"limits": {
                "1/s": {"max": 1, "per": "1s"},
                "2/min": {"max": 2, "per": "1m", "algorithm": "window"},
            }},
        ),
        [
            [hit(at, rule=rule, due=due) for rule in ("list", "text", "map")]
            for at, due in [
                (0, yes(0, limit=1)), (10, no("1/s", 990)), (1000, yes(0, limit=1)),
                (2000, no("2/min", 58_000)),
            ]
        ],
    )
