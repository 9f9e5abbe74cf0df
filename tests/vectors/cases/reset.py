"""A fresh start."""

from .dsl import *

ABOUT = (
    "reset: forgets a key's limits, penalties and budget, never those of a wider scope; reset_all: "
    "forgets all"
)


def cases():
    for text in ("2/min", "2/min window", "2/min counter", "2/min fixed"):
        yield case(
            f"a reset gives a fresh start, by {text}", policy(text),
            hits(0, 2, "a"), hits(0, 2, "b"), hit(0, "a", due=no("2/min")), reset(0, "a"),
            stats(0, "a", due=None), hit(0, "a", due=yes(1)), hit(0, "b", due=no("2/min")),
        )
    yield case(
        "a reset ends a cooldown", policy("1/s", cooldown="1h"),
        hit(0, due=yes(0)), hit(0, due=no("1/s", HOUR)), reset(0), hit(0, due=yes(0)),
    )
    yield case(
        "a reset starts a backoff over",
        policy("10/s burst 1", backoff={"steps": ["1s", "9s"], "quiet": "1m"}),
        hit(0, due=yes(0)), hit(0, due=no("10/s", 1000)), reset(0), is_limited(0, due=False),
        hit(0, due=yes(0)), hit(0, due=no("10/s", 1000)),
    )
    yield case(
        "a reset ends an enforced backoff",
        policy("10/s burst 1", backoff={"steps": ["9s"], "quiet": "1m", "enforce": True}),
        hit(0, due=yes(0)), hit(0, due=no("10/s", 9000)), reset(1), hit(1, due=yes(0)),
    )
    yield case(
        "a reset closes an alert's span", policy("1/h", alert={"violations": 2, "within": "1h"}),
        hit(0, due=yes(0)), hit(0, due=no("1/h", alert=False)), reset(0), hit(0, due=yes(0)),
        hit(0, due=no("1/h", alert=False)), hit(0, due=no("1/h", alert=True)),
    )
    yield case(
        "a reset ends a notify episode", policy("1/h", notify="once"),
        hit(0, due=yes(0)), hit(0, due=no("1/h", notify=True)), hit(0, due=no("1/h", notify=False)),
        reset(0),
        hit(0, due=yes(0)), hit(0, due=no("1/h", notify=True)),
    )
    yield case(
        "a reset leaves a limit of a wider scope",
        policy({"own": "2/min",
                "all": {"max": 3, "per": "1m", "algorithm": "window", "scope": []}}),
        hits(0, 2, "a"), reset(0, "a"), hit(0, "a", due=yes(0, limit=3)),
        hit(0, "a", due=no("all", 60_000)),
        reset(0, "a"), hit(0, "a", due=no("all", 60_000)),
    )
    yield case(
        "a reset of one key of parts leaves the part's limit",
        policy({"own": "2/min", "team": {"max": 3, "per": "1m", "scope": ["team"]}},
               key=["team", "user"]),
        hits(0, 2, ["t", "a"]), reset(0, ["t", "a"]), hit(0, ["t", "a"], due=yes(0, limit=3)),
        hit(0, ["t", "b"], due=no("team", 20_000)),
    )
    yield case(
        "a reset of an unknown key does nothing", policy("2/min"),
        reset(0, "nobody"), hit(0, due=yes(1)), stats(0, "nobody", due=None),
    )
    yield case(
        "reset_all forgets all keys", policy("1/h", cooldown="1h"),
        hits(0, 1, "a"), hits(0, 1, "b"), hit(0, "a", due=no("1/h")), step("reset_all", 0),
        hit(0, "a", due=yes(0)), hit(0, "b", due=yes(0)),
    )
    yield case(
        "reset_all forgets wider limits too", policy({"all": {"max": 1, "per": "1h", "scope": []}}),
        hit(0, "a", due=yes(0)), hit(0, "b", due=no("all")), step("reset_all", 0),
        hit(0, "b", due=yes(0)),
    )
    yield case(
        "reset_all of one rule leaves the others", rules(x={"limits": "1/h"}, y={"limits": "1/h"}),
        hits(0, 1, rule="x"), hits(0, 1, rule="y"), step("reset_all", 0, rule="x"),
        hit(0, rule="x", due=yes(0)), hit(0, rule="y", due=no("1/h")),
    )
    yield case(
        "reset_all forgets budgets", policy("5/s", budget={"daily": 5}),
        spend(0, 5), step("reset_all", 0), budget(0, due={"spent": 0}), wall_ms=NOON,
    )
