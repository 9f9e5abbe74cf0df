"""check, peek, record, refund, reserve."""

from .dsl import *

ABOUT = "check, peek, record, refund, reserve, allow"

FOUR = ["4/min", "4/min window", "4/min counter", "4/min fixed"]


def cases():
    for text in FOUR:
        yield from on_each(text)
    yield from checks()
    yield from records()
    yield from refunds()
    yield from reserves()


def on_each(text):
    yield case(
        f"allow is a hit of 1, yes or no, by {text}", policy(text),
        allow(0, due=True, repeat=4), allow(0, due=False, repeat=3), hit(0, due=no("4/min")),
    )
    yield case(
        f"check spends nothing when allowed, by {text}", policy(text),
        check(0, due=yes(4, limit=4, reset_after_ms=0), repeat=9), check(0, cost=4, due=yes(4)),
        hit(0, cost=3, due=yes(1)), check(0, due=yes(1)),
        check(0, cost=2, due=no("4/min", remaining=1)),
    )
    yield case(
        f"peek is what a hit would get and changes nothing, by {text}", policy(text),
        peek(0, due=yes(3, limit=4), repeat=5), peek(0, cost=4, due=yes(0)), stats(0, due=None),
        hit(0, cost=4, due=yes(0)), peek(0, due=no("4/min", remaining=0)),
        peek(0, cost=0, due=yes(0)),
    )
    yield case(
        f"record spends without asking, by {text}", policy(text),
        record(0, cost=1, due={"used": 1, "limit": 4, "remaining": 3}),
        record(0, cost=3, due={"used": 4, "remaining": 0}), hit(0, due=no("4/min")),
    )
    yield case(
        f"refund gives back what was spent, by {text}", policy(text),
        hit(0, cost=4, due=yes(0)), refund(0, cost=1), left(0, 1), refund(0, cost=2),
        hit(0, cost=3, due=yes(0)), hit(0, due=no("4/min")),
    )
    yield case(
        f"refund never goes above full, by {text}", policy(text),
        hit(0, cost=2, due=yes(2)), refund(0, cost=100), left(0, 4), hit(0, cost=4, due=yes(0)),
        hit(0, due=no("4/min")),
    )
    yield case(
        f"a refund of an unknown key does nothing, by {text}", policy(text),
        refund(0, cost=2), stats(0, due=None), hit(0, cost=4, due=yes(0)), hit(0, due=no("4/min")),
    )
    yield case(
        f"a reservation is a hit of its estimate and settles for less, by {text}", policy(text),
        reserve(0, "r", 3, due=yes(1, limit=4)), left(0, 1), settle(0, "r", 1), left(0, 3),
    )
    yield case(
        f"a reservation that is cancelled gives all back, by {text}", policy(text),
        hit(0, due=yes(3)), reserve(0, "r", 3, due=yes(0)), cancel(0, "r"), left(0, 3),
    )


def checks():
    yield case(
        "check, do the work, then record", policy("2/min window"),
        check(0, due=yes(2)),
        record(5000, due={"used": 1, "remaining": 1, "reset_after_ms": 60_000}),
        check(6000, due=yes(1)), record(9000, due={"used": 2}),
        check(9000, due=no("2/min", 56_000)),
        check(64_999, due=no("2/min", 1)), check(65_000, due=yes(1)),
    )
    yield case(
        "peek of 0 is what is left now", policy("20/min, 5/10s window"),
        hit(0, cost=3, due=yes(2)), peek(0, cost=0, due=yes(2, limit=5)),
        peek(10_000, cost=0, due=yes(5, limit=5)),
    )
    yield case(
        "peek denied by a large cost reports its wait", policy("5/s"),
        hit(0, cost=5, due=yes(0)), peek(0, cost=3, due=no("5/s", 600)),
        peek(599, cost=3, due=no("5/s", 1)),
        peek(600, cost=3, due=yes(0)),
    )
    yield case(
        "peek of a cost that can never pass", policy("5/s"),
        peek(0, cost=6, due=no("cost", None, limit=5, remaining=5)),
    )
    yield case(
        "check of a cost that can never pass", policy("5/s window"),
        check(0, cost=6, due=no("cost", None, limit=5, remaining=5)), stats(0, due=None),
    )
    yield case(
        "is_limited without backoff: a hit of 1 would be denied now", policy("2/s window"),
        is_limited(0, due=False), hits(0, 2), is_limited(0, due=True), is_limited(999, due=True),
        is_limited(1000, due=False), stats(1000, due=None),
    )
    yield case(
        "is_limited in a cooldown", policy("2/s", cooldown="5s"),
        hits(0, 2), is_limited(0, due=True), hit(0, due=no("2/s", 5000)),
        is_limited(4999, due=True),
        is_limited(5000, due=False),
    )
    yield case(
        "is_limited of a suspended key", policy({"l": {"max": 0, "per": "1s"}}),
        is_limited(0, due=True),
    )


