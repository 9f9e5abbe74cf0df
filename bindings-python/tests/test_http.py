"""The middlewares and the dependency, each in front of an application of the real framework.

All of them keep to one contract, so most tests run on each: `site` makes one of the application
below, and `Site.get` asks it as a client at some address.
"""

from __future__ import annotations

import asyncio
import json
import pickle
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import django
import pytest
from django.conf import settings
from django.http import HttpResponse
from django.test import AsyncClient, Client, override_settings
from django.urls import path as django_path
from fastapi import Depends, FastAPI, WebSocket
from fastapi.responses import PlainTextResponse
from flask import Flask
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.routing import Route, WebSocketRoute
from starlette.testclient import TestClient, WebSocketDenialResponse
from starlette.websockets import WebSocketDisconnect

import tidegate.asgi
import tidegate.wsgi
from tidegate import Limiter, ManualClock, ip_key
from tidegate._http import Answer, Gate, too_many
from tidegate.fastapi import RateLimit, TooManyRequests, problem

PEER = "203.0.113.9"
# What a handler does, set by the test that wants it.
handler: Callable[[], str] = lambda: "hello"  # noqa: E731


class Response(NamedTuple):
    status: int
    headers: dict[str, str]
    json: Any
    text: str


class Site(NamedTuple):
    ask: Callable[[str, str, dict[str, str]], Any]

    def get(self, path: str = "/", peer: str = PEER, **headers: str) -> Response:
        """Header names are written with underscores."""
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        answer = self.ask(path, peer, sent)
        fields = {name.lower(): value for name, value in answer.headers.items()}
        text = answer.text if isinstance(answer.text, str) else answer.text()
        return Response(answer.status_code, fields, _json(answer, fields), text)


def _json(answer: Any, fields: dict[str, str]) -> Any:
    if "json" not in fields.get("content-type", ""):
        return None
    return answer.json() if callable(answer.json) else answer.json


def starlette(**options: Any) -> Site:
    async def hello(request: Request) -> PlainTextResponse:
        return PlainTextResponse(handler())

    async def own(request: Request) -> PlainTextResponse:
        return PlainTextResponse("own", headers={"x-ratelimit-limit": "the handler's"})

    middleware = [Middleware(tidegate.asgi.RateLimitMiddleware, **options)]
    app = Starlette(routes=[Route("/", hello), Route("/own", own)], middleware=middleware)
    app.middleware_stack = app.build_middleware_stack()  # now, not at the first request
    return Site(lambda path, peer, sent: TestClient(app, client=(peer, 4711)).get(path,
                                                                                  headers=sent))


def fastapi(**options: Any) -> Site:
    app = FastAPI(dependencies=[Depends(RateLimit(**options))])
    app.add_exception_handler(TooManyRequests, problem)

    @app.get("/", response_class=PlainTextResponse)
    def hello() -> str:
        return handler()

    return Site(lambda path, peer, sent: TestClient(app, client=(peer, 4711)).get(path,
                                                                                  headers=sent))


def flask(**options: Any) -> Site:
    app = Flask(__name__)
    app.wsgi_app = tidegate.wsgi.RateLimitMiddleware(  # type: ignore[method-assign]
        app.wsgi_app, **options)

    @app.get("/")
    def hello() -> str:
        return handler()

    @app.get("/own")
    def own() -> tuple[str, dict[str, str]]:
        return "own", {"x-ratelimit-limit": "the handler's"}

    def ask(path: str, peer: str, sent: dict[str, str]) -> Any:
        return app.test_client().get(path, headers=sent, environ_base={"REMOTE_ADDR": peer})

    return Site(ask)


def _django_hello(request: Any) -> HttpResponse:
    return HttpResponse(handler())


def _django_own(request: Any) -> HttpResponse:
    return HttpResponse("own", headers={"X-RateLimit-Limit": "the handler's"})


urlpatterns = [django_path("", _django_hello), django_path("own", _django_own)]
settings.configure(
    ROOT_URLCONF=sys.modules[__name__],
    # Below another, which asks of what kind it is.
    MIDDLEWARE=["django.middleware.common.CommonMiddleware", "tidegate.django.RateLimitMiddleware"],
    ALLOWED_HOSTS=["*"],
    SECRET_KEY="tests",
)
django.setup()


class DjangoAnswer:
    def __init__(self, response: Any) -> None:
        self.headers, self.status_code = response.headers, response.status_code
        self.text, self.json = (response.content.decode(),
                                response.json if response.content else None)


def django_sync(**options: Any) -> Site:
    with override_settings(TIDEGATE=options):
        client = Client()
        client.handler.load_middleware()

    def ask(path: str, peer: str, sent: dict[str, str]) -> Any:
        return DjangoAnswer(client.get(path, REMOTE_ADDR=peer, headers=sent))

    return Site(ask)


