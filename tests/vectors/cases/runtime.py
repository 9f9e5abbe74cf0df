"""Changes at run time."""

from .dsl import *

ABOUT = (
    "set_override, clear_override, set_default, add_exempt and remove_exempt act on the next hit"
)


def cases():
    yield from overrides()
    yield from precedence()
    yield from exempts()
    yield from errors()


def overrides():
    window = policy("3/min window", ceiling=100)
    yield case(
        "an override for a key acts on the next hit and on that key alone", window,
        hits(0, 3, "a"), hit(0, "a", due=no("3/min", 60_000)),
        override(0, "a", {"3/min": {"max": 5}}),
        hit(0, "a", due=yes(1, limit=5)), hit(0, "a", due=yes(0)),
        hit(0, "a", due=no("3/min", limit=5)),
        hit(0, "b", due=yes(2, limit=3)),
    )
    yield case(
        "a cleared override leaves the state and the rule's own numbers", window,
        override(0, "a", {"3/min": {"max": 5}}), hits(0, 4), clear_override(0, "a"),
        hit(0, due=no("3/min", 60_000, limit=3, remaining=0)), hit(60_000, due=yes(2, limit=3)),
    )
    yield case(
        "a lower override keeps the log", window,
        hits(0, 2), override(0, "a", {"3/min": {"max": 1}}),
        hit(1, due=no("3/min", 59_999, limit=1, remaining=0)), clear_override(1, "a"),
        hit(1, due=yes(0, limit=3)),
    )
    yield case(
        "an override that is set again replaces the first", policy("10/s"),
        override(0, "a", {"10/s": {"max": 50}}), override(0, "a", {"10/s": {"max": 20}}),
        hit(0, due=yes(19, limit=20)),
    )
    yield case(
        "an override of a bucket's max moves its unwritten burst", policy("60/min"),
        override(0, "a", {"60/min": {"max": 120}}),
        hit(0, due=yes(119, limit=120, reset_after_ms=500)),
    )
    yield case(
        "an override may set a burst alone", policy("60/min"),
        override(0, "a", {"60/min": {"burst": 5}}),
        hit(0, cost=5, due=yes(0, limit=5, reset_after_ms=5000)),
    )
    yield case(
        "an override may set a period alone", policy("6/min"),
        override(0, "a", {"6/min": {"per": "6s"}}),
        hit(0, cost=6, due=yes(0, limit=6, reset_after_ms=6000)),
        hit(0, due=no("6/min", 1000)),
    )
    yield case(
        "an override may set a cooldown", policy("1/s"),
        override(0, "a", {"1/s": {"cooldown": "30s"}}), hit(0, due=yes(0)),
        hit(0, due=no("1/s", 30_000)),
        hit(29_999, due=no("cooldown", 1)),
    )
    yield case(
        "an override of max 0 suspends a key until it is cleared", policy("5/min"),
        hit(0, due=yes(4)), override(0, "a", {"5/min": {"max": 0}}),
        hit(0, due=no("5/min", None, limit=0, remaining=0)), hit(0, "b", due=yes(4)),
        clear_override(0, "a"),
        hit(0, due=yes(3, limit=5)),
    )
    yield case(
        "a bucket is cut to an override's size", policy("60/min"),
        hit(0, cost=2, due=yes(58)), override(0, "a", {"60/min": {"max": 10}}),
        hit(0, due=yes(9, limit=10)),
        clear_override(0, "a"), hit(0, due=yes(8, limit=60)),
    )
    yield case(
        "a raised bucket keeps what it has", policy("60/min"),
        hit(0, cost=60, due=yes(0)), override(0, "a", {"60/min": {"max": 600}}),
        hit(0, due=no("60/min", 100, limit=600, remaining=0)), hit(100, due=yes(0)),
    )
    yield case(
        "one limit of several is overridden by its name",
        policy({"fast": "2/s window", "slow": "3/min window"}, ceiling=50),
        override(0, "a", {"slow": {"max": 4}}), hits(0, 2), hit(0, due=no("fast", 1000)),
        hits(1000, 2),
        hit(2000, due=no("slow", 58_000, limit=4)),
    )
    by_match = policy("3/min window", ceiling=100, key=["channel", "sender"])
    yield case(
        "an override by match holds for all who match", by_match,
        override(0, {"channel": "slack"}, {"3/min": {"max": 9}}),
        hit(0, ["slack", "a"], due=yes(8, limit=9)),
        hit(0, ["slack", "b"], due=yes(8)), hit(0, ["irc", "a"], due=yes(2)),
        clear_override(0, {"channel": "slack"}),
        hit(0, ["slack", "a"], due=yes(1, limit=3)),
    )
    yield case(
        "an override by an attribute", policy("3/min"),
        override(0, {"tier": ["gold", "silver"]}, {"3/min": {"max": 6}}),
        hit(0, "a", due=yes(5, limit=6), attributes={"tier": "silver"}),
        hit(0, "b", due=yes(2, limit=3), attributes={"tier": "tin"}), hit(0, "c", due=yes(2)),
    )
    yield case(
        "an override by an address range", policy("3/min"),
        override(0, {"ip": "10.0.0.0/8"}, {"3/min": {"max": 6}}),
        override(0, {"ip": "10.1.0.0/16"}, {"3/min": {"max": 12}}),
        hit(0, "a", due=yes(11), attributes={"ip": "10.1.2.3"}),
        hit(0, "b", due=yes(5), attributes={"ip": "10.2.2.3"}),
    )
    yield case(
        "of overrides by match the one with most fields applies", policy("3/min"),
        override(0, {"a": "1", "b": "2"}, {"3/min": {"max": 6}}),
        override(0, {"a": "1"}, {"3/min": {"max": 12}}),
        hit(0, "x", due=yes(5), attributes={"a": "1", "b": "2"}),
        hit(0, "y", due=yes(11), attributes={"a": "1"}),
    )
    yield case(
        "an override for a key of several parts", by_match,
        override(0, ["slack", "a"], {"3/min": {"max": 9}}),
        hit(0, ["slack", "a"], due=yes(8, limit=9)),
        hit(0, ["slack", "b"], due=yes(2, limit=3)),
    )
    yield case(
        "overrides of two rules are apart", rules(x={"limits": "3/min"}, y={"limits": "3/min"}),
        override(0, "a", {"3/min": {"max": 9}}, rule="x"), hit(0, rule="x", due=yes(8)),
        hit(0, rule="y", due=yes(2)),
    )
    yield case(
        "set_default changes the rule's numbers for everybody", policy("3/min"),
        hit(0, "a", due=yes(2)), set_default(0, {"3/min": {"max": 6}}),
        hit(0, "a", due=yes(1, limit=6)),
        hit(0, "b", due=yes(5, limit=6)), set_default(0, {"3/min": {"max": 2}}),
        hit(0, "a", due=yes(0, limit=2)),
        hit(0, "c", due=yes(1)),
    )
    for text in ("3/min bucket", "3/min window", "3/min counter", "3/min fixed"):
        algorithm = text.split(" ")[1]
        yield case(
            f"a change may state the algorithm that {text} has", policy(text, ceiling=9),
            override(0, "a", {"3/min": {"max": 6, "algorithm": algorithm}}),
            peek(0, cost=0, due=yes(6, limit=6)),
            override(0, "a", f"7/min {algorithm}"), peek(0, cost=0, due=yes(7, limit=7)),
            override(0, "a", "8/h"), peek(0, cost=0, due=yes(8, limit=8)),
            set_default(0, f"2/min {algorithm}"),
            peek(0, "b", cost=0, due=yes(2, limit=2)),
        )
    yield case(
        "a reset leaves the override", policy("3/min"),
        override(0, "a", {"3/min": {"max": 6}}), hit(0, due=yes(5)), reset(0),
        hit(0, due=yes(5, limit=6)),
    )


