#!/usr/bin/env python3
"""Replays tests/vectors through the C ABI: every surface gives these answers.

    ffi-c/tests/vectors.py path/to/libtidegate.so [file of vectors]...
"""

import ctypes as c
import glob
import ipaddress
import json
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
lib = c.CDLL(sys.argv[1])


class Bytes(c.Structure):
    _fields_ = [("data", c.c_char_p), ("len", c.c_size_t)]


class Attribute(c.Structure):
    _fields_ = [("name", Bytes), ("value", Bytes)]


class Key(c.Structure):
    _fields_ = [("version", c.c_uint32), ("has_max", c.c_uint32), ("bytes", Bytes),
                ("parts", c.POINTER(Bytes)), ("part_count", c.c_size_t),
                ("attributes", c.POINTER(Attribute)), ("attribute_count", c.c_size_t),
                ("max", c.c_uint64)]


class Options(c.Structure):
    _fields_ = [("version", c.c_uint32), ("on_full", c.c_uint32), ("store", c.c_char_p),
                ("capacity", c.c_uint64),
                ("clock", c.c_void_p), ("recreate", c.c_uint32), ("group", c.c_uint32)]


class ChangeOptions(c.Structure):
    _fields_ = [("version", c.c_uint32), ("reserved", c.c_uint32), ("for_ms", c.c_uint64),
                ("by", c.c_char_p),
                ("reason", c.c_char_p)]


class LimitLeft(c.Structure):
    _fields_ = [("name", c.c_char_p), ("max", c.c_uint64), ("window_seconds", c.c_uint64),
                ("remaining", c.c_uint64), ("reset_after_ms", c.c_int64),
                ("more_after_ms", c.c_int64)]


class Decision(c.Structure):
    _fields_ = [("version", c.c_uint32), ("allowed", c.c_uint8), ("warning", c.c_uint8),
                ("alert", c.c_uint8),
                ("notify", c.c_uint8), ("limit_count", c.c_uint8), ("reserved", c.c_uint8 * 7),
                ("rule", c.c_char_p), ("reason", c.c_char_p), ("would_deny", c.c_char_p),
                ("attach", c.c_char_p),
                ("limit", c.c_int64), ("remaining", c.c_int64), ("retry_after_ms", c.c_int64),
                ("reset_after_ms", c.c_int64), ("at_ns", c.c_uint64),
                ("reserved_words", c.c_uint64 * 4),
                ("limits", LimitLeft * 8)]


class Recorded(c.Structure):
    _fields_ = [("version", c.c_uint32), ("reserved", c.c_uint32), ("used", c.c_uint64),
                ("limit", c.c_uint64), ("remaining", c.c_uint64), ("reset_after_ms", c.c_int64),
                ("reserved_words", c.c_uint64 * 4)]


class Budget(c.Structure):
    _fields_ = [("version", c.c_uint32), ("over", c.c_uint32), ("over_per_hit", c.c_uint32),
                ("reserved", c.c_uint32), ("spent", c.c_uint64), ("remaining", c.c_uint64),
                ("reset_after_ms", c.c_int64), ("reserved_words", c.c_uint64 * 4)]


class LimitUse(c.Structure):
    _fields_ = [("name", c.c_char_p), ("used", c.c_uint64), ("max", c.c_uint64),
                ("remaining", c.c_uint64), ("reset_after_ms", c.c_int64),
                ("reserved_words", c.c_uint64 * 3)]


class Stats(c.Structure):
    _fields_ = [("version", c.c_uint32), ("known", c.c_uint32), ("limit_count", c.c_uint32),
                ("has_budget", c.c_uint32), ("blocked", c.c_uint32), ("reserved", c.c_uint32),
                ("cooldown_left_ms", c.c_int64), ("violations", c.c_uint64),
                ("last_allowed_ms", c.c_int64), ("budget", Budget),
                ("reserved_words", c.c_uint64 * 8), ("limits", LimitUse * 8)]


for size, structure in [(64, Key), (40, Options), (32, ChangeOptions), (504, Decision),
                        (696, Stats),
                        (72, Recorded), (72, Budget)]:
    assert c.sizeof(structure) == size, structure
lib.tg_last_error.restype = lib.tg_status_name.restype = c.c_char_p
STYLES = {"both": 0, "legacy": 1, "ietf": 2}


class Failed(Exception):
    pass


def ok(status):
    if status != 0:
        name = lib.tg_status_name(c.c_int32(status)).decode()
        raise Failed(f"{name} {lib.tg_last_error().decode()}")


def answered(answer):
    if answer < 0:
        ok(-answer)
    return answer == 1


def text(value):
    return None if value is None else value.decode()


def encoded(value):
    return None if value is None else value.encode()


def told(call, *arguments):
    out = c.c_void_p()
    ok(call(*arguments, c.byref(out)))
    value = json.loads(c.string_at(out))
    lib.tg_string_free(out)
    return value


def number(value):
    return None if value < 0 else value


def raw_key(value):
    if isinstance(value, dict):
        [(form, text)] = value.items()
        return {"hex": bytes.fromhex, "whole": str.encode, "address": short_address}[form](text)
    return str(value).encode()