def django_async(**options: Any) -> Site:
    with override_settings(TIDEGATE=options):
        client = AsyncClient()
        client.handler.load_middleware(is_async=True)
    base_scope = client._base_scope

    def ask(path: str, peer: str, sent: dict[str, str]) -> Any:
        client._base_scope = lambda **scope: {**base_scope(**scope), "client": [peer, 4711]}
        return DjangoAnswer(asyncio.run(client.get(path, headers=sent)))

    return Site(ask)


MIDDLEWARES = [starlette, flask, django_sync, django_async]
on_all = pytest.mark.parametrize("site", [*MIDDLEWARES, fastapi], ids=lambda site: site.__name__)
on_middlewares = pytest.mark.parametrize("site", MIDDLEWARES, ids=lambda site: site.__name__)


@on_all
def test_allowed_and_denied_have_the_same_fields(site: Callable[..., Site]) -> None:
    limiter = Limiter("2/min", clock=ManualClock(start=7.0, wall=1000.0), attach={"help": "/docs"})
    asked = site(rule=limiter)
    first = asked.get()
    assert (first.status, first.text) == (200, "hello")
    assert first.headers["x-ratelimit-limit"] == "2"
    assert first.headers["x-ratelimit-remaining"] == "1"
    assert first.headers["ratelimit"] == '"2/min";r=1;t=30'
    assert "retry-after" not in first.headers
    asked.get()
    denied = asked.get()
    assert denied.status == 429
    assert denied.headers["content-type"] == "application/problem+json"
    assert denied.headers["retry-after"] == "30"
    assert denied.headers["x-ratelimit-reset"] == "1030"
    assert denied.headers["ratelimit-policy"] == '"2/min";q=2;w=60'
    assert denied.json == {
        "type": "about:blank",
        "title": "Too Many Requests",
        "status": 429,
        "detail": "The rate limit is reached; try again in 30000 ms.",
        "rule": "default",
        "reason": "2/min",
        "retry_after_ms": 30000,
        "attach": {"help": "/docs"},
    }


@on_all
def test_waiting_that_never_helps_is_said(site: Callable[..., Site]) -> None:
    denied = site(rule=Limiter("0/min")).get()
    assert denied.json["retry_after_ms"] is None and "attach" not in denied.json
    assert denied.json["detail"] == "This request is over the limit, and waiting does not help."
    assert "retry-after" not in denied.headers


@on_all
def test_each_client_has_its_own(site: Callable[..., Site]) -> None:
    asked = site(rule="1/min")
    statuses = [asked.get(peer=peer).status
                for peer in (PEER, PEER, "198.51.100.1", f"::ffff:{PEER}")]
    assert statuses == [200, 429, 200, 429]
    statuses = [asked.get(peer=peer).status
                for peer in ("2001:db8:0:1ff::1", "2001:db8:0:100::2", "2001:db8:0:200::1")]
    assert statuses == [200, 429, 200]


@on_all
def test_headers_are_believed_only_from_the_trusted(site: Callable[..., Site]) -> None:
    blind = site(rule="1/min")
    assert [blind.get(X_Forwarded_For=f"10.0.0.{i}").status for i in (1, 2)] == [200, 429]
    hops = site(rule="1/min", trusted_hops=1)
    seen = [hops.get(X_Forwarded_For=line).status
            for line in ("6.6.6.6, 1.1.1.1", "7.7.7.7, 1.1.1.1", "1.1.1.1, 2.2.2.2")]
    assert seen == [200, 429, 200]
    proxies = site(rule="1/min", trusted_proxies=["10.0.0.0/8"])
    seen = [proxies.get(peer="10.0.0.1", X_Forwarded_For=f"6.6.6.{i}, 1.1.1.1, 10.0.0.2").status
            for i in (1, 2)]
    assert seen == [200, 429]
    assert ([proxies.get(peer=PEER, X_Forwarded_For=f"6.6.6.{i}").status for i in (1, 2)]
            == [200, 429])


@on_all
def test_keys_may_be_ones_own(site: Callable[..., Site]) -> None:
    policy = {"version": 1, "rules": {"default": {"key": ["what", "client"], "limits": "1/min"}}}
    asked = site(rule=Limiter.from_policy(policy), key=lambda request, client: ["mail", client])
    assert [asked.get(peer=peer).status for peer in (PEER, PEER, "198.51.100.1")] == [200, 429, 200]


@on_all
def test_a_request_without_a_key_never_passes(site: Callable[..., Site],
                                              caplog: pytest.LogCaptureFixture) -> None:
    nobody = site(rule="100/min", key=lambda request, client: None)
    assert nobody.get().status == 500
    assert "no key" in caplog.text
    shared = site(rule="1/min", key=lambda request, client: None, fallback_key="unknown")
    assert [shared.get(peer=f"198.51.100.{i}").status for i in (1, 2)] == [200, 429]


