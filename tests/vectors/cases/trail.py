"""The trail of run-time changes."""

from .dsl import *

ABOUT = (
    "changes: each run-time change with its number, time, target, before, after, end, name and "
    "reason"
)

OPS = {"by": "ops", "reason": "a drill"}
A, STAFF = {"key": ["a"]}, {"match": {"role": ["staff"]}}


def cases():
    yield from kinds()
    yield from numbers()
    yield from texts()


def kinds():
    one, two = {"3/min": {"max": 7}}, {"3/min": {"max": 9, "burst": 5}}
    yield case(
        "the trail of overrides", policy("3/min"),
        override(0, "a", one, due=1, for_ms=1000, **OPS), override(10, "a", two, due=2),
        clear_override(20, "a", due=3, by="eve"),
        override(30, {"role": "staff"}, one, due=4, reason="asked"),
        clear_override(40, {"role": ["staff"]}, due=5),
        changes(50, [
            told(1, NOON, "set_override", A, None, one, NOON + 1000, "ops", "a drill"),
            told(2, NOON + 10, "set_override", A, one, two),
            told(3, NOON + 20, "clear_override", A, two, None, None, "eve"),
            told(4, NOON + 30, "set_override", STAFF, None, one, None, None, "asked"),
            told(5, NOON + 40, "clear_override", STAFF, one, None),
        ], 5),
        wall_ms=NOON,
    )
    yield case(
        "the trail of defaults", policy("3/min"),
        set_default(0, one, due=1, for_ms=1000, **OPS), set_default(10, two, due=2),
        set_default(20, {}, due=3, by="eve"),
        hit(20, due=yes(2, limit=3)), set_default(30, one, due=4),
        changes(50, [
            told(1, NOON, "set_default", None, None, one, NOON + 1000, "ops", "a drill"),
            told(2, NOON + 10, "set_default", None, one, two),
            told(3, NOON + 20, "set_default", None, two, {}, None, "eve"),
            told(4, NOON + 30, "set_default", None, None, one),
        ], 4),
        wall_ms=NOON,
    )
    yield case(
        "the trail of exemptions", policy("3/min", exempt=[{"key": "root"}]),
        add_exempt(0, {"role": "staff"}, due=1, for_ms=1000, **OPS),
        add_exempt(10, {"role": ["staff"]}, due=2),
        remove_exempt(20, {"role": "staff"}, due=3, by="eve"),
        add_exempt(30, {"role": "staff"}, due=4),
        set_exempts(40, [{"ip": "10.0.0.0/8"}], due=5, for_ms=1000),
        set_exempts(50, [], due=6, reason="over"),
        changes(50, [
            told(1, NOON, "add_exempt", STAFF, False, True, NOON + 1000, "ops", "a drill"),
            told(2, NOON + 10, "add_exempt", STAFF, True, True),
            told(3, NOON + 20, "remove_exempt", STAFF, True, False, None, "eve"),
            told(4, NOON + 30, "add_exempt", STAFF, False, True),
            told(5, NOON + 40, "set_exempts", None, [{"key": ["root"]}, {"role": ["staff"]}],
                [{"ip": ["10.0.0.0/8"]}],
                 NOON + 1040),
            told(6, NOON + 50, "set_exempts", None, [{"ip": ["10.0.0.0/8"]}], [], None, None,
                 "over"),
        ], 6),
        wall_ms=NOON,
    )
    yield case(
        "the trail of modes", policy("3/min", mode="shadow"),
        set_mode(0, "off", due=1, for_ms=1000, **OPS), set_mode(10, "enforce", due=2),
        clear_mode(20, due=3, by="eve"),
        changes(50, [
            told(1, NOON, "set_mode", None, None, "off", NOON + 1000, "ops", "a drill"),
            told(2, NOON + 10, "set_mode", None, "off", "enforce"),
            told(3, NOON + 20, "clear_mode", None, "enforce", None, None, "eve"),
        ], 3),
        wall_ms=NOON,
    )
    yield case(
        "the trail of blocks", policy("3/min", key=["channel", "sender"]),
        block(0, ["irc", "a"], due=1, for_ms=1000, **OPS), block(10, ["irc", "a"], due=2),
        unblock(20, ["irc", "a"], due=True, by="eve", reason="sorry"),
        unblock(30, ["irc", "a"], due=False),
        changes(50, [
            told(1, NOON, "block", {"key": ["irc", "a"]}, False, True, NOON + 1000, "ops",
                 "a drill"),
            told(2, NOON + 10, "block", {"key": ["irc", "a"]}, True, True),
            told(3, NOON + 20, "unblock", {"key": ["irc", "a"]}, True, False, None, "eve", "sorry"),
        ], 3),
        wall_ms=NOON,
    )
    yield case(
        "a reset that ends a block is an unblock in the trail, and no other reset is in it",
        policy("3/min"),
        reset(0), step("reset_all", 0), block(0, "a"), block(0, "b"), block(0, "c"), reset(10, "a"),
        reset(10, "a"),
        step("reset_all", 20), step("reset_all", 20),
        changes(30, [
            told(4, 10, "unblock", A, True, False), told(5, 20, "unblock", None, 2, 0),
        ], 5, since=3),
    )
    yield case(
        "what has ended stands before no change", policy("3/min"),
        override(0, "a", one, for_ms=1000), set_default(0, one, for_ms=1000),
        add_exempt(0, {"role": "staff"}, for_ms=1000),
        set_mode(0, "off", for_ms=1000), block(0, for_ms=1000),
        override(1000, "a", two), set_default(1000, two), add_exempt(1000, {"role": "staff"}),
        set_mode(1000, "shadow"),
        block(1000),
        changes(1000, [
            told(6, 1000, "set_override", A, None, two),
            told(7, 1000, "set_default", None, None, two),
            told(8, 1000, "add_exempt", STAFF, False, True),
            told(9, 1000, "set_mode", None, None, "shadow"),
            told(10, 1000, "block", A, False, True),
        ], 10, since=5),
    )
    yield case(
        "what has not ended yet stands before a change", policy("3/min"),
        override(0, "a", one, for_ms=1000), set_default(0, one, for_ms=1000),
        add_exempt(0, {"role": "staff"}, for_ms=1000),
        set_mode(0, "off", for_ms=1000), block(0, for_ms=1000),
        override(999, "a", two), set_default(999, two), add_exempt(999, {"role": "staff"}),
        set_mode(999, "shadow"),
        block(999),
        changes(999, [
            told(6, 999, "set_override", A, one, two), told(7, 999, "set_default", None, one, two),
            told(8, 999, "add_exempt", STAFF, True, True),
            told(9, 999, "set_mode", None, "off", "shadow"),
            told(10, 999, "block", A, True, True),
        ], 10, since=5),
    )


