"""Other values for some calls."""

from .dsl import *

ABOUT = "when: other values for calls whose parts or attributes match; exactly one entry applies"


def lim(most):
    return {"20/min": {"max": most}}


def limit_of(number):
    return {"allowed": True, "limit": number}


def cases():
    yield from matching()
    yield from specificity()
    yield from addresses()
    yield from merging()
    yield from other_options()


def matching():
    channels = policy(
        "20/min window", key=["channel", "sender"],
        when=[{"match": {"channel": "discord"}, "limits": lim(60)}],
    )
    yield case(
        "a part chooses other limits", channels,
        hit(0, ["discord", "a"], due=yes(59, limit=60)),
        hit(0, ["telegram", "a"], due=yes(19, limit=20)),
        hit(0, ["Discord", "a"], due=yes(19, limit=20)),
    )
    by_tier = policy(
        "20/min",
        when=[
            {"match": {"tier": "gold"}, "limits": lim(60)},
            {"match": {"tier": ["silver", "bronze"]}, "limits": lim(30)},
        ],
    )
    yield case(
        "an attribute chooses other limits", by_tier,
        hit(0, "a", due=limit_of(60), attributes={"tier": "gold"}),
        hit(0, "b", due=limit_of(20), attributes={"tier": "tin"}), hit(0, "c", due=limit_of(20)),
        hit(0, "d", due=limit_of(20), attributes={"other": "gold"}),
    )
    yield case(
        "a list matches any of its values", by_tier,
        hit(0, "a", due=limit_of(30), attributes={"tier": "silver"}),
        hit(0, "b", due=limit_of(30), attributes={"tier": "bronze"}),
    )
    yield case(
        "numbers and truth values are compared by their text",
        policy(
            "20/min",
            when=[{"match": {"level": 3}, "limits": lim(30)},
                  {"match": {"paid": True}, "limits": lim(60)}],
        ),
        hit(0, "a", due=limit_of(30), attributes={"level": "3"}),
        hit(0, "b", due=limit_of(20), attributes={"level": "03"}),
        hit(0, "c", due=limit_of(60), attributes={"paid": "true"}),
        hit(0, "d", due=limit_of(20), attributes={"paid": "yes"}),
    )
    yield case(
        "an empty match fits every call", policy("20/min", when=[{"match": {}, "limits": lim(5)}]),
        hit(0, due=yes(4, limit=5)),
    )
    yield case(
        "all fields of a match must fit",
        policy("20/min", when=[{"match": {"tier": "gold", "region": "eu"}, "limits": lim(60)}]),
        hit(0, "a", due=limit_of(20), attributes={"tier": "gold"}),
        hit(0, "b", due=limit_of(20), attributes={"tier": "gold", "region": "us"}),
        hit(0, "c", due=limit_of(60), attributes={"tier": "gold", "region": "eu", "x": "y"}),
    )
    yield case(
        "attributes that no rule names are ignored", policy("20/min"),
        hit(0, due=yes(19), attributes={"anything": "at all", "ip": "not an address"}),
        hit(0, due=yes(18)),
    )
    yield case(
        "the default key part is called key",
        policy("20/min", when=[{"match": {"key": "vip"}, "limits": lim(60)}]),
        hit(0, "vip", due=limit_of(60)), hit(0, "other", due=limit_of(20)),
    )