@on_all
def test_a_peer_that_is_no_address_has_no_key(site: Callable[..., Site]) -> None:
    assert site(rule="100/min").get(peer="testclient").status == 500
    assert site(rule="100/min", fallback_key="socket").get(peer="testclient").status == 200


@on_all
def test_attributes_reach_the_rule(site: Callable[..., Site]) -> None:
    paid = {"match": {"tier": "paid"}, "limits": {"1/min": {"max": 2}}}
    limiter = Limiter("1/min", when=[paid], exempt=[{"ip": "198.51.100.0/24"}])
    asked = site(rule=limiter, attributes=lambda request: {"tier": "paid"})
    assert asked.get().headers["x-ratelimit-limit"] == "2"
    exempt = [asked.get(peer="198.51.100.7") for _ in range(3)]
    assert all(answer.status == 200 and "ratelimit" not in answer.headers for answer in exempt)


@on_middlewares
def test_fields_that_the_handler_set_stay(site: Callable[..., Site]) -> None:
    answer = site(rule="2/min").get("/own")
    assert answer.headers["x-ratelimit-limit"] == "the handler's"
    assert answer.headers["x-ratelimit-remaining"] == "1"


@on_all
def test_a_slot_is_held_while_the_handler_works(site: Callable[..., Site],
                                                monkeypatch: pytest.MonkeyPatch) -> None:
    limiter = Limiter("1 concurrent")
    monkeypatch.setattr(sys.modules[__name__], "handler", lambda: str(bool(limiter.permit(PEER))))
    asked = site(rule=limiter)
    assert ([(answer.status, answer.text) for answer in (asked.get(), asked.get())]
            == [(200, "False")] * 2)
    with limiter.permit(PEER):
        assert asked.get().status == 429
    assert asked.get().status == 200


