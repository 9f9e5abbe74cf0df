"""Alerts."""

from .dsl import *

ABOUT = (
    "alert: a span opens at the first denial; the denial that reaches the count in it alerts, once"
)

TEN = {"violations": 10, "within": "5m"}
THREE = {"violations": 3, "within": "10s"}
QUIET, LOUD = {"allowed": False, "alert": False}, {"allowed": False, "alert": True}


def cases():
    yield case(
        "the tenth denial within five minutes alerts, once", policy("1/h window", alert=TEN),
        hit(0, due=yes(0, alert=False)), hit(0, due=QUIET, repeat=9), hit(1, due=LOUD),
        hit(2, due=QUIET, repeat=20),
    )
    yield case(
        "the span counts from its first denial: its last millisecond is in",
        policy("1/h window", alert=THREE),
        hit(0, due=yes(0)), hit(1000, due=QUIET), hit(2000, due=QUIET), hit(10_999, due=LOUD),
    )
    yield case(
        "the span counts from its first denial: its end is out and opens another",
        policy("1/h window", alert=THREE),
        hit(0, due=yes(0)), hit(1000, due=QUIET), hit(2000, due=QUIET), hit(11_000, due=QUIET),
        hit(11_001, due=QUIET), hit(20_999, due=LOUD),
    )
    yield case(
        "each span alerts anew", policy("1/h window", alert=THREE),
        hit(0, due=yes(0)),
        [
            [hit(at, due=QUIET, repeat=2), hit(at, due=LOUD), hit(at + 9999, due=QUIET)]
            for at in (0, 10_000, 25_000)
        ],
    )
    yield case(
        "an allowed hit closes no span", policy("1/s window", alert=THREE),
        hit(0, due=yes(0)), hit(0, due=QUIET, repeat=2), hit(1000, due=yes(0)), hit(1001, due=LOUD),
    )
    yield case(
        "an alert after one violation", policy("1/s", alert={"violations": 1, "within": "1m"}),
        hit(0, due=yes(0)), hit(0, due=LOUD), hit(0, due=QUIET), hit(59_999, due=yes(0)),
        hit(59_999, due=QUIET), hit(60_999, due=yes(0)), hit(60_999, due=LOUD),
    )
    yield case(
        "refusals in a cooldown are no violations",
        policy("1/s window", cooldown="2s", alert=THREE),
        hit(0, due=yes(0)), hit(0, due=no("1/s", alert=False)),
        hit(1000, due=no("cooldown", alert=False), repeat=9), hit(2000, due=yes(0)),
        hit(2000, due=no("1/s", alert=False)), hit(4000, due=yes(0)),
        hit(4000, due=no("1/s", alert=True)),
    )
    yield case(
        "refusals by an enforced backoff are no violations",
        policy(
            "1/s window", alert={"violations": 2, "within": "1m"},
            backoff={"steps": ["3s"], "quiet": "1m", "enforce": True},
        ),
        hit(0, due=yes(0)), hit(0, due=no("1/s", alert=False)),
        hit(1000, due=no("backoff", alert=False), repeat=9), hit(3000, due=yes(0)),
        hit(3000, due=no("1/s", alert=True)),
    )
    yield case(
        "a cost that can never pass is no violation",
        policy("2/h", alert={"violations": 2, "within": "1m"}),
        hit(0, cost=3, due=no("cost", None, alert=False), repeat=5), hits(0, 2), hit(0, due=QUIET),
        hit(0, due=LOUD),
    )
    yield case(
        "check counts as a violation, peek neither counts nor alerts", policy("1/h", alert=THREE),
        hit(0, due=yes(0)), check(0, due=QUIET), peek(0, due=QUIET, repeat=5), check(0, due=QUIET),
        peek(0, due=QUIET), check(0, due=LOUD),
    )
    yield case(
        "keys have spans of their own", policy("1/h", alert={"violations": 2, "within": "1m"}),
        hits(0, 1, "a"), hits(0, 1, "b"), hit(0, "a", due=QUIET), hit(0, "b", due=QUIET),
        hit(0, "b", due=LOUD), hit(0, "a", due=LOUD),
    )
    yield case(
        "a budget's denial is no violation",
        policy("5/s", alert={"violations": 2, "within": "1m"}, budget={"daily": 10}),
        spend(0, 10), hit(0, due=no("budget", alert=False), repeat=5), wall_ms=NOON,
    )
