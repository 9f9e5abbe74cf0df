"""The five systems that a policy must be able to replace, in short."""

from .dsl import *

ABOUT = (
    "five real systems as policies: a chat gateway, an agent's groups, an agent hub, a publisher, "
    "a hotel's butler"
)


def cases():
    yield from chat_gateway()
    yield from groups()
    yield from hub()
    yield from publisher()
    yield from butler()


def chat_gateway():
    limits = {
        "burst": {"max": 5, "per": "10s", "algorithm": "window", "cooldown": "60s"},
        "per-minute": {"max": 20, "per": "1m", "algorithm": "window"},
        "per-hour": {"max": 200, "per": "1h", "algorithm": "window"},
    }
    messages = {"messages": {
        "capacity": 10_000, "key": ["channel", "account", "sender"], "limits": limits,
        "when": [{"match": {"channel": "discord"}, "limits": {"per-minute": {"max": 60}}}],
        "ceiling": 200,
        "exempt": [{"channel": "webchat"}], "notify": "silent",
    }}
    rule, ann = {"rule": "messages"}, ["telegram", "main", "ann"]
    yield case(
        "chat gateway: six messages in two seconds, the last is throttled", rules(**messages),
        [hit(at, ann, due=yes(), **rule) for at in (0, 400, 800, 1200, 1600)],
        hit(2000, ann, due=no("burst", 60_000, limit=5, remaining=0, notify=False), **rule),
        hit(61_999, ann, due=no("cooldown", 1, limit=5, remaining=0), **rule),
        hit(62_000, ann, due=yes(4, limit=5), **rule),
    )
    yield case(
        "chat gateway: twenty a minute at a calm pace, sixty on discord", rules(**messages),
        [
            [hit(at * 2500, [channel, "main", "bob"], due={"allowed": True}, **rule)
             for at in range(20)]
            for channel in ("telegram",)
        ],
        hit(50_000, ["telegram", "main", "bob"], due=no("per-minute", 10_000, limit=20), **rule),
        hit(60_000, ["telegram", "main", "bob"], due={"allowed": True}, **rule),
        hit(60_000, ["discord", "main", "bob"], due=yes(4, limit=5), **rule),
    )
    yield case(
        "chat gateway: an exempt channel and a sender of another account", rules(**messages),
        hit(0, ["webchat", "main", "ann"], due={"allowed": True, "reason": "exempt"}, repeat=9,
            **rule),
        hits(0, 5, ["telegram", "main", "ann"], **rule),
        hit(0, ["telegram", "main", "ann"], due=no("burst"), **rule),
        hit(0, ["telegram", "spare", "ann"], due=yes(4), **rule),
    )


def groups():
    yield case(
        "an agent's groups: ten a minute for each user of a group, and a group's own number",
        policy("10/min window", key=["group", "user"], ceiling=1000, capacity=1000),
        hits(0, 10, ["slack:C1", "u1"]), hit(0, ["slack:C1", "u1"], due=no("10/min", 60_000)),
        hit(0, ["slack:C1", "u2"], due=yes(9)), hit(0, ["slack:C2", "u1"], due=yes(9)),
        step("set_override", 0, match={"group": "slack:C2"}, limits={"10/min": {"max": 5}}),
        hit(0, ["slack:C2", "u1"], due=yes(3, limit=5)),
        hit(0, ["slack:C2", "u1"], max=2, due=no("10/min", limit=2)),
        peek(0, ["slack:C2", "u1"], 0, due=yes(3)),
    )


