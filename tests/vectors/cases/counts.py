"""Limits that count hits beside limits that count costs."""

from .dsl import *

ABOUT = "counts: hits takes 1 of each hit whatever it costs; only cancel gives it back"


def both(requests=None, tokens=None, **options):
    """A number of requests and a number of tokens a minute."""
    limits = {
        "requests": {"max": 3, "per": "1m", "algorithm": "window", "counts": "hits"}
        | (requests or {}),
        "tokens": {"max": 1000, "per": "1m", "algorithm": "window"} | (tokens or {}),
    }
    return policy(limits, **({"capacity": 16} | options))


def used(at_ms, requests, tokens):
    return stats(at_ms,
                 due={"limits": {"requests": {"used": requests}, "tokens": {"used": tokens}}})


def cases():
    yield from hitting()
    yield from giving_back()
    yield from alone()
    yield from shapes()


def hitting():
    yield case(
        "a hit takes one request and its cost in tokens", both(),
        hit(0, cost=400, due=yes(600, limit=1000)), used(0, 1, 400),
        hit(0, cost=500, due=yes(100, limit=1000)), used(0, 2, 900),
        hit(0, cost=1, due=yes(0, limit=3)), used(0, 3, 901),
        hit(1, cost=1, due=no("requests", 59_999, limit=3, remaining=0)),
    )
    yield case(
        "what the tokens deny takes no request", both(),
        hit(0, cost=900, due=yes(100)),
        hit(0, cost=101, due=no("tokens", 60_000, remaining=100), repeat=5),
        used(0, 1, 900), hit(0, cost=100, due=yes(0, limit=1000)), used(0, 2, 1000),
    )
    yield case(
        "what the requests deny takes no tokens", both(),
        hit(0, cost=1, due={"allowed": True}, repeat=3),
        hit(10, cost=500, due=no("requests", 59_990), repeat=5),
        used(10, 3, 3),
    )
    yield case(
        "the cost that is too much is compared with limits of costs only", both(),
        hit(0, cost=1000, due=yes(0, limit=1000)), reset(0),
        hit(0, cost=1001, due=no("cost", None, limit=1000, remaining=1000)), stats(0, due=None),
    )
    yield case(
        "a cost of 0 takes no request", both(),
        hit(0, cost=0, due=yes(3, limit=3)), stats(0, due=None), record(0, cost=0),
        stats(0, due=None),
    )
    yield case(
        "the least left is the least share of the size", both(tokens={"max": 10}),
        peek(0, cost=0, due=yes(3, limit=3)), hit(0, cost=2, due=yes(2, limit=3)),
        hit(0, cost=6, due=yes(2, limit=10)), hit(0, cost=1, due=yes(0, limit=3)),
    )
    yield case(
        "equal shares: the first declared is reported",
        both(requests={"max": 2}, tokens={"max": 10}), hit(0, cost=5, due=yes(1, limit=2)),
    )
    yield case(
        "check and peek ask for one request", both(requests={"max": 1}),
        peek(0, cost=500, due=yes(0, limit=1)), check(0, cost=500, due=yes(1, limit=1)),
        hit(0, cost=500, due=yes(0)),
        peek(0, cost=500, due=no("requests", 60_000)), check(0, cost=1, due=no("requests", 60_000)),
    )
    yield case(
        "record takes one request", both(requests={"max": 2}),
        record(0, cost=700, due={"used": 700, "limit": 1000, "remaining": 300}), used(0, 1, 700),
        record(0, cost=1, due={"used": 2, "limit": 2, "remaining": 0}), used(0, 2, 701),
    )
    yield case(
        "buckets of both", policy({"requests": {"max": 60, "per": "1m", "counts": "hits"},
                                   "tokens": {"max": 60_000, "per": "1m"}}),
        hit(0, cost=30_000, due=yes(30_000, limit=60_000, reset_after_ms=30_000)),
        stats(0, due={"limits": {"requests": {"used": 1, "reset_after_ms": 1000},
                                 "tokens": {"used": 30_000, "reset_after_ms": 30_000}}}),
        hit(0, cost=31_000, due=no("tokens", 1000)),
    )
    yield case(
        "a warning for the requests", both(warn_at=0.5),
        hit(0, cost=1, due=yes(2, limit=3, warning=False)),
        hit(0, cost=1, due=yes(1, limit=3, warning=True)),
    )
    yield case(
        "a cooldown of the requests", both(requests={"max": 1, "cooldown": "2m"}),
        hit(0, cost=10, due={"allowed": True}), hit(0, cost=10, due=no("requests", 120_000)),
        hit(60_000, cost=10, due=no("cooldown", 60_000, limit=1)),
        hit(120_000, cost=10, due={"allowed": True}),
    )


