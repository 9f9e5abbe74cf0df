"""Run-time changes that end by themselves."""

from .dsl import *

ABOUT = (
    "for_ms: a change ends exactly at its length; it replaces the one before it, and restores "
    "nothing"
)

FREE = {"allowed": True, "reason": "exempt"}
STAFF = {"attributes": {"role": "staff"}}


def size(at_ms, limit, key="a", **fields):
    """By which size a key is judged."""
    return peek(at_ms, key, 0, {"allowed": True, "limit": limit}, **fields)


def cases():
    yield from limits()
    yield from exempts()
    yield from states()


def limits():
    yield case(
        "an override for a key ends at its length", policy("3/min"),
        override(0, "a", {"3/min": {"max": 9}}, due=1, for_ms=60_000), size(0, 9), size(59_999, 9),
        size(60_000, 3),
        clear_override(60_000, "a", due=0),
    )
    yield case(
        "an override by match ends at its length", policy("3/min"),
        override(500, {"role": "staff"}, {"3/min": {"max": 9}}, for_ms=1000),
        size(1499, 9, **STAFF),
        size(1499, 3),
        size(1500, 3, **STAFF), clear_override(1500, {"role": "staff"}, due=0), start_ms=500,
    )
    yield case(
        "a default ends at its length", policy("3/min"),
        set_default(0, {"3/min": {"max": 9}}, for_ms=1), size(0, 9), size(1, 3), start_ms=0,
    )
    yield case(
        "a change lasts a hundred years", policy("3/min"),
        override(0, "a", {"3/min": {"max": 9}}, for_ms=36_500 * DAY), size(366 * DAY, 9),
    )
    yield case(
        "an override replaces the one before it, which is not restored", policy("3/min"),
        override(0, "a", {"3/min": {"max": 7}}),
        override(0, "a", {"3/min": {"max": 9}}, for_ms=1000),
        size(999, 9),
        size(1000, 3), clear_override(1000, "a", due=0),
    )
    yield case(
        "an override by match replaces the one before it, which is not restored", policy("3/min"),
        override(0, {"role": "staff"}, {"3/min": {"max": 7}}),
        override(0, {"role": ["staff"]}, {"3/min": {"max": 9}}, for_ms=1000), size(999, 9, **STAFF),
        size(1000, 3, **STAFF),
    )
    yield case(
        "a default replaces the one before it, which is not restored", policy("3/min"),
        set_default(0, {"3/min": {"max": 7}}), set_default(0, {"3/min": {"max": 9}}, for_ms=1000),
        size(999, 9),
        size(1000, 3),
    )
    yield case(
        "a change without an end replaces one with an end", policy("3/min"),
        override(0, "a", {"3/min": {"max": 7}}, for_ms=1000),
        override(500, "a", {"3/min": {"max": 9}}),
        set_default(500, {"3/min": {"max": 5}}, for_ms=1000),
        set_default(500, {"3/min": {"max": 6}}),
        size(HOUR, 9),
        size(HOUR, 6, "b"),
    )
    yield case(
        "a change that is made anew lasts anew", policy("3/min"),
        override(0, "a", {"3/min": {"max": 7}}, for_ms=1000),
        override(900, "a", {"3/min": {"max": 7}}, for_ms=1000),
        size(1899, 7), size(1900, 3),
    )
    yield case(
        "a whole override is replaced, with the fields that the new one leaves out",
        policy("60/min"),
        override(0, "a", {"60/min": {"burst": 5}}),
        override(0, "a", {"60/min": {"max": 120}}, for_ms=1000),
        size(999, 120),
        size(1000, 60),
    )
    yield case(
        "each change has its own end, and what is under it shows", policy(
            "3/min", when=[{"match": {"role": "staff"}, "limits": {"3/min": {"max": 4}}}]),
        set_default(0, {"3/min": {"max": 5}}, for_ms=4000),
        override(0, {"role": "staff"}, {"3/min": {"max": 6}}, for_ms=2000),
        override(0, "a", {"3/min": {"max": 7}}, for_ms=1000),
        override(0, "b", {"3/min": {"max": 8}}, for_ms=3000),
        size(999, 7, **STAFF), size(1000, 6, **STAFF), size(1999, 6, **STAFF),
        size(2000, 4, **STAFF),
        size(2000, 5), size(2999, 8, "b"), size(3000, 5, "b"), size(3999, 5), size(4000, 3),
        size(4000, 4, **STAFF),
    )
    yield case(
        "an end makes a call's max no other", policy("3/min"),
        override(0, "a", {"3/min": {"max": 9}}, for_ms=1000), size(0, 4, max=4),
        size(1000, 4, max=4),
        size(1000, 3),
    )


