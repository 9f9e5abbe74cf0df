"""Why a call is judged as it is: each step, and where its numbers come from."""

from .dsl import *

ABOUT = "why: the judgement in order, each number with its source; it changes nothing"


def one(step, outcome, limit=None, value=None, source=None, until_ms=None, by=None):
    return {"step": step, "outcome": outcome, "limit": limit, "value": value, "source": source,
            "until_ms": until_ms, "by": by}


def steps(*changed, mode=("enforce", "rule"), limits=()):
    """The steps of a rule without options, but for those named."""
    found = [one("mode", "pass", None, *mode), one("exempt", "none"), one("blocked", "none"),
             one("cost", "none"), one("budget", "none"), one("cooldown", "none"),
             one("backoff", "none")]
    for new in changed:
        found = [new if old["step"] == new["step"] else old for old in found]
    return found + list(limits)


def cases():
    yield from plain()
    yield from sources()
    yield from refusals()
    yield from changes()


def plain():
    yield case(
        "a limit that passes, and then denies", policy("2/min window"),
        why(0, due={"decision": yes(1), "steps": steps(
            one("cost", "pass", "2/min", 2, "rule"),
            limits=[one("limit", "pass", "2/min", 2, "rule")])}),
        why(0, due={"decision": yes(1)}, repeat=5), stats(0, due=None), hits(0, 2),
        why(10_000, due={"decision": no("2/min", 50_000), "steps": steps(
            one("cost", "pass", "2/min", 2, "rule"),
            limits=[one("limit", "deny", "2/min", 2, "rule", NOON + 60_000)])}),
        hit(60_000, due=yes(1)), wall_ms=NOON,
    )
    yield case(
        "a cost that no limit holds", policy("5/s, 3/min"),
        why(0, cost=4, due={"decision": no("cost", None, limit=3), "steps": steps(
            one("cost", "deny", "3/min", 3, "rule"),
            limits=[one("limit", "pass", "5/s", 5, "rule"),
                    one("limit", "deny", "3/min", 3, "rule")])}),
    )
    yield case(
        "a limit of nothing", policy({"l": {"max": 0, "per": "1m"}}),
        why(0, due={"decision": no("l", None),
                    "steps": steps(limits=[one("limit", "deny", "l", 0, "rule")])}),
    )
    yield case(
        "hits and costs",
        policy({"requests": {"max": 1, "per": "1m", "counts": "hits"}, "tokens": "60/min"}),
        hit(0, cost=30),
        why(0, cost=20, due={"decision": no("requests", 60_000), "steps": steps(
            one("cost", "pass", "tokens", 60, "rule"),
            limits=[one("limit", "deny", "requests", 1, "rule", 60_000),
                    one("limit", "pass", "tokens", 60, "rule")])}),
    )


def sources():
    yield case(
        "each number has its source",
        policy({"a": "10/min", "b": "20/h"}, key=["tier", "user"],
               when=[{"match": {"tier": "x"}, "limits": {"a": {"max": 1}}},
                     {"match": {"tier": "gold"}, "mode": "shadow",
                      "limits": {"a": {"max": 60}, "b": {"max": 99}}}]),
        why(0, ["free", "u"], due={"steps": steps(
            one("cost", "pass", "a", 10, "rule"),
            limits=[one("limit", "pass", "a", 10, "rule"),
                    one("limit", "pass", "b", 20, "rule")])}),
        why(0, ["gold", "u"], due={"steps": steps(
            one("cost", "pass", "a", 60, "when[1]"), mode=("shadow", "when[1]"),
            limits=[one("limit", "pass", "a", 60, "when[1]"),
                    one("limit", "pass", "b", 99, "when[1]")])}),
        step("set_default", 0, limits={"a": {"max": 5}}),
        step("set_override", 0, match={"user": "u"}, limits={"b": {"max": 30}}),
        step("set_override", 0, ["gold", "v"], limits={"b": {"burst": 7}}),
        why(0, ["free", "u"], due={"steps": steps(
            one("cost", "pass", "a", 5, "default"),
            limits=[one("limit", "pass", "a", 5, "default"),
                    one("limit", "pass", "b", 30, "override")])}),
        why(0, ["gold", "v"], due={"steps": steps(
            one("cost", "pass", "b", 7, "override"), mode=("shadow", "when[1]"),
            limits=[one("limit", "pass", "a", 60, "when[1]"),
                    one("limit", "pass", "b", 7, "override")])}),
    )
    yield case(
        "a max of the call", policy("10/min"),
        why(0, max=3, due={"decision": yes(2), "steps": steps(
            one("cost", "pass", "10/min", 3, "call"),
            limits=[one("limit", "pass", "10/min", 3, "call")])}),
    )


    yield case(
        "a max of the call beside a burst that is written", policy("10/min burst 4"),
        why(0, max=3, due={"steps": steps(
            one("cost", "pass", "10/min", 4, "rule"),
            limits=[one("limit", "pass", "10/min", 4, "rule")])}),
    )


