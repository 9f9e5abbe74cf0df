"""The examples, as they stand, with fakes for the network only. (`workers.py`:
see test_workers.py.)"""

from __future__ import annotations

import asyncio
import importlib
import json
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import pytest
from starlette.testclient import TestClient

from tidegate import Limiter, ManualClock

EXAMPLES = Path(__file__).parents[2] / "examples" / "python"
WAIT = "Please wait 60 seconds."
on_notify = pytest.mark.parametrize(("notify", "told"), [("silent", 0), ("once", 1), ("always", 3)])


@pytest.fixture
def example(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Any]:
    """Imports an example, with a folder of its own."""
    monkeypatch.syspath_prepend(EXAMPLES)
    monkeypatch.chdir(tmp_path)
    before = set(sys.modules)
    yield importlib.import_module
    for name in set(sys.modules) - before:
        if getattr(sys.modules[name], "__file__",
                   None) and EXAMPLES in Path(sys.modules[name].__file__ or "").parents:
            del sys.modules[name]


def test_fastapi_app(example: Any) -> None:
    app = TestClient(example("fastapi_app").app, client=("203.0.113.9", 4711))
    assert app.get("/").json() == "hello"
    assert [app.get("/search?q=a").status_code for _ in range(6)] == [200] * 5 + [429]
    denied = app.get("/search").json()
    assert ((denied["rule"], denied["reason"], denied["attach"])
            == ("searches", "cooldown", {"help": "/docs"}))
    # 20 at once are the middleware's; on a slow machine some come back meanwhile.
    refused = next(answer for answer in (app.get("/") for _ in range(1000))
                   if answer.status_code == 429)
    assert refused.json()["rule"] == "requests"


def test_flask_app(example: Any) -> None:
    app = example("flask_app").app.test_client()
    assert app.get("/").text == "hello"
    answers = [app.post("/reports", data={"account": "alice"}) for _ in range(4)]
    assert [answer.status_code for answer in answers] == [200, 200, 200, 429]
    assert "try again in" in answers[-1].json["error"]
    assert (answers[-1].headers["RateLimit-Policy"]
            == '"3/h";q=3;w=3600'), "the report's, not the middleware's"
    assert app.post("/reports", data={"account": "bob"}).text == "a report for bob"


class Telegram(ThreadingHTTPServer):
    """A server that speaks as much of Telegram as a bot needs: 9 messages of one
    sender, then no more."""

    daemon_threads = True

    def __init__(self) -> None:
        self.sent: list[str] = []
        self.updates = [{"update_id": n, "message": message(n, f"text {n}")} for n in range(1, 10)]
        self.is_read = False
        super().__init__(("127.0.0.1", 0), Talk)


class Talk(BaseHTTPRequestHandler):
    server: Telegram

    def do_POST(self) -> None:
        body = parse_qs(self.rfile.read(int(self.headers["Content-Length"])).decode())
        result: Any = True
        match self.path.rsplit("/", 1)[1]:
            case "getMe":
                result = {"id": 1, "is_bot": True, "first_name": "bot", "username": "bot"}
            case "getUpdates":
                result, self.server.updates = self.server.updates, []
                self.server.is_read |= body.get("offset") == ["10"]
            case "sendMessage":
                self.server.sent.append(body["text"][0])
                result = message(1, body["text"][0])
        answer = json.dumps({"ok": True, "result": result}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_: Any) -> None: ...


def message(number: int, text: str) -> dict[str, Any]:
    sender = {"id": 7, "is_bot": False, "first_name": "alice"}
    return {"message_id": number, "date": 0, "chat": {"id": 7, "type": "private"}, "from": sender,
            "text": text}


def test_telegram_bot(example: Any) -> None:
    bot = example("telegram_bot")

    async def run(server: Telegram) -> None:
        app = bot.build("1:x", f"http://127.0.0.1:{server.server_port}/bot")
        async with app:
            await app.start()
            await app.updater.start_polling(poll_interval=0.01, timeout=0)
            while not server.is_read:
                await asyncio.sleep(0.01)
            await app.updater.stop()
            await app.stop()  # when all that it got is handled

    with Telegram() as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        asyncio.run(run(server))
        server.shutdown()
    assert server.sent == [*(f"text {n}" for n in range(1, 6)), WAIT], "five echoes, and one notice"


@on_notify
def test_aiogram_bot(example: Any, notify: str, told: int) -> None:
    aiogram = importlib.import_module("aiogram")
    session = importlib.import_module("aiogram.client.session.base")
    sent: list[str] = []

    class Session(session.BaseSession):  # type: ignore[misc, name-defined]
        async def close(self) -> None: ...

        async def make_request(self, bot: Any, method: Any, timeout: Any = None) -> Any:
            sent.append(method.text)
            return aiogram.types.Message.model_validate(message(1, method.text),
                                                        context={"bot": bot})

        async def stream_content(self, *_: Any, **__: Any) -> Any:
            yield b""

    async def run() -> None:
        dispatcher = example("aiogram_bot").build(limiter)
        bot = aiogram.Bot("1:x", session=Session())
        for number in range(1, 9):
            update = {"update_id": number, "message": message(number, f"text {number}")}
            await dispatcher.feed_update(
                bot, aiogram.types.Update.model_validate(update, context={"bot": bot}))

    limiter = Limiter("5/10s window", cooldown="1m", notify=notify, clock=ManualClock())
    asyncio.run(run())
    assert sent == [*(f"text {n}" for n in range(1, 6)), *[WAIT] * told]


@on_notify
def test_discord_bot(example: Any, notify: str, told: int) -> None:
    discord = importlib.import_module("discord")
    sent: list[str] = []

    def posted(number: int, content: str) -> dict[str, Any]:
        author = {"id": "7", "username": "alice", "discriminator": "0", "avatar": None,
                  "global_name": None}
        empty: dict[str, Any] = {"embeds": [], "attachments": [], "mentions": [],
                                 "mention_roles": []}
        more = {"edited_timestamp": None, "tts": False, "mention_everyone": False, "pinned": False,
                "type": 0}
        when = {"timestamp": "2024-01-01T00:00:00+00:00"}
        return {"id": str(number), "channel_id": "9", "author": author, "content": content, **empty,
                **more, **when}

    async def send_message(channel: int, *, params: Any) -> dict[str, Any]:
        sent.append(params.payload["content"])
        return posted(1000, params.payload["content"])

    async def run() -> None:
        bot = example("discord_bot").build(limiter)
        async with bot:
            bot._connection.user = discord.ClientUser(state=bot._connection,
                                                      data={**posted(1, "")["author"], "id": "1"})
            bot.http.send_message = send_message
            for number in range(1, 9):
                before = asyncio.all_tasks()
                bot._connection.parse_message_create(posted(number, f"!echo text {number}"))
                await asyncio.gather(*(asyncio.all_tasks() - before))

    limiter = Limiter("5/10s window", cooldown="1m", notify=notify, clock=ManualClock())
    asyncio.run(run())
    assert sent == [*(f"text {n}" for n in range(1, 6)), *[WAIT] * told]
