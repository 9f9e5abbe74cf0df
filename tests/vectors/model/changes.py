"""Run-time changes of a rule: what stands, until when, who made it and why; and
the trail of all changes.

Everything that can be changed has a place: `("mode",)`, `("override", target)`, `("block", parts)`.
A change replaces the earlier one at its place, and at its end the place is empty.
"""

from dataclasses import dataclass

from .limits import PERIODS, period_ms


@dataclass
class Change:
    what: object
    since: int  # by the manual clock
    length: int | None  # None: until it is taken back
    by: str | None
    reason: str | None

    def left(self, now):
        return None if self.length is None else max(0, self.since + self.length - now)


class Standing:
    """The changes of one rule that stand. A reader brings it up to date with `at` first."""

    def __init__(self):
        self.places = {}  # in the order in which the changes were made

    def at(self, now):
        """A start ahead of the clock, which went back, is now; what has lasted
        its length is gone."""
        for change in self.places.values():
            change.since = min(change.since, now)
        self.places = {place: change for place, change in self.places.items()
                       if change.left(now) != 0}
        return self

    def get(self, *place):
        return self.places.get(place)

    def what(self, *place):
        found = self.places.get(place)
        return None if found is None else found.what

    def all(self, kind):
        """The rest of the place and the change, of one kind, the later made last."""
        return [(place[1], change) for place, change in self.places.items() if place[0] == kind]

    def set(self, place, change):
        self.places.pop(place, None)
        self.places[place] = change

    def clear(self, *place):
        return self.places.pop(place, None)

    def clear_all(self, kind):
        for rest, _ in self.all(kind):
            self.clear(kind, rest)

    def exempts(self, own):
        """The exemptions in force as (match, change or None), given the policy's own."""
        whole, single = self.get("exempts"), dict(self.all("exempt"))
        base = own if whole is None else whole.what
        found = {match: whole for match in base if match not in single or single[match].what}
        added = {match: change for match, change in single.items() if change.what}
        return list((found | added).items())


class Trail:
    """All changes of a limiter, each in the form that users get."""

    def __init__(self, clock):
        self.clock, self.told = clock, []

    def add(self, rule, step, target, before, after):
        number, lasts = len(self.told) + 1, step.get("for_ms")
        self.told.append({
            "number": number, "at_ms": self.clock.wall, "rule": rule, "op": step["op"],
            "target": target,
            "before": before, "after": after,
            "until_ms": None if lasts is None else self.clock.wall + lasts,
            "by": step.get("by"), "reason": step.get("reason"),
        })
        return number

    def since(self, number):
        later = [one for one in self.told if one["number"] > number]
        return {"changes": later, "next": max(number, len(self.told)), "missed": 0}


def made(step, what, now):
    """The change that a step asks for."""
    return Change(what, now, step.get("for_ms"), step.get("by"), step.get("reason"))


def frozen(match):
    """A match as a value: one text and a list with it are the same."""
    several = {name: values if isinstance(values, list) else [values]
               for name, values in match.items()}
    return tuple((name, tuple(str(one) for one in values)) for name, values in several.items())


def thawed(match):
    return {name: list(values) for name, values in match}


def shown_key(parts):
    """Parts as an answer has them: text, or the hex digits of bytes that are none."""
    return [_shown(part) for part in parts]


def _shown(part):
    given = part.encode("utf-8", "surrogateescape")
    try:
        return given.decode("utf-8")
    except UnicodeDecodeError:
        return {"hex": given.hex()}


def shown_limits(layer):
    """Limits as a policy has them, with each period in milliseconds. What
    cannot change is not told."""
    if layer is None:
        return None
    return {name: {field: f"{period_ms(value)}ms" if field in PERIODS else value
                   for field, value in fields.items()
                   if field not in ("algorithm", "scope", "counts")}
            for name, fields in layer.items()}
