"""A middleware for Flask and any other WSGI application: one hit for each request.

    from flask import Flask
    from tidegate.wsgi import RateLimitMiddleware

    app = Flask(__name__)
    app.wsgi_app = RateLimitMiddleware(app.wsgi_app, "100/min burst 20")

It answers requests and finds clients as `tidegate.asgi` does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from ._http import Answer, Gate, Verdict, missing
from ._limited import Key, RuleLike

if TYPE_CHECKING:
    from _typeshed import OptExcInfo
    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment

__all__ = ["RateLimitMiddleware"]


class RateLimitMiddleware:
    """Limits the requests of a WSGI application by a rule.

    The options are those of `tidegate.asgi.RateLimitMiddleware`, with the request's environment in
    place of its scope. A rule with a concurrent limit holds its slot until the application has
    returned, but not while a body is still being made.
    """

    def __init__(
        self,
        app: WSGIApplication,
        rule: RuleLike,
        *,
        key: Callable[[WSGIEnvironment, str | None], Key | None] | None = None,
        attributes: Callable[[WSGIEnvironment], Mapping[str, str]] | None = None,
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

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        """Answers one request, or lets the application do so."""
        verdict = judged(self._gate, environ, environ)
        if isinstance(verdict, Answer):
            start_response(f"{int(verdict.status)} {verdict.status.phrase}", verdict.headers)
            return [verdict.body]
        try:
            return self.app(environ, _with_fields(verdict, start_response))
        finally:
            verdict.release()


def judged(gate: Gate[Any], request: Any, environ: Mapping[str, Any]) -> Verdict | Answer:
    """What a gate does with a request; the environment tells its peer and its `X-Forwarded-For`."""
    # Several lines of one header arrive as one, joined by commas.
    return gate.judge(request, environ.get("REMOTE_ADDR"),
                      [environ.get("HTTP_X_FORWARDED_FOR", "")])


def _with_fields(verdict: Verdict, start_response: StartResponse) -> StartResponse:
    def starting(
        status: str, headers: list[tuple[str, str]], exc_info: OptExcInfo | None = None, /
    ) -> Callable[[bytes], object]:
        headers = headers + missing(verdict.decision, (name for name, _ in headers))
        return (start_response(status, headers, exc_info) if exc_info
                else start_response(status, headers))

    return starting
