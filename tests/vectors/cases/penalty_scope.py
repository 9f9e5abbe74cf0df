"""Penalties that are kept for some of the parts."""

from .dsl import *

ABOUT = "penalty_scope: cooldown, backoff, alert, notify and is_limited are kept for these parts"

KEY = {"key": ["agent", "tier"], "penalty_scope": ["agent"]}


def cases():
    yield case(
        "an agent's cooldown holds over its tiers", policy("1/s", **KEY, cooldown="30s"),
        hit(0, ["x", "light"], due=yes(0)), hit(0, ["x", "light"], due=no("1/s", 30_000)),
        hit(1, ["x", "heavy"], due=no("cooldown", 29_999)), hit(1, ["y", "light"], due=yes(0)),
        hit(30_000, ["x", "heavy"], due=yes(0)),
    )
    yield case(
        "without penalty_scope a cooldown is the whole key's",
        policy("1/s", key=["agent", "tier"], cooldown="30s"),
        hit(0, ["x", "light"], due=yes(0)), hit(0, ["x", "light"], due=no("1/s", 30_000)),
        hit(1, ["x", "heavy"], due=yes(0)),
    )
    yield case(
        "an agent's backoff adds up over its tiers",
        policy("10/s burst 1", **KEY, backoff={"steps": ["1s", "2s", "5s"], "quiet": "60s"}),
        hits(0, 1, ["x", "a"]), hits(0, 1, ["x", "b"]), hits(0, 1, ["y", "a"]),
        hit(0, ["x", "a"], due=no("10/s", 1000)), hit(0, ["x", "b"], due=no("10/s", 2000)),
        hit(0, ["x", "a"], due=no("10/s", 5000)), hit(0, ["y", "a"], due=no("10/s", 1000)),
    )
    yield case(
        "an agent's violations add up over its tiers",
        policy("1/h", **KEY, alert={"violations": 3, "within": "5m"}),
        [hits(0, 1, ["x", tier]) for tier in "abc"], hit(0, ["x", "a"], due=no("1/h", alert=False)),
        hit(0, ["x", "b"], due=no("1/h", alert=False)),
        hit(0, ["x", "c"], due=no("1/h", alert=True)),
        stats(0, ["x", "a"], due={"violations": 3}),
    )
    yield case(
        "an agent is told once over its tiers", policy("1/h", **KEY, notify="once"),
        hits(0, 1, ["x", "a"]), hits(0, 1, ["x", "b"]),
        hit(0, ["x", "a"], due=no("1/h", notify=True)),
        hit(0, ["x", "b"], due=no("1/h", notify=False)),
    )
    yield case(
        "is_limited looks at the agent",
        policy("10/s burst 1", **KEY, backoff={"steps": ["1s"], "quiet": "10s"}),
        hits(0, 1, ["x", "a"]), hit(0, ["x", "a"], due=no("10/s", 1000)),
        is_limited(1, ["x", "b"], due=True),
        is_limited(1, ["y", "a"], due=False), is_limited(10_000, ["x", "b"], due=False),
    )
    yield case(
        "an enforced backoff holds over the agent's tiers",
        policy("10/s burst 1", **KEY, backoff={"steps": ["3s"], "quiet": "10s", "enforce": True}),
        hits(0, 1, ["x", "a"]), hit(0, ["x", "a"], due=no("10/s", 3000)),
        hit(1000, ["x", "b"], due=no("backoff", 2000)), hit(3000, ["x", "b"], due=yes(0)),
    )
    yield case(
        "a reset of one tier leaves the agent's cooldown", policy("1/h", **KEY, cooldown="30s"),
        hits(0, 1, ["x", "a"]), hit(0, ["x", "a"], due=no("1/h")), reset(1, ["x", "a"]),
        hit(1, ["x", "a"], due=no("cooldown", 29_999)), hit(30_000, ["x", "a"], due=yes(0)),
    )
    yield case(
        "penalties of everybody together", policy("1/s", penalty_scope=[], cooldown="10s"),
        hits(0, 1, "a"), hit(0, "a", due=no("1/s", 10_000)), hit(1, "b", due=no("cooldown", 9999)),
        hit(10_000, "b", due=yes(0)),
    )
