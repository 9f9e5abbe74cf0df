"""Attributes made of attributes."""

from .dsl import *

ABOUT = (
    "classify: turns an attribute into another attribute or into a trailing key part that callers "
    "omit"
)

TIERS = {
    "from": "action", "to": "tier", "map": {"ping": "light", "status": "light", "submit": "heavy"},
    "default": "normal",
}
PING, SUBMIT, CHAT, STATUS = ({"action": name} for name in ("ping", "submit", "chat", "status"))


def cases():
    tiered = policy(
        "10/min", key=["agent", "tier"], classify=TIERS,
        when=[
            {"match": {"tier": "light"}, "limits": {"10/min": {"max": 20}}},
            {"match": {"tier": "heavy"}, "limits": {"10/min": {"max": 2}}},
        ],
    )
    yield case(
        "a class is a key part that callers omit",
        policy("1/min", key=["agent", "tier"], classify=TIERS),
        hit(0, ["x"], due=yes(0), attributes=PING),
        hit(0, ["x"], due=no("1/min", 60_000), attributes=STATUS),
        hit(0, ["x"], due=yes(0), attributes=SUBMIT), hit(0, ["x"], due=yes(0), attributes=CHAT),
        hit(0, ["x"], due=no("1/min", 60_000)), hit(0, ["y"], due=yes(0), attributes=PING),
    )
    yield case(
        "a text is the key's one part beside the class",
        policy("1/min", key=["agent", "tier"], classify=TIERS),
        hit(0, "x", due=yes(0), attributes=PING),
        hit(0, ["x"], due=no("1/min", 60_000), attributes=PING),
    )
    yield case(
        "a class that is a key part chooses the limits", tiered,
        hit(0, "x", due=yes(19, limit=20), attributes=PING),
        hit(0, "x", due=yes(1, limit=2), attributes=SUBMIT),
        hit(0, "x", due=yes(9, limit=10), attributes=CHAT),
        hit(0, "x", due=yes(0), attributes=SUBMIT),
        hit(0, "x", due=no("10/min", 30_000), attributes=SUBMIT),
        hit(0, "x", due=yes(18), attributes=STATUS),
    )
    yield case(
        "a class that is an attribute chooses the limits of one state",
        policy(
            "10/min window", classify=TIERS,
            when=[{"match": {"tier": "heavy"}, "limits": {"10/min": {"max": 2}}}],
        ),
        hit(0, due=yes(9, limit=10), attributes=PING),
        hit(0, due=yes(0, limit=2), attributes=SUBMIT),
        hit(0, due=no("10/min", 60_000, limit=2), attributes=SUBMIT),
        hit(0, due=yes(7, limit=10), attributes=CHAT), hit(0, due=yes(6, limit=10)),
    )
    yield case(
        "a class may be exempt", policy("1/min", classify=TIERS, exempt=[{"tier": "light"}]),
        hit(0, due={"allowed": True, "reason": "exempt"}, attributes=PING, repeat=3),
        hit(0, due=yes(0), attributes=CHAT), hit(0, due=no("1/min"), attributes=SUBMIT),
    )
    yield case(
        "an absent attribute and an unknown value have the default class",
        policy("1/min", key=["agent", "tier"], classify=TIERS),
        hit(0, "x", due=yes(0)), hit(0, "x", due=no("1/min"), attributes={"action": "dance"}),
        hit(0, "x", due=no("1/min"), attributes={"action": ""}),
        hit(0, "x", due=no("1/min"), attributes={"action": "Ping"}),
    )
    yield case(
        "a class's part given by the caller is one part too many",
        policy("1/min", key=["agent", "tier"], classify=TIERS),
        hit(0, ["x", "light"], attributes=PING, error="part"),
        hit(0, ["x"], due=yes(0), attributes=PING),
    )
    yield case(
        "an agent's cooldown over its classes",
        policy("1/min", key=["agent", "tier"], classify=TIERS, penalty_scope=["agent"],
               cooldown="5s"),
        hit(0, "x", due=yes(0), attributes=PING),
        hit(0, "x", due=no("1/min", 60_000), attributes=PING),
        hit(1, "x", due=no("cooldown", 4999), attributes=SUBMIT),
        hit(5000, "x", due=yes(0), attributes=SUBMIT),
    )
    yield case(
        "every keyed operation classifies",
        policy("2/min window", key=["agent", "tier"], classify=TIERS),
        record(0, "x", 2, due={"used": 2, "remaining": 0}, attributes=PING),
        check(0, "x", due=no("2/min"), attributes=STATUS),
        peek(0, "x", due=yes(1), attributes=SUBMIT),
        is_limited(0, "x", due=True, attributes=PING),
        is_limited(0, "x", due=False, attributes=SUBMIT),
        stats(0, "x", due=None, attributes=SUBMIT), refund(0, "x", 1, attributes=PING),
        allow(0, "x", due=True, attributes=PING), allow(0, "x", due=False, attributes=PING),
        reset(0, "x", attributes=PING), left(0, 2, "x", attributes=PING),
    )
