"""Permits."""

from .dsl import *

ABOUT = (
    "concurrent: at most N permits out at once, each free again when released or when its lease is "
    "over"
)


def cases():
    yield from leases()
    yield from together()
    yield from errors()


def leases():
    for text, lease in [
        ("1 concurrent", MINUTE), ("1 concurrent lease 30s", 30_000),
        ("1 concurrent lease 500ms", 500),
    ]:
        yield case(
            f"a permit of {text} is free again after {lease} ms", policy(text),
            permit(0, "p", due=yes(0, limit=1, reset_after_ms=lease)),
            permit(0, "q", due=no("1", lease, limit=1, remaining=0)),
            permit(lease - 1, "q", due=no("1", 1)),
            permit(lease, "r", due=yes(0)),
            release(lease, "p", False), release(lease, "r", True),
        )
    yield case(
        "as many permits as the limit says are out at once", policy("3 concurrent lease 10s"),
        permit(0, "p", due=yes(2)), permit(1000, "q", due=yes(1)), permit(2000, "r", due=yes(0)),
        permit(3000, "s", due=no("3", 7000, reset_after_ms=9000)),
        release(3000, "q", True), permit(3000, "t", due=yes(0)),
        permit(3000, "u", due=no("3", 7000)),
        permit(10_000, "v", due=yes(0)),
    )
    yield case(
        "a released permit is released once", policy("2 concurrent"),
        permit(0, "p", due=yes(1)), release(10, "p", True), release(10, "p", False),
        permit(10, "q", due=yes(1)), permit(10, "r", due=yes(0)),
    )
    yield case(
        "a denied permit holds nothing", policy("1 concurrent lease 5s"),
        permit(0, "p", due=yes(0)), permit(0, "q", due=no("1", 5000)), release(0, "q", False),
        permit(0, "r", due=no("1", 5000)), release(0, "p", True), permit(0, "s", due=yes(0)),
    )
    yield case(
        "a renewed permit has its whole lease again", policy("1 concurrent lease 10s"),
        permit(0, "p", due=yes(0)), renew(9999, "p", True), permit(10_000, "q", due=no("1", 9999)),
        permit(19_998, "q", due=no("1", 1)), permit(19_999, "r", due=yes(0)),
        renew(19_999, "p", False),
        release(20_000, "r", True),
    )
    yield case(
        "a permit whose lease is over can't be renewed", policy("2 concurrent lease 1s"),
        permit(0, "p", due=yes(1)), renew(1000, "p", False), release(1000, "p", False),
        permit(1000, "q", due=yes(1)),
    )
    yield case(
        "permits of two keys are apart", policy("1 concurrent"),
        permit(0, "p", "a", yes(0)), permit(0, "q", "b", yes(0)),
        permit(0, "r", "a", no("1", MINUTE)),
        release(1, "q", True), permit(1, "s", "a", no("1", 59_999)), permit(1, "t", "b", yes(0)),
    )
    yield case(
        "a rule with permits can be peeked at and asked for stats",
        policy({"jobs": {"max": 2, "algorithm": "concurrent", "lease": "20s"}}),
        stats(0, due=None), permit(0, "p", due=yes(1)), peek(5000, due=yes(0)),
        peek(5000, cost=0, due=yes(1)),
        stats(
            5000, due={"limits": {"jobs": {"used": 1, "max": 2, "remaining": 1,
                                           "reset_after_ms": 15_000}}},
        ),
        is_limited(5000, due=False), permit(5000, "q", due=yes(0)), is_limited(5000, due=True),
        release(6000, "p", True), is_limited(6000, due=False), release(6000, "q", True),
        stats(6000, due=None),
    )
    yield case(
        "a suspended key gets no permit",
        policy({"jobs": {"max": 0, "algorithm": "concurrent", "lease": "20s"}}),
        permit(0, "p", due=no("jobs", None, limit=0, remaining=0)), release(0, "p", False),
    )


def together():
    mixed = policy("2 concurrent lease 10s, 3/min")
    yield case(
        "a permit takes all limits of its rule and gives back only the slot", mixed,
        permit(0, "p", due=yes(1, limit=2)), permit(0, "q", due=yes(0)),
        permit(0, "r", due=no("2", 10_000)),
        release(0, "p", True), permit(0, "s", due=yes(0, limit=2)), release(0, "q", True),
        release(0, "s", True), permit(0, "t", due=no("3/min", 20_000, limit=3, remaining=0)),
        permit(20_000, "u", due=yes(0, limit=3)),
    )
    yield case(
        "a permit that another limit denies takes no slot", policy("1/s, 2 concurrent lease 1min"),
        permit(0, "p", due=yes(0, limit=1)), permit(0, "q", due=no("1/s", 1000)),
        permit(1000, "r", due=yes(0)), permit(2000, "s", due=no("2", 58_000)),
        permit(60_000, "t", due=yes(0)),
    )
    yield case(
        "a global slot limit over keys' own rates",
        policy({
            "slots": {"max": 2, "algorithm": "concurrent", "lease": "30s", "scope": []},
            "rate": {"max": 2, "per": "1m"},
        }),
        permit(0, "p", "a", yes(1)), permit(0, "q", "b", yes(0)),
        permit(0, "r", "c", no("slots", 30_000)),
        release(5, "p", True), permit(5, "s", "c", yes(0)),
    )
    yield case(
        "a cooldown of a permit limit refuses though a slot is free",
        policy("1 concurrent lease 10s", cooldown="5s"),
        permit(0, "p", due=yes(0)), permit(1000, "q", due=no("1", 9000)), release(1000, "p", True),
        permit(5999, "r", due=no("cooldown", 1)), permit(6000, "s", due=yes(0)),
    )


def errors():
    rule = policy("2 concurrent")
    for op in ("hit", "check", "allow", "record"):
        yield case(
            f"{op} on a rule with permits is an error that names permit", rule,
            step(op, 0, "a", error="permit"), permit(0, "p", due=yes(1)),
        )
    yield case(
        "a permit on a rule without permits is an error", policy("2/min"),
        step("permit", 0, "a", id="p", error="concurrent"), left(0, 2),
    )
