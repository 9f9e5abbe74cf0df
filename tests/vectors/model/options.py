"""The numbers that a call is judged by: the rule, and what is laid over it.

Precedence, weakest first: the rule, `set_default`, `when`, override by match, override for the key, per-call `max`.
"""

from dataclasses import dataclass, replace
from fractions import Fraction

from .limits import period_ms
from .match import best


@dataclass
class Options:
    limits: list
    warn_at: Fraction | None
    backoff: dict | None
    alert: dict | None
    notify: str
    mode: str
    attach: object
    sources: dict  # who stated what: `mode`, and (limit's name, field)


def resolve(rule, parts, subject, per_call_max):
    """Options of one call. `rule` holds the spec and what was changed at run time."""
    spec, when = rule.spec, best(rule.spec.get("when", []), subject) or {}
    by_match = best(rule.match_overrides, subject) or {}
    layers = [rule.default_limits, when.get("limits", {}), by_match.get("limits", {}),
              rule.key_overrides.get(parts, {})]
    if per_call_max is not None:
        layers.append({rule.limits[0].name: {"max": per_call_max}})
    option = {name: when.get(name, spec.get(name, default)) for name, default in _DEFAULTS.items()}
    limits = [_layered(limit, layers, option["cooldown"]) for limit in rule.limits]
    return Options(limits, _exact(option["warn_at"]), option["backoff"], option["alert"],
                   option["notify"], option["mode"], option["attach"], _sources(rule, when, layers))


def _sources(rule, when, layers):
    entry = f"when[{rule.spec['when'].index(when)}]" if when else None
    stated = {(limit.name, name): "rule" for limit in rule.limits for name in ("max", "burst", "cooldown")
              if getattr(limit, name) is not None}
    for layer, source in zip(layers, ("default", entry, "override", "override", "call")):
        stated |= {(limit, name): source for limit, fields in layer.items() for name in fields}
    of_rule = {name: entry if name in when else "rule" for name in ("mode", "cooldown")}
    return of_rule | stated


_DEFAULTS = {"warn_at": None, "cooldown": None, "backoff": None, "alert": None,
             "notify": "always", "mode": "enforce", "attach": None}


def _layered(limit, layers, cooldown):
    for layer in layers:
        limit = limit.merged(layer.get(limit.name, {}))
    if limit.cooldown is None and cooldown is not None:
        limit = replace(limit, cooldown=period_ms(cooldown))
    return limit


def _exact(number):
    return None if number is None else Fraction(str(number))