def numbers():
    yield case(
        "a trail without changes", policy("3/min"),
        changes(0, [], 0), hit(0, due=yes(2)), changes(0, [], 0), changes(0, [], 7, since=7),
    )
    yield case(
        "an operation that changes nothing has the number 0 and is not in the trail",
        policy("3/min"),
        clear_override(0, "a", due=0), clear_override(0, {"role": "staff"}, due=0),
        clear_mode(0, due=0),
        remove_exempt(0, {"role": "staff"}, due=0), unblock(0, due=False), changes(0, [], 0),
        set_mode(0, "enforce", due=1),
        changes(0, [told(1, 0, "set_mode", None, None, "enforce")], 1),
    )
    yield case(
        "a change that is an error has no number and is not in the trail",
        policy("3/min window", ceiling=5),
        override(0, "a", {"3/min": {"max": 6}}, error="ceiling"),
        set_default(0, {"9/h": {"max": 1}}, error="9/h"),
        block(0, ["a", "b"], error="part"), changes(0, [], 0), set_mode(0, "off", due=1),
    )
    yield case(
        "a change that makes nothing different is in the trail too", policy("3/min"),
        set_mode(0, "off", due=1), set_mode(0, "off", due=2),
        changes(0, [told(2, 0, "set_mode", None, "off", "off")], 2, since=1),
    )
    yield case(
        "what is asked for is what is after a number", policy("3/min"),
        set_mode(0, "off"), set_mode(1, "shadow"), set_mode(2, "enforce"),
        changes(3,
            [told(2, 1, "set_mode", None, "off", "shadow"),
                told(3, 2, "set_mode", None, "shadow", "enforce")], 3,
                since=1),
        changes(3, [told(3, 2, "set_mode", None, "shadow", "enforce")], 3, since=2),
        changes(3, [], 3, since=3),
        clear_mode(4, due=4),
        changes(4, [told(4, 4, "clear_mode", None, "enforce", None)], 4, since=3),
    )
    yield case(
        "one trail for all rules", rules(x={"limits": "3/min"}, y={"limits": "3/min"}),
        set_mode(0, "off", due=1, rule="x"), block(0, "a", due=2, rule="y"),
        clear_mode(0, due=0, rule="y"),
        clear_mode(0, due=3, rule="x"),
        changes(0, [
            told(1, 0, "set_mode", None, None, "off", rule="x"),
            told(2, 0, "block", A, False, True, rule="y"),
            told(3, 0, "clear_mode", None, "off", None, rule="x"),
        ], 3),
    )
    yield case(
        "a change by the fallback is told under the rule's own name",
        rules(fallback="other", default={"limits": "3/min"}, other={"limits": "2/min"}),
        set_mode(0, "off", rule="nowhere"),
        changes(0, [told(1, 0, "set_mode", None, None, "off", rule="other")], 1),
    )
    yield case(
        "the times of the trail are those of the wall clock when a change was made",
        policy("3/min"),
        block(0, for_ms=10_000), step("set_wall", 1000, wall_ms=NOON + HOUR),
        block(1000, "b", for_ms=10_000),
        changes(2000, [
            told(1, NOON, "block", A, False, True, NOON + 10_000),
            told(2, NOON + HOUR, "block", {"key": ["b"]}, False, True, NOON + HOUR + 10_000),
        ], 2),
        wall_ms=NOON,
    )


