"""The engine of the package ``tidegate``. Use that, not this."""

from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from os import PathLike
from types import TracebackType
from typing import Any, Literal, final, type_check_only

from typing_extensions import Self

from ._results import (
    BlockedKey,
    Budget,
    Changes,
    Events,
    Finding,
    Inspected,
    LimitLeft,
    Metrics,
    Recorded,
    Stats,
    Why,
)
from ._types import Key, Lasting, Limits, Match, Time

__all__ = [
    "ManualClock",
    "Decision",
    "_restore_decision",
    "Permit",
    "Reservation",
    "_ProxyTrust",
    "_with_fields",
    "_denial",
    "_denial_body",
    "_unjudged_body",
    "ip_key",
    "Limiter",
    "Rule",
    "Waiting",
    "IETF_DRAFT",
    "__version__",
]

IETF_DRAFT: str
__version__: str

def ip_key(address: str, v6_prefix: int = 56) -> str:
    """A key for a client address: IPv4-mapped IPv6 is unmapped first, IPv6 is cut to the prefix."""

def _restore_decision(
    first: tuple[Any, ...],
    second: tuple[Any, ...],
    headers: list[list[tuple[str, str]]],
    limits: list[tuple[str, int, int, float, float | None]] = ...,
) -> Decision: ...
@final
class _ProxyTrust:
    """The proxies that a middleware believes."""

    def __new__(cls, hops: int, proxies: list[str]) -> Self: ...
    @property
    def reads_lines(self) -> bool:
        """Whether the lines of ``X-Forwarded-For`` are read."""
    def client(self, peer: str | None, lines: Sequence[str]) -> tuple[str, str] | None:
        """A client's address and its key, from the peer's address and ``X-Forwarded-For``."""
    def hit(self, rule: Rule | Limiter, peer: str | None, lines: Sequence[str]) -> Decision | None:
        """A hit by the client's key, with its address as ``ip``.

        None if the client is not known, or the rule has permits.
        """

def _with_fields(
    decision: Decision, present: Iterable[tuple[bytes, bytes]]
) -> list[tuple[bytes, bytes]]:
    """The header fields of a response, and those of the decision that are not among them."""

def _denial(decision: Decision) -> str:
    """A denial in words."""

def _denial_body(decision: Decision) -> str:
    """The body of an answer to a denied request."""

def _unjudged_body(detail: str) -> str:
    """The body of an answer to a request that could not be judged."""

@final
class ManualClock:
    """A clock that only a call moves, for tests that don't wait. Its wall time moves along.

    Hand it to any number of limiters: ``Limiter("20/min", clock=clock)``. Times are seconds, or
    timedeltas.
    """

    def __new__(cls, start: Time = 0.0, wall: Time = 0.0) -> Self: ...
    def advance(self, seconds: Time) -> None:
        """Moves the clock on, and its wall time with it."""

    def set(self, seconds: Time) -> None:
        """Sets the clock, back too."""

    def now(self) -> float:
        """What the clock shows, in seconds."""

    def set_wall(self, unix: Time) -> None:
        """Sets the wall time alone: seconds since the start of 1970."""

