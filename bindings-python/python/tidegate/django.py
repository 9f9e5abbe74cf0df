"""A middleware for Django, under WSGI and ASGI: one hit for each request.

    # settings.py
    MIDDLEWARE = ["tidegate.django.RateLimitMiddleware", ...]
    TIDEGATE = {"rule": "100/min burst 20", "trusted_hops": 1}

It answers requests and finds clients as `tidegate.asgi` does. The options in `TIDEGATE` are those
of `tidegate.asgi.RateLimitMiddleware`, with the `HttpRequest` in place of the scope. A dotted path
such as `"shop.limits.rule"` may name `rule`, `key` and `attributes`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from asgiref.sync import iscoroutinefunction, markcoroutinefunction
from django.conf import settings  # type: ignore[import-untyped, unused-ignore]
from django.core.exceptions import (  # type: ignore[import-untyped, unused-ignore]
    ImproperlyConfigured,
)
from django.http import HttpRequest, HttpResponse  # type: ignore[import-untyped, unused-ignore]
from django.utils.module_loading import import_string  # type: ignore[import-untyped, unused-ignore]

from ._http import Answer, Gate, Verdict, missing
from .wsgi import judged

__all__ = ["RateLimitMiddleware"]


class RateLimitMiddleware:
    """Limits the requests of a Django site by the rule that its setting `TIDEGATE` names.

    A rule with a concurrent limit holds its slot until the view has answered.
    """

    sync_capable = True
    async_capable = True

    def __init__(self, get_response: Callable[[Any], Any]) -> None:
        self.get_response = get_response
        self._gate = _gate()
        self._is_async = iscoroutinefunction(get_response)
        if self._is_async:
            markcoroutinefunction(self)

    def __call__(self, request: HttpRequest) -> HttpResponse | Awaitable[HttpResponse]:
        """Answers one request, or lets the site do so."""
        verdict = judged(self._gate, request, request.META)
        if self._is_async:
            return self._answer_async(request, verdict)
        if isinstance(verdict, Answer):
            return _response(verdict)
        try:
            return _with_fields(verdict, self.get_response(request))
        finally:
            verdict.release()

    async def _answer_async(self, request: HttpRequest, verdict: Verdict | Answer) -> HttpResponse:
        if isinstance(verdict, Answer):
            return _response(verdict)
        try:
            return _with_fields(verdict, await self.get_response(request))
        finally:
            verdict.release()


def _gate() -> Gate[Any]:
    options = dict(getattr(settings, "TIDEGATE", {}))
    if "rule" not in options:
        raise ImproperlyConfigured(
            'tidegate wants a setting such as TIDEGATE = {"rule": "100/min burst 20"}')
    for name in ("rule", "key", "attributes"):
        if _is_path(options.get(name)):
            options[name] = import_string(options[name])
    return Gate(**options)


def _is_path(value: object) -> bool:
    # No limit in text is one: each has a `/` or a space.
    return isinstance(value, str) and all(part.isidentifier() for part in value.split("."))


def _response(answer: Answer) -> HttpResponse:
    return HttpResponse(answer.body, status=int(answer.status), headers=dict(answer.headers))


def _with_fields(verdict: Verdict, response: HttpResponse) -> HttpResponse:
    for name, value in missing(verdict.decision, response.headers):
        response.headers[name] = value
    return response