def refusals():
    yield case(
        "off and exempt end the judgement",
        policy("1/min", exempt=[{"role": ["admin", "system"]}],
               when=[{"match": {"tier": "free"}, "mode": "off"}]),
        why(0, attributes={"tier": "free", "role": "admin"},
            due={"decision": {"reason": "off"},
                 "steps": [one("mode", "allow", None, "off", "when[0]")]}),
        why(0, attributes={"role": "admin"}, due={"decision": {"reason": "exempt"}, "steps": [
            one("mode", "pass", None, "enforce", "rule"),
            one("exempt", "allow", None, {"role": ["admin", "system"]}, "rule")]}),
        step("add_exempt", 0, match={"key": "b"}),
        why(0, "b", due={"steps": [one("mode", "pass", None, "enforce", "rule"),
                                   one("exempt", "allow", None, {"key": ["b"]}, "change")]}),
        why(0, due={"decision": yes(0), "steps": steps(
            one("exempt", "pass"), one("cost", "pass", "1/min", 1, "rule"),
            limits=[one("limit", "pass", "1/min", 1, "rule")])}),
    )
    yield case(
        "a cooldown, and the limit that began it",
        policy({"burst": {"max": 1, "per": "10s", "algorithm": "window", "cooldown": "1m"},
                "slow": "9/min window"}),
        why(0, due={"steps": steps(
            one("cost", "pass", "burst", 1, "rule"), one("cooldown", "pass"),
            limits=[one("limit", "pass", "burst", 1, "rule"),
                    one("limit", "pass", "slow", 9, "rule")])}),
        hit(0), hit(0, due=no("burst", 60_000)),
        why(20_000, due={"decision": no("cooldown", 40_000), "steps": steps(
            one("cost", "pass", "burst", 1, "rule"),
            one("cooldown", "deny", "burst", 60_000, "rule", NOON + 60_000),
            limits=[one("limit", "pass", "burst", 1, "rule"),
                    one("limit", "pass", "slow", 9, "rule")])}),
        hit(60_000, due=yes(0)), wall_ms=NOON,
    )
    yield case(
        "a cooldown of the rule, by when",
        policy("1/s", when=[{"match": {"key": "a"}, "cooldown": "1m"}]),
        hit(0), hit(0, due=no("1/s", 60_000)),
        why(0, due={"decision": no("cooldown", 60_000), "steps": steps(
            one("cost", "pass", "1/s", 1, "rule"),
            one("cooldown", "deny", "1/s", 60_000, "when[0]", 60_000),
            limits=[one("limit", "deny", "1/s", 1, "rule", 1000)])}),
    )
    yield case(
        "an enforced step",
        policy("1/s", backoff={"steps": ["5s"], "quiet": "1m", "enforce": True}),
        hit(0), hit(0, due=no("1/s", 5000)),
        why(2000, due={"decision": no("backoff", 3000), "steps": steps(
            one("cost", "pass", "1/s", 1, "rule"), one("backoff", "deny", until_ms=5000),
            limits=[one("limit", "pass", "1/s", 1, "rule")])}),
        why(5000, due={"decision": yes(0)}),
    )
    yield case(
        "a budget that is spent", policy("10/s", budget={"daily": 5}),
        spend(0, 5),
        why(0, due={"decision": no("budget", 12 * HOUR), "steps": steps(
            one("cost", "pass", "10/s", 10, "rule"),
            one("budget", "deny", None, 5, "rule", NOON + 12 * HOUR),
            limits=[one("limit", "pass", "10/s", 10, "rule")])}), wall_ms=NOON,
    )
    yield case(
        "permits", policy("1 concurrent lease 30s"),
        permit(0, "p"),
        why(10_000, due={"decision": no("1", 20_000), "steps": steps(limits=[
            one("limit", "deny", "1", 1, "rule", 30_000)])}),
    )
    yield case(
        "a key of other parts is an error", policy("1/s"), step("why", 0, ["a", "b"], error="part"),
    )