def records():
    yield case(
        "a bucket goes no lower than 0 by record", policy("5/s"),
        record(0, cost=100, due={"used": 5, "limit": 5, "remaining": 0, "reset_after_ms": 1000}),
        hit(0, due=no("5/s", 200)), hit(200, due=yes(0)),
    )
    yield case(
        "a window logs more than its max by record", policy("3/s window"),
        record(0, cost=3),
        record(500, cost=2, due={"remaining": 0, "reset_after_ms": 1000}, leave=["used"]),
        hit(999, due=no("3/s", 1)), hit(1000, due=yes(0)), hit(1000, due=no("3/s", 500)),
        hit(1500, cost=2, due=yes(0)),
    )
    yield case(
        "a fixed window counts more than its max by record", policy("3/s fixed"),
        record(0, cost=9, due={"used": 9, "limit": 3, "remaining": 0, "reset_after_ms": 1000}),
        hit(999, due=no("3/s", 1)), hit(1000, due=yes(2)),
    )
    yield case(
        "a counter counts more than its max by record", policy("4/s counter"),
        record(0, cost=8, due={"used": 8, "limit": 4, "remaining": 0, "reset_after_ms": 2000}),
        hit(1500, due=no("4/s", 125)), hit(1624, due=no("4/s", 1)), hit(1625, due=yes(0)),
    )
    yield case(
        "record spends in a cooldown too and starts nothing", policy("2/s window", cooldown="3s"),
        hits(0, 2), hit(0, due=no("2/s", 3000)),
        record(2500, cost=2, due={"used": 2, "remaining": 0}),
        hit(3000, due=no("2/s", 3000)), record(3000, cost=1, leave=["used"]), hit(6000, due=yes(1)),
    )
    yield case(
        "record spends in all limits and reports the one with the least left",
        policy("10/s, 4/min window"),
        record(0, cost=3, due={"used": 3, "limit": 4, "remaining": 1, "reset_after_ms": 60_000}),
        stats(0, due={"limits": {"10/s": {"used": 3}, "4/min": {"used": 3}}}),
    )
    yield case(
        "record of 0 records nothing", policy("4/min window"),
        record(0, cost=0, due={"used": 0, "limit": 4, "remaining": 4, "reset_after_ms": 0}),
        stats(0, due=None),
    )
    yield case(
        "record is no violation and ends no episode",
        policy("1/s window", notify="once", alert={"violations": 1, "within": "1m"}),
        hit(0, due=yes(0)), hit(0, due=no("1/s", notify=True, alert=True)),
        record(1000, due={"remaining": 0}), hit(1001, due=no("1/s", notify=False, alert=False)),
    )