def texts():
    yield case(
        "limits in the trail are by name and field, with periods in milliseconds",
        policy({"l": "3/min", "jobs": {"max": 9, "per": "1h", "algorithm": "window"}}),
        override(0, "a", {"l": {"per": "2min", "cooldown": "1s"},
                          "jobs": {"max": 4, "algorithm": "window"}}),
        changes(0, [told(1, 0, "set_override", A, None, {
            "l": {"per": "120000ms", "cooldown": "1000ms"}, "jobs": {"max": 4}})], 1),
    )
    yield case(
        "a text as limits is told as its fields", policy("3/min window", ceiling=9),
        override(0, "a", "5/h"), override(0, "a", {"3/min": "6/min window"}),
        changes(0, [
            told(1, 0, "set_override", A, None, {"3/min": {"max": 5, "per": "3600000ms"}}),
            told(2, 0, "set_override", A, {"3/min": {"max": 5, "per": "3600000ms"}},
                 {"3/min": {"max": 6, "per": "60000ms"}}),
        ], 2),
    )
    yield case(
        "keys in the trail are texts, or the hex digits of bytes that are none", policy("3/min"),
        block(0, {"hex": "ff00"}), block(0, 7), block(0, "Zoë"),
        override(0, [{"hex": "61"}], {"3/min": {"max": 5}}),
        blocks(0, [blocked([{"hex": "ff00"}]), blocked("7"), blocked("Zoë")]),
        changes(0, [
            told(1, 0, "block", {"key": [{"hex": "ff00"}]}, False, True),
            told(2, 0, "block", {"key": ["7"]}, False, True),
            told(3, 0, "block", {"key": ["Zoë"]}, False, True),
            told(4, 0, "set_override", A, None, {"3/min": {"max": 5}}),
        ], 4),
    )
    yield case(
        "names and reasons are any text", policy("3/min"),
        block(0, by="Zoë \"Z\" O'Neil", reason="line 1\nline 2\t\\ €"),
        block(0, "b", by="", reason=""),
        blocks(0,
            [blocked("a", None, "Zoë \"Z\" O'Neil", "line 1\nline 2\t\\ €"),
             blocked("b", None, "", "")]),
        changes(0, [
            told(1, 0, "block", A, False, True, None, "Zoë \"Z\" O'Neil", "line 1\nline 2\t\\ €"),
            told(2, 0, "block", {"key": ["b"]}, False, True, None, "", ""),
        ], 2),
    )
