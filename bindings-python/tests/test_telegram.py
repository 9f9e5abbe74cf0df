"""python-telegram-bot: the limiter of what a bot sends, and the filter of what it is sent."""

from __future__ import annotations

import asyncio
import json
from datetime import timedelta
from typing import Any

import pytest
from telegram import Update
from telegram.error import RetryAfter
from telegram.ext import Application, MessageHandler, filters
from telegram.request import BaseRequest

from tidegate import Limiter, ManualClock
from tidegate.telegram import Incoming, RateLimiter, policy

PERSON, GROUP = 7, -100


class Network(BaseRequest):
    """Telegram's answers, without Telegram."""

    def __init__(self) -> None:
        self.sent: list[tuple[str, dict[str, Any]]] = []

    read_timeout = 1.0

    async def initialize(self) -> None: ...

    async def shutdown(self) -> None: ...

    async def do_request(self, url: str, method: str, request_data: Any = None,
                         **timeouts: Any) -> tuple[int, bytes]:
        endpoint, data = url.rsplit("/", 1)[1], request_data.parameters if request_data else {}
        self.sent.append((endpoint, data))
        me = {"id": 1, "is_bot": True, "first_name": "bot", "username": "bot"}
        chat = {"id": data.get("chat_id", PERSON), "type": "private"}
        message = {"message_id": 1, "date": 0, "chat": chat, "text": data.get("text", "")}
        return (200,
                json.dumps({"ok": True, "result": me if endpoint == "getMe" else message}).encode())

    def texts(self) -> list[str]:
        return [data["text"] for endpoint, data in self.sent if endpoint == "sendMessage"]


async def application(network: Network,
                      limiter: Limiter | None = None) -> Application[Any, Any, Any, Any, Any, Any]:
    builder = Application.builder().token("1:x").request(network).get_updates_request(Network())
    app = builder.rate_limiter(RateLimiter(limiter)).build()
    await app.initialize()
    return app


async def is_made(request: Any) -> bool:
    """Whether a request is made at once; one that has to wait is given up."""
    task = asyncio.ensure_future(request)
    for _ in range(20):
        await asyncio.sleep(0)
    if task.done():
        await task
        return True
    task.cancel()
    return False


async def made(requests: int, app: Any, chat: int | str, **more: Any) -> int:
    """How many of these requests are made at once."""
    return sum([await is_made(app.bot.send_message(chat, "x", **more)) for _ in range(requests)])


def test_groups_get_twenty_a_minute() -> None:
    async def run() -> None:
        clock = ManualClock()
        app = await application(Network(), Limiter.from_policy(policy(), clock=clock))
        assert await made(25, app, GROUP) == 20
        assert await made(1, app, PERSON) == 1, "others don't wait for that group"
        assert await made(1, app, "@channel") == 1
        clock.advance(59.9)
        assert await made(1, app, GROUP) == 0
        clock.advance(0.2)
        # Those that were given up while they waited have spent nothing.
        assert await made(25, app, GROUP) == 20

    asyncio.run(run())


def test_a_bot_gets_thirty_a_second() -> None:
    async def run() -> None:
        clock = ManualClock()
        app = await application(Network(), Limiter.from_policy(policy(), clock=clock))
        assert sum([await made(1, app, chat) for chat in range(1, 41)]) == 30
        assert await made(1, app, GROUP) == 0
        assert await made(1, app, PERSON, allow_paid_broadcast=True) == 1
        assert await is_made(app.bot.get_me()), "what is sent to no chat doesn't wait"
        clock.advance(1.001)
        assert await made(31, app, PERSON) == 30, "a person may get all of it"
        clock.advance(1.001)
        assert await made(31, app, GROUP) == 20

    asyncio.run(run())


def test_requests_wait_for_their_turn() -> None:
    async def run() -> None:
        network = Network()
        app = await application(network, Limiter.from_policy(policy(overall="1/20ms")))
        await asyncio.gather(*(app.bot.send_message(PERSON, str(number)) for number in range(5)))
        assert sorted(network.texts()) == ["0", "1", "2", "3", "4"]

    asyncio.run(run())