def specificity():
    entries = [
        {"match": {"a": "1", "b": "2"}, "limits": lim(2)}, {"match": {"a": "1"}, "limits": lim(1)},
        {"match": {}, "limits": lim(9)},
    ]
    yield case(
        "the entry with most fields applies", policy("20/min", when=entries),
        hit(0, "w", due=limit_of(2), attributes={"a": "1", "b": "2"}),
        hit(0, "x", due=limit_of(1), attributes={"a": "1"}),
        hit(0, "y", due=limit_of(9), attributes={"b": "2"}), hit(0, "z", due=limit_of(9)),
    )
    yield case(
        "of equally many fields the later entry applies",
        policy(
            "20/min",
            when=[{"match": {"a": "1"}, "limits": lim(5)}, {"match": {"b": "2"}, "limits": lim(6)}],
        ),
        hit(0, due=limit_of(6), attributes={"a": "1", "b": "2"}),
        hit(0, "x", due=limit_of(5), attributes={"a": "1"}),
    )
    yield case(
        "of entries with the same match the later applies",
        policy(
            "20/min",
            when=[{"match": {"a": "1"}, "limits": lim(6)}, {"match": {"a": "1"}, "limits": lim(5)}],
        ),
        hit(0, due=limit_of(5), attributes={"a": "1"}),
    )
    yield case(
        "entries are not added up: exactly one applies",
        policy(
            "20/min", warn_at=0.9,
            when=[{"match": {"a": "1"}, "warn_at": 0.1}, {"match": {"b": "2"}, "limits": lim(10)}],
        ),
        hit(0, cost=5, due={"allowed": True, "limit": 10, "warning": False},
            attributes={"a": "1", "b": "2"}),
        hit(0, "x", cost=5, due={"allowed": True, "limit": 20, "warning": True},
            attributes={"a": "1"}),
    )
    yield case(
        "of address ranges the longest prefix applies, wherever it stands",
        policy(
            "20/min",
            when=[
                {"match": {"ip": "10.1.0.0/16"}, "limits": lim(2)},
                {"match": {"ip": "10.0.0.0/8"}, "limits": lim(1)},
                {"match": {"ip": "10.1.2.3"}, "limits": lim(3)},
                {"match": {"ip": "0.0.0.0/0"}, "limits": lim(4)},
            ],
        ),
        hit(0, "a", due=limit_of(2), attributes={"ip": "10.1.9.9"}),
        hit(0, "b", due=limit_of(1), attributes={"ip": "10.2.0.0"}),
        hit(0, "c", due=limit_of(3), attributes={"ip": "10.1.2.3"}),
        hit(0, "d", due=limit_of(4), attributes={"ip": "192.0.2.1"}), hit(0, "e", due=limit_of(20)),
    )
    yield case(
        "more fields win over a longer prefix",
        policy(
            "20/min",
            when=[
                {"match": {"ip": "10.0.0.0/8", "tier": "x"}, "limits": lim(7)},
                {"match": {"ip": "10.1.2.3"}, "limits": lim(8)},
            ],
        ),
        hit(0, due=limit_of(7), attributes={"ip": "10.1.2.3", "tier": "x"}),
        hit(0, "b", due=limit_of(8), attributes={"ip": "10.1.2.3"}),
    )


def addresses():
    def ranges(*wanted):
        return policy("20/min", when=[{"match": {"ip": one}, "limits": lim(2)} for one in wanted])

    inside, outside = limit_of(2), limit_of(20)
    for wanted, ins, outs in [
        ("192.168.4.0/22", ["192.168.4.0", "192.168.7.255"], ["192.168.3.255", "192.168.8.0"]),
        ("10.0.0.0/8", ["10.0.0.0", "10.255.255.255", "::ffff:10.1.2.3"],
         ["9.255.255.255", "11.0.0.0", "::a01:203"]),
        ("203.0.113.7", ["203.0.113.7", "::ffff:203.0.113.7"], ["203.0.113.6", "203.0.113.8"]),
        ("203.0.113.128/25", ["203.0.113.128", "203.0.113.255"], ["203.0.113.127"]),
        ("2001:db8::/32", ["2001:db8::1", "2001:0DB8:ffff::"], ["2001:db9::1", "32.1.13.184"]),
        ("2001:db8:1:100::/56", ["2001:db8:1:1ff::9"], ["2001:db8:1:200::", "2001:db8:1::"]),
        ("::1", ["::1", "0:0:0:0:0:0:0:1"], ["::2", "127.0.0.1"]),
        ("::/0", ["2001:db8::1", "fe80::1"], ["10.0.0.1"]),
    ]:
        yield case(
            f"addresses inside and outside {wanted}", ranges(wanted),
            [hit(0, f"in {ip}", due=inside, attributes={"ip": ip}) for ip in ins],
            [hit(0, f"out {ip}", due=outside, attributes={"ip": ip}) for ip in outs],
        )
    yield case(
        "a list of address ranges matches any",
        policy(
            "20/min",
            when=[{"match": {"ip": ["10.0.0.0/8", "2001:db8::/32", "192.0.2.1"]},
                   "limits": lim(2)}],
        ),
        [hit(0, ip, due=inside, attributes={"ip": ip})
         for ip in ("10.9.9.9", "2001:db8::5", "192.0.2.1")],
        hit(0, "x", due=outside, attributes={"ip": "192.0.2.2"}),
    )
    yield case(
        "a key part called ip is compared as an address too",
        policy("20/min", key=["ip"], when=[{"match": {"ip": "10.0.0.0/8"}, "limits": lim(2)}]),
        hit(0, "10.3.4.5", due=inside), hit(0, "11.3.4.5", due=outside),
    )
    yield case(
        "what is no address matches no range", ranges("0.0.0.0/0", "::/0"),
        [
            hit(0, f"k{place}", due=outside, attributes={"ip": ip})
            for place, ip in enumerate(("", "localhost", "10.0.0", "10.0.0.256", "1.2.3.4 "))
        ],
    )
    yield case(
        "only a field called ip is an address range",
        policy("20/min", when=[{"match": {"peer": "10.0.0.0/8"}, "limits": lim(2)}]),
        hit(0, "a", due=outside, attributes={"peer": "10.1.1.1"}),
        hit(0, "b", due=inside, attributes={"peer": "10.0.0.0/8"}),
    )


