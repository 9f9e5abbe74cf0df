"""Keys."""

from .dsl import *

ABOUT = (
    "keys: compared as bytes, parts with their lengths; nothing is trimmed, folded or normalised"
)

ONE = policy("1/h")


def same(name, *keys, rule=ONE):
    return case(
        name, rule,
        hit(0, keys[0], due=yes(0)), [hit(0, key, due=no("1/h", HOUR)) for key in keys[1:]],
    )


def apart(name, *keys, rule=ONE):
    return case(
        name, rule,
        [hit(0, key, due=yes(0)) for key in keys],
        [hit(1, key, due=no("1/h", HOUR - 1)) for key in keys],
    )


def cases():
    two, three = policy("1/h", key=["a", "b"]), policy("1/h", key=["a", "b", "c"])
    yield same("text, bytes and a list of one are one key", "x", {"hex": "78"}, ["x"])
    yield same(
        "text of several bytes and those bytes are one key", "h\u00e9llo \u2713 \U0001f30a",
        {"hex": "68c3a96c6c6f20e29c9320f09f8c8a"},
    )
    yield same("a whole number is one key however often it comes", 42, 42)
    yield same("a whole number is one key with its digits", 42, "42", {"hex": "3432"}, ["42"], [42],
               {"whole": "42"})
    yield same("a negative number is one key with its digits", -7, "-7", {"whole": "-7"})
    yield apart(
        "whole numbers are apart", 0, 1, 10, 42, 255, 256, 65_536, 4_294_967_296,
        9_007_199_254_740_991,
    )
    largest, smallest = "18446744073709551615", "-9223372036854775808"
    yield same("the largest whole number of 64 bits", {"whole": largest}, largest,
               [{"whole": largest}])
    yield same("the smallest whole number of 64 bits", {"whole": smallest}, smallest)
    yield apart(
        "whole numbers that a float does not tell apart", {"whole": "9007199254740992"},
        {"whole": "9007199254740993"}, {"whole": "9223372036854775807"},
        {"whole": "9223372036854775808"},
        {"whole": largest}, {"whole": "-1"}, {"whole": smallest},
    )
    yield same(
        "parts may be texts, whole numbers and bytes", ["telegram", 42], ["telegram", "42"],
        ["telegram", {"whole": "42"}], [{"hex": "74656c656772616d"}, 42], rule=two,
    )
    yield same("all parts may be whole numbers", [-1, 0, {"whole": largest}], ["-1", "0", largest],
               rule=three)
    yield apart("numbers as parts never run together", [1, 23], [12, 3], [123, ""], ["", 123],
                rule=two)
    yield same("an address is one key with its text", {"address": "192.0.2.1"}, "192.0.2.1")
    yield same(
        "an address of version 6 is one key with its short text",
        {"address": "2001:db8:0:0:0:0:0:1"}, "2001:db8::1",
        {"address": "2001:DB8::1"},
    )
    yield apart(
        "addresses are not unmapped, nor cut to a prefix", {"address": "2001:db8::1"},
        {"address": "2001:db8::2"},
        {"address": "::1"},
    )
    yield apart(
        "parts never meet over a separator", ["a:b", "c"], ["a", "b:c"], ["a:b:c", ""],
        ["", "a:b:c"],
        rule=two,
    )
    yield apart(
        "parts never meet by their bytes run together", ["ab", "c"], ["a", "bc"], ["abc", ""],
        ["", "abc"],
        rule=two,
    )
    yield apart("parts have an order", ["a", "b"], ["b", "a"], rule=two)
    yield apart(
        "three parts, each of which may be empty", ["", "", ""], ["x", "", ""], ["", "x", ""],
        ["", "", "x"],
        rule=three,
    )
    yield apart("the empty key is a key", "", " ", "a")
    yield same("the empty key comes again", "", {"hex": ""}, [""])
    yield apart("NUL bytes are bytes", "a", "a\u0000", "a\u0000b", "\u0000a", "\u0000",
                "\u0000\u0000")
    yield apart("nothing is trimmed", "a", " a", "a ", "\ta", "a\n")
    yield apart("case is not folded", "alice", "Alice", "ALICE", "\u00df", "ss", "SS")
    yield apart("nothing is normalised", "\u00e9", "e\u0301", "\u212b", "\u00c5")
    yield apart(
        "bytes that are no text", {"hex": "ff"}, {"hex": "fffe"}, {"hex": "c328"}, {"hex": "00ff"},
        {"hex": "80"},
    )
    yield apart("long keys that differ in the last byte", "k" * 5000, "k" * 4999 + "j", "k" * 4999)
    yield apart("a long key's parts", ["k" * 300, "k"], ["k", "k" * 300], rule=two)
    yield apart(
        "keys of many scripts", "\u0430", "a", "\u65e5\u672c", "\u05d0\u05d1", "\U0001f600",
        "\U0001f601",
    )
    yield apart(
        "keys that look like addresses are text", "::1", "0:0:0:0:0:0:0:1", "127.0.0.1",
        "::ffff:127.0.0.1",
    )
    yield case(
        "too few parts are an error", two,
        hit(0, ["a"], error="part"), hit(0, "a", error="part"), hit(0, ["a", "b"], due=yes(0)),
    )
    yield case("too many parts are an error", ONE, hit(0, ["a", "b"], error="part"),
               hit(0, "a", due=yes(0)))
    yield case(
        "a wrong number of parts is an error of every operation", two,
        [
            step(op, 0, ["a"], error="part")
            for op in ("check", "peek", "allow", "record", "refund", "is_limited", "stats", "reset")
        ],
    )
    yield case(
        "one key under two rules has two states", rules(x={"limits": "1/h"}, y={"limits": "1/h"}),
        hit(0, rule="x", due=yes(0)), hit(0, rule="y", due=yes(0)), hit(0, rule="x", due=no("1/h")),
    )
    yield case(
        "a hundred keys keep a hundred states", policy("2/h window"),
        [hit(0, f"key {number}", due=yes(1)) for number in range(100)],
        [hit(1, f"key {number}", due=yes(0)) for number in range(0, 100, 3)],
        [hit(2, f"key {number}", due=no("2/h")) for number in range(0, 100, 9)],
    )