def exempts():
    yield case(
        "an added exemption ends at its length", policy("1/h"),
        add_exempt(0, {"role": "staff"}, for_ms=1000), hit(999, due=FREE, repeat=3, **STAFF),
        hit(999, "b", due=yes(0)),
        hit(1000, due=yes(0), **STAFF), hit(1000, due=no("1/h"), **STAFF),
        remove_exempt(1000, {"role": "staff"}, due=0),
    )
    yield case(
        "an added exemption replaces the one before it, which is not restored", policy("1/h"),
        add_exempt(0, {"key": "a"}), add_exempt(0, {"key": "a"}, for_ms=1000), hit(999, due=FREE),
        hit(1000, due=yes(0)),
        add_exempt(1000, {"key": "a"}, for_ms=1000), add_exempt(1000, {"key": "a"}),
        hit(HOUR, due=FREE),
    )
    yield case(
        "exemptions that are set stand in place of all others, and the policy's own come back at "
        "their end",
        policy("1/h", exempt=[{"key": "root"}]),
        add_exempt(0, {"key": "a"}),
        set_exempts(0, [{"key": "b"}, {"role": ["staff"]}], due=2, for_ms=1000),
        hit(999, "root", due=yes(0)), hit(999, "a", due=yes(0)), hit(999, "b", due=FREE),
        hit(999, "c", due=FREE, **STAFF),
        hit(1000, "root", due=FREE), hit(1000, "a", due=no("1/h")), hit(1000, "b", due=yes(0)),
        hit(1000, "c", due=yes(0), **STAFF),
    )
    yield case(
        "no exemptions at all may be set", policy("1/h", exempt=[{"key": "root"}]),
        set_exempts(0, []), hit(0, "root", due=yes(0)), hit(0, "root", due=no("1/h")),
        add_exempt(0, {"key": "root"}),
        hit(0, "root", due=FREE), remove_exempt(0, {"key": "root"}, due=3),
        hit(0, "root", due=no("1/h")),
    )
    yield case(
        "the policy's own exemption may be removed",
        policy("1/h", exempt=[{"key": "root"}, {"key": "boss"}]),
        remove_exempt(0, {"key": "root"}, due=1), remove_exempt(0, {"key": ["root"]}, due=0),
        hit(0, "root", due=yes(0)),
        hit(0, "boss", due=FREE), add_exempt(0, {"key": "root"}, due=2), hit(0, "root", due=FREE),
    )
    yield case(
        "an exemption of the policy outlives one that was added with an end",
        policy("1/h", exempt=[{"key": "root"}]),
        remove_exempt(0, {"key": "root"}), add_exempt(0, {"key": "root"}, for_ms=1000),
        hit(999, "root", due=FREE),
        hit(1000, "root", due=FREE, repeat=2),
    )
    yield case(
        "an exemption that is added beside those set with an end outlives them", policy("1/h"),
        set_exempts(0, [{"key": "a"}, {"key": "c"}], for_ms=1000), add_exempt(0, {"key": "b"}),
        add_exempt(0, {"key": "c"}),
        hit(1000, "b", due=FREE, repeat=2),
        hit(1000, "c", due=FREE, repeat=2),
        hit(1000, "a", due=yes(0)),
    )
    yield case(
        "of two overrides by match the one that was set last is in force", policy("9/h"),
        override(0, {"role": "staff"}, {"9/h": {"max": 5}}),
        override(0, {"tier": "gold"}, {"9/h": {"max": 6}}),
        size(0, 6, attributes={"role": "staff", "tier": "gold"}),
        override(0, {"role": "staff"}, {"9/h": {"max": 7}}),
        size(0, 7, attributes={"role": "staff", "tier": "gold"}),
    )
    yield case(
        "a blocked key is limited in shadow mode too", policy("1/h", mode="shadow"),
        block(0), is_limited(0, due=True),
    )


def states():
    yield case(
        "the end of an override leaves the state", policy("3/min window", ceiling=9),
        override(0, "a", {"3/min": {"max": 5}}, for_ms=1000), hits(0, 4), hit(999, due=yes(0)),
        hit(1000, due=no("3/min", 59_000, limit=3, remaining=0)), hit(60_000, due=yes(1, limit=3)),
    )
    yield case(
        "a suspended key is free at the end", policy("5/min window"),
        hit(0, due=yes(4)), override(0, "a", {"5/min": {"max": 0}}, for_ms=1000),
        hit(999, due=no("5/min", None, limit=0)),
        hit(1000, due=yes(3, limit=5)),
    )
    yield case(
        "a reset ends no override, no default and no exemption", policy("1/h"),
        override(0, "a", {"1/h": {"max": 5}}, for_ms=1000),
        add_exempt(0, {"role": "staff"}, for_ms=1000),
        reset(0),
        step("reset_all", 0), size(999, 5), hit(999, due=FREE, **STAFF), size(1000, 1),
    )