def merging():
    yield case(
        "an entry may state the algorithm and the scope that a limit has",
        policy(
            {"all": {"max": 4, "per": "1m", "algorithm": "window", "scope": ["channel"]}},
            key=["channel", "sender"],
            when=[{
                "match": {"t": "x"},
                "limits": {"all": {"max": 2, "algorithm": "window", "scope": ["channel"]}},
            }],
        ),
        hit(0, ["c", "a"], due=yes(3, limit=4)),
        hit(0, ["c", "b"], due=yes(0, limit=2), attributes={"t": "x"}),
        hit(0, ["c", "b"], due=no("all", 60_000), attributes={"t": "x"}),
    )
    yield case(
        "an unwritten burst follows max",
        policy("20/min", when=[{"match": {"t": "x"}, "limits": lim(60)}]),
        hit(0, due=yes(59, limit=60, reset_after_ms=1000), attributes={"t": "x"}),
    )
    yield case(
        "a written burst stays when only max changes",
        policy("60/min burst 5", when=[{"match": {"t": "x"}, "limits": {"60/min": {"max": 120}}}]),
        hit(0, cost=5, due=yes(0, limit=5, reset_after_ms=2500), attributes={"t": "x"}),
        hit(0, due=no("60/min", 500), attributes={"t": "x"}),
    )
    yield case(
        "a burst may be changed alone",
        policy("60/min", when=[{"match": {"t": "x"}, "limits": {"60/min": {"burst": 3}}}]),
        hit(0, due=yes(2, limit=3, reset_after_ms=1000), attributes={"t": "x"}),
    )
    yield case(
        "a period may be changed alone",
        policy("4/s window", when=[{"match": {"t": "x"}, "limits": {"4/s": {"per": "1m"}}}]),
        hits(0, 4, attributes={"t": "x"}), hit(0, due=no("4/s", 60_000), attributes={"t": "x"}),
    )
    two = policy(
        {"fast": "2/s window", "slow": "5/min window"},
        when=[{"match": {"t": "x"}, "limits": {"slow": {"max": 3}}}],
    )
    yield case(
        "limits that an entry does not name stay as they are", two,
        hits(0, 2, attributes={"t": "x"}), hit(0, due=no("fast", 1000), attributes={"t": "x"}),
        hit(1000, due=yes(0, limit=3), attributes={"t": "x"}),
        hit(1000, due=no("slow", 59_000), attributes={"t": "x"}), hit(1000, due=yes(0, limit=2)),
    )
    yield case(
        "a key has one window however it is judged",
        policy("3/min window", when=[{"match": {"t": "x"}, "limits": {"3/min": {"max": 6}}}]),
        hits(0, 3), hit(0, due=no("3/min", 60_000)),
        hit(0, due=yes(2, limit=6), attributes={"t": "x"}),
        hit(0, due=no("3/min", limit=3, remaining=0)),
        hit(0, cost=2, due=yes(0), attributes={"t": "x"}),
        hit(1, due=no("3/min", 59_999)), hit(60_000, due=yes(2, limit=3)),
    )
    yield case(
        "a bucket is cut to a smaller size and keeps what it has in a larger",
        policy(
            "20/min",
            when=[{"match": {"t": "s"}, "limits": lim(5)},
                  {"match": {"t": "l"}, "limits": lim(60)}],
        ),
        hit(0, cost=4, due=yes(16)), hit(0, due=yes(15, limit=60), attributes={"t": "l"}),
        hit(0, due=yes(4, limit=5), attributes={"t": "s"}), hit(0, due=yes(3, limit=20)),
    )
    yield case(
        "max 0 in an entry suspends those who match",
        policy("20/min", when=[{"match": {"state": "suspended"}, "limits": lim(0)}]),
        hit(0, due=no("20/min", None, limit=0, remaining=0), attributes={"state": "suspended"}),
        hit(0, due=yes(19)),
    )
    yield case(
        "a fixed window is judged by the call's own max",
        policy("3/min fixed", when=[{"match": {"t": "x"}, "limits": {"3/min": {"max": 1}}}]),
        hit(0, due=yes(2)), hit(0, due=no("3/min", 60_000, limit=1), attributes={"t": "x"}),
        hit(0, due=yes(1)),
    )