def giving_back():
    yield case(
        "a refund gives back no request", both(),
        hit(0, cost=400), refund(0, cost=400), used(0, 1, 0), refund(0, cost=5), used(0, 1, 0),
    )
    yield case(
        "settling gives back no request", both(),
        reserve(0, "r", 400, due=yes(600)), settle(0, "r", 100), used(0, 1, 100),
        reserve(0, "s", 400), settle(0, "s", 0), used(0, 2, 100),
    )
    yield case(
        "settling above the estimate takes no request", both(),
        reserve(0, "r", 100), settle(0, "r", 300), used(0, 1, 300),
    )
    yield case(
        "cancelling gives back the request", both(),
        reserve(0, "r", 400), used(0, 1, 400), cancel(0, "r"), stats(0, due=None),
        hit(0, cost=1), reserve(0, "s", 5), cancel(59_999, "s"), used(59_999, 1, 1),
    )
    yield case(
        "cancelling gives back no request that has aged out", both(),
        reserve(0, "r", 400), hit(60_000, cost=1), cancel(60_000, "r"), used(60_000, 1, 1),
    )
    for algorithm in ("bucket", "fixed", "counter"):
        yield case(
            f"cancelling gives a request back to a {algorithm}",
            both(requests={"algorithm": algorithm}, tokens={"algorithm": algorithm}),
            reserve(0, "r", 400), used(0, 1, 400), cancel(0, "r"), stats(0, due=None),
        )
    yield case(
        "a reservation of nothing takes no request", both(),
        reserve(0, "r", 0), stats(0, due=None), settle(0, "r", 7), used(0, 0, 7),
    )


def alone():
    for algorithm in ("bucket", "window", "fixed", "counter"):
        yield case(
            f"a {algorithm} of hits alone takes any cost",
            policy({"requests": {"max": 2, "per": "1m", "algorithm": algorithm, "counts": "hits"}}),
            hit(0, cost=1_000_000, due=yes(1, limit=2)), allow(0, due=True),
            hit(0, cost=5, due={"allowed": False}),
            allow(0, due=False), refund(0, cost=5), allow(0, due=False),
        )
    yield case(
        "a max of the call for a limit of hits",
        policy({"requests": {"max": 2, "per": "1m", "counts": "hits"}}),
        hit(0, cost=9, max=5, due=yes(4, limit=5)),
    )
    yield case(
        "counts: cost is what is counted without it",
        policy({"l": {"max": 5, "per": "1m", "counts": "cost"}}),
        hit(0, cost=3, due=yes(2)),
    )
    yield case(
        "no hit may pass", policy({"requests": {"max": 0, "per": "1m", "counts": "hits"}}),
        hit(0, cost=3, due=no("requests", None, limit=0)),
    )


def shapes():
    yield case(
        "requests over all keys, tokens for each", both(requests={"scope": []}),
        hit(0, "a", 10, yes(2, limit=3)), hit(0, "b", 990, yes(10, limit=1000)),
        hit(0, "c", 10, yes(0, limit=3)),
        hit(0, "d", 10, no("requests", 60_000)), reset(0, "a"),
        hit(0, "a", 10, no("requests", 60_000)),
    )
    yield case(
        "when changes the numbers of a limit of hits",
        both(when=[{"match": {"tier": "gold"},
                    "limits": {"requests": {"max": 2, "counts": "hits"}}}]),
        hit(0, cost=1, attributes={"tier": "gold"}, due={"allowed": True}, repeat=2),
        hit(0, cost=1, attributes={"tier": "gold"}, due=no("requests", 60_000, limit=2)),
        hit(0, cost=1, due=yes(0, limit=3)),
    )
    yield case(
        "an override states what the limit counts, and no other", both(),
        step("set_override", 0, "a", limits={"requests": {"max": 1, "counts": "hits"}}),
        hit(0, cost=9, due=yes(0, limit=1)),
        step("set_override", 0, "a", limits={"requests": {"max": 1, "counts": "cost"}},
             error="counts"),
        step("set_default", 0, limits={"tokens": {"counts": "hits"}}, error="counts"),
    )
    yield case(
        "permits, requests and their lease",
        policy({"requests": {"max": 2, "per": "1m", "algorithm": "window", "counts": "hits"},
                "slots": {"max": 1, "algorithm": "concurrent"}}),
        permit(0, "p", due=yes(0, limit=1)), permit(0, "q", due=no("slots", 60_000)),
        release(0, "p", True),
        permit(0, "r", due=yes(0, limit=2)), release(0, "r", True),
        permit(0, "s", due=no("requests", 60_000)),
    )
    path = "rules.default.limits.l.counts"
    yield refused("a concurrent limit that counts hits",
                  policy({"l": {"max": 5, "algorithm": "concurrent", "counts": "hits"}}), path)
    yield refused("something that no limit counts",
                  policy({"l": {"max": 5, "per": "1m", "counts": "bytes"}}), path)
    yield refused("when changes what a limit counts",
                  both(when=[{"match": {"key": "a"}, "limits": {"tokens": {"counts": "hits"}}}]),
                  "rules.default.when[0].limits.tokens.counts")
