#!/usr/bin/env python3
"""Writes docs/policy-reference.md from policy/policy.schema.json; `--check`
compares in place of that.

The schema says which options there are and what each means. EXAMPLES says how each is used; an
option without an example, or an example without an option, is an error. docs/check.py loads
every example as a policy.
"""

from __future__ import annotations

import json
import pathlib
import sys
import textwrap

ROOT = pathlib.Path(__file__).resolve().parents[1]
SCHEMA = json.loads((ROOT / "policy/policy.schema.json").read_text(encoding="utf-8"))
PAGE = ROOT / "docs/policy-reference.md"

# (definition, heading, what stands below it)
PARTS = [
    ("Policy", "Policy", "The top level of a policy file."),
    ("Headers", "Names of legacy headers", "Fields of `headers`."),
    ("Rule", "Rule", "Fields of an entry of `rules`. Everything but `limits` is off unless set."),
    ("Limit", "Limit", "Fields of a limit in its map form. The text form is `MAX/PERIOD [burst N] "
                       "[ALGORITHM]`\nor `N concurrent [lease PERIOD]`."),
    ("Backoff", "Backoff", "Fields of `backoff`."),
    ("Alert", "Alert", "Fields of `alert`."),
    ("Budget", "Budget", "Fields of `budget`."),
    ("Classify", "Classify", "Fields of `classify`."),
    ("When", "When", "Fields of an entry of `when`. Exactly one entry applies to a call: the one "
                     "with most\nfields, then the longest address prefix, then the later one."),
    ("Patch", "Changes of a limit",
     "Fields of a limit in `when`. Fields that are not written keep their value."),
]


def rule(options: str, limits: str = "20/min") -> str:
    """A policy with one rule that has these options."""
    return (
        f"version: 1\nrules:\n  messages:\n    limits: {limits}\n"
        f"{textwrap.indent(options.strip(), '    ')}\n"
    )


def limit(fields: str, options: str = "") -> str:
    """A policy with one limit that has these fields."""
    more = f"\n{textwrap.indent(options.strip(), '    ')}" if options else ""
    return f"version: 1\nrules:\n  messages:{more}\n    limits:\n      main: {{ {fields} }}\n"


def patch(fields: str, stated: str = "max: 20, per: 1m") -> str:
    """A policy with one limit and an entry of `when` that changes these fields."""
    return limit(stated, f"key: [channel, sender]\nwhen:\n  - match: {{ channel: discord }}\n"
                         f"    limits: {{ main: {{ {fields} }} }}")


def when(fields: str) -> str:
    """A policy with one entry of `when` that sets these fields."""
    return rule(f"key: [channel, sender]\nwhen:\n  - match: {{ channel: discord }}\n    {fields}")


MESSAGES = "rules:\n  messages: { limits: 20/min }\n"
BACKOFF = "backoff: { steps: [1s, 2s, 5s, 30s], quiet: 60s%s }"
CLASSIFY = (
    "key: [agent, tier]\nclassify: { from: action, to: tier, map: { ping: light, search: heavy }, "
    "default: normal }"
)