def precedence():
    entry = [{"match": {"t": "x"}, "limits": {"10/min": {"max": 20}}}]
    x = {"attributes": {"t": "x"}}
    yield case(
        "precedence: key override, override by match, when, set_default, the rule",
        policy("10/min", when=entry),
        hit(0, "k0", due=yes(9, limit=10)), set_default(0, {"10/min": {"max": 15}}),
        hit(0, "k1", due=yes(14, limit=15)), hit(0, "k2", due=yes(19, limit=20), **x),
        override(0, {"t": "x"}, {"10/min": {"max": 30}}), hit(0, "k3", due=yes(29, limit=30), **x),
        hit(0, "k4", due=yes(14, limit=15)), override(0, "k5", {"10/min": {"max": 60}}),
        hit(0, "k5", due=yes(59, limit=60), **x), hit(0, "k5", max=5, due=yes(4, limit=5), **x),
    )
    yield case(
        "layers merge field by field",
        policy("60/min", when=[{"match": {"t": "x"}, "limits": {"60/min": {"burst": 5}}}]),
        override(0, "a", {"60/min": {"max": 120}}),
        hit(0, cost=5, due=yes(0, limit=5, reset_after_ms=2500), **x),
        hit(0, "b", due=yes(4, limit=5, reset_after_ms=1000), **x),
    )
    yield case(
        "an override of one limit leaves a when's change of another",
        policy(
            {"fast": "2/s", "slow": "60/min"},
            when=[{"match": {"t": "x"}, "limits": {"fast": {"max": 4}}}],
        ),
        override(0, "a", {"slow": {"max": 3}}), hit(0, cost=3, due=yes(0, limit=3), **x),
        stats(
            0, due={"limits": {"fast": {"max": 4, "remaining": 1},
                               "slow": {"max": 3, "remaining": 0}}}, **x,
        ),
    )


