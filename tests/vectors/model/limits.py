"""Limits as users write them: text or map."""

import re
from dataclasses import dataclass, replace

UNIT_MS = {
    "ms": 1,
    "s": 1000, "sec": 1000, "second": 1000,
    "m": 60_000, "min": 60_000, "minute": 60_000,
    "h": 3_600_000, "hr": 3_600_000, "hour": 3_600_000,
    "d": 86_400_000, "day": 86_400_000,
}
LEASE_MS = 60_000
PERIODS = ("per", "lease", "cooldown")
ALGORITHMS = ("bucket", "window", "counter", "fixed", "concurrent")


@dataclass(frozen=True)
class Limit:
    """One limit's numbers; times in milliseconds. An unwritten burst follows `max`."""

    name: str
    max: int
    per: int | None = None
    burst: int | None = None
    algorithm: str = "bucket"
    lease: int = LEASE_MS
    cooldown: int | None = None
    scope: tuple | None = None
    counts: str = "cost"

    @property
    def size(self):
        if self.max == 0 or self.algorithm != "bucket":
            return self.max
        return self.max if self.burst is None else self.burst

    def of(self, cost):
        """What a hit of this cost takes."""
        return min(cost, 1) if self.counts == "hits" else cost

    @property
    def span(self):
        """What a window's or a lease's length is."""
        return self.lease if self.algorithm == "concurrent" else self.per

    def merged(self, fields):
        """The same limit with some fields written anew, as `when` and overrides do."""
        return replace(self, **{name: _field(name, value) for name, value in fields.items()})


def period_ms(text):
    number, unit = re.fullmatch(r"(\d*)([a-z]+)", text).groups()
    singular = unit if unit in UNIT_MS else unit.removesuffix("s")
    return int(number or 1) * UNIT_MS[singular]


def parse_limits(limits):
    """All forms of `limits`, as a list of Limit in declared order."""
    if isinstance(limits, str):
        return [_from_text(text.strip()) for text in limits.split(",")]
    if isinstance(limits, list):
        return [one for text in limits for one in parse_limits(text)]
    return [_named(name, limit) for name, limit in limits.items()]


def patch_fields(change):
    """What a change states of a limit: its fields, or those that a text writes out."""
    if not isinstance(change, str):
        return change
    words = change.split(" ")
    if "concurrent" in words:
        return {"max": int(words[0]), "lease": words[3] if "lease" in words else "1m",
                "algorithm": "concurrent"}
    most, per = words[0].split("/")
    fields = {"max": int(most), "per": per}
    if "burst" in words:
        fields["burst"] = int(words[words.index("burst") + 1])
    return fields | {"algorithm": word for word in words if word in ALGORITHMS}


def _named(name, limit):
    if isinstance(limit, str):
        return replace(_from_text(limit), name=name)
    return Limit(name, **{field: _field(field, value) for field, value in limit.items()})


def _field(name, value):
    if name in PERIODS:
        return period_ms(value)
    return tuple(value) if name == "scope" else value


def _from_text(text):
    words = text.split(" ")
    if "concurrent" in words:
        lease = period_ms(words[3]) if "lease" in words else LEASE_MS
        return Limit(words[0], int(words[0]), algorithm="concurrent", lease=lease)
    most, per = words[0].split("/")
    burst = int(words[words.index("burst") + 1]) if "burst" in words else None
    algorithm = next((word for word in words if word in ALGORITHMS), "bucket")
    return Limit(words[0], int(most), period_ms(per), burst, algorithm)
