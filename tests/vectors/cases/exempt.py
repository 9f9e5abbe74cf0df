"""Exemptions."""

from .dsl import *

ABOUT = "exempt: allowed with reason exempt; nothing is counted"

FREE = {
    "allowed": True, "reason": "exempt", "limit": None, "remaining": None, "retry_after_ms": 0,
    "reset_after_ms": 0, "warning": False,
}


def cases():
    one = policy("1/min", exempt=[{"key": "root"}])
    yield case(
        "an exempt key is allowed without end and nothing is counted", one,
        hit(0, "root", due=FREE, repeat=50), stats(0, "root", due=None), hit(0, "a", due=yes(0)),
        hit(0, "a", due=no("1/min")),
    )
    yield case(
        "an exempt call gives nothing back: nothing of it was counted",
        policy("2/min", exempt=[{"role": "admin"}]),
        hit(0, "a", cost=2, due=yes(0)), refund(0, "a", 2, attributes={"role": "admin"}),
        hit(0, "a", due=no("2/min")),
        refund(0, "a", 1), hit(0, "a", due=yes(0)),
    )
    yield case(
        "a part may be exempt",
        policy("1/min", key=["channel", "sender"], exempt=[{"channel": "webchat"}]),
        hit(0, ["webchat", "a"], due=FREE, repeat=3), hit(0, ["irc", "webchat"], due=yes(0)),
    )
    yield case(
        "a role of a list may be exempt", policy("1/min", exempt=[{"role": ["admin", "system"]}]),
        hit(0, due=FREE, attributes={"role": "admin"}),
        hit(0, due=FREE, attributes={"role": "system"}),
        hit(0, due=yes(0), attributes={"role": "user"}), hit(0, due=no("1/min")),
    )
    yield case(
        "an address range may be exempt",
        policy("1/min", exempt=[{"ip": "10.0.0.0/8"}, {"ip": "fd00::/8"}]),
        hit(0, due=FREE, attributes={"ip": "10.9.8.7"}),
        hit(0, due=FREE, attributes={"ip": "fd12::1"}),
        hit(0, due=FREE, attributes={"ip": "::ffff:10.0.0.1"}),
        hit(0, due=yes(0), attributes={"ip": "8.8.8.8"}),
    )
    yield case(
        "any exemption of several will do, all fields of one must",
        policy("1/min", exempt=[{"role": "admin", "team": "ops"}, {"role": "system"}]),
        hit(0, due=FREE, attributes={"role": "admin", "team": "ops"}),
        hit(0, due=FREE, attributes={"role": "system"}),
        hit(0, due=yes(0), attributes={"role": "admin"}),
        hit(0, due=no("1/min"), attributes={"team": "ops"}),
    )
    yield case(
        "an exempt call is allowed in a cooldown and leaves it",
        policy("1/min", cooldown="10m", exempt=[{"role": "admin"}]),
        hit(0, due=yes(0)), hit(0, due=no("1/min")), hit(1, due=FREE, attributes={"role": "admin"}),
        hit(1, due=no("cooldown", 599_999)),
    )
    yield case(
        "an exempt call may have any cost", one,
        hit(0, "root", 1000, due=FREE), hit(0, "root", 0, due=FREE),
    )
    yield case(
        "an exempt call does not look at the budget",
        policy("1/min", budget={"daily": 1}, exempt=[{"role": "admin"}]),
        spend(0, 1), hit(0, due=no("budget")), hit(0, due=FREE, attributes={"role": "admin"}),
        wall_ms=NOON,
    )
    yield case(
        "an exempt key that is suspended is allowed",
        policy({"l": {"max": 0, "per": "1m"}}, exempt=[{"key": "root"}]),
        hit(0, "root", due=FREE), hit(0, "a", due=no("l", None)),
    )
    yield case(
        "check, peek, allow and is_limited know exemptions", one,
        check(0, "root", due=FREE), peek(0, "root", due=FREE), allow(0, "root", due=True, repeat=3),
        is_limited(0, "root", due=False), record(0, "root", 5), stats(0, "root", due=None),
    )
    yield case(
        "a reservation of an exempt key has nothing to settle", one,
        reserve(0, "r", 5, "root", due=FREE), settle(0, "r", 50), stats(0, "root", due=None),
    )
    yield case(
        "an exempt call does not take from a global limit",
        policy({"all": {"max": 2, "per": "1m", "scope": []}}, exempt=[{"key": "root"}]),
        hit(0, "root", due=FREE, repeat=9), hit(0, "a", due=yes(1)), hit(0, "b", due=yes(0)),
        hit(0, "c", due=no("all")),
    )
