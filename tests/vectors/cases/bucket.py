"""Token bucket."""

from .dsl import *

ABOUT = "bucket: full at first sight, refilled evenly, a hit takes its cost if it is there"

# limit, size, ms for one token
EVEN = [("20/min", 20, 3000), ("10/s", 10, 100), ("60/min", 60, 1000), ("5/s", 5, 200),
        ("1000/s", 1000, 1),
        ("1/s", 1, 1000), ("2/h", 2, 1_800_000), ("1/day", 1, DAY), ("100/s burst 20", 20, 10),
        ("5/s burst 1", 1, 200), ("1/min burst 10", 10, MINUTE), ("4/500ms", 4, 125),
        ("30/2min", 30, 4000)]
UNEVEN = ["7/min", "3/s", "7/h burst 2", "11/min burst 30"]


def cases():
    for text, size, token_ms in EVEN:
        name = text.split(" ")[0]
        yield from even(text, name, size, token_ms)
    for text in UNEVEN:
        yield uneven(text)
    yield from refills()
    yield from costs()


def even(text, name, size, token_ms):
    yield case(
        f"a fresh bucket {text} grants exactly {size} and then one each {token_ms} ms",
        policy(text),
        hits(0, size),
        hit(0, due=no(name, token_ms, limit=size, remaining=0, reset_after_ms=size * token_ms)),
        peek(token_ms - 1, due=no(name, 1)),
        hit(token_ms, due=yes(0)),
        hit(token_ms, due=no(name, token_ms)),
        hit(2 * token_ms, due=yes(0)),
    )
    yield case(
        f"a bucket {text} is full again {size} tokens' time later and holds no more", policy(text),
        hit(0, cost=size, due=yes(0, reset_after_ms=size * token_ms)),
        left(size * token_ms - 1, size - 1),
        left(size * token_ms, size),
        left(50 * size * token_ms, size),
        hit(50 * size * token_ms, cost=size, due=yes(0)),
        hit(50 * size * token_ms, due=no(name, token_ms)),
    )


def uneven(text):
    """A token takes no whole number of milliseconds: only what is allowed is due, not the waits."""
    most, per = text.split(" ")[0].split("/")
    size = int(text.split(" ")[2]) if "burst" in text else int(most)
    per_ms = {"min": MINUTE, "s": SECOND, "h": HOUR}[per]
    early = per_ms // int(most)  # a fraction of a millisecond before the first token
    return case(
        f"a bucket {text} grants its burst, and the next token not before its time", policy(text),
        hits(0, size),
        hit(0, due={"allowed": False, "remaining": 0}),
        hit(early, due={"allowed": False}),
        hit(early + 1, due={"allowed": True, "remaining": 0}),
        hit(early + 1, due={"allowed": False}),
    )


def refills():
    yield case(
        "a bucket refills while it is spent", policy("20/min"),
        hit(0, cost=20, due=yes(0)),
        hit(4500, due=yes(0)),
        hit(4500, due=no("20/min", 1500)),
        hit(6000, due=yes(0, reset_after_ms=60_000)),
        hit(9000, cost=1, due=yes(0)),
        left(30_000, 7),
    )
    yield case(
        "denied polling neither delays nor hastens a bucket's next token", policy("10/s burst 1"),
        hit(0, due=yes(0)),
        [hit(at, due=no("10/s", 100 - at)) for at in range(10, 100, 10)],
        hit(100, due=yes(0)),
        [hit(at, due=no("10/s", 200 - at)) for at in (101, 150, 199)],
        hit(200, due=yes(0)),
    )
    yield case(
        "a bucket that is polled each millisecond gets its whole rate", policy("1000/s burst 1"),
        [hit(at, due=yes(0)) for at in range(0, 20)],
    )
    yield case(
        "reset_after of a bucket is until it is full, to the millisecond", policy("60/min"),
        hit(0, due=yes(59, reset_after_ms=1000)),
        hit(400, due=yes(58, reset_after_ms=1600)),
        hit(2000, due=yes(59, reset_after_ms=1000)),
    )
    yield case(
        "a bucket's part of a token is kept though remaining is rounded down", policy("60/min"),
        hit(0, cost=60, due=yes(0)),
        left(999, 0), left(1000, 1), left(1500, 1),
        hit(1500, due=yes(0)),
        hit(1999, due=no("60/min", 1)),
        hit(2000, due=yes(0)),
    )
    yield case(
        "a bucket larger than its rate refills to its own size", policy("60/min burst 100"),
        hit(0, cost=100, due=yes(0, limit=100, reset_after_ms=100_000)),
        left(60_000, 60), left(99_999, 99), left(100_000, 100), left(200_000, 100),
    )
    yield case(
        "a bucket smaller than its rate grants no more than its size at once",
        policy("600/min burst 3"),
        hits(0, 3), hit(0, due=no("600/min", 100, limit=3)),
        hit(250, cost=2, due=yes(0)),
        hit(250, due=no("600/min", 50)),
    )
    yield case(
        "two keys have two buckets", policy("2/min"),
        hits(0, 2, "a"), hit(0, "a", due=no("2/min", 30_000)),
        hits(0, 2, "b"), hit(0, "b", due=no("2/min", 30_000)),
    )
    yield case(
        "a bucket counts from the key's first hit, not from the clock's start", policy("1/min"),
        hit(59_999, due=yes(0)), hit(60_000, due=no("1/min", 59_999)), hit(119_999, due=yes(0)),
        start_ms=59_999,
    )


def costs():
    yield case(
        "a bucket waits for the whole cost", policy("10/s"),
        hit(0, cost=7, due=yes(3)),
        denied_until(0, "10/s", 200, cost=5),
        hit(200, due=no("10/s", 100, remaining=0)),
    )
    yield case(
        "a denied large cost leaves room for a small one", policy("10/s"),
        hit(0, cost=8, due=yes(2)),
        hit(0, cost=3, due=no("10/s", 100, remaining=2)),
        hit(0, cost=2, due=yes(0)),
    )
    yield case(
        "a cost of the bucket's whole size passes when it is full", policy("5/s"),
        hit(0, due=yes(4)),
        denied_until(0, "5/s", 200, cost=5),
    )
    yield case(
        "a million tokens in a bucket of model tokens", policy("60000/min burst 1000000"),
        hit(0, cost=999_999, due=yes(1, limit=1_000_000)),
        hit(0, cost=2, due=no("60000/min", 1)),
        hit(1, cost=2, due=yes(0)),
        hit(1, cost=1_000_000, due=no("60000/min", 1_000_000)),
    )
