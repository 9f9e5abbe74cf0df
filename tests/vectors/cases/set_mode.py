"""The mode, set at run time."""

from .dsl import *

ABOUT = "set_mode and clear_mode: set_mode, then when, then the rule"

OFF = {"allowed": True, "reason": "off", "limit": None, "remaining": None, "would_deny": None}
SHADOWED = {"allowed": True, "reason": None, "would_deny": "1/h", "retry_after_ms": 0}
GUEST = {"attributes": {"role": "guest"}}


def cases():
    yield case(
        "a mode that is set acts on the next hit until it is cleared", policy("1/h"),
        hit(0, due=yes(0)), hit(0, due=no("1/h")), set_mode(0, "shadow", due=1),
        hit(0, due=SHADOWED),
        set_mode(0, "off", due=2), hit(0, cost=99, due=OFF), clear_mode(0, due=3),
        hit(0, due=no("1/h", HOUR)),
        clear_mode(0, due=0),
    )
    yield case(
        "off counts nothing and forgets nothing", policy("3/h window"),
        hit(0, due=yes(2)), set_mode(0, "off"), hit(0, due=OFF, repeat=9), record(0, cost=2),
        clear_mode(0),
        hit(0, due=yes(1)),
    )
    yield case(
        "shadow changes the state as enforce does", policy("1/h", cooldown="2h"),
        set_mode(0, "shadow"), hit(0, due={"allowed": True, "would_deny": None, "remaining": 0}),
        hit(0, due=SHADOWED),
        hit(1000, due=SHADOWED | {"would_deny": "cooldown"}), clear_mode(1000),
        hit(1000, due=no("cooldown", 2 * HOUR - 1000)),
    )
    by_when = policy("1/h", mode="off", when=[{"match": {"role": "guest"}, "mode": "shadow"}])
    yield case(
        "a mode that is set wins over when and the rule", by_when,
        hit(0, "a", due=OFF), hit(0, "g", due={"allowed": True, "remaining": 0}, **GUEST),
        hit(0, "g", due=SHADOWED, **GUEST),
        set_mode(0, "enforce"), hit(0, "a", due=yes(0)), hit(0, "a", due=no("1/h")),
        hit(0, "g", due=no("1/h"), **GUEST),
        clear_mode(0), hit(0, "a", due=OFF), hit(0, "g", due=SHADOWED, **GUEST), set_mode(0, "off"),
        hit(0, "g", due=OFF, **GUEST),
    )
    yield case(
        "a mode that is set goes before an exemption, as the rule's own",
        policy("1/h", exempt=[{"role": "guest"}]),
        set_mode(0, "off"), hit(0, due=OFF, **GUEST), set_mode(0, "shadow"),
        hit(0, due={"allowed": True, "reason": "exempt"}, **GUEST),
    )
    yield case(
        "a mode is set for one rule", rules(x={"limits": "1/h"}, y={"limits": "1/h"}),
        set_mode(0, "off", rule="x"), hit(0, rule="x", cost=9, due=OFF),
        hit(0, rule="y", due=yes(0)),
        hit(0, rule="y", due=no("1/h")), clear_mode(0, rule="y", due=0),
        clear_mode(0, rule="x", due=2),
    )
    yield case(
        "a mode that is set for a time ends by itself", policy("1/h"),
        set_mode(0, "off", for_ms=5000), hit(4999, cost=9, due=OFF),
        hit(5000, cost=9, due=no("cost")),
        clear_mode(5000, due=0),
    )
    yield case(
        "a mode replaces the one before it, which is not restored", policy("1/h"),
        set_mode(0, "off"), set_mode(0, "shadow", for_ms=5000), hits(0, 1), hit(4999, due=SHADOWED),
        hit(5000, due=no("1/h")), set_mode(5000, "off", for_ms=1000), set_mode(5500, "shadow"),
        hit(9000, due=SHADOWED),
    )
    yield case(
        "permits out while the mode is off hold no slot", policy("1 concurrent lease 10s"),
        set_mode(0, "off"), permit(0, "p", due=OFF), permit(0, "q", due=OFF), clear_mode(0),
        permit(0, "r", due=yes(0)),
        permit(0, "s", due=no("1", 10_000)),
    )