@final
class Decision:
    """The answer to a hit: true if it was allowed.

    ``retry_after`` says when the same hit would pass. ``headers()`` has all of it for HTTP clients.
    Decisions can be compared, hashed and pickled.
    """

    @property
    def allowed(self) -> bool:
        """Whether the hit was allowed; also the truth value."""

    @property
    def rule(self) -> str:
        """The name of the rule that was hit."""

    @property
    def reason(self) -> str | None:
        """Why it was denied: the denying limit's name, ``blocked``, ``cooldown``, ``backoff``,
        ``budget``, ``cost`` or ``full``; or why it was not counted: ``exempt`` or ``off``. None
        when plainly allowed.
        """

    @property
    def limit(self) -> int | None:
        """The size of the limit with the least left, or of the one that denies."""

    @property
    def remaining(self) -> int | None:
        """What is left of that limit, rounded down."""

    @property
    def retry_after(self) -> float | None:
        """Seconds until the same hit would pass: 0.0 when allowed, None where waiting never helps.
        """

    @property
    def reset_after(self) -> float:
        """Seconds until the key has its full quota again."""

    @property
    def limits(self) -> tuple[LimitLeft, ...]:
        """How it left each limit, in the order in which the rule states them."""

    @property
    def warning(self) -> bool:
        """Whether an allowed hit left little (the rule's ``warn_at``)."""

    @property
    def alert(self) -> bool:
        """Whether this denial was the one that reached the rule's ``alert``."""

    @property
    def notify(self) -> bool:
        """Whether the sender should get a notice of this denial."""

    @property
    def would_deny(self) -> str | None:
        """In shadow mode, why it would have been denied."""

    @property
    def attach(self) -> Any:
        """What the rule hands back with a denial."""

    def headers(self, style: Literal["both", "legacy", "ietf"] = "both") -> dict[str, str]:
        """The decision as header fields, in the order in which they are best sent.

        ``style`` is ``legacy`` (``X-RateLimit-…``), ``ietf`` (``RateLimit-Policy``,
        ``RateLimit``) or ``both``.
        """

    def __bool__(self) -> bool: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...
    def __reduce__(self) -> tuple[Any, ...]: ...

@final
class Permit:
    """A slot of a concurrent limit: a context manager that releases it, falsy if it was denied.

    A permit that is neither released nor left goes with the object, or after the limit's lease.
    """

    @property
    def decision(self) -> Decision:
        """How the hit went."""

    def release(self) -> bool:
        """Gives the slot back. False if it was no longer held."""

    def renew(self) -> bool:
        """Starts the lease anew. False if the slot is lost."""

    def __bool__(self) -> bool: ...
    def __enter__(self) -> Self: ...
    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None: ...

@final
class Reservation:
    """An estimate that was spent, to be settled once; falsy if it was denied.

    As a context manager it gives the estimate back if the body fails before it is settled;
    otherwise what is not settled stays spent.
    """

    @property
    def decision(self) -> Decision:
        """How the hit went."""

    def settle(self, actual: int) -> bool:
        """Gives back or takes the difference to the true cost. False if it was settled or cancelled
        before, or denied.
        """

    def cancel(self) -> bool:
        """Gives the estimate back. False as with ``settle``."""

    def __bool__(self) -> bool: ...
    def __enter__(self) -> Self: ...
    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None: ...

@final
class Waiting:
    """A wait for a turn: ``acquire``, ``acquire_permit`` and ``acquire_reservation`` use it."""

    def poll(self, wake: Callable[[], object]) -> Decision | Permit | Reservation | float:
        """The outcome, if the wait is over. If not, the seconds to sleep before the next ``poll``,
        unless ``wake`` is called sooner.
        """

    def close(self) -> None:
        """Gives up: spends nothing, and lets the next call in line go first."""

