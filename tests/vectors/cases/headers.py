"""Header fields."""

from .dsl import *

ABOUT = "headers: legacy, ietf and both, as a plain map"

WALL = 1_700_000_000_000


def head(at_ms, style, due, key="a", **fields):
    return hit(at_ms, key, due={"headers": due}, style=style, **fields)


def legacy(limit, remaining, reset=None, retry=None):
    found = {"X-RateLimit-Limit": limit, "X-RateLimit-Remaining": remaining}
    if reset is not None:
        found["X-RateLimit-Reset"] = reset
    if retry is not None:
        found["Retry-After"] = retry
    return {name: str(value) for name, value in found.items()}


def ietf(policy, now, retry=None):
    return {"RateLimit-Policy": policy,
            "RateLimit": now} | ({} if retry is None else {"Retry-After": str(retry)})


def cases():
    yield from legacies()
    yield from drafts()
    yield from neither()


def legacies():
    yield case(
        "legacy: limit, remaining and the second of the reset", policy("20/min"),
        head(0, "legacy", legacy(20, 19, 1_700_000_003)),
        head(0, "legacy", legacy(20, 0, 1_700_000_060), cost=19),
        head(0, "legacy", legacy(20, 0, 1_700_000_003, 3)), wall_ms=WALL,
    )
    yield case(
        "legacy: the reset is rounded up to whole seconds", policy("20/min"),
        head(0, "legacy", legacy(20, 19, 1_700_000_004)),
        head(2700, "legacy", legacy(20, 18, 1_700_000_007)),
        wall_ms=WALL + 250,
    )
    yield case(
        "legacy: a denial's reset is when to come again", policy("5/10s window"),
        head(0, "legacy", legacy(5, 0, 1_700_000_010), cost=5),
        head(3500, "legacy", legacy(5, 0, 1_700_000_010, 7)), wall_ms=WALL,
    )
    yield case(
        "legacy: Retry-After is at least 1", policy("10/s"),
        hit(0, cost=10, due=yes(0)), head(0, "legacy", legacy(10, 0, 1_700_000_001, 1)),
        wall_ms=WALL,
    )
    yield case(
        "legacy: Retry-After is rounded up", policy("1/10s window"),
        hit(0, due=yes(0)), head(1, "legacy", legacy(1, 0, 1_700_000_010, 10)),
        head(999, "legacy", legacy(1, 0, 1_700_000_010, 10)),
        head(1000, "legacy", legacy(1, 0, 1_700_000_010, 9)),
        head(9999, "legacy", legacy(1, 0, 1_700_000_010, 1)), wall_ms=WALL,
    )
    yield case(
        "legacy: nothing to wait for has neither reset nor Retry-After", policy("5/s"),
        head(0, "legacy", legacy(5, 5), cost=6), wall_ms=WALL,
    )
    yield case(
        "legacy: a suspended key has neither reset nor Retry-After",
        policy({"l": {"max": 0, "per": "1m"}}),
        head(0, "legacy", legacy(0, 0)), wall_ms=WALL,
    )
    yield case(
        "legacy: the limit with the least left", policy("100/h window, 5/min window"),
        head(0, "legacy", legacy(5, 4, 1_700_003_600)), wall_ms=WALL,
    )
    yield case(
        "legacy: a cooldown's end", policy("1/s", cooldown="90s"),
        hit(0, due=yes(0)), hit(0, due=no("1/s")),
        head(500, "legacy", legacy(1, 0, 1_700_000_090, 90)),
        wall_ms=WALL,
    )
    yield case(
        "legacy: the wall clock may be set", policy("1/min window"),
        head(0, "legacy", legacy(1, 0, 1_700_000_060)),
        step("set_wall", 10_000, wall_ms=WALL + 100_000),
        head(10_000, "legacy", legacy(1, 0, 1_700_000_150, 50)), wall_ms=WALL,
    )


