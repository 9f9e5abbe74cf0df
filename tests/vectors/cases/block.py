"""Keys that are blocked by hand."""

from .dsl import *

ABOUT = (
    "block, unblock and blocks: a blocked key is refused with reason `blocked`; nothing is counted"
)

OPS = {"by": "ops", "reason": "spam"}


def refusal(retry, **fields):
    return no("blocked", retry, limit=None, remaining=0, warning=False, alert=False,
              would_deny=None) | fields


def cases():
    yield from refusals()
    yield from keys()
    yield from order()
    yield from beside()
    yield from ends()
    yield from headers()


def refusals():
    for text in ("3/min", "3/min window", "3/min counter", "3/min fixed"):
        yield case(
            f"a block of {text} refuses its key for its length and spends nothing", policy(text),
            block(0, due=1, for_ms=60_000), hit(0, due=refusal(60_000), repeat=3),
            hit(0, "b", due=yes(2)),
            check(10_000, due=refusal(50_000)), peek(10_000, due=refusal(50_000, notify=False)),
            allow(10_000, due=False), hit(59_999, due=refusal(1)), hit(60_000, cost=3, due=yes(0)),
        )
    yield case(
        "a block without an end has no retry time", policy("3/min"),
        block(0), hit(0, due=refusal(None)), hit(400 * DAY, due=refusal(None)),
        hit(400 * DAY, "b", due=yes(2)),
    )
    yield case(
        "a hit and a peek of cost 0 are refused too", policy("3/min"),
        block(0, for_ms=1000), hit(0, cost=0, due=refusal(1000)),
        peek(0, cost=0, due=refusal(1000)),
    )
    yield case(
        "the quota comes back behind a block", policy("6/min"),
        hit(0, cost=6, due=yes(0)), block(0, for_ms=20_000),
        hit(0, due=refusal(20_000, reset_after_ms=60_000)),
        hit(19_999, due=refusal(1, reset_after_ms=40_001)), hit(20_000, cost=2, due=yes(0)),
    )
    yield case(
        "a reservation is refused, and one that was made is settled and cancelled",
        policy("9/min window"),
        reserve(0, "r", 4, due=yes(5)), reserve(0, "s", 3, due=yes(2)), block(0),
        reserve(0, "t", 1, due=refusal(None)),
        settle(0, "r", 1), cancel(0, "s"), cancel(0, "t"), unblock(0, due=True), left(0, 8),
    )
    yield case(
        "a permit is refused, and one that is out is renewed and released",
        policy("2 concurrent lease 10s"),
        permit(0, "p", due=yes(1)), block(0), permit(0, "q", due=refusal(None)),
        release(0, "q", False),
        renew(6000, "p", True), unblock(15_999, due=True), permit(15_999, "r", due=yes(0)),
        release(15_999, "p", True),
    )
    yield case(
        "record, refund and spend work while a key is blocked",
        policy("5/min window", budget={"daily": 9}),
        block(0), record(0, cost=3, due={"used": 3, "remaining": 2}), refund(0, cost=1),
        spend(0, 4, due={"spent": 4, "over": False}), budget(0, due={"spent": 4}), unblock(0),
        left(0, 3),
    )
    yield case(
        "a blocked hit hands back what is attached",
        policy("5/min", attach={"link": "https://example.org"}),
        block(0), hit(0, due=refusal(None, attach={"link": "https://example.org"})),
    )


