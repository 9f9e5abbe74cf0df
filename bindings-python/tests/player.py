"""Plays steps of the shared vectors (tests/vectors/README.md) on the Python surface."""

import ipaddress
import json
import pathlib
import sys

import tidegate

VECTORS = pathlib.Path(__file__).resolve().parents[2] / "tests" / "vectors"
sys.path.insert(0, str(VECTORS))


def ms(seconds):
    return None if seconds is None else round(seconds * 1000)


FORMS = {"hex": bytes.fromhex, "whole": int, "address": ipaddress.ip_address}


def key_as(key):
    if isinstance(key, list):
        return [key_as(part) for part in key]
    if isinstance(key, dict):
        [(form, text)] = key.items()
        return FORMS[form](text)
    return key


def key_of(step):
    return key_as(step.get("key", ""))


def decided(decision, style):
    fields = ("allowed", "reason", "limit", "remaining", "warning", "alert", "notify", "would_deny",
              "attach")
    return {name: getattr(decision, name) for name in fields} | {
        "retry_after_ms": ms(decision.retry_after),
        "reset_after_ms": ms(decision.reset_after),
        "headers": decision.headers(style),
        "limits": [limit_left(one) for one in decision.limits],
    }


def limit_left(one):
    fields = one._asdict()
    fields["reset_after_ms"], fields["more_after_ms"] = (ms(fields.pop("reset_after")),
                                                         ms(fields.pop("more_after")))
    return fields


def in_ms(record):
    """A named tuple as the vectors have it."""
    if record is None:
        return None
    fields = record._asdict()
    for name in ("reset_after", "cooldown_left", "last_allowed"):
        if name in fields:
            fields[name + "_ms"] = ms(fields.pop(name))
    if "limits" in fields:
        fields["limits"] = {name: in_ms(use) for name, use in fields["limits"].items()}
        fields["budget"] = in_ms(fields["budget"])
        fields["blocked"] = blocked(fields["blocked"])
    return fields


def parts_of(key):
    return [{"hex": part.hex()} if isinstance(part, bytes) else part for part in key]


def blocked(block):
    if block is None:
        return None
    fields = block._asdict()
    fields["until_ms"] = ms(fields.pop("until"))
    return fields | {"key": parts_of(block.key)}


def change_of(change):
    fields = change._asdict()
    fields["at_ms"], fields["until_ms"] = ms(fields.pop("at")), ms(fields.pop("until"))
    if isinstance(change.target, tuple):
        fields["target"] = {"key": parts_of(change.target)}
    elif change.target is not None:
        fields["target"] = {"match": change.target}
    return fields


def options_of(step):
    options = {name: step[name] for name in ("by", "reason") if name in step}
    return options | ({"for_": step["for_ms"] / 1000} if "for_ms" in step else {})


def step_of(one):
    fields = one._asdict()
    fields["until_ms"] = ms(fields.pop("until"))
    return fields | ({"value": ms(one.value)} if isinstance(one.value, float) else {})


class Player:
    def __init__(self, policy, start_ms=0, wall_ms=0):
        self.clock = tidegate.ManualClock(start_ms / 1000, wall=wall_ms / 1000)
        self.limiter = tidegate.Limiter.from_policy(policy, clock=self.clock)
        self.held = {}

    def play(self, step):
        if "at_ms" in step:
            self.clock.set(step["at_ms"] / 1000)
        return getattr(self, "do_" + step["op"], self.keyed)(step)

    def keyed(self, step):
        """Operations that take a key, and perhaps a cost."""
        op, options = step["op"], dict(step.get("attributes", {}))
        rule = self.limiter.rule(step.get("rule", "default"))
        costs = ([step.get("cost", 1)]
                 if op not in ("allow", "is_limited", "stats", "reset", "permit", "budget") else [])
        if op == "allow" and "max" in step:
            op, costs = "hit", [1]
        if "max" in step:
            options["max"] = step["max"]
        answer = getattr(rule, op)(key_of(step), *costs, **options)
        if "id" in step:
            self.held[step["id"]] = answer
            assert bool(answer) is answer.decision.allowed
            answer = answer.decision
        if step["op"] in ("allow", "is_limited"):
            return bool(answer)
        if isinstance(answer, tidegate.Decision):
            return decided(answer, step.get("style") or "both")
        return in_ms(answer)

    def do_why(self, step):
        rule = self.limiter.rule(step.get("rule", "default"))
        options = step.get("attributes", {}) | ({"max": step["max"]} if "max" in step else {})
        decision, steps = rule.why(key_of(step), step.get("cost", 1), **options)
        return {"decision": decided(decision, "both"), "steps": [step_of(one) for one in steps]}

    def do_spend(self, step):
        rule = self.limiter.rule(step.get("rule", "default"))
        return in_ms(rule.spend(key_of(step), step["amount"], **step.get("attributes", {})))

    def do_reset_all(self, step):
        self.limiter.rule(step.get("rule", "default")).reset_all()

    def do_settle(self, step):
        self.held[step["id"]].settle(step["actual"])

    def do_cancel(self, step):
        self.held[step["id"]].cancel()

    def do_release(self, step):
        return {"released": self.held[step["id"]].release()}

    def do_renew(self, step):
        return {"renewed": self.held[step["id"]].renew()}

    def changed(self, step):
        """Run-time changes: what they take comes before the options."""
        rule = self.limiter.rule(step.get("rule", "default"))
        taken = [step[name] for name in ("match", "matches", "mode") if name in step]
        if "key" in step:
            taken.append(key_of(step))
        if "limits" in step:
            taken.append(step["limits"])
        number = getattr(rule, step["op"])(*taken, **options_of(step), **step.get("attributes", {}))
        return {"unblocked" if step["op"] == "unblock" else "number": number}

    do_set_override = do_clear_override = do_set_default = changed
    do_add_exempt = do_remove_exempt = do_set_exempts = changed
    do_set_mode = do_clear_mode = do_block = do_unblock = changed

    def do_blocks(self, step):
        return [blocked(block) for block in self.limiter.rule(step.get("rule", "default")).blocks()]

    def do_changes(self, step):
        changes, following, missed = self.limiter.changes(step.get("since", 0))
        return {"changes": [change_of(change) for change in changes], "next": following,
                "missed": missed}

    def do_set_wall(self, step):
        self.clock.set_wall(step["wall_ms"] / 1000)


def holds(expected, got, whole=False):
    """Whether all that is expected is there; `...` is left open."""
    if expected is ...:
        return True
    if isinstance(expected, dict) and isinstance(got, dict) and not whole:
        return all(holds(value, got.get(name), name in ("headers", "attach"))
                   for name, value in expected.items())
    return expected == got


def cases():
    for path in sorted(VECTORS.glob("*.json")):
        for case in json.loads(path.read_text(encoding="utf-8"))["cases"]:
            yield path.stem, case
