"""Modes."""

from .dsl import *

ABOUT = "mode: enforce, shadow (all allowed, with the reason in would_deny) or off"

OFF = {
    "allowed": True, "reason": "off", "limit": None, "remaining": None, "retry_after_ms": 0,
    "reset_after_ms": 0, "would_deny": None,
}


def would(reason, **fields):
    return {
        "allowed": True, "reason": None, "would_deny": reason, "retry_after_ms": 0, "notify": False,
        "warning": False,
    } | fields


def cases():
    yield case(
        "enforce is the default",
        rules(a={"limits": "1/s"}, b={"limits": "1/s", "mode": "enforce"}),
        [
            [
                hit(0, rule=rule, due=yes(0, would_deny=None)),
                hit(0, rule=rule, due=no("1/s", 1000, would_deny=None)),
            ]
            for rule in "ab"
        ],
    )
    yield case(
        "off allows all and counts nothing", policy("1/h", mode="off"),
        hit(0, due=OFF, repeat=9), hit(0, cost=1000, due=OFF), allow(0, due=True, repeat=2),
        check(0, due=OFF), peek(0, due=OFF), is_limited(0, due=False), record(0, cost=3),
        stats(0, due=None),
    )
    yield case("off is said before exempt", policy("1/h", mode="off", exempt=[{"key": "a"}]),
               hit(0, due=OFF))
    yield case(
        "shadow allows what it would deny and says why", policy("2/s", mode="shadow"),
        hit(0, due=yes(1, would_deny=None)), hit(0, due=yes(0)),
        hit(0, due=would("2/s", limit=2, remaining=0, reset_after_ms=1000)),
        hit(500, due=yes(0, would_deny=None)),
    )
    yield case(
        "shadow takes nothing for a hit that it would deny", policy("3/s window", mode="shadow"),
        hits(0, 3), hit(500, due=would("3/s"), repeat=9), hit(1000, due=yes(2)),
    )
    yield case(
        "shadow starts cooldowns as enforce does", policy("1/s", mode="shadow", cooldown="10s"),
        hit(0, due=yes(0)), hit(0, due=would("1/s")),
        hit(5000, due=would("cooldown", limit=1, remaining=0)),
        hit(9999, due=would("cooldown")), hit(10_000, due=yes(0)),
    )
    yield case(
        "shadow counts violations and alerts",
        policy("1/h", mode="shadow", alert={"violations": 2, "within": "1m"}),
        hit(0, due=yes(0)), hit(0, due=would("1/h", alert=False)),
        hit(0, due=would("1/h", alert=True)),
    )
    yield case(
        "shadow of an enforced backoff",
        policy("10/s burst 1", mode="shadow",
               backoff={"steps": ["2s"], "quiet": "1m", "enforce": True}),
        hit(0, due=yes(0)), hit(0, due=would("10/s")), hit(1999, due=would("backoff", limit=None)),
        hit(2000, due=yes(0)),
    )
    yield case(
        "shadow of a spent budget", policy("5/s", mode="shadow", budget={"daily": 1}),
        spend(0, 1), hit(0, due=would("budget", limit=None, remaining=0)), wall_ms=NOON,
    )
    yield case(
        "shadow of a cost that can never pass", policy("5/s", mode="shadow"),
        hit(0, cost=6, due=would("cost", limit=5, remaining=5)), hit(0, due=yes(4)),
    )
    yield case(
        "shadow of a suspended key", policy({"l": {"max": 0, "per": "1s"}}, mode="shadow"),
        hit(0, due=would("l", limit=0)),
    )
    yield case(
        "shadow's exemptions are exemptions", policy("1/h", mode="shadow", exempt=[{"key": "a"}]),
        hit(0, due={"allowed": True, "reason": "exempt", "would_deny": None}, repeat=2),
    )
    yield case(
        "shadow lets allow and check pass", policy("1/h", mode="shadow"),
        allow(0, due=True, repeat=5), check(0, due=would("1/h")), peek(0, due=would("1/h")),
    )
    yield case(
        "shadow warns on what it would allow", policy("5/h", mode="shadow", warn_at=0.6),
        hit(0, cost=3, due=yes(2, warning=False)), hit(0, due=yes(1, warning=True)),
        hit(0, cost=2, due=would("5/h")),
    )
    yield case(
        "a reservation that shadow would deny has nothing to settle", policy("5/h", mode="shadow"),
        hit(0, cost=3, due=yes(2)), reserve(0, "r", 4, due=would("5/h")), settle(0, "r", 0),
        left(0, 2),
    )
    yield case(
        "rules of one policy have modes of their own",
        rules(a={"limits": "1/h", "mode": "off"}, b={"limits": "1/h"},
              c={"limits": "1/h", "mode": "shadow"}),
        [hits(0, 1, rule=rule) for rule in "bc"], hit(0, rule="a", due=OFF),
        hit(0, rule="b", due=no("1/h")),
        hit(0, rule="c", due=would("1/h")),
    )
