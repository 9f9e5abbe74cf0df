"""Cooldown, backoff, alert and notify: what a key's denials lead to.

A Penalty is a value: a denial makes a new one, and `peek` throws it away.
"""

from dataclasses import dataclass, replace
from fractions import Fraction
from math import ceil

from .algorithms import NEVER
from .limits import period_ms


@dataclass(frozen=True)
class Penalty:
    cooldown_ends: int = 0
    cooldown_limit: str | None = None
    denied_at: int | None = None
    run: int = 0  # counted denials of the backoff's run
    enforced_until: int = 0
    span_began: int | None = None
    span_count: int = 0
    told: bool = False
    episode_ends: int | None = None  # when a cooldown of this episode is over


def mended(penalty, now):
    """What starts ahead of the clock, which went back, starts now and is as long as it was."""
    if penalty.span_began is not None and penalty.span_began > now:
        penalty = replace(penalty, span_began=now)
    if penalty.denied_at is None or penalty.denied_at <= now:
        return penalty
    moved = now - penalty.denied_at
    ends = penalty.episode_ends
    return replace(
        penalty, denied_at=now, cooldown_ends=penalty.cooldown_ends + moved,
        enforced_until=penalty.enforced_until + moved,
        episode_ends=None if ends is None else ends + moved,
    )


def cooldown_left(penalty, now):
    return max(0, penalty.cooldown_ends - now)


def enforced_left(penalty, now):
    return max(0, penalty.enforced_until - now)


def in_run(penalty, backoff, now):
    """Whether the last denial is less than `quiet` ago."""
    return penalty.denied_at is not None and now - penalty.denied_at < period_ms(backoff["quiet"])


def in_span(penalty, alert, now):
    return penalty.span_began is not None and now - penalty.span_began < period_ms(alert["within"])


def violations(penalty, options, now):
    if options.alert:
        return penalty.span_count if in_span(penalty, options.alert, now) else 0
    if options.backoff:
        return penalty.run if in_run(penalty, options.backoff, now) else 0
    return 0


def in_force(penalty, options, now):
    return (
        cooldown_left(penalty, now) > 0
        or bool(options.backoff) and in_run(penalty, options.backoff, now)
        or bool(options.alert) and in_span(penalty, options.alert, now)
    )


def after_denial(penalty, options, denying, wait, now):
    """A denial by limits that counts: the penalty after it, its `retry_after`,
    and whether it alerts."""
    penalty, cooldown = _cooled(penalty, denying, now)
    penalty, step = _backed_off(penalty, options.backoff, now)
    retry = _rounded(max(wait, cooldown, step), options.backoff)
    if options.backoff and options.backoff.get("enforce") and retry != NEVER:
        penalty = replace(penalty, enforced_until=now + ceil(retry))
    penalty, alert = _alerted(penalty, options.alert, now)
    return penalty, retry, alert


def told(penalty, mode, now):
    """A denial: the penalty after it, and whether the sender should get a notice."""
    if mode != "once":
        return penalty, mode == "always"
    if penalty.episode_ends is not None and now >= penalty.episode_ends:
        penalty = replace(penalty, told=False, episode_ends=None)
    cooling = cooldown_left(penalty, now) > 0
    ends = penalty.cooldown_ends if cooling else penalty.episode_ends
    return replace(penalty, told=True, episode_ends=ends), not penalty.told


def after_allowed(penalty):
    return replace(penalty, told=False, episode_ends=None)


def _cooled(penalty, denying, now):
    cooldown, limit = 0, None
    for candidate in denying:
        if (candidate.cooldown or 0) > cooldown:
            cooldown, limit = candidate.cooldown, candidate.name
    if cooldown:
        penalty = replace(penalty, cooldown_ends=now + cooldown, cooldown_limit=limit)
    return penalty, cooldown


def _backed_off(penalty, backoff, now):
    if not backoff:
        return replace(penalty, denied_at=now), 0
    run = penalty.run + 1 if in_run(penalty, backoff, now) else 1
    steps = backoff["steps"]
    step = period_ms(steps[min(run, len(steps)) - 1])
    return replace(penalty, denied_at=now, run=run), step


def _alerted(penalty, alert, now):
    if not alert:
        return penalty, False
    if not in_span(penalty, alert, now):
        penalty = replace(penalty, span_began=now, span_count=0)
    penalty = replace(penalty, span_count=penalty.span_count + 1)
    return penalty, penalty.span_count == alert["violations"]


def _rounded(retry, backoff):
    if retry == NEVER or not backoff or "round" not in backoff:
        return retry
    unit = period_ms(backoff["round"])
    return ceil(Fraction(retry) / unit) * unit
