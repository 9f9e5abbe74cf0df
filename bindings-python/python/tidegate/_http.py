"""What the middlewares share: whose request it is, what the rule says to it, and the answer to a refusal.

`X-Forwarded-For` grows at its right end: each proxy adds the address that it was called from. What stands
left of the first address that a trusted proxy wrote can be anybody's invention, so it is read from the
right, and only as far as somebody trusted wrote it.
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from http import HTTPStatus
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Any, Generic, NamedTuple, TypeAlias, TypeVar

from . import Decision, Permit, TidegateError, ip_key
from ._limited import Key, RuleLike, as_rule, in_words, millis

Address: TypeAlias = IPv4Address | IPv6Address
Network: TypeAlias = IPv4Network | IPv6Network
R = TypeVar("R")

_log = logging.getLogger("tidegate")
_WITH_PORT = re.compile(r"\[([^]]*)\](?::\d{1,5})?|([^:]*):\d{1,5}")

NO_KEY = (
    "This request has no key to be limited by: either the middleware's `key` gave none, or the server knows"
    " no address of the peer. Set a `fallback_key` for those that have none."
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
    """The answer to a request that was denied: a problem by RFC 9457, with the decision's fields."""
    more: dict[str, Any] = {"rule": decision.rule, "reason": decision.reason}
    more["retry_after_ms"] = None if decision.retry_after is None else millis(decision.retry_after)
    if decision.attach is not None:
        more["attach"] = decision.attach
    answer = _problem(HTTPStatus.TOO_MANY_REQUESTS, in_words(decision), more)
    answer.headers.extend(decision.headers().items())
    return answer._replace(decision=decision)


def _unjudged(why: str) -> Answer:
    # Nobody else learns of it: the application is not asked, and no exception reaches the server.
    _log.error("a request could not be judged: %s", why)
    return _problem(HTTPStatus.INTERNAL_SERVER_ERROR, why, {})


def _problem(status: HTTPStatus, detail: str, more: Mapping[str, Any]) -> Answer:
    # RFC 9457 wants the status's own phrase as the title of a type that is `about:blank`.
    problem = {"type": "about:blank", "title": status.phrase, "status": int(status), "detail": detail, **more}
    body = json.dumps(problem).encode()
    headers = [("Content-Type", "application/problem+json"), ("Content-Length", str(len(body)))]
    return Answer(status, headers, body)


def missing(decision: Decision, present: Iterable[str]) -> list[tuple[str, str]]:
    """A decision's fields but those that are there already: whoever set them knows more about this answer."""
    taken = {name.lower() for name in present}
    return [(name, value) for name, value in decision.headers().items() if name.lower() not in taken]


def _address(text: str) -> Address | None:
    try:
        address = ip_address(text)
    except ValueError:
        return None
    if isinstance(address, IPv4Address):
        return address
    # Made anew without its zone, which says nothing about who it is.
    return address.ipv4_mapped or IPv6Address(int(address))


def _read(item: str) -> Address | None:
    """An address as proxies write it: some add the port, and brackets."""
    match = _WITH_PORT.fullmatch(item)
    return _address(match[1] or match[2] or "" if match else item)


def _forwarded(lines: Sequence[str]) -> Iterator[Address | None]:
    """What `X-Forwarded-For` names, from the right; `None` for what is no address."""
    for line in reversed(lines):
        for item in reversed(line.split(",")):
            if item.strip():
                yield _read(item.strip())


def _network(text: str) -> Network:
    network = ip_network(text, strict=False)
    if isinstance(network, IPv6Network) and network.prefixlen >= 96:
        # A range within the IPv4-mapped addresses is one of IPv4.
        mapped = network.network_address.ipv4_mapped
        return IPv4Network((mapped, network.prefixlen - 96)) if mapped else network
    return network


class Gate(Generic[R]):
    """A rule in front of requests of type `R`; see `tidegate.asgi.RateLimitMiddleware` for the options."""

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
        self._hops = trusted_hops
        self._proxies = [_network(text) for text in trusted_proxies]
        self._fallback = fallback_key
        if self._hops and self._proxies:
            raise ValueError("trusted_hops or trusted_proxies, not both: they are two ways to read one header")

    def judge(self, request: R, peer: str | None, forwarded: Sequence[str]) -> Verdict | Answer:
        """What is to be done with a request: let it pass under a verdict, or give an answer.

        `forwarded` are the lines of its `X-Forwarded-For`, in their order.
        """
        client = self._client(_address(peer) if peer else None, forwarded)
        key = self._key_of(request, client)
        if key is None:
            return _unjudged(NO_KEY)
        told = {} if client is None else {"ip": str(client)}
        if self._attributes is not None:
            told.update(self._attributes(request))
        try:
            verdict = self._ask(key, told)
        except TidegateError as error:
            return _unjudged(str(error))
        return verdict if verdict.decision.allowed else too_many(verdict.decision)

    def _ask(self, key: Key, told: dict[str, Any]) -> Verdict:
        if not self.rule.has_permits():
            return Verdict(self.rule.hit(key, **told))
        permit = self.rule.permit(key, **told)
        return Verdict(permit.decision, permit)

    def _key_of(self, request: R, client: Address | None) -> Key | None:
        address = None if client is None else ip_key(str(client))
        key = address if self._key is None else self._key(request, address)
        return self._fallback if key is None else key

    def _client(self, peer: Address | None, forwarded: Sequence[str]) -> Address | None:
        """The client's address. Where the header falls short of what was promised, it is the last address
        that is sure: a proxy's, which its clients then share, and never an invented one."""
        named = _forwarded(forwarded)
        if self._hops:
            for _ in range(self._hops - 1):
                next(named, None)
            return next(named, None) or peer
        while peer is not None and any(peer in network for network in self._proxies):
            beyond = next(named, None)
            if beyond is None:
                break
            peer = beyond
        return peer