def keys():
    channels = policy("3/min", key=["channel", "sender"])
    yield case(
        "a block is for the whole key", channels,
        block(0, ["irc", "a"], **OPS), hit(0, ["irc", "a"], due=refusal(None)),
        hit(0, ["irc", "b"], due=yes(2)),
        hit(0, ["web", "a"], due=yes(2)), blocks(0, [blocked(["irc", "a"], None, "ops", "spam")]),
    )
    yield case(
        "a block of a key of other parts is an error", channels,
        block(0, "a", error="part"), unblock(0, ["a", "b", "c"], error="part"), blocks(0, []),
        changes(0, [], 0), hit(0, ["irc", "a"], due=yes(2)),
    )
    yield case(
        "a block is not for a wider scope",
        policy({"own": "5/min", "all": {"max": 9, "per": "1m", "algorithm": "window", "scope": []}},
               key=["channel", "sender"], penalty_scope=["channel"]),
        block(0, ["irc", "a"]), hit(0, ["irc", "a"], due=refusal(None)),
        hit(0, ["irc", "b"], 5, due=yes(0)),
        hit(0, ["web", "b"], 4, due=yes(0, limit=9)),
    )
    tiers = policy("3/min", key=["user", "tier"],
                   classify={"from": "action", "to": "tier", "map": {"ping": "light"},
                             "default": "normal"})
    ping = {"attributes": {"action": "ping"}}
    yield case(
        "a block is for the part that an attribute becomes", tiers,
        block(0, "a", **ping), hit(0, "a", due=refusal(None), **ping), hit(0, "a", due=yes(2)),
        blocks(0, [blocked(["a", "light"])]), unblock(0, "a", due=False),
        unblock(0, "a", due=True, **ping),
        hit(0, "a", due=yes(2), **ping),
    )
    yield case(
        "blocks of two rules are apart", rules(x={"limits": "3/min"}, y={"limits": "3/min"}),
        block(0, rule="x"), hit(0, rule="x", due=refusal(None)), hit(0, rule="y", due=yes(2)),
        blocks(0, [], rule="y"),
        unblock(0, rule="y", due=False), unblock(0, rule="x", due=True),
    )
    yield case(
        "a text, its bytes and a list of it are one blocked key", policy("3/min"),
        block(0, {"hex": "6c"}), hit(0, "l", due=refusal(None)), hit(0, ["l"], due=refusal(None)),
        block(0, 7), hit(0, "7", due=refusal(None)), blocks(0, [blocked("l"), blocked("7")]),
        unblock(0, ["l"], due=True),
        hit(0, "l", due=yes(2)),
    )
    yield case(
        "the blocks are those in force, the later made last", policy("3/min"),
        blocks(0, []), block(0, "a", for_ms=3000), block(0, "b", **OPS),
        block(1000, "c", for_ms=1000, by="eve"),
        blocks(1000,
            [blocked("a", NOON + 3000), blocked("b", None, "ops", "spam"),
             blocked("c", NOON + 2000, "eve")]),
        blocks(2000, [blocked("a", NOON + 3000), blocked("b", None, "ops", "spam")]),
        block(2000, "a"),
        blocks(2000, [blocked("b", None, "ops", "spam"), blocked("a")]), unblock(2000, "b"),
        blocks(2000, [blocked("a")]), wall_ms=NOON,
    )
    yield case(
        "the end of a block goes by the clock and not by the wall clock", policy("3/min"),
        block(0, for_ms=10_000), step("set_wall", 4000, wall_ms=NOON + HOUR),
        blocks(4000, [blocked("a", NOON + HOUR + 6000)]), hit(9999, due=refusal(1)),
        hit(10_000, due=yes(2)),
        wall_ms=NOON,
    )