def short_address(text):
    return str(ipaddress.ip_address(text)).encode()


def key_of(step):
    key, value = Key(version=1), step.get("key", "")
    if isinstance(value, list):
        parts = [raw_key(part) for part in value]
        key.parts = (Bytes * max(len(parts), 1))(*[Bytes(part, len(part)) for part in parts])
        key.part_count = len(parts)
    else:
        raw = raw_key(value)
        key.bytes = Bytes(raw, len(raw))
    attributes = [(n.encode(), v.encode()) for n, v in step.get("attributes", {}).items()]
    if attributes:
        all_of = [Attribute(Bytes(n, len(n)), Bytes(v, len(v))) for n, v in attributes]
        key.attributes, key.attribute_count = (Attribute * len(all_of))(*all_of), len(all_of)
    if step.get("max") is not None:
        key.has_max, key.max = 1, step["max"]
    return key


def budget(b):
    return {"spent": b.spent, "remaining": b.remaining, "over": bool(b.over),
            "over_per_hit": bool(b.over_per_hit),
            "reset_after_ms": b.reset_after_ms}


class Run:
    def __init__(self, case):
        self.clock, self.limiter, self.held = c.c_void_p(), c.c_void_p(), {}
        ok(lib.tg_manual_clock_new(c.c_uint64(case.get("start_ms", 0)),
                                   c.c_uint64(case.get("wall_ms", 0)),
                                   c.byref(self.clock)))
        policy = json.dumps(case["policy"]).encode()
        options = Options(version=1, clock=self.clock)
        ok(lib.tg_limiter_from_policy(policy, c.c_size_t(len(policy)), c.byref(options),
                                      c.byref(self.limiter)))

    def free(self):
        for op, handle in self.held.values():
            (lib.tg_permit_free if op == "permit" else lib.tg_reservation_free)(handle)
        lib.tg_limiter_free(self.limiter)
        lib.tg_manual_clock_free(self.clock)

    def decision(self, rule, d, style):
        buffer, length = c.create_string_buffer(4096), c.c_size_t()
        ok(lib.tg_decision_headers(rule, c.byref(d), STYLES[style], buffer, c.c_size_t(4096),
                                   c.byref(length)))
        lines = buffer.value.decode().split("\r\n")[:-1]
        return {"allowed": bool(d.allowed), "reason": text(d.reason), "limit": number(d.limit),
                "remaining": number(d.remaining), "retry_after_ms": number(d.retry_after_ms),
                "reset_after_ms": d.reset_after_ms, "warning": bool(d.warning),
                "alert": bool(d.alert),
                "notify": bool(d.notify), "would_deny": text(d.would_deny),
                "attach": None if d.attach is None else json.loads(d.attach),
                "limits": [{"name": text(one.name), "max": one.max, "remaining": one.remaining,
                            "reset_after_ms": one.reset_after_ms,
                            "more_after_ms": number(one.more_after_ms)}
                           for one in d.limits[:d.limit_count]],
                "headers": dict(line.split(": ", 1) for line in lines)}

    def change(self, step, key):
        """The function that makes a change, and what it takes between the rule and the options."""
        names = ("match", "limits", "matches")
        match, limits, matches = (encoded(json.dumps(step.get(name))) for name in names)
        override, target = (("override_match_with", match) if "match" in step
                            else ("override_with", key))
        return {
            "set_override": ("set_" + override, target, limits),
            "clear_override": ("clear_" + override, target),
            "set_default": ("set_default_with", limits),
            "add_exempt": ("add_exempt_with", match),
            "remove_exempt": ("remove_exempt_with", match),
            "set_exempts": ("set_exempts_with", matches),
            "set_mode": ("set_mode", encoded(step.get("mode"))),
            "clear_mode": ("clear_mode",),
            "block": ("block", key),
        }.get(step["op"])

    def step(self, step):
        op, rule, key = step["op"], c.c_void_p(), key_of(step)
        if op == "changes":  # asked of the limiter, which may have no rule that is meant by itself
            return told(lib.tg_changes, self.limiter, c.c_uint64(step.get("since", 0)))
        ok(lib.tg_rule_get(self.limiter, step.get("rule", "default").encode(), c.byref(rule)))
        k, cost, style = c.byref(key), c.c_uint64(step.get("cost", 1)), step.get("style") or "both"
        d = Decision()
        if op in ("hit", "check", "peek"):
            ok(getattr(lib, "tg_" + op)(rule, k, cost, c.byref(d)))
            return self.decision(rule, d, style)
        if op == "allow":
            if key.part_count or key.parts or key.attribute_count or key.has_max:
                ok(lib.tg_hit(rule, k, c.c_uint64(1), c.byref(d)))
                return bool(d.allowed)
            return answered(lib.tg_allow(rule, key.bytes.data, c.c_size_t(key.bytes.len)))
        if op == "is_limited":
            return answered(lib.tg_is_limited(rule, k))
        if op == "record":
            r = Recorded()
            ok(lib.tg_record(rule, k, cost, c.byref(r)))
            return {field: getattr(r, field) for field, _ in Recorded._fields_}
        if op == "refund":
            return ok(lib.tg_refund(rule, k, cost))
        if op == "reset":
            return ok(lib.tg_reset(rule, k))
        if op == "reset_all":
            return ok(lib.tg_reset_all(rule))
        if op in ("reserve", "permit"):
            handle = c.c_void_p()
            if op == "reserve":
                ok(lib.tg_reserve(rule, k, cost, c.byref(d), c.byref(handle)))
            else:
                ok(lib.tg_permit(rule, k, c.byref(d), c.byref(handle)))
            assert bool(handle) == bool(d.allowed)
            self.held[step["id"]] = (op, handle)
            return self.decision(rule, d, style)
        if op in ("settle", "cancel", "release", "renew"):
            _, handle = self.held[step["id"]]
            if not handle:
                return {"released": False, "renewed": False}
            if op == "settle":
                return answered(lib.tg_settle(handle, c.c_uint64(step["actual"])))
            done = answered(getattr(lib, "tg_" + op)(handle))
            return {op + "d" if op == "release" else op + "ed": done}
        if op in ("spend", "budget"):
            b = Budget()
            if op == "spend":
                ok(lib.tg_spend(rule, k, c.c_uint64(step["amount"]), c.byref(b)))
            else:
                ok(lib.tg_budget(rule, k, c.byref(b)))
            return budget(b)
        if op == "stats":
            s = Stats()
            ok(lib.tg_stats(rule, k, c.byref(s)))
            if not s.known:
                return None
            fields = ("used", "max", "remaining", "reset_after_ms")
            used = {text(u.name): {f: getattr(u, f) for f in fields}
                    for u in s.limits[:s.limit_count]}
            parts = list(map(raw_key,
                             step["key"] if isinstance(step["key"], list) else [step["key"]]))
            blocks = [one for one in told(lib.tg_blocks, rule)
                      if list(map(raw_key, one["key"])) == parts]
            assert len(blocks) == s.blocked, f"tg_stats says {s.blocked}, tg_blocks says {blocks}"
            return {"limits": used, "cooldown_left_ms": s.cooldown_left_ms,
                    "violations": s.violations,
                    "budget": budget(s.budget) if s.has_budget else None,
                    "blocked": blocks[0] if blocks else None}
        if op == "why":
            return told(lib.tg_why, rule, k, cost)
        if op == "blocks":
            return told(lib.tg_blocks, rule)
        options = ChangeOptions(version=1, for_ms=step.get("for_ms") or 0,
                                by=encoded(step.get("by")),
                                reason=encoded(step.get("reason")))
        if op == "unblock":
            return {"unblocked": answered(lib.tg_unblock_with(rule, k, c.byref(options)))}
        change = self.change(step, k)
        if change:
            function, *given = change
            changed = c.c_uint64()
            ok(getattr(lib, "tg_" + function)(rule, *given, c.byref(options), c.byref(changed)))
            return {"number": changed.value}
        if op == "set_wall":
            return ok(lib.tg_manual_clock_set_wall(self.clock, c.c_uint64(step["wall_ms"])))
        raise AssertionError(f"unknown operation {op}")