EXAMPLES = {
    "Policy": {
        "version": f"version: 1\n{MESSAGES}",
        "store": f"version: 1\nstore: file:limits\n{MESSAGES}",
        "capacity": f"version: 1\ncapacity: 10000\n{MESSAGES}",
        "on_full": f"version: 1\non_full: deny\n{MESSAGES}",
        "memory": f"version: 1\nmemory: 64MB\n{MESSAGES}",
        "group": f"version: 1\nstore: file:limits\ngroup: true\n{MESSAGES}",
        "fallback": f"version: 1\nfallback: messages\n{MESSAGES}",
        "headers": f"version: 1\nheaders: {{ limit: X-Quota-Limit }}\n{MESSAGES}",
        "rules": "version: 1\nrules:\n  messages: { limits: 20/min }\n"
                 "  searches: { limits: \"5/10s window, 100/h\" }\n",
    },
    "Headers": {
        "limit": f"version: 1\nheaders: {{ limit: X-Quota-Limit }}\n{MESSAGES}",
        "remaining": f"version: 1\nheaders: {{ remaining: X-Quota-Remaining }}\n{MESSAGES}",
        "reset": f"version: 1\nheaders: {{ reset: X-Quota-Reset }}\n{MESSAGES}",
    },
    "Rule": {
        "key": rule("key: [channel, account, sender]"),
        "limits": "version: 1\nrules:\n  messages:\n    limits:\n"
                  "      burst: { max: 5, per: 10s, algorithm: window }\n"
                  "      per-hour: 200/h window\n",
        "warn_at": rule("warn_at: 0.8"),
        "cooldown": rule("cooldown: 60s"),
        "backoff": rule(BACKOFF % ", round: 1s"),
        "alert": rule("alert: { violations: 10, within: 5m }"),
        "notify": rule("notify: once"),
        "penalty_scope": rule("key: [agent, tier]\npenalty_scope: [agent]\ncooldown: 30s"),
        "budget": rule("budget: { daily: 500, per_hit: 50, reset_hour_utc: 6, unit: cents }"),
        "classify": rule(CLASSIFY),
        "when": rule("when:\n  - match: { role: premium }\n    limits: 100/min"),
        "exempt": rule("exempt:\n  - { role: [admin, system] }\n  - { ip: 10.0.0.0/8 }"),
        "mode": rule("mode: shadow"),
        "attach": rule("attach: { upgrade: https://example.com/plans }"),
        "ceiling": rule("ceiling: 200", "20/min window"),
        "capacity": rule("capacity: 10000"),
        "on_full": rule("on_full: deny"),
    },
    "Limit": {
        "name": "version: 1\nrules:\n  messages:\n    limits:\n"
                "      - { name: per-minute, max: 20, per: 1m }\n",
        "max": limit("max: 20, per: 1m"),
        "per": limit("max: 20, per: 90s"),
        "burst": limit("max: 100, per: 1s, burst: 20"),
        "algorithm": limit("max: 200, per: 1h, algorithm: window"),
        "lease": limit("max: 5, algorithm: concurrent, lease: 30s"),
        "cooldown": limit("max: 5, per: 10s, algorithm: window, cooldown: 60s"),
        "scope": "version: 1\nrules:\n  templates:\n    key: [phone]\n    limits:\n"
                 "      per-phone: { max: 250, per: 1d, algorithm: window }\n"
                 "      overall: { max: 80, per: 1s, algorithm: window, scope: [] }\n",
        "counts": "version: 1\nrules:\n  model:\n    limits:\n"
                  "      requests: { max: 60, per: 1m, counts: hits }\n"
                  "      tokens: { max: 100000, per: 1m }\n",
    },
    "Backoff": {
        "steps": rule(BACKOFF % ""),
        "quiet": rule(BACKOFF % ""),
        "round": rule(BACKOFF % ", round: 1s"),
        "enforce": rule(BACKOFF % ", enforce: true"),
    },
    "Alert": {
        "violations": rule("alert: { violations: 10, within: 5m }"),
        "within": rule("alert: { violations: 3, within: 1h }"),
    },
    "Budget": {
        "daily": rule("budget: { daily: 500 }"),
        "per_hit": rule("budget: { daily: 500, per_hit: 50 }"),
        "reset_hour_utc": rule("budget: { daily: 500, reset_hour_utc: 6 }"),
        "unit": rule("budget: { daily: 2000000, unit: model tokens }"),
    },
    "Classify": {
        "from": rule(CLASSIFY),
        "to": rule("classify: { from: path, to: kind, map: { /search: slow }, default: fast }\n"
                   "when:\n  - match: { kind: slow }\n    limits: 5/min"),
        "map": rule("classify: { from: plan, to: tier, map: { gold: paid, silver: paid }, default: "
                    "free }\nwhen:\n  - match: { tier: paid }\n    limits: 100/min"),
        "default": rule(CLASSIFY),
    },
    "When": {
        "match": rule(
            "when:\n  - match: { ip: [157.240.0.0/16, \"2a03:2880::/32\"] }\n    limits: 1000/min"),
        "limits": when("limits: 60/min"),
        "warn_at": when("warn_at: 0.5"),
        "cooldown": when("cooldown: 10s"),
        "backoff": when("backoff: { steps: [5s, 60s], quiet: 10m }"),
        "alert": when("alert: { violations: 3, within: 1m }"),
        "notify": when("notify: silent"),
        "mode": when("mode: shadow"),
        "attach": when("attach: { help: https://example.com/discord }"),
    },
    "Patch": {
        "max": patch("max: 60"),
        "per": patch("per: 30s"),
        "burst": patch("burst: 5"),
        "lease": patch("lease: 10s", "max: 5, algorithm: concurrent"),
        "cooldown": patch("cooldown: 30s"),
        "algorithm": patch("max: 60, algorithm: window", "max: 20, per: 1m, algorithm: window"),
        "scope": patch("max: 60, scope: [sender]", "max: 20, per: 1m, scope: [sender]"),
        "counts": patch("max: 60, counts: hits", "max: 20, per: 1m, counts: hits"),
    },
}


