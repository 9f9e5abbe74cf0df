"""The numbers that a call is judged by: the rule, and what is laid over it.

Precedence, weakest first: the rule, `set_default`, `when`, override by match, override for
the key, per-call `max`.
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
    # Where each value was stated: `mode`, and (limit's name, field). A value is the source and the
    # name of the change's maker.
    sources: dict


def resolve(rule, parts, subject, per_call_max):
    """Options of one call. `rule` holds the spec and what was changed at run time."""
    spec, when = rule.spec, best(rule.spec.get("when", []), subject) or {}
    entry = f"when[{spec['when'].index(when)}]" if when else None
    stated = [_changed("default", rule.changed("default")), (entry, None, when.get("limits", {})),
              _changed("override", rule.override_by_match(subject)),
              _changed("override", rule.changed("override", ("key", parts)))]
    if per_call_max is not None:
        stated.append(("call", None, {rule.limits[0].name: {"max": per_call_max}}))
    option = {name: when.get(name, spec.get(name, default)) for name, default in _DEFAULTS.items()}
    sources = _sources(rule, when, entry, stated)
    mode = rule.changed("mode")
    if mode:
        option["mode"], sources["mode"] = mode.what, ("change", mode.by)
    layers = [layer for _, _, layer in stated]
    limits = [_layered(limit, layers, option["cooldown"]) for limit in rule.limits]
    return Options(limits, _exact(option["warn_at"]), option["backoff"], option["alert"],
                   option["notify"], option["mode"], option["attach"], sources)


def _changed(source, change):
    return (source, change.by, change.what) if change else (source, None, {})


def _sources(rule, when, entry, stated):
    found = {name: (entry if name in when else "rule", None) for name in ("mode", "cooldown")}
    found |= {(limit.name, name): ("rule", None)
              for limit in rule.limits for name in ("max", "burst", "cooldown")
              if getattr(limit, name) is not None}
    for source, by, layer in stated:
        found |= {(limit, name): (source, by) for limit, fields in layer.items() for name in fields}
    return found


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