def order():
    yield case(
        "order: mode off before blocked",
        policy("3/min", when=[{"match": {"t": "x"}, "mode": "off"}]),
        block(0), hit(0, due={"allowed": True, "reason": "off"}, attributes={"t": "x"}),
        hit(0, due=refusal(None)),
        is_limited(0, due=False, attributes={"t": "x"}), is_limited(0, due=True),
    )
    yield case(
        "order: exempt before blocked", policy("3/min", exempt=[{"role": "admin"}]),
        block(0), hit(0, due={"allowed": True, "reason": "exempt"}, attributes={"role": "admin"}),
        hit(0, due=refusal(None)), is_limited(0, due=False, attributes={"role": "admin"}),
        is_limited(0, due=True),
    )
    yield case(
        "order: blocked before cost, which never passes", policy("3/min"),
        block(0, for_ms=1000), hit(0, cost=4, due=refusal(None)), hit(0, cost=3, due=refusal(1000)),
        hit(1000, cost=4, due=no("cost", None, limit=3)),
    )
    yield case(
        "order: blocked before a spent budget, which may last longer",
        policy("3/min", budget={"daily": 5}),
        spend(0, 5), block(0, for_ms=1000), hit(0, due=refusal(12 * HOUR)),
        hit(1000, due=no("budget")),
        block(1000, for_ms=DAY), hit(1000, due=refusal(DAY)), wall_ms=NOON,
    )
    yield case(
        "order: blocked before a cooldown, which may last longer", policy("1/s", cooldown="30s"),
        hit(0, due=yes(0)), hit(0, due=no("1/s", 30_000)), block(0, for_ms=10_000),
        hit(1000, due=refusal(29_000)),
        hit(10_000, due=no("cooldown", 20_000)), block(10_000, for_ms=25_000),
        hit(10_000, due=refusal(25_000)),
        hit(30_000, due=refusal(5000)), hit(35_000, due=yes(0)),
    )
    yield case(
        "order: blocked before an enforced backoff, which may last longer",
        policy("1/s", backoff={"steps": ["5s"], "quiet": "1m", "enforce": True}),
        hit(0, due=yes(0)), hit(0, due=no("1/s", 5000)), block(0, for_ms=2000),
        hit(1000, due=refusal(4000)),
        hit(2000, due=no("backoff", 3000)), hit(5000, due=yes(0)),
    )
    yield case(
        "order: blocked before the limits, which may last longer", policy("2/min window"),
        hits(0, 2), block(0, for_ms=1000), hit(0, due=refusal(60_000)),
        hit(1000, due=no("2/min", 59_000)),
        block(1000, for_ms=80_000), hit(1000, due=refusal(80_000)), hit(81_000, due=yes(1)),
    )
    yield case(
        "a blocked key whose limit is 0 has no retry time", policy("3/min"),
        override(0, "a", {"3/min": {"max": 0}}), block(0, for_ms=1000), hit(0, due=refusal(None)),
        hit(1000, due=no("3/min", None)),
    )


def beside():
    yield case(
        "a blocked hit starts no cooldown, backoff or alert",
        policy("1/h window", cooldown="10s", backoff={"steps": ["1s", "40s"], "quiet": "1m"},
               alert={"violations": 2, "within": "1h"}),
        hit(0, due=yes(0)), block(0, for_ms=1000), hit(0, due=refusal(HOUR), repeat=5),
        stats(0, due={"violations": 0, "cooldown_left_ms": 0, "blocked": {"until_ms": 1000}}),
        is_limited(0, due=True), is_limited(1000, due=False),
        hit(1000, due=no("1/h", HOUR - 1000, alert=False)),
        stats(1000, due={"violations": 1, "cooldown_left_ms": 10_000}),
        is_limited(1000, due=True), hit(11_000, due=no("1/h", alert=True)),
    )
    yield case(
        "is_limited is true while a key is blocked", policy("3/min"),
        is_limited(0, due=False), block(0, for_ms=1000), is_limited(999, due=True),
        is_limited(999, "b", due=False),
        is_limited(1000, due=False),
    )
    yield case(
        "stats show a block of a key that is new otherwise", policy("3/min", budget={"daily": 5}),
        stats(0, due=None), block(0, for_ms=1000, **OPS),
        stats(999, due={"blocked": {"until_ms": NOON + 1000, "by": "ops", "reason": "spam"},
                        "limits": {"3/min": {"used": 0, "remaining": 3, "reset_after_ms": 0}}}),
        stats(999, "b", due=None), stats(1000, due=None), block(1000),
        stats(1000, due={"blocked": {"until_ms": None, "by": None, "reason": None}}), unblock(1000),
        hit(1000, due=yes(2)), stats(1000, due={"blocked": None}), wall_ms=NOON,
    )
    for notify, first, then in (("always", True, True), ("silent", False, False),
                                ("once", True, False)):
        yield case(
            f"notify {notify} of a blocked key", policy("3/min", notify=notify),
            block(0, for_ms=1000), hit(0, due=refusal(1000, notify=first)),
            hit(0, due=refusal(1000, notify=then)),
            hit(1000, due=yes(2)), block(1000, for_ms=1000),
            hit(1000, due=refusal(1000, notify=first)),
        )
    yield case(
        "shadow tells of a block and lets the hit pass, which spends nothing",
        policy("2/min", mode="shadow"),
        block(0, for_ms=1000),
        hit(0, due={"allowed": True, "reason": None, "would_deny": "blocked", "retry_after_ms": 0},
                                   repeat=3),
        hit(1000, due={"allowed": True, "would_deny": None, "remaining": 1}),
    )
    yield case(
        "warn_at is no matter of a blocked hit", policy("2/min", warn_at=0.5),
        hit(0, due=yes(1, warning=False)), block(0), hit(0, due=refusal(None)),
        peek(0, due=refusal(None)),
    )