@type_check_only
class _Operations:
    """What a rule does, and a limiter by its only rule or `default`."""

    def allow(self, key: Key, **attributes: str | int) -> bool:
        """Whether a hit of 1 passes, and spends it: the fastest path."""

    def hit(
        self, key: Key, cost: int = 1, *, max: int | None = None, **attributes: str | int
    ) -> Decision:
        """Spends ``cost`` if the rule allows it, and says how it went.

        ``max`` takes the place of the limit's own for this call, in rules with one limit.
        """

    def check(
        self, key: Key, cost: int = 1, *, max: int | None = None, **attributes: str | int
    ) -> Decision:
        """As ``hit``, but an allowed one spends nothing: for "check, do the work, then ``record``".
        A denial counts like a hit's.
        """

    def peek(
        self, key: Key, cost: int = 1, *, max: int | None = None, **attributes: str | int
    ) -> Decision:
        """What a hit would get, changing nothing. With a cost of 0, what is left now."""

    def record(
        self, key: Key, cost: int = 1, *, max: int | None = None, **attributes: str | int
    ) -> Recorded:
        """Spends without asking, also in a cooldown, and says what is used then."""

    def refund(
        self, key: Key, cost: int = 1, *, max: int | None = None, **attributes: str | int
    ) -> None:
        """Gives back, never above full; a window's newest first."""

    def reserve(
        self, key: Key, estimate: int, *, max: int | None = None, **attributes: str | int
    ) -> Reservation:
        """A hit whose true cost is known later: spends the estimate, to be settled. Falsy if
        denied.
        """

    def permit(self, key: Key, **attributes: str | int) -> Permit:
        """Takes all limits of a rule with a ``concurrent`` one, and holds a slot until it is
        released. Falsy if denied.
        """

    def allow_many(self, keys: Iterable[Key]) -> bytes:
        """A batch of ``allow``: bytes with a 1 or a 0 for each key. Far cheaper for each on large
        tables.
        """

    def hit_many(self, keys: Iterable[Key]) -> list[Decision]:
        """A batch of ``hit`` with a cost of 1."""

    def wait(
        self,
        key: Key,
        cost: int = 1,
        *,
        timeout: Time | None = None,
        max: int | None = None,
        **attributes: str | int,
    ) -> Decision:
        """Blocks until a hit is allowed, and spends it; other threads run meanwhile. A denial at
        once if it can't be in time.
        """

    def acquire(
        self,
        key: Key,
        cost: int = 1,
        *,
        timeout: Time | None = None,
        max: int | None = None,
        **attributes: str | int,
    ) -> Coroutine[Any, Any, Decision]:
        """``await`` it: resolves when a hit is allowed, which is spent then, or with a denial at
        once if it can't be in time. Cancelling spends nothing. On asyncio and trio.
        """

    def wait_permit(
        self, key: Key, *, timeout: Time | None = None, **attributes: str | int
    ) -> Permit:
        """As ``permit``, blocking until there is a slot, as ``wait`` does. Falsy if denied.

        A slot that this process releases is noticed at once, one of another process within a
        second.
        """

    def acquire_permit(
        self, key: Key, *, timeout: Time | None = None, **attributes: str | int
    ) -> Coroutine[Any, Any, Permit]:
        """``await`` it: as ``permit``, when there is a slot, as ``acquire`` waits. Falsy if denied.
        """

    def wait_reservation(
        self,
        key: Key,
        estimate: int,
        *,
        timeout: Time | None = None,
        max: int | None = None,
        **attributes: str | int,
    ) -> Reservation:
        """As ``reserve``, blocking until the estimate is allowed, as ``wait`` does. Falsy if
        denied.
        """

    def acquire_reservation(
        self,
        key: Key,
        estimate: int,
        *,
        timeout: Time | None = None,
        max: int | None = None,
        **attributes: str | int,
    ) -> Coroutine[Any, Any, Reservation]:
        """``await`` it: as ``reserve``, when the estimate is allowed, as ``acquire`` waits. Falsy
        if denied.
        """

    def spend(self, key: Key, amount: int, **attributes: str | int) -> Budget:
        """Records what was spent of the day's budget, always."""

    def budget(self, key: Key, **attributes: str | int) -> Budget:
        """How the key stands with its budget."""

    def has_permits(self) -> bool:
        """Whether the rule has a concurrent limit. A middleware for any rule calls ``permit`` for
        such rules and ``hit`` for all others.
        """

    def is_limited(self, key: Key, **attributes: str | int) -> bool:
        """Whether the key should be left alone: with backoff, if it was denied less than ``quiet``
        ago; without, if a hit of 1 would be denied now.
        """

    def why(
        self, key: Key, cost: int = 1, *, max: int | None = None, **attributes: str | int
    ) -> Why:
        """Why a hit would get what it would get: the judgement in order, each number with its
        source. Changes nothing.
        """

    def stats(self, key: Key, **attributes: str | int) -> Stats | None:
        """What is known of a key; None exactly when its state is that of a new one."""

    def reset(self, key: Key, **attributes: str | int) -> None:
        """Forgets the key's limits, penalties and budget, and ends its block; what wider scopes
        hold stays.
        """

    def reset_all(self) -> None:
        """Forgets every key, and ends every block."""

    def prune(self) -> int:
        """Evicts idle keys now, and says how many. Nothing must call this: new keys evict idle ones
        by themselves.
        """

    def set_override(
        self,
        target: Key | Match,
        limits: str | Mapping[str, Any],
        *,
        for_: Lasting | None = None,
        by: str | None = None,
        reason: str | None = None,
    ) -> int:
        """Judges a key, or the calls that match a mapping, by other limits from the next hit on,
        and gives the number of the change.

        ``limits`` is a mapping (``{"per-minute": {"max": 60}}``) or, for a rule with one limit, a
        text (``"60/min"``). Every ``set_…`` and ``add_exempt`` takes ``for_`` (seconds, a
        timedelta, or a text such as ``"1h"``): the change ends by itself then. ``by`` and
        ``reason`` say who makes it and why.
        """

    def clear_override(
        self, target: Key | Match, *, by: str | None = None, reason: str | None = None
    ) -> int:
        """Takes an override back. 0 if there was none."""

    def overrides(
        self
    ) -> list[tuple[tuple[str | bytes, ...] | dict[str, list[str]], dict[str, dict[str, float]]]]:
        """The overrides in force: a key (a tuple of its parts) or match, and what it changes."""

    def set_default(
        self,
        limits: str | Mapping[str, Any],
        *,
        for_: Lasting | None = None,
        by: str | None = None,
        reason: str | None = None,
    ) -> int:
        """Changes the rule's own limits from the next hit on; an empty mapping takes that back."""

    def set_mode(
        self,
        mode: Literal["enforce", "shadow", "off"],
        *,
        for_: Lasting | None = None,
        by: str | None = None,
        reason: str | None = None,
    ) -> int:
        """Judges in this mode (``enforce``, ``shadow`` or ``off``) from the next hit on, whatever
        the policy says.
        """

    def clear_mode(self, *, by: str | None = None, reason: str | None = None) -> int:
        """Takes ``set_mode`` back. 0 if no mode was set."""

    def block(
        self,
        key: Key,
        for_: Lasting | None = None,
        *,
        by: str | None = None,
        reason: str | None = None,
        **attributes: str | int,
    ) -> int:
        """Refuses a key by hand, with reason ``blocked``: for a ban, or as long as an upstream's
        ``Retry-After`` says.

        ``for_`` is a time (seconds, a timedelta, or a text such as ``"1h"``); None: until
        ``unblock``. The block is kept with the store, counts for no cooldown, backoff or alert, and
        replaces one that the key had. Exempt calls pass.
        """

    def unblock(
        self, key: Key, *, by: str | None = None, reason: str | None = None, **attributes: str | int
    ) -> bool:
        """Ends a block. False if the key was not blocked."""

    def blocks(self) -> list[BlockedKey]:
        """The keys that are blocked."""

    def add_exempt(
        self,
        match: Match,
        *,
        for_: Lasting | None = None,
        by: str | None = None,
        reason: str | None = None,
    ) -> int:
        """Allows the calls that match from the next hit on, uncounted."""

    def remove_exempt(
        self, match: Match, *, by: str | None = None, reason: str | None = None
    ) -> int:
        """Takes an exemption back, the policy's own too. 0 if it was not in force."""

    def set_exempts(
        self,
        matches: Iterable[Match],
        *,
        for_: Lasting | None = None,
        by: str | None = None,
        reason: str | None = None,
    ) -> int:
        """Puts these exemptions in place of all others."""

    def exempts(self) -> list[dict[str, list[str]]]:
        """The exemptions in force."""

    def __len__(self) -> int:
        """Rows in use, idle ones until they are pruned or taken over."""

    def __bool__(self) -> Literal[True]: ...