def hub():
    tiers = {
        "from": "action", "to": "tier", "map": {"ping": "light", "submit_task": "heavy"},
        "default": "normal",
    }
    when = [
        {"match": {"tier": "light"}, "limits": {"rate": {"max": 120}}},
        {"match": {"tier": "heavy"}, "limits": {"rate": {"max": 10}}},
    ]
    rule = policy(
        {"rate": "60/min"}, key=["agent", "transport", "tier"], penalty_scope=["agent"],
        warn_at=0.8,
        classify=tiers, when=when, alert={"violations": 10, "within": "5m"},
        backoff={"steps": ["1s", "2s", "5s", "10s", "30s"], "quiet": "60s", "round": "1s"},
        exempt=[{"agent": "dashboard"}],
    )
    heavy, ws, http = {"attributes": {"action": "submit_task"}}, ["bot", "ws"], ["bot", "http"]
    yield case(
        "agent hub: tiers and transports have buckets of their own", rule,
        hit(0, ws, due=yes(9, limit=10), **heavy), hit(0, http, due=yes(9, limit=10), **heavy),
        hit(0, ws, due=yes(119, limit=120), attributes={"action": "ping"}),
        hit(0, ws, due=yes(59, limit=60), attributes={"action": "chat"}),
    )
    yield case(
        "agent hub: a warning below a fifth, then growing waits over all tiers", rule,
        hit(0, ws, 8, due=yes(2, warning=False), **heavy),
        hit(0, ws, due=yes(1, warning=True), **heavy),
        hit(0, ws, due=yes(0, warning=True), **heavy), hits(0, 10, http, **heavy),
        hit(0, ws, due=no("rate", 6000), **heavy), hit(0, http, due=no("rate", 6000), **heavy),
        hit(0, ws, due=no("rate", 6000), **heavy), hit(0, ws, due=no("rate", 10_000), **heavy),
        hit(0, http, due=no("rate", 30_000), **heavy), is_limited(59_999, ws, due=True),
        is_limited(60_000, ws, due=False),
        hit(60_000, ["dashboard", "ws"], due={"allowed": True, "reason": "exempt"}, **heavy),
    )
    yield case(
        "agent hub: ten violations in five minutes alert once", rule,
        hits(0, 10, ws, **heavy),
        hit(0, ws, due={"allowed": False, "alert": False}, repeat=9, **heavy),
        hit(0, ws, due={"allowed": False, "alert": True}, **heavy),
        hit(0, ws, due={"allowed": False, "alert": False}, repeat=3, **heavy),
    )


def publisher():
    fee = {"spam_fee_option": {"fee_usdc": "0.10", "payment_options": []}}
    rule = policy(
        {"publish": "1/2h window"}, ceiling=4,
        when=[
            {"match": {"tier": "established"}, "limits": {"publish": {"per": "1h"}}, "attach": fee},
            {"match": {"tier": "verified"}, "limits": {"publish": {"max": 4, "per": "1h"}}},
            {"match": {"tier": "suspended"}, "limits": {"publish": {"max": 0}}},
        ],
    )

    def tier(name):
        return {"attributes": {"tier": name}}

    yield case(
        "publisher: one in two hours for the new", rule,
        hit(0, due=yes(0, limit=1), **tier("new")),
        hit(2 * HOUR - 1, due=no("publish", 1, attach=None), **tier("new")),
        hit(2 * HOUR, due=yes(0), **tier("new")),
    )
    yield case(
        "publisher: one an hour and a fee for the established", rule,
        hit(0, due=yes(0), **tier("established")),
        hit(1000, due=no("publish", HOUR - 1000, attach=fee), **tier("established")),
        hit(HOUR, due=yes(0), **tier("established")),
    )
    yield case(
        "publisher: four an hour for the verified, never for the suspended", rule,
        hit(0, cost=4, due=yes(0, limit=4), **tier("verified")),
        hit(0, due=no("publish", HOUR), **tier("verified")),
        hit(0, "s", due=no("publish", None, limit=0), **tier("suspended")),
    )


def butler():
    rule = rules(
        auth={"limits": "5/15min window", "key": ["ip"]}, api={"limits": "100/min window"},
        outbound={
            "key": ["phone"],
            "limits": {
                "template": {"max": 250, "per": "1d", "algorithm": "window"},
                "speed": {"max": 80, "per": "1s", "algorithm": "window", "scope": []},
            },
            "capacity": 1000,
        },
    )
    yield case(
        "butler: five logins in a quarter of an hour for each address", rule,
        hits(0, 5, "192.0.2.1", rule="auth"),
        hit(0, "192.0.2.1", due=no("5/15min", 15 * MINUTE), rule="auth"),
        hit(0, "192.0.2.2", due=yes(4), rule="auth"), hit(0, "192.0.2.1", due=yes(99), rule="api"),
    )
    yield case(
        "butler: 250 a day for each phone and 80 a second over all", rule,
        [hit(second * 1000, "+1", 80, due=yes(0, limit=80), rule="outbound")
         for second in range(3)],
        hit(2000, "+2", due=no("speed", 1000, limit=80), rule="outbound"),
        hit(3000, "+1", 10, due=yes(0, limit=250), rule="outbound"),
        hit(3000, "+2", 70, due=yes(0, limit=80), rule="outbound"),
        hit(4000, "+1", due=no("template", DAY - 4000, limit=250), rule="outbound"),
        hit(DAY, "+1", 80, due=yes(0), rule="outbound"),
    )
