"""An echo bot (python-telegram-bot) with limits on what it receives and on what it sends.

    pip install tidegate python-telegram-bot
    TOKEN=… python telegram_bot.py

Each sender has 5 messages in 10 seconds. A sender of more waits a minute and gets one notice.
What the bot sends keeps to Telegram's own limits: 30 messages a second, 20 a minute to one group.
"""

import os

from telegram import Update
from telegram.ext import Application, ContextTypes, MessageHandler, filters

from tidegate import Limiter
from tidegate.telegram import Incoming, RateLimiter

incoming = Incoming(Limiter("5/10s window", cooldown="1m", notify="once"))


async def echo(update: Update, context: ContextTypes.DEFAULT_TYPE) -> None:
    message = update.effective_message
    if message and message.text:
        await message.reply_text(message.text)


async def ask_for_patience(update: Update, context: ContextTypes.DEFAULT_TYPE) -> None:
    message, decision = update.effective_message, incoming.decided(update)
    if message and decision is not None and decision.retry_after:  # a denied decision is false
        await message.reply_text(f"Please wait {decision.retry_after:.0f} seconds.")


def build(
    token: str, base_url: str = "https://api.telegram.org/bot"
) -> "Application":  # type: ignore[type-arg]
    app = Application.builder().token(token).base_url(base_url).rate_limiter(
        RateLimiter(max_retries=1)).build()
    app.add_handler(MessageHandler(filters.TEXT & incoming, echo))
    app.add_handler(MessageHandler(incoming.to_notify, ask_for_patience))
    return app


if __name__ == "__main__":
    build(os.environ["TOKEN"]).run_polling()
