"""Limits keyed by some of the parts."""

from .dsl import *

ABOUT = "scope: a limit may be keyed by some of the key's parts, or be one for all"

SMS = {"phone": {"max": 2, "per": "1d", "algorithm": "window"},
       "all": {"max": 3, "per": "1s", "algorithm": "window", "scope": []}}
CHAT = {"sender": {"max": 2, "per": "1m"}, "channel": {"max": 3, "per": "1m", "scope": ["channel"]}}


def cases():
    yield case(
        "so many a day for each phone and so many a second over all is one rule",
        policy(SMS, key=["phone"]),
        hit(0, "+1", due=yes(1, limit=2)), hit(0, "+2", due=yes(1)),
        hit(0, "+3", due=yes(0, limit=3)),
        hit(0, "+4", due=no("all", 1000, limit=3, remaining=0)),
        hit(1000, "+4", due=yes(1, limit=2)),
        hit(1000, "+1", due=yes(0, limit=2)), hit(1000, "+1", due=no("phone", DAY - 1000)),
    )
    yield case(
        "a denial by a key's own limit takes nothing from the global one",
        policy(SMS, key=["phone"]),
        hits(0, 2, "+1"), hit(1000, "+1", due=no("phone"), repeat=9), hits(1000, 1, "+2"),
        hits(1000, 1, "+3"), hits(1000, 1, "+4"), hit(1000, "+5", due=no("all", 1000)),
    )
    yield case(
        "a denial by the global limit takes nothing from the key's own", policy(SMS, key=["phone"]),
        hits(0, 1, "+1"), hits(0, 1, "+2"), hits(0, 1, "+3"),
        hit(0, "+4", due=no("all", 1000), repeat=5),
        hit(1000, "+4", due=yes(1, limit=2)), hit(1000, "+4", due=yes(0, limit=2)),
    )
    yield case(
        "a limit scoped to one part is shared by all who have that part",
        policy(CHAT, key=["channel", "who"]),
        hits(0, 2, ["x", "ann"]), hit(0, ["x", "ann"], due=no("sender", 30_000)),
        hit(0, ["x", "bob"], due=yes(0, limit=3)), hit(0, ["x", "bob"], due=no("channel", 20_000)),
        hit(0, ["y", "ann"], due=yes(1, limit=2)),
    )
    yield case(
        "a scope of the second part alone",
        policy({"who": {"max": 1, "per": "1m", "scope": ["who"]}}, key=["channel", "who"]),
        hit(0, ["x", "ann"], due=yes(0)), hit(0, ["y", "ann"], due=no("who", 60_000)),
        hit(0, ["x", "bob"], due=yes(0)),
    )
    yield case(
        "a scope of all parts is the same as none",
        policy({"l": {"max": 1, "per": "1m", "scope": ["a", "b"]}}, key=["a", "b"]),
        hit(0, ["1", "2"], due=yes(0)), hit(0, ["2", "1"], due=yes(0)),
        hit(0, ["1", "2"], due=no("l", 60_000)),
    )
    yield case(
        "a global bucket beside a global window",
        policy({
            "rate": {"max": 10, "per": "1s", "scope": []},
            "day": {"max": 12, "per": "1d", "algorithm": "window", "scope": []},
        }),
        hits(0, 5, "a"), hits(0, 5, "b"), hit(0, "c", due=no("rate", 100)),
        hit(200, "c", cost=2, due=yes(0)),
        hit(1000, "d", due=no("day", DAY - 1000)),
    )
    yield case(
        "limits of three scopes",
        policy(
            {
                "one": {"max": 1, "per": "1s"}, "team": {"max": 2, "per": "1s", "scope": ["team"]},
                "world": {"max": 3, "per": "1s", "algorithm": "fixed", "scope": []},
            },
            key=["team", "user"],
        ),
        hit(0, ["t", "a"], due=yes(0, limit=1)), hit(0, ["t", "a"], due=no("one", 1000)),
        hit(0, ["t", "b"], due=yes(0, limit=1)), hit(0, ["t", "c"], due=no("team", 500)),
        hit(0, ["u", "a"], due=yes(0, limit=1)), hit(0, ["v", "a"], due=no("world", 1000)),
        hit(999, ["v", "a"], due=no("world", 1)), hit(1000, ["v", "a"], due=yes(0)),
    )
    yield case(
        "a counter and a fixed window may be global too",
        policy(
            {
                "c": {"max": 5, "per": "1m", "algorithm": "counter", "scope": []},
                "f": {"max": 4, "per": "1m", "algorithm": "fixed", "scope": ["b"]},
            },
            key=["a", "b"],
        ),
        hits(0, 4, ["1", "x"]), hit(0, ["2", "x"], due=no("f", 60_000)),
        hit(0, ["1", "y"], due=yes(0, limit=5)), hit(0, ["1", "z"], due=no("c", 72_000)),
    )