def ends():
    yield case(
        "unblock ends a block, once", policy("3/min"),
        unblock(0, due=False), block(0), unblock(0, due=True), unblock(0, due=False),
        hit(0, due=yes(2)),
        block(0, for_ms=1000), unblock(1000, due=False),
    )
    yield case(
        "a block replaces the one before it, which is not restored", policy("3/min"),
        block(0, **OPS), block(0, for_ms=1000), blocks(0, [blocked("a", 1000)]),
        hit(999, due=refusal(1)),
        hit(1000, due=yes(2)), block(1000, for_ms=1000), block(1500), hit(2000, due=refusal(None)),
    )
    yield case(
        "a block may be made longer or shorter", policy("3/min"),
        block(0, for_ms=10_000), block(5000, for_ms=10_000), hit(14_999, due=refusal(1)),
        block(14_999, for_ms=1),
        hit(14_999, due=refusal(1)), hit(15_000, due=yes(2)),
    )
    yield case(
        "reset ends the block of its key", policy("3/min"),
        block(0, "a"), block(0, "b"), reset(0, "a"), hit(0, "a", due=yes(2)),
        hit(0, "b", due=refusal(None)),
        blocks(0, [blocked("b")]), unblock(0, "a", due=False),
    )
    yield case(
        "reset ends a block though penalties are of a wider scope",
        policy("3/min", key=["channel", "sender"], penalty_scope=["channel"], cooldown="10s"),
        block(0, ["irc", "a"]), reset(0, ["irc", "a"]), hit(0, ["irc", "a"], due=yes(2)),
    )
    yield case(
        "reset_all ends the blocks of its rule",
        rules(x={"limits": "3/min"}, y={"limits": "3/min"}),
        block(0, "a", rule="x"), block(0, "b", rule="x"), block(0, "a", rule="y"),
        step("reset_all", 0, rule="x"),
        blocks(0, [], rule="x"), hit(0, "a", rule="x", due=yes(2)),
        hit(0, "b", rule="x", due=yes(2)),
        hit(0, "a", rule="y", due=refusal(None)),
    )
    yield case(
        "an override, a default and a mode outlive a reset, which ends blocks only",
        policy("3/min", mode="shadow"),
        set_mode(0, "enforce"), override(0, "a", {"3/min": {"max": 6}}), block(0), reset(0),
        step("reset_all", 0),
        hit(0, due=yes(5, limit=6, would_deny=None)), hit(0, cost=6, due=no("3/min")),
    )


def headers():
    def head(at_ms, style, due):
        return hit(at_ms, due=no("blocked", headers=due), style=style)

    wall = 1_700_000_000_000
    limits = {"x": "10/s", "y": "60/min"}
    policies = '"x";q=10;w=1, "y";q=60;w=60'
    yield case(
        "legacy: a blocked key has nothing until the block ends", policy(limits),
        block(0, for_ms=20_500),
        head(0, "legacy",
            {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "1700000021", "Retry-After": "21"}),
        head(20_000, "legacy",
            {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "1700000021", "Retry-After": "1"}),
        wall_ms=wall,
    )
    yield case(
        "legacy: an endless block has neither reset nor Retry-After", policy(limits),
        block(0), head(0, "legacy", {"X-RateLimit-Remaining": "0"}), wall_ms=wall,
    )
    yield case(
        "ietf: a blocked key has nothing until the block ends", policy(limits),
        block(0, for_ms=20_500),
        head(0, "ietf",
            {"RateLimit-Policy": policies, "RateLimit": '"x";r=0;t=21, "y";r=0;t=21',
             "Retry-After": "21"}),
        wall_ms=wall,
    )
    yield case(
        "ietf: an endless block has nothing to wait for", policy(limits),
        block(0), head(0, "ietf", {"RateLimit-Policy": policies, "RateLimit": '"x";r=0, "y";r=0'}),
        wall_ms=wall,
    )
