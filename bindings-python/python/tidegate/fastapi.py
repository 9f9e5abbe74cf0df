"""A dependency for FastAPI: one hit for each request of a route, a router or an application.

    from fastapi import Depends, FastAPI
    from tidegate.fastapi import RateLimit

    app = FastAPI()

    @app.get("/search", dependencies=[Depends(RateLimit("5/10s window"))])
    async def search() -> list[str]: ...

The response gets the fields of `Decision.headers`. A denied request raises `TooManyRequests`, which
FastAPI answers as every other `HTTPException`, with 429 and these fields. For the
`application/problem+json` of the middleware add
`app.add_exception_handler(TooManyRequests, problem)`.
"""

# No `from __future__ import annotations`: FastAPI reads those of `RateLimit.__call__` at run time.

from collections.abc import AsyncIterator, Callable, Iterable, Mapping

from fastapi import HTTPException, Response, WebSocketException
from starlette.requests import HTTPConnection, Request

from . import Decision
from ._http import Answer, Gate, too_many
from ._limited import Key, RuleLike
from ._tidegate import _denial

__all__ = ["RateLimit", "TooManyRequests", "problem"]


class TooManyRequests(HTTPException):
    """A request that was denied, with the `decision` on it."""

    def __init__(self, decision: Decision) -> None:
        super().__init__(429, _denial(decision), decision.headers())
        self.decision = decision


def problem(request: Request, denied: Exception) -> Response:
    """The answer of the middleware to a `TooManyRequests`, as an exception handler."""
    assert isinstance(denied, TooManyRequests), "a handler of TooManyRequests, and of nothing else"
    answer = too_many(denied.decision)
    return Response(answer.body, int(answer.status), dict(answer.headers))


class RateLimit:
    """Limits the requests that depend on it by a rule.

    The options are those of `tidegate.asgi.RateLimitMiddleware`, with the connection (a `Request`
    or a `WebSocket`) in place of the scope. A rule with a concurrent limit holds its slot as long
    as FastAPI keeps the dependency. A websocket that is denied is closed with 1008.
    """

    def __init__(
        self,
        rule: RuleLike,
        *,
        key: Callable[[HTTPConnection, str | None], Key | None] | None = None,
        attributes: Callable[[HTTPConnection], Mapping[str, str]] | None = None,
        trusted_hops: int = 0,
        trusted_proxies: Iterable[str] = (),
        fallback_key: Key | None = None,
    ) -> None:
        self._gate = Gate(
            rule,
            key=key,
            attributes=attributes,
            trusted_hops=trusted_hops,
            trusted_proxies=trusted_proxies,
            fallback_key=fallback_key,
        )

    async def __call__(self, connection: HTTPConnection,
                       response: Response) -> AsyncIterator[Decision]:
        """What the rule says to a connection, if that may pass."""
        peer = connection.client.host if connection.client else None
        verdict = self._gate.judge(connection, peer, connection.headers.getlist("x-forwarded-for"))
        if isinstance(verdict, Answer):
            raise _refusal(verdict, connection)
        response.headers.update(verdict.decision.headers())
        try:
            yield verdict.decision
        finally:
            verdict.release()


def _refusal(answer: Answer, connection: HTTPConnection) -> Exception:
    if connection.scope["type"] == "websocket":
        return WebSocketException(1008, answer.status.phrase)
    if answer.decision is None:
        return HTTPException(answer.status)
    return TooManyRequests(answer.decision)