@on_middlewares
def test_a_slot_is_free_after_a_failure(site: Callable[..., Site],
                                        monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> str:
        raise RuntimeError("on purpose")

    limiter = Limiter("1 concurrent")
    asked = site(rule=limiter)
    monkeypatch.setattr(sys.modules[__name__], "handler", fail)
    try:
        assert asked.get().status == 500
    except RuntimeError:  # the test client hands it on
        pass
    assert limiter.permit(PEER)


@on_all
def test_a_closed_limiter_lets_nothing_pass(site: Callable[..., Site],
                                            caplog: pytest.LogCaptureFixture) -> None:
    limiter = Limiter("100/min")
    asked = site(rule=limiter)
    assert asked.get().status == 200
    limiter.close()
    assert asked.get().status == 500
    assert "closed" in caplog.text


@on_all
def test_wrong_options_are_refused_at_once(site: Callable[..., Site]) -> None:
    for options in ({"rule": "nonsense/min"}, {"rule": "1/min", "trusted_proxies": ["localhost"]}):
        with pytest.raises(ValueError):
            site(**options)
    with pytest.raises(ValueError, match="not both"):
        site(rule="1/min", trusted_proxies=["10.0.0.0/8"], trusted_hops=1)


def client(peer: str | None, lines: list[str], **trust: Any) -> str:
    """Whose request a gate takes it for."""
    seen: list[str] = []

    def key(request: None, address: str | None) -> str:
        seen.append(address or "")
        return "any"

    assert not isinstance(Gate("1000/s", key=key, **trust).judge(None, peer, lines), Answer)
    return seen[0]


TABLE = json.loads(
    (Path(__file__).parents[2] / "tests/vectors/http/client.json").read_text(encoding="utf-8"))


def trust_of(row: dict[str, Any]) -> dict[str, Any]:
    return {"trusted_hops": row.get("hops", 0), "trusted_proxies": row.get("proxies", ())}


@pytest.mark.parametrize("row", TABLE["cases"], ids=lambda row: row["name"])
def test_every_surface_finds_the_same_client(row: dict[str, Any]) -> None:
    lines = row["lines"]
    if "repeat" in row:
        lines = [*lines[:-1], lines[-1] * row["repeat"]]
    expected = ip_key(row["client"]) if row["client"] else ""
    assert client(row["peer"], lines, **trust_of(row)) == expected
    assert (client(row["peer"], [", ".join(lines)], **trust_of(row))
            == expected), "joined, as by WSGI"


@pytest.mark.parametrize("row", TABLE["refused"], ids=str)
def test_every_surface_refuses_the_same_settings(row: dict[str, Any]) -> None:
    with pytest.raises(ValueError) as error:
        Gate("1/min", **trust_of(row))
    assert str(error.value) == row["message"]


@pytest.mark.parametrize("row", TABLE["problems"], ids=str)
def test_every_surface_tells_denied_clients_the_same(row: dict[str, Any]) -> None:
    policy = {"version": 1, "rules": {"http": row["policy"]}}
    gate: Gate[None] = Gate(Limiter.from_policy(policy, clock=ManualClock()),
                            key=lambda request, client: "alice")
    answer = [gate.judge(None, PEER, []) for _ in range(row["hits"])][-1]
    assert isinstance(answer, Answer) and answer.body.decode() == row["body"]
    restored = pickle.loads(pickle.dumps(answer.decision))
    assert too_many(restored).body == answer.body


def test_hops_are_a_whole_number() -> None:
    with pytest.raises(ValueError):
        Gate("1/min", trusted_hops=-1)


def test_a_header_with_lone_surrogates_names_nobody() -> None:
    assert client("10.0.0.1", ["1.1.1.1, \udc80"], trusted_hops=1) == "10.0.0.1"
    assert client("\udc80", ["1.1.1.1"]) == ""


async def _echo(socket: WebSocket) -> None:
    await socket.accept()
    await socket.send_text("hello")
    await socket.close()


def test_websockets_are_refused_with_the_same_answer() -> None:
    middleware = [Middleware(tidegate.asgi.RateLimitMiddleware, rule="1/min")]
    app = Starlette(routes=[WebSocketRoute("/", _echo)], middleware=middleware)
    asked = TestClient(app, client=(PEER, 4711))
    with asked.websocket_connect("/") as socket:
        assert socket.receive_text() == "hello"
        assert dict(socket.extra_headers or [])[b"x-ratelimit-remaining"] == b"0"
    with pytest.raises(WebSocketDenialResponse) as denied, asked.websocket_connect("/"):
        pass
    assert denied.value.status_code == 429
    assert denied.value.json()["reason"] == "1/min"
    assert "retry-after" in denied.value.headers


def test_websockets_are_closed_where_the_server_knows_no_answer() -> None:
    sent: list[Any] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        raise AssertionError("never asked")

    async def receive() -> dict[str, str]:
        return {"type": "websocket.connect"}

    async def send(message: Any) -> None:
        sent.append(message)

    limited = tidegate.asgi.RateLimitMiddleware(app, "0/min")
    scope = {"type": "websocket", "headers": [], "client": (PEER, 1)}
    asyncio.run(limited(scope, receive, send))
    assert [(message["type"], message["code"]) for message in sent] == [("websocket.close", 1008)]


def test_a_websocket_holds_its_slot_while_it_is_open() -> None:
    limiter = Limiter("1 concurrent")
    middleware = [Middleware(tidegate.asgi.RateLimitMiddleware, rule=limiter)]

    async def until_told(socket: WebSocket) -> None:
        await socket.accept()
        await socket.receive_text()

    app = Starlette(routes=[WebSocketRoute("/", until_told)], middleware=middleware)
    with TestClient(app, client=(PEER, 4711)).websocket_connect("/") as socket:
        assert not limiter.permit(PEER)
        socket.send_text("go")
    assert limiter.permit(PEER)


def test_a_dependency_closes_websockets() -> None:
    app = FastAPI()

    @app.websocket("/", dependencies=[Depends(RateLimit("1/min"))])
    async def echo(socket: WebSocket) -> None:
        await _echo(socket)

    asked = TestClient(app, client=(PEER, 4711))
    with asked.websocket_connect("/") as socket:
        assert socket.receive_text() == "hello"
    with pytest.raises(WebSocketDisconnect) as closed, asked.websocket_connect("/"):
        pass
    assert closed.value.code == 1008


def test_a_dependency_is_answered_as_any_other_exception() -> None:
    app = FastAPI()

    @app.get("/")
    async def hello(decision: Any = Depends(RateLimit("1/min"))) -> int:
        return decision.remaining  # type: ignore[no-any-return]

    asked = TestClient(app, client=(PEER, 4711))
    assert asked.get("/").json() == 0
    denied = asked.get("/")
    assert (denied.status_code, list(denied.json())) == (429, ["detail"])
    assert denied.headers["retry-after"] == "60"


def test_what_is_no_request_passes_by() -> None:
    app = Starlette(middleware=[Middleware(tidegate.asgi.RateLimitMiddleware, rule="0/min")])
    with TestClient(app):  # starts and ends the application, which are scopes too
        pass


def test_django_says_what_it_wants() -> None:
    with override_settings(), pytest.raises(django.core.exceptions.ImproperlyConfigured,
                                            match="TIDEGATE"):
        Client().get("/")


paid_rule = Limiter("1/min")


def by_path(request: Any, client: str | None) -> str:
    return str(request.path)


def test_django_takes_dotted_paths() -> None:
    asked = django_sync(rule=f"{__name__}.paid_rule", key=f"{__name__}.by_path")
    assert [asked.get(path).status for path in ("/", "/own", "/")] == [200, 200, 429]
    assert not paid_rule.allow("/own")
