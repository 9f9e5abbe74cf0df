"""What the middlewares share: the client of a request, the rule's verdict, the answer to a refusal.

The native part finds the client and makes the bodies of refusals, as it does for other languages.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from http import HTTPStatus
from typing import Any, Generic, NamedTuple, TypeVar

from . import Decision, Permit, TidegateError
from ._limited import Key, RuleLike, as_rule
from ._tidegate import _denial_body, _ProxyTrust, _unjudged_body

R = TypeVar("R")

_log = logging.getLogger("tidegate")

NO_KEY = (
    "This request has no key to be limited by: either the middleware's `key` gave none, or the "
    "server knows no address of the peer. Set a `fallback_key` for those that have none."
)


class Answer(NamedTuple):
    """A response that the application never sees the request of."""

    status: HTTPStatus
    headers: list[tuple[str, str]]
    body: bytes
    decision: Decision | None = None
    """None where a request could not be judged."""


class Verdict(NamedTuple):
    """What a rule said to a request."""

    decision: Decision
    permit: Permit | None = None

    def release(self) -> None:
        """Gives back the slot that it holds, if any."""
        if self.permit is not None:
            self.permit.release()


def too_many(decision: Decision) -> Answer:
    """The answer to a denied request: a problem by RFC 9457, with the decision's fields."""
    return _problem(HTTPStatus.TOO_MANY_REQUESTS, _denial_body(decision), decision)


def _unjudged(why: str) -> Answer:
    # Neither the application nor the server learns of it, so it is logged.
    _log.error("a request could not be judged: %s", why)
    return _problem(HTTPStatus.INTERNAL_SERVER_ERROR, _unjudged_body(why))


def _problem(status: HTTPStatus, text: str, decision: Decision | None = None) -> Answer:
    body = text.encode()
    headers = [("Content-Type", "application/problem+json"), ("Content-Length", str(len(body)))]
    if decision is not None:
        headers += decision.headers().items()
    return Answer(status, headers, body, decision)


def missing(decision: Decision, present: Iterable[str]) -> list[tuple[str, str]]:
    """A decision's fields, without those that the application has set itself."""
    taken = {name.lower() for name in present}
    return [(name, value) for name, value in decision.headers().items()
            if name.lower() not in taken]


class Gate(Generic[R]):
    """A rule in front of requests of type `R`.

    The options are those of `tidegate.asgi.RateLimitMiddleware`.
    """

    def __init__(
        self,
        rule: RuleLike,
        *,
        key: Callable[[R, str | None], Key | None] | None = None,
        attributes: Callable[[R], Mapping[str, str]] | None = None,
        trusted_hops: int = 0,
        trusted_proxies: Iterable[str] = (),
        fallback_key: Key | None = None,
    ) -> None:
        self.rule = as_rule(rule)
        self._key = key
        self._attributes = attributes
        self._trust = _ProxyTrust(trusted_hops, list(trusted_proxies))
        self.reads_forwarded = self._trust.reads_lines
        """Whether `judge` reads the lines of `X-Forwarded-For`."""
        self._fallback = fallback_key
        # The client's key and address are all that the rule is asked by.
        self._is_plain = key is None and attributes is None

    def judge(self, request: R, peer: str | None, forwarded: Sequence[str]) -> Verdict | Answer:
        """What is to be done with a request: let it pass under a verdict, or give an answer.

        `forwarded` are the lines of its `X-Forwarded-For`, in their order.
        """
        try:
            decision = self._trust.hit(self.rule, peer, forwarded) if self._is_plain else None
        except TidegateError as error:
            return _unjudged(str(error))
        if decision is None:
            return self._judge(request, peer, forwarded)
        return Verdict(decision) if decision.allowed else too_many(decision)

    def _judge(self, request: R, peer: str | None, forwarded: Sequence[str]) -> Verdict | Answer:
        address, client = self._trust.client(peer, forwarded) or (None, None)
        key = client if self._key is None else self._key(request, client)
        if key is None:
            key = self._fallback
        if key is None:
            return _unjudged(NO_KEY)
        attributes = {} if address is None else {"ip": address}
        if self._attributes is not None:
            attributes.update(self._attributes(request))
        try:
            verdict = self._ask(key, attributes)
        except TidegateError as error:
            return _unjudged(str(error))
        return verdict if verdict.decision.allowed else too_many(verdict.decision)

    def _ask(self, key: Key, attributes: dict[str, Any]) -> Verdict:
        if not self.rule.has_permits():
            return Verdict(self.rule.hit(key, **attributes))
        permit = self.rule.permit(key, **attributes)
        return Verdict(permit.decision, permit)
