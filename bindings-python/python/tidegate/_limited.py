"""A decorator that limits the calls of a function."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, ParamSpec, TypeAlias, TypeVar, cast

from ._errors import TidegateError
from ._tidegate import Decision, Limiter, Rule, _denial

Key: TypeAlias = str | bytes | int | Sequence[str]
RuleLike: TypeAlias = Rule | Limiter | str | Sequence[str]
P = ParamSpec("P")
T = TypeVar("T")


def as_rule(rule: RuleLike) -> Rule | Limiter:
    """A rule or limiter as it is, or the limiter that these limits make."""
    return rule if isinstance(rule, (Rule, Limiter)) else Limiter(rule)


class RateLimited(TidegateError):
    """A call that was refused, with the `decision` on it."""

    def __init__(self, decision: Decision) -> None:
        super().__init__(decision)
        self.decision = decision

    def __str__(self) -> str:
        return f"{self.decision.rule}: {_denial(self.decision)}"


def limited(
    rule: RuleLike,
    *,
    key: Callable[..., Key] | Key | None = None,
    cost: Callable[..., int] | int = 1,
    timeout: float | None = 0,
) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """Limits the calls of a function, `def` or `async def`.

        @limited("5/min", key=lambda user, text: user)
        def send(user: str, text: str) -> None: ...

        @limited("100/s", timeout=None)
        async def fetch(url: str) -> bytes: ...

    Args:
        rule: A rule, a limiter with one rule, or limits as text.
        key: The key: a function of the call's arguments, or one key for all calls. Default: the
            function's name.
        cost: What a call costs, or a function of its arguments that returns it.
        timeout: How long a call may wait for its turn, in seconds. 0 raises at once. `None` waits
            without end. A `def` blocks its thread, an `async def` awaits.

    Raises:
        RateLimited: The call is denied, or would have to wait longer than `timeout`. It is raised
            at once, without a wait.
    """
    import inspect  # here, since it takes longer to load than all of this package

    judge = as_rule(rule)

    def decorate(function: Callable[P, T]) -> Callable[P, T]:
        name = f"{function.__module__}.{function.__qualname__}"

        def asked(args: Any, kwargs: Any) -> tuple[Key, int]:
            whom = key(*args, **kwargs) if callable(key) else name if key is None else key
            return whom, cost(*args, **kwargs) if callable(cost) else cost

        if inspect.iscoroutinefunction(function):

            @functools.wraps(function)
            async def calling(*args: P.args, **kwargs: P.kwargs) -> Any:
                whom, much = asked(args, kwargs)
                _pass(judge.hit(whom, much) if timeout == 0
                      else await judge.acquire(whom, much, timeout=timeout))
                return await function(*args, **kwargs)

            return cast("Callable[P, T]", calling)

        @functools.wraps(function)
        def call(*args: P.args, **kwargs: P.kwargs) -> T:
            whom, much = asked(args, kwargs)
            _pass(judge.hit(whom, much) if timeout == 0
                  else judge.wait(whom, much, timeout=timeout))
            return function(*args, **kwargs)

        return call

    return decorate


def _pass(decision: Decision) -> None:
    if not decision.allowed:
        raise RateLimited(decision)
