"""Whom to tell."""

from .dsl import *

ABOUT = "notify: whether the caller should tell the sender"

TELL, HUSH = {"allowed": False, "notify": True}, {"allowed": False, "notify": False}


def cases():
    for name, options in [("by default", {}), ("with always", {"notify": "always"})]:
        yield case(
            f"every denial is told {name}", policy("1/s", **options),
            hit(0, due=yes(0, notify=False)), hit(0, due=TELL, repeat=4),
            hit(1000, due=yes(0, notify=False)),
        )
    yield case(
        "no denial is told with silent", policy("1/s", notify="silent", cooldown="5s"),
        hit(0, due=yes(0, notify=False)), hit(0, due=HUSH),
        hit(1, due=no("cooldown", notify=False), repeat=3), hit(0 + 5000, due=yes(0)),
        hit(5000, due=HUSH),
    )
    yield case(
        "every refusal in a cooldown is told with always", policy("1/s", cooldown="5s"),
        hit(0, due=yes(0)), hit(0, due=TELL), hit(10, due=no("cooldown", notify=True), repeat=3),
    )
    yield case(
        "once: the first denial of an episode, which ends when the key is next allowed",
        policy("1/s window", notify="once"),
        hit(0, due=yes(0)), hit(100, due=TELL), hit(200, due=HUSH, repeat=3),
        hit(1000, due=yes(0, notify=False)), hit(1001, due=TELL), hit(1002, due=HUSH),
    )
    yield case(
        "once: a cooldown's refusals belong to the episode",
        policy("1/s window", notify="once", cooldown="10s"),
        hit(0, due=yes(0)), hit(0, due=TELL), hit(500, due=no("cooldown", notify=False), repeat=4),
        hit(10_000, due=yes(0)), hit(10_000, due=TELL),
    )
    yield case(
        "once: a cooldown's end ends the episode though nothing was allowed",
        policy("1/min window", notify="once", cooldown="10s"),
        hit(0, due=yes(0)), hit(0, due=TELL), hit(9999, due=no("cooldown", notify=False)),
        hit(10_000, due=no("1/min", notify=True)), hit(10_001, due=no("cooldown", notify=False)),
        hit(20_000, due=no("1/min", notify=True)), hit(20_001, due=HUSH),
    )
    yield case(
        "once: without a cooldown the episode lasts until a hit is allowed",
        policy("1/h window", notify="once"),
        hit(0, due=yes(0)), hit(0, due=TELL), hit(60_000, due=HUSH), hit(HOUR - 1, due=HUSH),
        hit(HOUR, due=yes(0)), hit(HOUR, due=TELL),
    )
    yield case(
        "once: an enforced backoff's refusals belong to the episode",
        policy("10/s burst 1", notify="once",
               backoff={"steps": ["5s"], "quiet": "1m", "enforce": True}),
        hit(0, due=yes(0)), hit(0, due=TELL), hit(1000, due=no("backoff", notify=False), repeat=3),
        hit(5000, due=yes(0)), hit(5000, due=TELL),
    )
    yield case(
        "once: a peek is never told and tells nobody", policy("1/h", notify="once"),
        hit(0, due=yes(0)), peek(0, due=HUSH), hit(0, due=TELL), peek(0, due=HUSH),
    )
    yield case(
        "a peek is not told with always either", policy("1/h"),
        hit(0, due=yes(0)), peek(0, due=HUSH), hit(0, due=TELL),
    )
    yield case(
        "once: a denied check is told, an allowed one ends the episode",
        policy("2/s window", notify="once"),
        hits(0, 2), check(0, due=TELL), hit(0, due=HUSH), check(1000, due={"allowed": True}),
        hit(1000, cost=2, due=yes(0)), hit(1000, due=TELL),
    )
    yield case(
        "once: keys have episodes of their own", policy("1/h", notify="once"),
        hits(0, 1, "a"), hits(0, 1, "b"), hit(0, "a", due=TELL), hit(0, "b", due=TELL),
        hit(0, "a", due=HUSH),
    )
    yield case(
        "once: a spent budget is told once", policy("5/s", notify="once", budget={"daily": 5}),
        spend(0, 5), hit(0, due=no("budget", notify=True)),
        hit(1, due=no("budget", notify=False), repeat=3),
        wall_ms=NOON,
    )
    yield case(
        "a cost that can never pass is told with always", policy("1/s"),
        hit(0, cost=2, due=no("cost", None, notify=True)),
    )
    yield case(
        "a cost that can never pass is no episode with once", policy("1/s", notify="once"),
        hit(0, cost=2, due=no("cost", None, notify=False)), hits(0, 1), hit(0, due=TELL),
    )
    yield case(
        "an exempt call is not told", policy("1/s", exempt=[{"role": "admin"}]),
        hit(0, due={"allowed": True, "reason": "exempt", "notify": False},
            attributes={"role": "admin"}),
    )