def changes():
    """Who made the change that a number comes from."""
    ops, eve = {"by": "ops", "reason": "a drill"}, {"by": "eve"}
    staff = {"attributes": {"role": "staff"}}

    def sized(size, source, by):
        return {"steps": steps(one("cost", "pass", "5/h", size, source, by=by),
                               limits=[one("limit", "pass", "5/h", size, source, by=by)])}

    yield case(
        "a number that was changed has the name of who changed it", policy("5/h"),
        why(0, due=sized(5, "rule", None)),
        set_default(0, {"5/h": {"max": 6}}, **ops), why(0, due=sized(6, "default", "ops")),
        override(0, {"role": "staff"}, {"5/h": {"max": 7}}, **eve),
        why(0, due=sized(6, "default", "ops")),
        why(0, due=sized(7, "override", "eve"), **staff),
        override(0, "a", {"5/h": {"max": 8}}, **ops),
        why(0, due=sized(8, "override", "ops"), **staff),
        override(0, "a", {"5/h": {"max": 9}}), why(0, due=sized(9, "override", None)),
        override(0, "a", {"5/h": {"per": "1d"}}, **ops),
        why(0, due=sized(7, "override", "eve"), **staff),
        why(0, due=sized(6, "default", "ops")), why(0, max=3, due=sized(3, "call", None)),
    )
    yield case(
        "a cooldown that was changed has the name of who changed it", policy("1/s"),
        override(0, "a", {"1/s": {"cooldown": "30s"}}, **ops), hit(0),
        hit(0, due=no("1/s", 30_000)),
        why(0, due={"decision": no("cooldown", 30_000), "steps": steps(
            one("cost", "pass", "1/s", 1, "rule"),
            one("cooldown", "deny", "1/s", 30_000, "override", 30_000, "ops"),
            limits=[one("limit", "deny", "1/s", 1, "rule", 1000)])}),
    )
    yield case(
        "a mode that was set",
        policy("1/h", mode="shadow", when=[{"match": {"role": "staff"}, "mode": "off"}]),
        set_mode(0, "enforce", for_ms=1000, **ops),
        why(0, due={"decision": yes(0), "steps": steps(
            one("mode", "pass", None, "enforce", "change", by="ops"),
            one("cost", "pass", "1/h", 1, "rule"),
            limits=[one("limit", "pass", "1/h", 1, "rule")])}, **staff),
        why(1000, due={"steps": [one("mode", "allow", None, "off", "when[0]")]}, **staff),
        set_mode(1000, "off", **eve),
        why(1000, due={"decision": {"reason": "off"}, "steps": [
            one("mode", "allow", None, "off", "change", by="eve")]}),
        clear_mode(1000),
        why(1000, due={"steps": steps(
            one("cost", "pass", "1/h", 1, "rule"), mode=("shadow", "rule"),
            limits=[one("limit", "pass", "1/h", 1, "rule")])}),
    )
    start = one("mode", "pass", None, "enforce", "rule")
    yield case(
        "an exemption that was added or set", policy("1/h", exempt=[{"key": "root"}]),
        add_exempt(0, {"role": "staff"}, **ops),
        why(0, due={"decision": {"reason": "exempt"}, "steps": [
            start, one("exempt", "allow", None, {"role": ["staff"]}, "change", by="ops")]},
            **staff),
        why(0, "root",
            due={"steps": [start, one("exempt", "allow", None, {"key": ["root"]}, "rule")]}),
        set_exempts(0, [{"key": ["a", "b"]}], **eve),
        why(0, due={"steps": [start, one("exempt", "allow", None, {"key": ["a", "b"]}, "change",
                                         by="eve")]}),
        why(0, "root", due={"steps": steps(
            one("exempt", "pass"), one("cost", "pass", "1/h", 1, "rule"),
            limits=[one("limit", "pass", "1/h", 1, "rule")])}),
        set_exempts(0, []),
        why(0, due={"steps": steps(
            one("cost", "pass", "1/h", 1, "rule"),
            limits=[one("limit", "pass", "1/h", 1, "rule")])}),
    )
    passes = one("cost", "pass", "1/h", 1, "rule")
    yield case(
        "a block, with its reason and its end", policy("1/h", exempt=[{"role": "staff"}]),
        block(0, for_ms=5000, **ops),
        why(2000, due={"decision": no("blocked", 3000, limit=None, remaining=0), "steps": steps(
            one("exempt", "pass"),
            one("blocked", "deny", None, "a drill", "change", NOON + 5000, "ops"),
            passes,
            limits=[one("limit", "pass", "1/h", 1, "rule")])}),
        why(2000, due={"decision": {"reason": "exempt"}, "steps": [
            start, one("exempt", "allow", None, {"role": ["staff"]}, "rule")]}, **staff),
        why(2000, "b", due={"steps": steps(
            one("exempt", "pass"), passes, limits=[one("limit", "pass", "1/h", 1, "rule")])}),
        block(3000),
        why(3000, cost=2, due={"decision": no("blocked", None), "steps": steps(
            one("exempt", "pass"), one("blocked", "deny", None, None, "change"),
            one("cost", "deny", "1/h", 1, "rule"),
            limits=[one("limit", "deny", "1/h", 1, "rule")])}),
        unblock(3000), why(3000, due={"decision": yes(0)}), wall_ms=NOON,
    )
