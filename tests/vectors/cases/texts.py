"""Text and map forms of limits."""

from .dsl import *

ABOUT = "limits as text and as maps: periods, units and their plurals, bursts, names"

PERIODS = {
    "250ms": 250, "s": SECOND, "sec": SECOND, "second": SECOND, "secs": SECOND, "seconds": SECOND,
    "2s": 2000,
    "90sec": 90_000, "10seconds": 10_000, "m": MINUTE, "min": MINUTE, "minute": MINUTE,
    "mins": MINUTE,
    "minutes": MINUTE, "5m": 5 * MINUTE, "15min": 15 * MINUTE, "2minutes": 2 * MINUTE, "h": HOUR,
    "hr": HOUR,
    "hour": HOUR, "hrs": HOUR, "hours": HOUR, "6h": 6 * HOUR, "12hours": 12 * HOUR, "d": DAY,
    "day": DAY,
    "days": DAY, "7d": 7 * DAY, "30days": 30 * DAY, "366d": 366 * DAY, "1ms": 1,
}


def cases():
    for period, per in PERIODS.items():
        yield case(
            f"a period {period} is {per} ms",
            rules(
                text={"limits": f"2/{period} window"},
                map={"limits": {f"2/{period}": {"max": 2, "per": period, "algorithm": "window"}}},
            ),
            [
                [
                    hit(0, rule=rule, cost=2, due=yes(0, reset_after_ms=per)),
                    hit(0, rule=rule, due=no(f"2/{period}", per)),
                ]
                for rule in ("text", "map")
            ],
        )
    yield from names()
    yield from maps()


def names():
    yield case(
        "a limit made from text is named by it up to the first space",
        policy("1/10s window, 100/s burst 1, 3/min"),
        hit(0, due=yes(0)),
        stats(0,
              due={"limits": {"1/10s": {"used": 1}, "100/s": {"used": 1}, "3/min": {"used": 1}}}),
    )
    yield case(
        "a limit of permits made from text is named by its number",
        policy("1 concurrent lease 30s"),
        permit(0, "p", due=yes(0)), permit(0, "q", due=no("1", 30_000)),
    )
    yield case(
        "a limit of a map has the map's name",
        policy({"per-minute": "1/min", "hour": {"max": 5, "per": "1h"}}),
        hit(0, due=yes(0)), hit(0, due=no("per-minute", 60_000)),
    )
    yield case(
        "names are any printable ASCII", policy({"~very odd!": "1/min"}),
        hit(0, due=yes(0)), hit(0, due=no("~very odd!", 60_000)),
    )
    yield case(
        "algorithms may be said in text",
        policy("9/min bucket, 9/h window, 9/d counter, 9/s fixed"),
        hit(0, due=yes(8)),
        stats(
            0,
            due={"limits": {
                "9/min": {"used": 1}, "9/h": {"reset_after_ms": HOUR},
                "9/d": {"reset_after_ms": 2 * DAY},
                "9/s": {"reset_after_ms": 1000},
            }},
        ),
    )
    yield case(
        "a burst and an algorithm may be said together", policy("60/min burst 3 bucket"),
        hit(0, cost=3, due=yes(0, limit=3)), hit(0, due=no("60/min", 1000)),
    )


def maps():
    yield case(
        "a map without algorithm is a bucket", policy({"l": {"max": 60, "per": "1m"}}),
        hit(0, cost=60, due=yes(0)), hit(1000, due=yes(0)),
    )
    yield case(
        "a map with a burst", policy({"l": {"max": 60, "per": "1m", "burst": 3}}),
        hit(0, cost=3, due=yes(0, limit=3)), hit(0, due=no("l", 1000)),
    )
    yield case(
        "a map for every algorithm",
        policy({
            "b": {"max": 4, "per": "1s", "algorithm": "bucket"},
            "w": {"max": 5, "per": "1s", "algorithm": "window"},
            "c": {"max": 6, "per": "1s", "algorithm": "counter"},
            "f": {"max": 7, "per": "1s", "algorithm": "fixed"},
        }),
        hit(0, cost=2, due=yes(2, limit=4)),
        stats(
            0,
            due={"limits": {
                "b": {"remaining": 2}, "w": {"remaining": 3}, "c": {"remaining": 4},
                "f": {"remaining": 5},
            }},
        ),
    )
    yield case(
        "a map for permits has a lease of 60 s unless said",
        policy({"p": {"max": 1, "algorithm": "concurrent"}}),
        permit(0, "x", due=yes(0, reset_after_ms=60_000)), permit(59_999, "y", due=no("p", 1)),
    )
    yield case(
        "a text without a space after the comma", policy("1/s,2/min"),
        hit(0, due=yes(0, limit=1)), hit(0, due=no("1/s", 1000)),
    )
    yield case(
        "the largest max and the longest period",
        policy({
            "most": {"max": 1_000_000_000, "per": "1d", "algorithm": "fixed"},
            "long": {"max": 3, "per": "366d", "algorithm": "window"},
        }),
        hit(0, due=yes(2, limit=3, reset_after_ms=366 * DAY)),
        stats(0, due={"limits": {"most": {"max": 1_000_000_000, "remaining": 999_999_999}}}),
    )