@pytest.mark.parametrize(("retries", "own", "calls"),
                         [(0, None, 1), (1, None, 2), (0, 2, 3), (5, 0, 1)])
def test_telegrams_own_pauses_are_kept(retries: int, own: int | None, calls: int) -> None:
    async def run() -> None:
        asked: list[float] = []

        async def callback() -> bool:
            asked.append(asyncio.get_running_loop().time())
            raise RetryAfter(timedelta(milliseconds=10))

        with pytest.raises(RetryAfter):
            await RateLimiter(max_retries=retries).process_request(callback, (), {}, "sendMessage",
                                                                   {}, own)
        assert len(asked) == calls
        assert all(later - earlier >= 0.01
                   for earlier, later in zip(asked, asked[1:], strict=False))

    asyncio.run(run())


def test_a_pause_is_everybodys() -> None:
    async def run() -> None:
        limiter, answers = (RateLimiter(max_retries=1),
                            [RetryAfter(timedelta(milliseconds=30)), None])
        order: list[str] = []

        async def refused_once() -> bool:
            order.append("refused")
            if answer := answers.pop(0):
                raise answer
            return True

        async def other() -> bool:
            order.append("other")
            return True

        first = asyncio.ensure_future(limiter.process_request(refused_once, (), {}, "sendMessage",
                                                              {}, None))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert not await is_made(limiter.process_request(other, (), {}, "sendMessage", {}, None))
        assert order == ["refused"]
        assert await first

    asyncio.run(run())


def update(number: int, sender: int | None = PERSON, chat: int = PERSON,
           text: str = "hi") -> Update:
    message: dict[str, Any] = {"message_id": number, "date": 0,
                               "chat": {"id": chat, "type": "group"}, "text": text}
    if sender is not None:
        message["from"] = {"id": sender, "is_bot": False, "first_name": "x"}
    made = Update.de_json({"update_id": number, "message": message}, None)
    assert made
    return made


@pytest.mark.parametrize(("notify", "told"), [("silent", 0), ("once", 1), ("always", 3)])
def test_senders_are_told_as_the_rule_says(notify: str, told: int) -> None:
    async def run() -> tuple[list[int], list[int]]:
        clock = ManualClock()
        incoming = Incoming(Limiter("2/min", notify=notify, clock=clock))
        handled: list[int] = []
        notified: list[int] = []

        async def handle(update: Update, context: Any) -> None:
            handled.append(update.update_id)

        async def notice(update: Update, context: Any) -> None:
            notified.append(update.update_id)

        app = await application(Network())
        app.add_handler(MessageHandler(filters.TEXT & incoming, handle))
        app.add_handler(MessageHandler(incoming.to_notify, notice))
        app.add_handler(MessageHandler(incoming, handle),
                        group=1)  # asks again, and gets the same answer
        for number in range(5):
            await app.process_update(update(number))
        await app.process_update(update(5, sender=8))
        return handled, notified

    handled, notified = asyncio.run(run())
    assert handled == [0, 0, 1, 1, 5, 5]
    assert notified == [2, 3, 4][:told]


def test_senders_have_their_own() -> None:
    incoming = Incoming("1/min")
    assert incoming.check_update(update(1)) and not incoming.check_update(update(2))
    assert incoming.check_update(update(3, sender=8)), "another sender in the same chat"
    assert incoming.check_update(update(4, sender=None,
                                        chat=9)), "a channel has no sender: the chat counts"
    assert not incoming.check_update(update(5, sender=None, chat=9))
    assert not incoming.to_notify.check_update(update(6)), "nobody has asked about that one"
    denied = incoming.decided(update(2))
    assert denied is not None and denied.retry_after


def test_keys_may_be_ones_own_and_none() -> None:
    incoming = Incoming("1/min", key=lambda update: None if update.update_id > 2 else "all")
    assert ([bool(incoming.check_update(update(number, sender=number))) for number in range(1, 5)]
            == [
        True,
        False,
        True,
        True,
    ])


def test_only_the_latest_are_remembered() -> None:
    incoming = Incoming("1000000/s")
    for number in range(3000):
        incoming.decide(update(number))
    assert incoming.decided(update(0)) is None and incoming.decided(update(2999))
    assert len(incoming._decided) == 1024
