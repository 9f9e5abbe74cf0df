"""An echo bot (aiogram): 5 messages in 10 seconds, then a minute's pause with one notice.

    pip install tidegate aiogram
    TOKEN=… python aiogram_bot.py
"""

import asyncio
import os
from collections.abc import Awaitable, Callable
from typing import Any

from aiogram import BaseMiddleware, Bot, Dispatcher
from aiogram.types import Message, TelegramObject

from tidegate import Limiter


class RateLimit(BaseMiddleware):
    """Lets a sender's messages through as the limiter allows.

    The limiter's `notify` (silent, once or always) says which denied senders get a notice.
    """

    def __init__(self, limiter: Limiter) -> None:
        self.limiter = limiter

    async def __call__(
        self,
        handler: Callable[[TelegramObject, dict[str, Any]], Awaitable[Any]],
        event: TelegramObject,
        data: dict[str, Any],
    ) -> Any:
        sender = data.get("event_from_user")
        if sender is None:  # a channel's post
            return await handler(event, data)
        decision = self.limiter.hit(sender.id)
        if decision:
            return await handler(event, data)
        if decision.notify and decision.retry_after and isinstance(event, Message):
            await event.answer(f"Please wait {decision.retry_after:.0f} seconds.")


async def echo(message: Message) -> None:
    if message.text:
        await message.answer(message.text)


def build(limiter: Limiter) -> Dispatcher:
    dispatcher = Dispatcher()
    dispatcher.message.outer_middleware(RateLimit(limiter))
    dispatcher.message.register(echo)
    return dispatcher


async def main() -> None:
    limiter = Limiter("5/10s window", cooldown="1m", notify="once")
    await build(limiter).start_polling(Bot(os.environ["TOKEN"]))


if __name__ == "__main__":
    asyncio.run(main())