@final
class Limiter(_Operations):
    """A policy at work: rules, and where their state lives. Safe to use from any thread.

    ``Limiter("20/min")`` has one rule, ``default``, of these limits; options of a rule go by
    keyword:

    >>> limiter = Limiter(["5/10s window", "20/min window"], cooldown="60s")
    >>> limiter.allow("alice")
    True

    ``store`` is where state lives: ``memory``, ``memory:NAME``, ``file:PATH`` (or a path: a folder
    that all processes of the host share). ``capacity`` is how many keys a rule may hold; unless
    stated, what fits into ``memory`` (bytes, or a text such as ``"64MB"``; 256 MB unless stated),
    at most 65,536. ``on_full`` (``overflow``, ``deny`` or ``allow``) is what becomes of new keys
    then, ``clock`` a ManualClock. ``recreate=True`` makes tables of a file store that don't fit the
    policy, or can't be read, anew. ``group=True`` shares the folder of a file store with its group.
    Times are texts (``"60s"``), seconds, or timedeltas.

    A limiter with one rule has its operations itself. It is a context manager that closes itself,
    and always true. A forked child may use it: with a file store it counts together with its
    parent, with memory it has a copy.
    """

    def __new__(
        cls,
        limits: Limits,
        *,
        store: str | PathLike[str] = "memory",
        capacity: int | None = None,
        on_full: Literal["overflow", "deny", "allow"] = "overflow",
        clock: ManualClock | None = None,
        recreate: bool = False,
        memory: int | str | None = None,
        group: bool = False,
        **rule_options: Any,
    ) -> Self: ...
    @classmethod
    def from_policy(
        cls,
        mapping: Mapping[str, Any],
        *,
        store: str | PathLike[str] | None = None,
        capacity: int | None = None,
        on_full: Literal["overflow", "deny", "allow"] | None = None,
        clock: ManualClock | None = None,
        recreate: bool = False,
        memory: int | str | None = None,
        group: bool | None = None,
    ) -> Limiter:
        """A limiter of a policy as a mapping, as a policy file has it. Keyword arguments win over
        the policy's own.
        """

    @classmethod
    def from_file(
        cls,
        path: str | PathLike[str],
        *,
        store: str | PathLike[str] | None = None,
        capacity: int | None = None,
        on_full: Literal["overflow", "deny", "allow"] | None = None,
        clock: ManualClock | None = None,
        recreate: bool = False,
        memory: int | str | None = None,
        group: bool | None = None,
    ) -> Limiter:
        """A limiter of a policy file, YAML or JSON, which ``reload`` reads again."""

    @staticmethod
    def inspect(path: str | PathLike[str]) -> list[Inspected]:
        """Reads the tables of a file store's folder from outside, while other processes may use
        them.
        """

    def rule(self, name: str) -> Rule:
        """A rule by its name, or the policy's ``fallback``. Also ``limiter[name]``."""

    def __getitem__(self, name: str, /) -> Rule: ...
    def rules(self) -> list[str]:
        """The names of all rules, in declared order."""

    def reload(self) -> None:
        """Reads the policy file again: all or nothing. Rules that were gotten go by the new policy.
        """

    def audit(self) -> list[Finding]:
        """Findings on the policy: what is allowed, but may not be meant."""

    def metrics(self) -> list[Metrics]:
        """What happened so far, by rule."""

    def events(self, since: str | None = None) -> Events:
        """The last denials and alerts of all rules; with ``since``, the ``next`` of earlier ones,
        those after them.
        """

    def changes(self, since: int = 0) -> Changes:
        """The run-time changes of all rules with a number above ``since``: the last 256 at least,
        as the store keeps them.
        """

    def sync(self) -> None:
        """Writes a file store's tables to its disk now. Nothing must call this: the system does it
        by and by.
        """

    def close(self) -> None:
        """Lets go: every operation from now on is a ``ClosedError``."""

    def __enter__(self) -> Self: ...
    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None: ...

@final
class Rule(_Operations):
    """A rule of a limiter: limits that are taken together, all or nothing. It keeps its limiter
    alive.

    Keys are a ``str``, ``bytes``, an ``int``, an ``ipaddress``, or a tuple or list of parts.
    Further keyword arguments are attributes of the call (``role="admin"``), which the rule may look
    at. Names that an operation takes (``cost``, ``max``, ``timeout``, ``for_``, ``by``, ``reason``)
    are never attributes: elsewhere they are a ``TypeError``.
    """

    @property
    def name(self) -> str:
        """The rule's name."""

    def metrics(self) -> Metrics:
        """What happened so far."""

    def events(self, since: str | None = None) -> Events:
        """The rule's last denials and alerts; with ``since``, the ``next`` of earlier ones, those
        after them.
        """

    def changes(self, since: int = 0) -> Changes:
        """The run-time changes of this rule with a number above ``since``: the last 256 at least,
        as the store keeps them.
        """
