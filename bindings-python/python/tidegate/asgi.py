"""A middleware for Starlette, FastAPI and any other ASGI application: one hit for each request.

    from fastapi import FastAPI
    from tidegate.asgi import RateLimitMiddleware

    app = FastAPI()
    app.add_middleware(RateLimitMiddleware, rule="100/min burst 20")

A denied request is answered with 429, the fields of `Decision.headers` and a body of
`application/problem+json`. An allowed request goes to the application, and its response gets the
same fields.

uvicorn reads `X-Forwarded-For` itself, by default for a proxy at 127.0.0.1. It replaces the peer's
address before any application sees it. Use either that or `trusted_hops` and `trusted_proxies`. For
the latter start uvicorn with `--no-proxy-headers`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, MutableMapping
from typing import Any, TypeAlias

from ._http import Answer, Gate, Verdict
from ._limited import Key, RuleLike
from ._tidegate import _with_fields

__all__ = ["RateLimitMiddleware"]

Scope: TypeAlias = MutableMapping[str, Any]
Message: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Message]]
Send: TypeAlias = Callable[[Message], Awaitable[None]]
App: TypeAlias = Callable[[Scope, Receive, Send], Awaitable[None]]

# What a refused websocket is closed with where the server can't send a response: policy violation.
_CLOSED = 1008


class RateLimitMiddleware:
    """Limits the requests of an ASGI application by a rule.

    Unless a `key` is given, the key is the client's address, by `tidegate.ip_key`. The client is
    the peer: any client can write headers, so `X-Forwarded-For` is read only with `trusted_hops`
    or `trusted_proxies`. A request that has no key is answered with 500 and never passes unlimited.

    A rule with a concurrent limit holds its slot until the response begins, or as long as a
    websocket is open. Give such a rule a lease that is long enough.

    A denied websocket gets the same 429 if the server can send one. Otherwise it is closed with
    1008 before it is accepted, which clients see as 403.

    Args:
        app: The application.
        rule: A rule, a limiter with one rule, or limits as text.
        key: Makes the key, all its parts, from a scope and the key of the client's address (`None`
            if that is not known). Returns `None` for a request without a key.
        attributes: More about a request for the rule: its role, its tier. The client's whole
            address is added as `ip`, unless this returns an `ip`.
        trusted_hops: How many proxies every request passes. The client is the address at this
            place of `X-Forwarded-For`, counted from the right.
        trusted_proxies: Ranges of addresses of proxies. The client is the first address outside of
            them: the peer's, then those of `X-Forwarded-For` from the right.
        fallback_key: The key that requests without a key share, in place of an answer of 500.
    """

    def __init__(
        self,
        app: App,
        rule: RuleLike,
        *,
        key: Callable[[Scope, str | None], Key | None] | None = None,
        attributes: Callable[[Scope], Mapping[str, str]] | None = None,
        trusted_hops: int = 0,
        trusted_proxies: Iterable[str] = (),
        fallback_key: Key | None = None,
    ) -> None:
        self.app = app
        self._gate = Gate(
            rule,
            key=key,
            attributes=attributes,
            trusted_hops=trusted_hops,
            trusted_proxies=trusted_proxies,
            fallback_key=fallback_key,
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers one request, or lets the application do so."""
        if scope["type"] not in ("http", "websocket"):
            return await self.app(scope, receive, send)
        gate, client = self._gate, scope.get("client")
        lines = _forwarded(scope) if gate.reads_forwarded else ()
        verdict = gate.judge(scope, client[0] if client else None, lines)
        if isinstance(verdict, Answer):
            return await _refuse(verdict, scope, receive, send)
        try:
            await self.app(scope, receive, _sending(verdict, send))
        finally:
            verdict.release()


def _forwarded(scope: Scope) -> list[str]:
    return [value.decode("latin-1") for name, value in scope["headers"]
            if name == b"x-forwarded-for"]


def _sending(verdict: Verdict, send: Send) -> Send:
    async def sending(message: Message) -> None:
        kind = message["type"]
        if kind == "http.response.start" or kind == "websocket.accept":
            message["headers"] = _with_fields(verdict.decision, message.get("headers", ()))
            if kind == "http.response.start":
                # A slot is free again before the response is sent.
                verdict.release()
        await send(message)

    return sending


def _encoded(fields: Iterable[tuple[str, str]]) -> list[tuple[bytes, bytes]]:
    return [(name.lower().encode(), value.encode("latin-1")) for name, value in fields]


async def _refuse(answer: Answer, scope: Scope, receive: Receive, send: Send) -> None:
    prefix = ""
    if scope["type"] == "websocket":
        await receive()
        if "websocket.http.response" not in scope.get("extensions", {}):
            return await send({"type": "websocket.close", "code": _CLOSED,
                               "reason": answer.status.phrase})
        prefix = "websocket."
    start = {"status": int(answer.status), "headers": _encoded(answer.headers)}
    await send({"type": f"{prefix}http.response.start", **start})
    await send({"type": f"{prefix}http.response.body", "body": answer.body})
