"""The operations that change a rule at run time. Each answers with its number in
the trail, 0 for none."""

from .changes import frozen, made, shown_key, shown_limits, thawed
from .limits import patch_fields
from .refused import Refused


class Changing:
    """One change of a rule, as a step asks for it."""

    def __init__(self, rule, step):
        self.rule, self.step, self.standing = rule, step, rule.changes()

    def set(self, place, what):
        self.standing.set(place, made(self.step, what, self.rule.clock.now))

    def tell(self, target, before, after):
        return self.rule.trail.add(self.rule.name, self.step, target, before, after)

    def set_override(self, target, limits):
        limits = _checked_layer(self.rule, limits)
        target, shown = self.aim(target)
        before = self.standing.what("override", target)
        self.set(("override", target), limits)
        return self.tell(shown, shown_limits(before), shown_limits(limits))

    def clear_override(self, target):
        target, shown = self.aim(target)
        old = self.standing.clear("override", target)
        return self.tell(shown, shown_limits(old.what), None) if old else 0

    def aim(self, target):
        """Whom an override is for, as a value, and as the trail tells it."""
        if "match" in target:
            match = frozen(target["match"])
            return ("match", match), {"match": thawed(match)}
        parts, _ = self.rule.identify(target["key"], {})
        return ("key", parts), {"key": shown_key(parts)}

    def set_default(self, limits):
        limits = _checked_layer(self.rule, limits)
        before = self.standing.what("default")
        self.standing.clear("default")
        if limits:
            self.set(("default",), limits)
        return self.tell(None, shown_limits(before), shown_limits(limits))

    def add_exempt(self, match):
        match = frozen(match)
        before = match in dict(self.rule.exempts())
        self.set(("exempt", match), True)
        return self.tell({"match": thawed(match)}, before, True)

    def remove_exempt(self, match):
        match = frozen(match)
        if match not in dict(self.rule.exempts()):
            return 0
        self.set(("exempt", match), False)
        return self.tell({"match": thawed(match)}, True, False)

    def set_exempts(self, matches):
        before = [thawed(match) for match, _ in self.rule.exempts()]
        self.standing.clear_all("exempt")
        self.set(("exempts",), [frozen(match) for match in matches])
        return self.tell(None, before, [thawed(frozen(match)) for match in matches])

    def set_mode(self, mode):
        before = self.standing.what("mode")
        self.set(("mode",), mode)
        return self.tell(None, before, mode)

    def clear_mode(self):
        old = self.standing.clear("mode")
        return self.tell(None, old.what, None) if old else 0

    def block(self, parts):
        before = self.standing.get("block", parts) is not None
        self.set(("block", parts), True)
        return self.tell({"key": shown_key(parts)}, before, True)

    def unblock(self, parts):
        old = self.standing.clear("block", parts)
        return self.tell({"key": shown_key(parts)}, True, False) if old else 0

    def unblock_all(self):
        """One change, whatever the number of blocks."""
        blocks = len(self.standing.all("block"))
        self.standing.clear_all("block")
        return self.tell(None, blocks, 0) if blocks else 0


def _checked_layer(rule, limits):
    """The fields that change, by the limits' names. A text is the change of a rule's only limit."""
    if isinstance(limits, str):
        limits = {rule.limits[0].name: limits}
    layer = {name: patch_fields(change) for name, change in limits.items()}
    for name, fields in layer.items():
        limit = next((limit for limit in rule.limits if limit.name == name), None)
        if limit is None:
            raise Refused(name)
        if fields.get("algorithm", limit.algorithm) != limit.algorithm:
            raise Refused("algorithm")
        scope = rule.names if limit.scope is None else limit.scope
        if set(fields.get("scope", scope)) != set(scope):
            raise Refused("scope")
        if fields.get("counts", limit.counts) != limit.counts:
            raise Refused("counts")
        rule.check_ceiling(limit, fields.get("max", 0))
    return layer