def refunds():
    yield case(
        "a window gives back its newest first", policy("3/10s window"),
        hit(0, due=yes(2)), hit(4000, due=yes(1)), hit(8000, due=yes(0)), refund(8000, cost=2),
        peek(8000, cost=0, due=yes(2, reset_after_ms=2000)), left(9999, 2), left(10_000, 3),
    )
    yield case(
        "a window gives back part of an entry", policy("10/10s window"),
        hit(0, cost=6, due=yes(4)), hit(5000, cost=4, due=yes(0)), refund(5000, cost=5),
        left(5000, 5),
        left(9999, 5), left(10_000, 10),
    )
    yield case(
        "what has left a window is not given back", policy("4/s window"),
        hit(0, cost=3, due=yes(1)), hit(1000, cost=2, due=yes(2)), refund(1000, cost=4),
        left(1000, 4),
        hit(1000, cost=4, due=yes(0)), hit(1999, due=no("4/s", 1)),
    )
    yield case(
        "a window is refunded and hit over and over", policy("3/min window"),
        hits(0, 3),
        [
            [refund(at, cost=2), left(at, 2), hits(at, 2), hit(at, due=no("3/min"))]
            for at in range(1000, 9000, 1000)
        ],
        hit(60_000, due=yes(0)), hit(60_000, due=no("3/min", 8000)),
    )
    yield case(
        "a bucket is refunded between tokens", policy("10/s"),
        hit(0, cost=10, due=yes(0)), refund(50, cost=1), hit(50, due=yes(0)),
        hit(99, due=no("10/s", 1)),
        hit(100, due=yes(0)),
    )
    yield case(
        "all limits are refunded", policy("10/s, 5/min window"),
        hit(0, cost=5, due=yes(0)), hit(0, due=no("5/min", 60_000)), refund(0, cost=5),
        stats(0, due=None),
        hit(0, cost=5, due=yes(0, limit=5)),
    )
    yield case(
        "a fixed window's refund leaves its start", policy("4/10s fixed"),
        hit(0, cost=4, due=yes(0)), refund(6000, cost=2),
        peek(6000, cost=0, due=yes(2, reset_after_ms=4000)),
        hit(6000, cost=2, due=yes(0)), hit(9999, due=no("4/10s", 1)), hit(10_000, due=yes(3)),
    )
    yield case(
        "a refund ends no cooldown", policy("2/s", cooldown="9s"),
        hits(0, 2), hit(0, due=no("2/s", 9000)), refund(0, cost=2),
        hit(0, due=no("cooldown", 9000)),
        hit(9000, due=yes(1)),
    )
    yield case(
        "a refund of 0 gives nothing back", policy("2/min window"),
        hits(0, 2), refund(0, cost=0), hit(0, due=no("2/min", 60_000)),
    )


def reserves():
    yield case(
        "a reservation that cost more takes the difference", policy("10/s"),
        reserve(0, "r", 3, due=yes(7)), settle(0, "r", 8), left(0, 2),
    )
    yield case(
        "a reservation that cost more than there is leaves nothing", policy("10/s"),
        reserve(0, "r", 3, due=yes(7)), settle(0, "r", 50), left(0, 0), hit(0, due=no("10/s", 100)),
    )
    yield case(
        "a reservation that cost as much as estimated changes nothing", policy("10/s window"),
        reserve(0, "r", 3, due=yes(7)), settle(400, "r", 3), left(400, 7), left(1000, 10),
    )
    yield case(
        "a reservation is settled once", policy("10/min window"),
        reserve(0, "r", 6, due=yes(4)), settle(0, "r", 2), left(0, 8), settle(0, "r", 0),
        left(0, 8),
        cancel(0, "r"), left(0, 8),
    )
    yield case(
        "a denied reservation has nothing to settle", policy("10/min"),
        hit(0, cost=8, due=yes(2)), reserve(0, "r", 3, due=no("10/min", 6000)), settle(0, "r", 9),
        left(0, 2),
        cancel(0, "r"), left(0, 2),
    )
    yield case(
        "a reservation above the limit is denied for ever", policy("10/min"),
        reserve(0, "r", 11, due=no("cost", None)), left(0, 10),
    )
    yield case(
        "a reservation that is forgotten is spent", policy("10/min window"),
        reserve(0, "r", 6, due=yes(4)), left(59_999, 4), left(60_000, 10),
    )
    yield case(
        "a bucket settled later never goes above full", policy("10/s"),
        reserve(0, "r", 6, due=yes(4)), settle(900, "r", 0), left(900, 10),
        hit(900, cost=10, due=yes(0)),
        hit(900, due=no("10/s", 100)),
    )
    yield case(
        "two reservations of one key", policy("10/min window"),
        reserve(0, "r", 4, due=yes(6)), reserve(0, "s", 5, due=yes(1)), settle(0, "r", 1),
        left(0, 4),
        settle(0, "s", 6), left(0, 3),
    )
    yield case(
        "a reservation takes and gives back in all limits",
        policy({"calls": "100/s window", "tokens": "1000/min"}),
        reserve(0, "r", 80, due=yes(20, limit=100)), settle(0, "r", 30),
        stats(0, due={"limits": {"calls": {"used": 30}, "tokens": {"used": 30}}}),
    )
    yield case(
        "model tokens: estimate, then the true cost", policy("60000/min"),
        reserve(0, "r", 4000, due=yes(56_000)), settle(2000, "r", 2500), left(2000, 59_500),
        reserve(2000, "s", 59_500, due=yes(0)), reserve(2000, "t", 1, due=no("60000/min", 1)),
    )
