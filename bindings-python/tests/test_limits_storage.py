"""Tidegate as a storage of `limits`: asked directly, by that library's strategies, and by
those who build on it."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from fastapi import FastAPI, Request
from flask import Flask
from flask_limiter import Limiter as FlaskLimiter
from limits import RateLimitItemPerHour, RateLimitItemPerMinute, RateLimitItemPerSecond, parse
from limits.errors import ConfigurationError, StorageError
from limits.storage import (
    MovingWindowSupport,
    SlidingWindowCounterSupport,
    Storage,
    storage_from_string,
)
from limits.strategies import (
    FixedWindowRateLimiter,
    MovingWindowRateLimiter,
    SlidingWindowCounterRateLimiter,
)
from slowapi import Limiter as SlowLimiter
from slowapi import _rate_limit_exceeded_handler
from slowapi.errors import RateLimitExceeded
from starlette.testclient import TestClient

from tidegate import ManualClock, PolicyError, StoreError
from tidegate.limits_storage import TidegateStorage

STRATEGIES = [FixedWindowRateLimiter, MovingWindowRateLimiter, SlidingWindowCounterRateLimiter]
on_strategies = pytest.mark.parametrize("strategy", STRATEGIES)


@pytest.fixture
def clock() -> ManualClock:
    # An hour that begins with no window: cells of all lengths begin somewhere before.
    return ManualClock(start=1_000_000_000.0, wall=1_000_000_000.0)


@pytest.fixture(params=["memory", "file"])
def uri(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return "tidegate://" if request.param == "memory" else f"tidegate://{tmp_path}/limits"


@pytest.fixture
def storage(uri: str, clock: ManualClock, monkeypatch: pytest.MonkeyPatch) -> TidegateStorage:
    # One of the strategies reads the time itself.
    monkeypatch.setattr("limits.strategies.time", SimpleNamespace(time=clock.now))
    made = storage_from_string(uri, clock=clock)  # type: ignore[arg-type]
    assert isinstance(made, TidegateStorage)
    return made


def test_the_scheme_is_registered(uri: str) -> None:
    storage = storage_from_string(uri)
    assert isinstance(storage, TidegateStorage)
    assert isinstance(storage, Storage | MovingWindowSupport | SlidingWindowCounterSupport)
    assert storage.check()
    with pytest.raises(ConfigurationError):
        storage_from_string("tidegates://")


def test_counts_add_up_and_are_forgotten_as_one(storage: TidegateStorage,
                                                clock: ManualClock) -> None:
    key = RateLimitItemPerMinute(1).key_for("alice")
    assert (storage.get(key), storage.get_expiry(key)) == (0, clock.now())
    assert [storage.incr(key, 60), storage.incr(key, 60, amount=10)] == [1, 11]
    clock.advance(59)
    assert storage.incr(key, 60) == 12, "later hits don't make it last longer"
    assert storage.get_expiry(key) == pytest.approx(clock.now() + 1, abs=0.002)
    clock.advance(1.001)
    assert (storage.get(key), storage.incr(key, 60)) == (0, 1)


def test_counts_have_no_maximum_of_their_own(storage: TidegateStorage) -> None:
    assert [storage.incr("many", 60, amount=400_000_000) for _ in range(4)][-1] == 1_600_000_000


def test_keys_of_any_make_are_found(storage: TidegateStorage) -> None:
    storage.incr("plain", 10)
    storage.incr("per/second", 20)
    storage.incr("", 30, amount=3)
    assert [storage.get(key) for key in ("plain", "per/second", "", "other")] == [1, 1, 3, 0]


def test_units_of_every_length_can_be_had(storage: TidegateStorage) -> None:
    for text in ("1 per second", "2 per 3 minute", "1 per month", "1 per 1 year"):
        item = parse(text)
        assert storage.incr(item.key_for("a"), item.get_expiry()) == 1
        assert storage.get(item.key_for("a")) == 1


def test_clear_forgets_one_key(storage: TidegateStorage) -> None:
    for key in ("a", "b"):
        storage.incr(key, 60)
        assert storage.acquire_entry(key, 1, 60)
    storage.clear("a")
    assert (storage.get("a"), storage.get("b")) == (0, 1)
    assert storage.acquire_entry("a", 1, 60) and not storage.acquire_entry("b", 1, 60)


def test_reset_forgets_all_and_tells_how_many(storage: TidegateStorage) -> None:
    for number in range(10):
        storage.incr(RateLimitItemPerMinute(10).key_for(str(number)), 60)
        storage.incr(RateLimitItemPerHour(10, namespace="OTHER").key_for(str(number)), 3600)
    assert storage.reset() == 20
    assert storage.get(RateLimitItemPerMinute(10).key_for("1")) == 0


def test_moving_windows_are_exact(storage: TidegateStorage, clock: ManualClock) -> None:
    start = clock.now()
    assert storage.get_moving_window("a", 10, 2) == (start, 0)
    assert not storage.acquire_entry("a", 10, 2, amount=11)
    assert storage.acquire_entry("a", 10, 2, amount=5)
    clock.advance(1.5)
    assert storage.acquire_entry("a", 10, 2, amount=5)
    assert not storage.acquire_entry("a", 10, 2)
    assert storage.get_moving_window("a", 10, 2) == (pytest.approx(start, abs=0.002), 10)
    clock.advance(0.6)
    assert storage.get_moving_window("a", 10, 2) == (pytest.approx(start + 1.5, abs=0.002), 5)
    assert not storage.acquire_entry("a", 10, 2, amount=6)
    assert storage.acquire_entry("a", 10, 2, amount=5)


def test_moving_windows_too_large_to_be_exact_are_refused(storage: TidegateStorage) -> None:
    assert (storage.acquire_entry("a", 4096, 60, amount=4096)
            and not storage.acquire_entry("a", 4096, 60))
    with pytest.raises(PolicyError, match="4,?096"):
        storage.acquire_entry("a", 4097, 60)


def test_the_two_cells_are_weighed(storage: TidegateStorage, clock: ManualClock) -> None:
    clock.set(1_000_000_020.0)  # a minute of the wall clock begins
    assert storage.acquire_sliding_window_entry("a", 10, 60, amount=10)
    assert storage.get_sliding_window("a", 60) == (0, 0.0, 10, 120.0)
    clock.advance(90)  # in the middle of the next minute: half of it counts
    assert storage.get_sliding_window("a", 60) == (10, 30.0, 0, 90.0)
    assert not storage.acquire_sliding_window_entry("a", 10, 60, amount=6)
    assert storage.acquire_sliding_window_entry("a", 10, 60, amount=5)
    assert not storage.acquire_sliding_window_entry("a", 10, 60)
    storage.clear_sliding_window("a", 60)
    assert storage.get_sliding_window("a", 60)[::2] == (0, 0)


@on_strategies
def test_strategies_grant_the_limit(strategy: Any, storage: TidegateStorage,
                                    clock: ManualClock) -> None:
    limiter, rate = strategy(storage), RateLimitItemPerMinute(10, 2)
    clock.set(1_000_000_081.0)  # two minutes of the wall clock have just begun
    assert limiter.get_window_stats(rate, "a").remaining == 10
    assert [limiter.hit(rate, "a") for _ in range(12)] == [True] * 10 + [False] * 2
    assert limiter.hit(rate, "b")
    assert limiter.get_window_stats(rate, "a").remaining == 0
    # From the first hit, or with the clock's two minutes.
    assert 119 <= limiter.get_window_stats(rate, "a").reset_time - clock.now() <= 120.01
    clock.advance(240.001)
    assert limiter.get_window_stats(rate, "a").remaining == 10
    assert limiter.hit(rate, "a")


@on_strategies
def test_strategies_know_costs(strategy: Any, storage: TidegateStorage) -> None:
    limiter, rate = strategy(storage), RateLimitItemPerMinute(10)
    assert not limiter.hit(rate, "a", cost=11)
    assert limiter.hit(rate, "b", cost=5)
    assert limiter.test(rate, "b", cost=5) and not limiter.test(rate, "b", cost=6)
    assert limiter.get_window_stats(rate, "b").remaining == 5
    assert not limiter.hit(rate, "b", cost=6)


@on_strategies
def test_strategies_can_clear(strategy: Any, storage: TidegateStorage) -> None:
    limiter, rate = strategy(storage), RateLimitItemPerHour(2)
    assert limiter.hit(rate, "a") and limiter.test(rate, "a")
    assert limiter.hit(rate, "a") and not limiter.test(rate, "a") and not limiter.hit(rate, "a")
    limiter.clear(rate, "a")
    assert limiter.hit(rate, "a")


def test_a_moving_window_resets_with_its_oldest(storage: TidegateStorage,
                                                clock: ManualClock) -> None:
    limiter, rate = MovingWindowRateLimiter(storage), RateLimitItemPerMinute(2)
    start = clock.now()
    for _ in range(2):
        assert limiter.hit(rate, "a")
        clock.advance(1)
    assert limiter.get_window_stats(rate, "a") == (pytest.approx(start + 60, abs=0.002), 0)


@on_strategies
def test_threads_are_granted_no_more(strategy: Any, uri: str) -> None:
    limiter, rate, granted = strategy(storage_from_string(uri)), RateLimitItemPerHour(100), []

    def work() -> None:
        granted.extend(limiter.hit(rate, "a") for _ in range(50))

    threads = [threading.Thread(target=work) for _ in range(8)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert (len(granted), sum(granted)) == (400, 100)


WORK = """
import sys
import tidegate.limits_storage
from limits import RateLimitItemPerHour, strategies
from limits.storage import storage_from_string
for name in sys.argv[2:]:
    limiter = getattr(strategies, name)(storage_from_string(sys.argv[1]))
    print(sum(limiter.hit(RateLimitItemPerHour(100), name) for _ in range(50)))