def exempts():
    free = {"allowed": True, "reason": "exempt"}
    yield case(
        "an exemption added and removed acts on the next hit", policy("1/min"),
        hit(0, due=yes(0)), hit(0, due=no("1/min")), add_exempt(0, {"key": "a"}),
        hit(0, due=free, repeat=3), remove_exempt(0, {"key": "a"}),
        hit(0, due=no("1/min", 60_000)),
    )
    yield case(
        "an added exemption may be of an attribute or a range", policy("1/min"),
        add_exempt(0, {"role": ["admin"]}), add_exempt(0, {"ip": "10.0.0.0/8"}),
        hit(0, due=free, attributes={"role": "admin"}),
        hit(0, due=free, attributes={"ip": "10.0.0.9"}),
        hit(0, due=yes(0)),
    )
    yield case(
        "an added exemption stands beside the policy's own",
        policy("1/min", exempt=[{"key": "root"}]),
        add_exempt(0, {"key": "bot"}), hit(0, "root", due=free), hit(0, "bot", due=free),
        remove_exempt(0, {"key": "bot"}), hit(0, "root", due=free), hit(0, "bot", due=yes(0)),
    )


def errors():
    window = policy("3/min window", ceiling=10)
    for text, other in (("3/min", "window"), ("3/min window", "counter"),
                        ("3/min fixed", "bucket")):
        yield case(
            f"a change of {text} to a {other} is an error, by its fields and as a text",
            policy(text),
            override(0, "a", {"3/min": {"max": 2, "algorithm": other}}, error="algorithm"),
            override(0, "a", {"3/min": f"2/min {other}"}, error="algorithm"),
            override(0, "a", f"2/min {other}", error="algorithm"),
            override(0, {"role": "x"}, f"2/min {other}", error="algorithm"),
            set_default(0, f"2/min {other}", error="algorithm"), hit(0, due=yes(2, limit=3)),
        )
    yield case(
        "a change of scope is an error",
        policy({"own": "3/min", "all": {"max": 9, "per": "1m", "scope": ["channel"]}},
            key=["channel", "sender"]),
        set_default(0, {"own": {"scope": ["channel"]}}, error="scope"),
        set_default(0, {"all": {"scope": []}}, error="scope"),
        set_default(0,
            {"own": {"max": 2, "scope": ["sender", "channel"]},
             "all": {"max": 8, "scope": ["channel"]}}),
        hit(0, ["a", "b"], due=yes(1, limit=2)),
    )
    yield case(
        "an override of an unknown limit is an error that names it", window,
        override(0, "a", {"per-day": {"max": 5}}, error="per-day"), hit(0, due=yes(2, limit=3)),
    )
    yield case(
        "an override above the ceiling is an error", window,
        override(0, "a", {"3/min": {"max": 11}}, error="ceiling"),
        override(0, "a", {"3/min": {"max": 10}}),
        hit(0, due=yes(9, limit=10)),
    )
    yield case(
        "an override by match above the ceiling is an error", window,
        override(0, {"t": "x"}, {"3/min": {"max": 11}}, error="ceiling"),
        hit(0, due=yes(2), attributes={"t": "x"}),
    )
    yield case(
        "an override may not change the algorithm", window,
        override(0, "a", {"3/min": {"algorithm": "bucket"}}, error="algorithm"), hit(0, due=yes(2)),
    )
    yield case(
        "set_default of an unknown limit is an error", window,
        set_default(0, {"3/h": {"max": 1}}, error="3/h"), hit(0, due=yes(2)),
    )
    yield case(
        "an unknown rule is an error that names it", policy("3/min"),
        hit(0, rule="nowhere", error="nowhere"), hit(0, due=yes(2)),
    )
    yield case(
        "the fallback is the rule for unknown names, with one state",
        rules(fallback="other", default={"limits": "3/min"}, other={"limits": "2/min"}),
        hit(0, rule="nowhere", due=yes(1, limit=2)), hit(0, rule="elsewhere", due=yes(0)),
        hit(0, rule="other", due=no("2/min")), hit(0, due=yes(2, limit=3)),
    )
