"""Tidegate as a storage of `limits`, the library under Flask-Limiter and slowapi.

    import tidegate.limits_storage  # registers the scheme

    # In memory.
    Limiter(get_remote_address, app=app, storage_uri="tidegate://")
    # In a folder, which all workers share.
    Limiter(get_remote_address, app=app, storage_uri="tidegate:///var/lib/app/limits")

That library takes any rate at any time. Here each length of a window gets a rule when it is first
used, and the rule keeps the counts:

- `fixed-window`: a `fixed` limit without a maximum, counted by `record`.
- `moving-window`: an exact `window` limit for each rate, asked by `hit`.
- `sliding-window-counter`: that library's own two cells, as two `fixed` counts. A cell is charged
  in one step, and only if the sum allows. So two workers at once are never granted too much, nor
  too little.

Where it differs from the library's other storages:

- Memory is fixed. Each rule holds `capacity` keys whose windows are not over (10,000 unless the URI
  says `?capacity=N`). Beyond that new keys share a few counts: they may be refused early but never
  get round a limit.
- A moving window has at most 4,096 entries. A larger one is an error (`ValueError`), not an
  approximation.
- A window is at most 366 days long.
- `get` and `get_expiry` get a key but not its window. `limits` writes the window at the end of the
  key, and it is read from there. For keys of another form all windows are read, and the largest
  count is returned.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from math import floor
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlparse

from limits.limits import GRANULARITIES
from limits.storage import MovingWindowSupport, SlidingWindowCounterSupport, Storage
from limits.storage.base import TimestampedSlidingWindow

from . import Limiter, ManualClock, Rule, TidegateError

__all__ = ["TidegateStorage"]

# A count that is asked for is never refused.
_NO_MAXIMUM = 1_000_000_000
# Room for the largest windows that a rule may have, times the default capacity.
_MEMORY = "1GB"


class TidegateStorage(Storage, MovingWindowSupport, SlidingWindowCounterSupport,
                      TimestampedSlidingWindow):
    """Counts of `limits`, in memory (`tidegate://`) or in a folder (`tidegate:///PATH`).

    Args:
        uri: `tidegate://[/PATH][?capacity=N]`.
        wrap_exceptions: Whether errors are wrapped in `limits.errors.StorageError`.
        capacity: How many keys each rule may hold; the URI's own wins.
        clock: A manual clock, for tests; its `now` is then the time of day.
    """

    STORAGE_SCHEME = ["tidegate"]

    def __init__(
        self,
        uri: str | None = None,
        wrap_exceptions: bool = False,
        capacity: int = 10_000,
        clock: ManualClock | None = None,
        **options: Any,
    ) -> None:
        super().__init__(uri, wrap_exceptions=wrap_exceptions, **options)
        parsed = urlparse(uri or "tidegate://")
        if parsed.netloc:
            raise ValueError(f"{uri}: a folder is written with three slashes, as in "
                             f"tidegate:///var/lib/app/limits")
        self._folder = Path(unquote(parsed.path)) if parsed.path else None
        self._capacity = int(parse_qs(parsed.query).get("capacity", [capacity])[0])
        self._clock = clock
        self._now: Callable[[], float] = time.time if clock is None else clock.now
        self._rules: dict[str, Rule] = {}

    @property
    def base_exceptions(self) -> type[Exception]:
        """What may be raised."""
        return TidegateError

    def incr(self, key: str, expiry: float, amount: int = 1) -> int:
        """Adds to a count and returns it. It is forgotten `expiry` seconds after its first."""
        return self._fixed(expiry).record(key, amount).used

    def get(self, key: str) -> int:
        """A key's count."""
        return max((used for used, _ in self._counts(key)), default=0)

    def get_expiry(self, key: str) -> float:
        """When a key's count is forgotten; now, if there is none."""
        return self._now() + max((left for _, left in self._counts(key)), default=0)

    def check(self) -> bool:
        """Whether the storage can be used."""
        self._fixed(1)
        return True

    def reset(self) -> int | None:
        """Forgets everything, and how many keys that were."""
        rules = [self._named(name) for name in self._names()]
        held = sum(len(rule) for rule in rules)
        for rule in rules:
            rule.reset_all()
        return held

    def clear(self, key: str) -> None:
        """Forgets a key."""
        for name in self._names():
            self._named(name).reset(key)

    def acquire_entry(self, key: str, limit: int, expiry: int, amount: int = 1) -> bool:
        """Adds to a moving window if `limit` allows."""
        return self._window(limit, expiry).hit(key, amount).allowed

    def get_moving_window(self, key: str, limit: int, expiry: int) -> tuple[float, int]:
        """When the oldest entry of a moving window was made, and how many there are."""
        rule, now = self._window(limit, expiry), self._now()
        left = rule.peek(key, 0).remaining or 0
        # One more than what is left has to wait for just the oldest to go.
        wait = rule.peek(key, left + 1).retry_after if left < limit else None
        return (now - expiry + wait, limit - left) if wait else (now, limit - left)

    def acquire_sliding_window_entry(self, key: str, limit: int, expiry: int,
                                     amount: int = 1) -> bool:
        """Adds to a window of two cells if `limit` allows."""
        now = self._now()
        before, left, _, _ = self._cells(key, expiry, now)
        room = max(limit - floor(before * left / expiry), 0)
        _, current = self.sliding_window_keys(key, expiry, now)
        return self._fixed(2 * expiry).hit(current, amount, max=room).allowed

    def get_sliding_window(self, key: str, expiry: int) -> tuple[int, float, int, float]:
        """The previous cell's count and how long it counts, and the same of the current cell."""
        return self._cells(key, expiry, self._now())

    def clear_sliding_window(self, key: str, expiry: int) -> None:
        """Forgets a window of two cells."""
        for cell in self.sliding_window_keys(key, expiry, self._now()):
            self._fixed(2 * expiry).reset(cell)

    def _cells(self, key: str, expiry: int, now: float) -> tuple[int, float, int, float]:
        cells = self.sliding_window_keys(key, expiry, now)
        before, count = (_count(self._fixed(2 * expiry), cell)[0] for cell in cells)
        left = expiry - now % expiry
        return before, left if before else 0.0, count, left + expiry

    def _counts(self, key: str) -> Iterator[tuple[int, float]]:
        """A key's count in each window that may be its own, and how long that is kept."""
        expiry = _expiry(key)
        if expiry is not None:
            yield _count(self._fixed(expiry), key)
            return
        for name in self._names():
            if name.startswith("fixed-"):
                yield _count(self._named(name), key)

    def _fixed(self, expiry: float) -> Rule:
        return self._named(f"fixed-{_NO_MAXIMUM}-{round(expiry * 1000)}ms")

    def _window(self, limit: int, expiry: float) -> Rule:
        return self._named(f"window-{limit}-{round(expiry * 1000)}ms")

    def _names(self) -> Iterable[str]:
        """The rules in use: of a folder, by whatever process."""
        if self._folder is None:
            return list(self._rules)
        found = Limiter.inspect(self._folder) if self._folder.exists() else []
        return [one.rule for one in found]

    def _named(self, name: str) -> Rule:
        """The rule of that name, which tells all about it."""
        if (rule := self._rules.get(name)) is None:
            algorithm, most, per = name.split("-")
            limit = {"max": int(most), "per": per, "algorithm": algorithm}
            rules = {name: {"limits": {"count": limit}, "capacity": self._capacity}}
            policy = {"version": 1, "memory": _MEMORY, "rules": rules}
            store = "memory" if self._folder is None else f"file:{self._folder}"
            made = Limiter.from_policy(policy, store=store, clock=self._clock).rule(name)
            # Two threads may make one at once; in memory all have to use the same.
            rule = self._rules.setdefault(name, made)
        return rule


def _count(rule: Rule, key: str) -> tuple[int, float]:
    """A key's count, and how long that is kept."""
    stats = rule.stats(key)
    return ((0, 0.0) if stats is None
            else (stats.limits["count"].used, stats.limits["count"].reset_after))


def _expiry(key: str) -> int | None:
    """The length of a key's window, which `limits` writes at its end: `…/10/2/minute`."""
    parts = key.rsplit("/", 2)
    unit = GRANULARITIES.get(parts[-1])
    if unit is None or len(parts) < 3 or not parts[1].isdecimal():
        return None
    return unit.GRANULARITY.seconds * int(parts[1])