"""


def test_processes_share_a_folder(tmp_path: Path) -> None:
    uri, names = f"tidegate://{tmp_path}/limits", [strategy.__name__ for strategy in STRATEGIES]
    command = [sys.executable, "-c", WORK, uri, *names]
    workers = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(3)]
    granted = [[int(line) for line in worker.communicate()[0].split()] for worker in workers]
    assert [sum(each) for each in zip(*granted, strict=True)] == [100] * 3


@on_strategies
def test_a_process_that_comes_later_knows_all_of_it(strategy: Any, tmp_path: Path) -> None:
    def later() -> Any:
        return strategy(storage_from_string(f"tidegate://{tmp_path}/limits"))

    rate = RateLimitItemPerHour(100)
    assert later().hit(rate, "a", cost=99)
    assert later().get_window_stats(rate, "a").remaining == 1
    assert not later().hit(rate, "a", cost=2)
    later().clear(rate, "a")
    assert later().hit(rate, "a", cost=100)
    assert later().storage.reset() == 1
    assert later().hit(rate, "a", cost=100)


def test_a_full_table_grants_no_more(clock: ManualClock) -> None:
    storage = storage_from_string("tidegate://?capacity=10", clock=clock)  # type: ignore[arg-type]
    rate = RateLimitItemPerMinute(1)
    granted = sum(FixedWindowRateLimiter(storage).hit(rate, str(number))
                  for number in range(10_000))
    assert 10 <= granted < 200


def test_errors_may_be_wrapped(tmp_path: Path) -> None:
    place = tmp_path / "file"
    place.write_text("not a folder")
    with pytest.raises(StoreError, match="not a folder"):
        storage_from_string(f"tidegate://{place}").incr("a", 1)
    with pytest.raises(StorageError) as wrapped:
        storage_from_string(f"tidegate://{place}", wrap_exceptions=True).incr("a", 1)
    assert isinstance(wrapped.value.storage_error, StoreError)


def test_a_relative_folder_is_refused() -> None:
    with pytest.raises(ValueError, match="three slashes"):
        storage_from_string("tidegate://limits")


@pytest.mark.parametrize("strategy", ["fixed-window", "moving-window", "sliding-window-counter"])
def test_flask_limiter_switches_by_a_uri(strategy: str, uri: str) -> None:
    def site() -> Any:
        app = Flask(__name__)
        limiter = FlaskLimiter(lambda: "everybody", app=app, storage_uri=uri, strategy=strategy,
                               headers_enabled=True)

        @app.get("/")
        @limiter.limit("3 per hour")
        def hello() -> str:
            return "hello"

        return app.test_client()

    first = site()
    answers = [first.get("/") for _ in range(5)]
    assert [answer.status_code for answer in answers] == [200, 200, 200, 429, 429]
    assert answers[0].headers["X-RateLimit-Remaining"] == "2"
    # Another worker: it shares a folder, and has a memory of its own.
    assert site().get("/").status_code == (200 if uri == "tidegate://" else 429)


def test_slowapi_switches_by_a_uri(uri: str) -> None:
    limiter = SlowLimiter(key_func=lambda: "everybody", storage_uri=uri, strategy="moving-window")
    app = FastAPI()
    app.state.limiter = limiter
    app.add_exception_handler(RateLimitExceeded,
                              _rate_limit_exceeded_handler)  # type: ignore[arg-type]

    @app.get("/")
    @limiter.limit("3/hour")
    def hello(request: Request) -> str:
        return "hello"

    asked = TestClient(app)
    assert [asked.get("/").status_code for _ in range(5)] == [200, 200, 200, 429, 429]


def test_a_second_is_over_after_a_second(storage: TidegateStorage, clock: ManualClock) -> None:
    limiter, rate = FixedWindowRateLimiter(storage), RateLimitItemPerSecond(1)
    assert limiter.hit(rate) and not limiter.hit(rate)
    clock.advance(1.001)
    assert limiter.hit(rate)
