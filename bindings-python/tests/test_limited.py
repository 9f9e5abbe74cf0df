"""The decorator."""

from __future__ import annotations

import asyncio
import pickle

import pytest

from tidegate import Limiter, ManualClock, RateLimited, TidegateError, limited


def test_calls_are_limited_by_their_key() -> None:
    @limited("2/min", key=lambda user, text: user)
    def send(user: str, text: str) -> str:
        """Sends."""
        return f"{user}: {text}"

    assert [send("alice", "a"), send("alice", text="b")] == ["alice: a", "alice: b"]
    assert send("bob", "c") == "bob: c"
    with pytest.raises(RateLimited) as denied:
        send("alice", "d")
    assert denied.value.decision.reason == "2/min"
    assert isinstance(denied.value, TidegateError)
    assert str(denied.value).startswith("default: The rate limit is reached; try again in ")
    assert (send.__name__, send.__doc__) == ("send", "Sends.")


def test_coroutines_are_limited_too() -> None:
    @limited("1/min")
    async def fetch(url: str) -> str:
        return url

    async def twice() -> None:
        assert await fetch("a") == "a"
        with pytest.raises(RateLimited):
            await fetch("b")

    assert asyncio.iscoroutinefunction(fetch)
    asyncio.run(twice())


def test_one_rule_may_limit_many_functions() -> None:
    limiter = Limiter("1/min")

    @limited(limiter, key="shared")
    def one() -> int:
        return 1

    @limited(limiter.rule("default"), key="shared")
    def two() -> int:
        return 2

    assert one() == 1
    with pytest.raises(RateLimited):
        two()


def test_functions_have_keys_of_their_own() -> None:
    limiter = Limiter("1/min")

    @limited(limiter)
    def one() -> int:
        return 1

    @limited(limiter)
    def two() -> int:
        return 2

    assert one() + two() == 3


def test_calls_may_cost_more() -> None:
    limiter = Limiter("10/min")

    @limited(limiter, key="all", cost=len)
    def print_out(pages: list[int]) -> int:
        return len(pages)

    assert print_out([1, 2, 3]) == 3
    assert limiter.peek("all", 0).remaining == 7
    with pytest.raises(RateLimited):
        print_out([0] * 8)


def test_methods_see_themselves_in_the_key() -> None:
    class Account:
        def __init__(self, name: str) -> None:
            self.name = name

        @limited("1/min", key=lambda self: self.name)
        def pay(self) -> str:
            return self.name

    assert Account("a").pay() + Account("b").pay() == "ab"
    with pytest.raises(RateLimited):
        Account("a").pay()


def test_calls_may_wait_for_their_turn() -> None:
    # Real time, but no more than 20 ms of it.
    @limited("100/s burst 1", timeout=None)
    def call() -> bool:
        return True

    @limited("100/s burst 1", timeout=10)
    async def acall() -> bool:
        return True

    async def thrice() -> list[bool]:
        return await asyncio.gather(acall(), acall(), acall())

    assert [call(), call(), call()] == [True] * 3
    assert asyncio.run(thrice()) == [True] * 3


def test_waiting_too_long_is_refused_at_once() -> None:
    # The clock stands still: a call that waited would wait for ever.
    limiter = Limiter("1/min", clock=ManualClock())

    @limited(limiter, key="a", timeout=5)
    def call() -> None: ...

    @limited(limiter, key="a", timeout=5)
    async def acall() -> None: ...

    call()
    with pytest.raises(RateLimited) as denied:
        call()
    assert denied.value.decision.retry_after == 60
    with pytest.raises(RateLimited):
        asyncio.run(acall())


def test_refusals_can_be_pickled() -> None:
    denied = RateLimited(Limiter("0/min").hit("a"))
    again = pickle.loads(pickle.dumps(denied))
    assert (again.decision, str(again)) == (denied.decision, str(denied))