def holds(expected, got, whole=False):
    if isinstance(expected, dict) and isinstance(got, dict) and not whole:
        return all(holds(v, got.get(f), f in ("headers", "attach")) for f, v in expected.items())
    return expected == got


def replay(case):
    try:
        run = Run(case)
    except Failed as error:
        assert "policy_error" in case, f"the policy is refused: {error}"
        lines = [line.strip() for line in str(error).removeprefix("policy ").split("\n")]
        for path in case["policy_error"]:
            assert any(line.startswith(path) for line in lines), f"no problem at {path}: {error}"
        return 0
    assert "policy_error" not in case, "the policy should be refused"
    steps = 0
    for index, step in enumerate(case["steps"]):
        for _ in range(step.get("repeat", 1)):
            steps += 1
            if "at_ms" in step:
                ok(lib.tg_manual_clock_set(run.clock, c.c_uint64(step["at_ms"])))
            try:
                got = run.step(step)
            except Failed as error:
                assert ("error" in step
                        and step["error"] in str(error)), f"step {index} {step}: {error}"
                continue
            assert "error" not in step, f"step {index} {step}: should be an error, got {got}"
            assert ("expect" not in step
                    or holds(step["expect"], got)), f"step {index} {step}: got {got}"
    run.free()
    return steps


def main():
    cases, steps, failures = 0, 0, []
    for path in sys.argv[2:] or sorted(glob.glob(os.path.join(HERE, "../../tests/vectors/*.json"))):
        with open(path, encoding="utf-8") as file:
            vectors = json.load(file)
        for case in vectors["cases"]:
            cases += 1
            try:
                steps += replay(case)
            except AssertionError as error:
                failures.append(f"{os.path.basename(path)}: {case['name']}\n  {error}")
    print("\n".join(failures) or f"vectors from C: {cases} cases, {steps} calls, all as due")
    sys.exit(bool(failures) or (cases < 300 and not sys.argv[2:]))


main()
