"""Answers that are plain records. Times are seconds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from ._tidegate import Decision


class Recorded(NamedTuple):
    """What was used after a ``record``: of the limit with the least left."""

    used: int
    limit: int
    remaining: int
    reset_after: float


class Budget(NamedTuple):
    """How a key stands with its budget."""

    spent: int
    remaining: int
    over: bool
    over_per_hit: bool
    reset_after: float


class LimitLeft(NamedTuple):
    """How a decision left one limit.

    ``max`` is a bucket's size. ``reset_after`` is the time until the limit is full again.
    ``more_after`` is the time until more is left than now; None if that never happens.
    """

    name: str
    max: int
    remaining: int
    reset_after: float
    more_after: float | None


class LimitUse(NamedTuple):
    """What one limit holds of a key."""

    name: str
    used: int
    max: int
    remaining: int
    reset_after: float


class BlockedKey(NamedTuple):
    """A key that was blocked by hand.

    ``key`` has its parts. ``until`` is the end, in Unix time; None: never. ``by`` and ``reason``
    are what the caller of ``block`` stated.
    """

    key: tuple[str | bytes, ...]
    until: float | None
    by: str | None
    reason: str | None


class Stats(NamedTuple):
    """What is known of a key.

    ``last_allowed`` is the time since its last allowed hit, where the rule keeps that. ``blocked``
    is its block, if there is one.
    """

    limits: dict[str, LimitUse]
    cooldown_left: float
    violations: int
    last_allowed: float | None
    budget: Budget | None
    blocked: BlockedKey | None = None


class Step(NamedTuple):
    """One step of the judgement.

    ``step`` is ``mode``, ``exempt``, ``blocked``, ``cost``, ``budget``, ``cooldown``, ``backoff``,
    or ``limit``, once for each limit.

    ``outcome`` is one of four words. ``none``: the rule has no such option. ``pass``: judgement
    goes on. ``allow``: the last step, and nothing is counted. ``deny``: the first such step gives
    the decision's reason.

    ``value`` is what the step compares with. ``source`` names where the value was stated:
    ``rule``, ``default``, ``when[0]``, ``override``, ``change`` or ``call``. ``until`` is the end
    of a refusal, in Unix time. ``by`` is the name that a run-time change was made under.
    """

    step: str
    outcome: str
    limit: str | None
    value: str | int | float | dict[str, list[str]] | None
    source: str | None
    until: float | None
    by: str | None


class Why(NamedTuple):
    """Why a hit would get what it would get: what ``peek`` says, and the judgement in order."""

    decision: Decision
    steps: list[Step]


class KeyCount(NamedTuple):
    """A key by its parts, and how often it was seen."""

    key: tuple[str, ...]
    # In place of the tuple's method `count`: all surfaces use this name.
    count: int  # type: ignore[assignment]


class Metrics(NamedTuple):
    """What happened so far under a rule. ``denied`` is by reason."""

    rule: str
    allowed: int
    warned: int
    denied: dict[str, int]
    shadowed: int
    exempt: int
    off: int
    alerts: int
    evictions: int
    full: int
    overflow: int
    classify_defaults: int
    capacity: int
    keys: int
    bytes: int
    top_offenders: list[KeyCount]
    heaviest: list[KeyCount]
    retired: bool


class Event(NamedTuple):
    """A denial, an alert, or a retired table (reason ``retired``, no key).

    ``number`` grows by one with each event of the limiter. ``at`` is Unix time.
    """

    number: int
    rule: str
    key: tuple[str, ...]
    reason: str
    alert: bool
    at: float


class Events(NamedTuple):
    """The last events.

    ``next`` is the ``since`` of the next call. ``missed`` counts events that were overwritten by
    later ones before this call read them.
    """

    events: list[Event]
    next: str
    missed: int


class Change(NamedTuple):
    """A run-time change as it was made.

    ``number`` counts the changes of the store, from 1 on. ``at`` and ``until`` are Unix time; an
    ``until`` of None: it does not end by itself. ``op`` is the operation's name. ``target`` is a
    key (a tuple of its parts) or a match; None where the change is about the whole rule.

    ``before`` and ``after`` are the values before and after it: limits, a list of exemptions, or
    a mode. For one exemption and for a block they say whether it was in force.
    """

    number: int
    at: float
    rule: str
    op: str
    target: tuple[str | bytes, ...] | dict[str, list[str]] | None
    before: Any
    after: Any
    until: float | None
    by: str | None
    reason: str | None


class Changes(NamedTuple):
    """Run-time changes, the oldest first.

    ``next`` is the ``since`` of the next call. ``missed`` counts changes that the store no longer
    keeps.
    """

    changes: list[Change]
    next: int
    missed: int


class Finding(NamedTuple):
    """Something about a policy that may not be meant. ``severity`` is ``info`` or ``warn``."""

    id: str
    severity: str
    path: str
    message: str


class Inspected(NamedTuple):
    """What a table file of a rule holds."""

    rule: str
    format: int
    limits: list[dict[str, Any]]
    capacity: int
    keys: int
    penalised: int
    spending: int
    overrides: int
    bytes: int
    top_offenders: list[KeyCount]
    retired: bool


def _metrics(fields: dict[str, Any]) -> Metrics:
    return Metrics(**fields)