def definition(name: str) -> dict:
    return SCHEMA if name == "Policy" else SCHEMA["definitions"][name]


def alternatives(field: dict) -> list[dict]:
    """What a field may be, with references followed and null left out."""
    if "$ref" in field:
        return alternatives(definition(field["$ref"].rsplit("/", 1)[1]))
    for word in ("anyOf", "allOf"):
        if word in field:
            return [one for inner in field[word] for one in alternatives(inner)]
    return [field] if field.get("type") != "null" else []


def values(field: dict) -> str:
    """What may be written, as a reader sees it."""
    found = []
    for one in alternatives(field):
        kinds = one.get("type", [])
        kinds = [kinds] if isinstance(kinds, str) else kinds
        if "enum" in one:
            found += [f"`{value}`" for value in one["enum"]]
        elif "const" in one:
            found.append(f"`{json.dumps(one['const'])}`")
        elif one.get("pattern") != "\\$\\{":
            found += [WORDS.get(kind, kind) for kind in kinds if kind != "null"]
    return ", ".join(dict.fromkeys(found)) or "anything"


WORDS = {"object": "map", "array": "list", "string": "text", "integer": "whole number",
         "boolean": "`true`, `false`"}


def section(name: str, title: str, below: str) -> str:
    part, examples = definition(name), EXAMPLES[name]
    fields = part["properties"]
    if set(fields) != set(examples):
        differ = set(fields) ^ set(examples)
        sys.exit(f"docs/reference.py: {name} has other options than examples: {differ}")
    required = part.get("required", [])
    lines = [f"## {title}", "", below, "", "| option | values | needed |", "|---|---|---|"]
    anchor = lambda field: f"{name.lower()}-{field}"
    lines += [f"| [`{f}`](#{anchor(f)}) | {values(s)} | {'yes' if f in required else ''} |"
              for f, s in fields.items()]
    for field, stated in fields.items():
        meaning = " ".join(stated["description"].split())
        lines += ["", f'<a id="{anchor(field)}"></a>', "", f"### {title}: `{field}`", ""]
        lines += textwrap.wrap(meaning, 98, break_long_words=False, break_on_hyphens=False)
        lines += ["", "```yaml", examples[field].rstrip(), "```"]
    return "\n".join(lines)


def page() -> str:
    head = """# Policy reference

<!-- Made by docs/reference.py from policy/policy.schema.json; change it there. -->

A policy file is YAML or JSON. An unknown option is an error that names its path and the nearest
known option. All errors are reported together. `${NAME}` and `${NAME:-default}` take variables of
the environment, in any text.
[`policy.schema.json`](../policy/policy.schema.json) checks policy files in an editor.

| form | meaning |
|---|---|
| period | an optional whole number and a unit: `250ms`, `10s`, `min`, `2h`, `1d` |
| bytes | a whole number, or one with `KB`, `MB` or `GB` |
| match | a map from key parts or attributes to one value or a list; `ip` takes address ranges |
"""
    return "\n\n".join([head.rstrip(), *(section(*part) for part in PARTS)]) + "\n"


if __name__ == "__main__":
    text = page()
    if sys.argv[1:] == ["--check"]:
        if not PAGE.exists() or PAGE.read_text(encoding="utf-8") != text:
            sys.exit("docs/policy-reference.md is not that of the schema: run docs/reference.py")
        print("docs: the policy reference is that of the schema")
    else:
        PAGE.write_text(text, encoding="utf-8")
