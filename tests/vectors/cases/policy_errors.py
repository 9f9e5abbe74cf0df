"""Policies that are refused, each with the path of what is wrong. No steps: nothing is built."""

from .dsl import *

ABOUT = (
    "policies that are refused: each path of policy_error begins the path of some error reported"
)

RULE = "rules.default"


def limit(**fields):
    return policy({"l": {"max": 5, "per": "1m"} | fields})


def cases():
    yield from of_policies()
    yield from of_limits()
    yield from of_texts()
    yield from of_rules()
    yield from of_when()


def of_policies():
    yield refused("an unknown version", policy("5/min") | {"version": 2}, "version")
    yield refused("an unknown field of the policy", policy("5/min") | {"colour": "blue"}, "colour")
    yield refused("a fallback that is no rule", policy("5/min") | {"fallback": "nowhere"},
                  "fallback")
    yield refused("a group that shares memory", policy("5/min") | {"group": True}, "group")
    yield refused("an unknown field of a rule", policy("5/min", limts="5/min"), f"{RULE}.limts")
    yield refused("a rule without limits", rules(default={"key": ["a"]}), RULE)
    yield refused("an empty list of limits", policy([]), f"{RULE}.limits")
    yield refused(
        "all errors are reported together",
        {
            "version": 1,
            "rules": {
                "a": {"limits": "5/min", "mode": "loud"},
                "b": {"limits": {"l": {"max": 5, "per": "1m", "brust": 2}}},
            },
        },
        "rules.a.mode", "rules.b.limits.l.brust",
    )
    yield refused(
        "more memory than the policy may have",
        policy({"l": {"max": 4096, "per": "1d", "algorithm": "window"}}, capacity=1_000_000), "",
    )


def of_limits():
    path = f"{RULE}.limits.l"
    yield refused("an unknown field of a limit", limit(pre="1m"), f"{path}.pre")
    yield refused("a max above a thousand million", limit(max=1_000_000_001), f"{path}.max")
    yield refused("a max below 0", limit(max=-1), f"{path}.max")
    yield refused("a max that is no whole number", limit(max=1.5), f"{path}.max")
    yield refused("a max that is text", limit(max="many"), f"{path}.max")
    yield refused("a period of 0", limit(per="0s"), f"{path}.per")
    yield refused("a period above 366 days", limit(per="367d"), f"{path}.per")
    yield refused("a period of an unknown unit", limit(per="1fortnight"), f"{path}.per")
    yield refused("a limit without a period", policy({"l": {"max": 5}}), path)
    yield refused("a limit without a max", policy({"l": {"per": "1m"}}), path)
    yield refused("an unknown algorithm", limit(algorithm="leaky"), f"{path}.algorithm")
    yield refused("a window too large to log", limit(max=4097, algorithm="window"), f"{path}.max")
    yield refused(
        "more permits than can be kept", policy({"l": {"max": 4097, "algorithm": "concurrent"}}),
        f"{path}.max",
    )
    yield refused("a burst of a window", limit(algorithm="window", burst=9), f"{path}.burst")
    yield refused("a burst of 0", limit(burst=0), f"{path}.burst")
    yield refused(
        "a bucket that takes centuries to fill", limit(max=1, per="366d", burst=1_000_000_000),
        f"{path}.burst",
    )
    yield refused("a scope of an unknown part", limit(scope=["nobody"]), f"{path}.scope")
    yield refused("a cooldown that is no period", limit(cooldown="soon"), f"{path}.cooldown")
    for name in ("cooldown", "backoff", "budget", "exempt", "off", "cost", "full", "outage"):
        yield refused(
            f"a limit called {name}, which is a reason", policy({name: {"max": 5, "per": "1m"}}),
            f"{RULE}.limits.{name}",
        )
    yield refused("a name that is not ASCII", policy({"pro-\u00e9t\u00e9": "5/min"}),
                  f"{RULE}.limits")
    yield refused("an empty name", policy({"": "5/min"}), f"{RULE}.limits")
    yield refused("two limits of one name", policy("5/min, 5/min window"), f"{RULE}.limits")


TEXTS = [
    "", "5", "5/", "/min", "five/min", "-5/min", "1.5/min", "5/fortnight", "5/0s", "5/min sideways",
    "5/min burst", "5/min burst x", "5 concurrent lease", "5/min,", "1000000001/min",
    "4097/min window",
    "5 per min",
]
OPTIONS = [
    ("warn_at", 1.5), ("warn_at", -0.1), ("mode", "sometimes"), ("notify", "twice"),
    ("cooldown", "soon"),
    ("penalty_scope", ["nobody"]), ("on_full", "explode"), ("capacity", 0), ("key", ["a", "a"]),
    ("alert", {"violations": 0, "within": "5m"}), ("alert", {"violations": 5}),
    ("backoff", {"steps": [], "quiet": "1m"}),
    ("backoff", {"steps": ["1s"], "quiet": "1m", "rond": "1s"}),
    ("budget", {"daily": 5, "reset_hour_utc": 24}), ("budget", {"dayly": 5}),
    ("classify", {"from": "action", "to": "tier"}),
]
ENTRIES = [
    ("an unknown limit", {"limits": {"other": {"max": 1}}}),
    ("another algorithm", {"limits": {"l": {"algorithm": "bucket"}}}),
    ("another scope", {"limits": {"l": {"scope": []}}}),
    ("an unknown field", {"limit": {}}),
    ("a bad mode", {"mode": "loud"}),
    ("a budget, which no entry may set", {"budget": {"daily": 1}}),
]


def of_texts():
    for text in TEXTS:
        yield refused(f"the text {text!r} is no limit", policy(text), f"{RULE}.limits")


def of_rules():
    for name in ("cost", "max", "timeout", "estimate", "amount", "for_", "by", "reason"):
        yield refused(
            f"an exemption by {name}, which is never an attribute",
            policy("5/min", exempt=[{name: "x"}]),
            f"{RULE}.exempt[0].{name}",
        )
    for name, value in (("on_outage", "local"), ("deadline", "25ms"), ("share", 0.5),
                        ("lease", "10s")):
        yield refused(f"{name} without a Redis store", policy("5/min") | {name: value}, name)
    yield refused("on_outage of a rule without a Redis store", policy("5/min", on_outage="deny"),
                  f"{RULE}.on_outage")
    for name, value in OPTIONS:
        yield refused(f"{name} can't be {value!r}", policy("5/min", **{name: value}),
                      f"{RULE}.{name}")
    yield refused("a ceiling below the window's max", policy("5/min window", ceiling=4),
                  f"{RULE}.ceiling")
    yield refused(
        "a ceiling above what can be logged", policy("5/min window", ceiling=4097),
        f"{RULE}.ceiling",
    )


def of_when():
    def when(**fields):
        return policy({"l": "5/min window"}, ceiling=50, when=[{"match": {"t": "x"}} | fields])

    for what, fields in ENTRIES:
        yield refused(f"a when entry with {what}", when(**fields), f"{RULE}.when")
    yield refused("a when entry without a match", policy("5/min", when=[{"warn_at": 0.5}]),
                  f"{RULE}.when")