def drafts():
    minute = '"per-minute";q=20;w=60'
    yield case(
        "ietf: the contract's own example", policy({"per-minute": "20/min"}),
        head(0, "ietf", ietf(minute, '"per-minute";r=19;t=3')), hit(0, cost=16, due=yes(3)),
        head(0, "ietf", ietf(minute, '"per-minute";r=2;t=3')), wall_ms=WALL,
    )
    yield case(
        "ietf: t is until more is available", policy({"per-minute": "20/min window"}),
        head(0, "ietf", ietf(minute, '"per-minute";r=4;t=60'), cost=16),
        head(48_000, "ietf", ietf(minute, '"per-minute";r=3;t=12')), wall_ms=WALL,
    )
    yield case(
        "ietf: t is 0 when all is there", policy({"per-minute": "20/min"}),
        head(0, "ietf", ietf(minute, '"per-minute";r=20;t=0'), cost=0), wall_ms=WALL,
    )
    yield case(
        "ietf: t is rounded up", policy({"fast": "5/s"}),
        head(0, "ietf", ietf('"fast";q=5;w=1', '"fast";r=4;t=1')), wall_ms=WALL,
    )
    yield case(
        "ietf: w is at least 1 and rounded up",
        policy({"tick": "4/500ms", "odd": "9/1500ms window"}),
        head(0, "ietf", ietf('"tick";q=4;w=1, "odd";q=9;w=2', '"tick";r=3;t=1, "odd";r=8;t=2')),
        wall_ms=WALL,
    )
    yield case(
        "ietf: a denial adds Retry-After", policy({"per-minute": "20/min"}),
        hit(0, cost=20, due=yes(0)), head(0, "ietf", ietf(minute, '"per-minute";r=0;t=3', 3)),
        wall_ms=WALL,
    )
    yield case(
        "ietf: one item for each limit in declared order",
        policy("5/10s window, 20/min window, 200/h window"),
        head(
            0, "ietf",
            ietf(
                '"5/10s";q=5;w=10, "20/min";q=20;w=60, "200/h";q=200;w=3600',
                '"5/10s";r=0;t=10, "20/min";r=15;t=60, "200/h";r=195;t=3600',
            ),
            cost=5,
        ),
        head(
            2000, "ietf",
            ietf(
                '"5/10s";q=5;w=10, "20/min";q=20;w=60, "200/h";q=200;w=3600',
                '"5/10s";r=0;t=8, "20/min";r=15;t=58, "200/h";r=195;t=3598', 8,
            ),
        ),
        wall_ms=WALL,
    )
    yield case(
        "ietf: a bucket's quota is its size", policy({"b": "60/min burst 5"}),
        head(0, "ietf", ietf('"b";q=5;w=60', '"b";r=4;t=1')), wall_ms=WALL,
    )
    yield case(
        "ietf: a fixed window", policy({"f": "10/min fixed"}),
        head(0, "ietf", ietf('"f";q=10;w=60', '"f";r=9;t=60')),
        head(45_000, "ietf", ietf('"f";q=10;w=60', '"f";r=8;t=15')), wall_ms=WALL,
    )
    yield case(
        "ietf: a counter", policy({"c": "10/min counter"}),
        head(0, "ietf", ietf('"c";q=10;w=60', '"c";r=0;t=66'), cost=10), wall_ms=WALL,
    )
    yield case(
        "ietf: in a cooldown nothing is left until it ends",
        policy({"x": "1/s", "y": "60/min"}, cooldown="30s"),
        hit(0, due=yes(0)), hit(0, due=no("x")),
        head(10_000, "ietf", ietf('"x";q=1;w=1, "y";q=60;w=60', '"x";r=0;t=20, "y";r=0;t=20', 20)),
        wall_ms=WALL,
    )
    yield case(
        "ietf: in an enforced backoff nothing is left until it ends",
        policy({"x": "10/s burst 1"}, backoff={"steps": ["5s"], "quiet": "1m", "enforce": True}),
        hit(0, due=yes(0)), hit(0, due=no("x")),
        head(1500, "ietf", ietf('"x";q=1;w=1', '"x";r=0;t=4', 4)),
        wall_ms=WALL,
    )
    yield case(
        "ietf: a spent budget leaves nothing until it resets",
        policy({"x": "10/s"}, budget={"daily": 1}),
        spend(0, 1), head(0, "ietf", ietf('"x";q=10;w=1', '"x";r=0;t=43200', 43200)), wall_ms=NOON,
    )
    yield case(
        "ietf: permits out at once",
        policy({"jobs": {"max": 3, "algorithm": "concurrent", "lease": "30s"}}),
        permit(
            0, "p", due={"headers": ietf('"jobs";q=3;qu="concurrent-requests"', '"jobs";r=2;t=30')},
            style="ietf",
        ),
        wall_ms=WALL,
    )
    yield case(
        "both styles together are the default's fields", policy({"per-minute": "20/min"}),
        head(0, "both", legacy(20, 19, 1_700_000_003) | ietf(minute, '"per-minute";r=19;t=3')),
        hit(0, cost=19, due=yes(0)),
        head(0, "both", legacy(20, 0, 1_700_000_003, 3) | ietf(minute, '"per-minute";r=0;t=3')),
        wall_ms=WALL,
    )


def neither():
    for style in ("legacy", "ietf", "both"):
        yield case(
            f"{style}: no fields for an exempt call and in mode off",
            rules(a={"limits": "1/s", "exempt": [{"key": "a"}]},
                  b={"limits": "1/s", "mode": "off"}),
            head(0, style, {}, rule="a"), head(0, style, {}, rule="b"), wall_ms=WALL,
        )