def other_options():
    def when(**options):
        return [{"match": {"t": "x"}} | options]

    x = {"attributes": {"t": "x"}}
    yield case(
        "an entry may set warn_at", policy("10/min", warn_at=0.9, when=when(warn_at=0.5)),
        hit(0, "a", 6, due={"allowed": True, "warning": False}),
        hit(0, "b", 6, due={"allowed": True, "warning": True}, **x),
    )
    yield case(
        "an entry may set the cooldown", policy("1/s", cooldown="5s", when=when(cooldown="20s")),
        hits(0, 1, "a"), hits(0, 1, "b", **x), hit(0, "a", due=no("1/s", 5000)),
        hit(0, "b", due=no("1/s", 20_000), **x), hit(19_999, "b", due=no("cooldown", 1), **x),
        hit(20_000, "b", due=yes(0), **x),
    )
    yield case(
        "an entry may set a limit's cooldown",
        policy("1/s", when=when(limits={"1/s": {"cooldown": "9s"}})),
        hits(0, 1, **x), hit(0, due=no("1/s", 9000), **x), hit(8999, due=no("cooldown", 1), **x),
    )
    yield case(
        "an entry may set the backoff",
        policy("10/s burst 1", when=when(backoff={"steps": ["7s"], "quiet": "1m"})),
        hits(0, 1, "a"), hits(0, 1, "b", **x), hit(0, "a", due=no("10/s", 100)),
        hit(0, "b", due=no("10/s", 7000), **x),
    )
    yield case(
        "an entry may set the alert",
        policy("1/h", when=when(alert={"violations": 2, "within": "1m"})),
        hits(0, 1, **x), hit(0, due=no("1/h", alert=False), **x),
        hit(0, due=no("1/h", alert=True), **x),
    )
    yield case(
        "an entry may set notify", policy("1/h", when=when(notify="silent")),
        hits(0, 1), hit(0, due=no("1/h", notify=True)), hit(0, due=no("1/h", notify=False), **x),
    )
    yield case(
        "an entry may set the mode", policy("1/h", when=when(mode="off")),
        hits(0, 1), hit(0, due=no("1/h")),
        hit(0, due={"allowed": True, "reason": "off", "limit": None, "remaining": None}, **x),
    )
    yield case(
        "an entry may set what is attached",
        policy("1/h", attach={"plan": "free"}, when=when(attach={"plan": "pro", "fee": 25})),
        hits(0, 1), hit(0, due=no("1/h", attach={"plan": "free"})),
        hit(0, due=no("1/h", attach={"plan": "pro", "fee": 25}), **x),
    )
