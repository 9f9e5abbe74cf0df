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
    """How a decision left one limit. ``max`` is a bucket's size. ``reset_after``: until all of it is there again.
    ``more_after``: until there is more than now; None if there never is.
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
    """A key that was blocked by hand: its parts, when that ends (Unix time; None: never), by whom and why it
    was done.
    """

    key: tuple[str | bytes, ...]
    until: float | None
    by: str | None
    reason: str | None


class Stats(NamedTuple):
    """What is known of a key. ``last_allowed``: seconds since its last allowed hit, where the rule keeps
    that. ``blocked``: its block, if there is one.
    """

    limits: dict[str, LimitUse]
    cooldown_left: float
    violations: int
    last_allowed: float | None
    budget: Budget | None
    blocked: BlockedKey | None = None


class Step(NamedTuple):
    """One step of the judgement.

    ``step`` is ``mode``, ``exempt``, ``blocked``, ``cost``, ``budget``, ``cooldown``, ``backoff``, or
    ``limit``, once for each. ``outcome`` is ``none`` (the rule has no such thing), ``pass``, ``allow``
    (uncounted, and the last step) or ``deny`` (the first is the decision's reason). ``value`` is what the
    step goes by; ``source`` is who stated that: ``rule``, ``default``, ``when[0]``, ``override``, ``change``
    or ``call``. ``until`` is when a refusal ends, in seconds since the start of 1970. ``by`` is who made the
    run-time change that the value comes from.
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


class Change(NamedTuple):
    """A run-time change as it was made.

    ``number`` counts the changes of the store, from 1 on; ``at`` and ``until`` (None: it does not end by
    itself) are Unix time. ``op`` is the operation's name. ``target`` is a key (a tuple of its parts) or a
    match, None where the change is about the whole rule. ``before`` and ``after`` are what stood and stands:
    limits, a list of exemptions, a mode; for one exemption and for a block, whether it stood.
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
    """Run-time changes, the oldest first, and ``next``, to go on with. ``missed`` are no longer kept."""

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
