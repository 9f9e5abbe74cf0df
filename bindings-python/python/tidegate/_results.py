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


class LimitUse(NamedTuple):
    """What one limit holds of a key."""

    name: str
    used: int
    max: int
    remaining: int
    reset_after: float


class Stats(NamedTuple):
    """What is known of a key. ``last_allowed``: seconds since its last allowed hit, where the rule keeps that."""

    limits: dict[str, LimitUse]
    cooldown_left: float
    violations: int
    last_allowed: float | None
    budget: Budget | None


class Step(NamedTuple):
    """One step of the judgement.

    ``step`` is ``mode``, ``exempt``, ``cost``, ``budget``, ``cooldown``, ``backoff``, or ``limit``, once for each. ``outcome`` is ``none``
    (the rule has no such thing), ``pass``, ``allow`` (uncounted, and the last step) or ``deny`` (the first is the decision's
    reason). ``value`` is what the step goes by, ``source`` who stated that: ``rule``, ``default``, ``when[0]``, ``override`` or ``call``.
    ``until`` is when a refusal ends, in seconds since the start of 1970.
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
    count: int  # type: ignore[assignment]  # In place of the tuple's method, as all surfaces call it.


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
    """A denial or alert, or a retired table (reason ``retired``, no key). ``number`` grows by one with each event of the
    limiter; ``at`` is Unix time."""

    number: int
    rule: str
    key: tuple[str, ...]
    reason: str
    alert: bool
    at: float


class Events(NamedTuple):
    """The last events, and ``next``, to go on with. ``missed`` gave way to later ones before they were read."""

    events: list[Event]
    next: str
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
