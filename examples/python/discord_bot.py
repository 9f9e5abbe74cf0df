"""A bot (discord.py): 5 commands in 10 seconds, then a minute's pause with one notice.

    pip install tidegate discord.py
    TOKEN=… python discord_bot.py
"""

import os
from typing import Any

import discord
from discord.ext import commands

from tidegate import Decision, Limiter


class TooMany(commands.CheckFailure):
    """A command that was denied."""

    def __init__(self, decision: Decision) -> None:
        super().__init__(f"denied by {decision.reason}")
        self.decision = decision


def build(limiter: Limiter) -> commands.Bot:
    intents = discord.Intents.default()
    intents.message_content = True
    bot = commands.Bot("!", intents=intents, help_command=None)

    @bot.check
    async def is_allowed(context: commands.Context[Any]) -> bool:
        decision = limiter.hit(context.author.id)
        if not decision:
            raise TooMany(decision)
        return True

    @bot.event
    async def on_command_error(context: commands.Context[Any],
                               error: commands.CommandError) -> None:
        if not isinstance(error, TooMany):
            raise error
        # As the limiter's `notify` says: silent, once or always.
        if error.decision.notify and error.decision.retry_after:
            await context.send(f"Please wait {error.decision.retry_after:.0f} seconds.")

    @bot.command()
    async def echo(context: commands.Context[Any], *, text: str) -> None:
        await context.send(text)

    return bot


if __name__ == "__main__":
    build(Limiter("5/10s window", cooldown="1m", notify="once")).run(os.environ["TOKEN"])
