"""Limits for bots made with python-telegram-bot: on what they send, and on what they are sent.

    from telegram.ext import Application, MessageHandler, filters
    from tidegate import Limiter
    from tidegate.telegram import Incoming, RateLimiter

    incoming = Incoming(Limiter("5/10s window", notify="once"))
    app = Application.builder().token(TOKEN).rate_limiter(RateLimiter()).build()
    app.add_handler(MessageHandler(filters.TEXT & incoming, answer))
    app.add_handler(MessageHandler(incoming.to_notify, ask_for_patience))
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Coroutine
from datetime import timedelta
from typing import Any, TypeAlias

from telegram import Update
from telegram.error import RetryAfter
from telegram.ext import BaseRateLimiter
from telegram.ext.filters import UpdateFilter

from . import Decision, Limiter
from ._limited import Key, RuleLike, as_rule

__all__ = ["Incoming", "RateLimiter", "policy"]

JSON: TypeAlias = dict[str, Any]
Result: TypeAlias = bool | JSON | list[JSON]

# How many of the latest updates are remembered with what was decided on them.
_REMEMBERED = 1024
# Telegram's waits are whole seconds, rounded down.
_GRACE = 0.1


def policy(overall: str = "30/s", group: str = "20/min", paid: str = "1000/s") -> JSON:
    """A policy for `RateLimiter`, by Telegram's published limits by default.

    Its rule `chats` limits a message to a group by `group` and `overall`, taken together or not at
    all. It limits a message to a person by `overall`. Its rule `paid` is for paid broadcasts. All
    are exact windows: never more than 30 in any second. A bucket would let 30 pass at once and 30
    more within the next second.
    """
    chats = {
        "key": ["chat"],
        "limits": {"overall": {**_window(overall), "scope": []}, "chat": _window(group)},
        # To a person the bot may send all that it may send at all: never the tighter of the two.
        "when": [{"match": {"kind": "person"}, "limits": {"chat": overall}}],
    }
    return {"version": 1,
            "rules": {"chats": chats, "paid": {"limits": f"{paid} window", "capacity": 1}}}


def _window(rate: str) -> JSON:
    most, _, per = rate.partition("/")
    return {"max": int(most), "per": per, "algorithm": "window"}


class RateLimiter(BaseRateLimiter[int]):
    """Lets a bot's requests out no faster than Telegram takes them, in place of `AIORateLimiter`.

    A request that names a chat waits for its turn by the rule `chats`. Its key is the chat; its
    attribute `kind` is `person`, or `group` for groups and channels. A paid broadcast waits by the
    rule `paid`. Other requests don't wait. A request that is cancelled while it waits spends
    nothing.

    When Telegram still asks for a pause (`RetryAfter`), all requests pause. The refused request is
    made again up to `max_retries` times. A request's own `rate_limit_args` win over that number.

    Args:
        limiter: The two rules, from `policy()` unless given. Several processes of one bot share
            them with `Limiter.from_policy(policy(), store="file:limits")`.
        max_retries: How often a request is made again. 0: `RetryAfter` is raised at once.
    """

    __slots__ = ("_chats", "_max_retries", "_paid", "_paused_until")

    def __init__(self, limiter: Limiter | None = None, *, max_retries: int = 0) -> None:
        limiter = limiter or Limiter.from_policy(policy())
        self._chats = limiter.rule("chats")
        self._paid = limiter.rule("paid")
        self._max_retries = max_retries
        self._paused_until = 0.0

    async def initialize(self) -> None:
        """Nothing is to be done."""

    async def shutdown(self) -> None:
        """Nothing is to be done: the limiter's owner closes it."""

    async def process_request(
        self,
        callback: Callable[..., Coroutine[Any, Any, Result]],
        args: Any,
        kwargs: dict[str, Any],
        endpoint: str,
        data: dict[str, Any],
        rate_limit_args: int | None,
    ) -> Result:
        """Makes a request when it is its turn, and its result."""
        retries = self._max_retries if rate_limit_args is None else rate_limit_args
        while True:
            await self._turn(data)
            try:
                return await callback(*args, **kwargs)
            except RetryAfter as refused:
                if retries <= 0:
                    raise
                retries -= 1
                self._pause(refused)

    async def _turn(self, data: dict[str, Any]) -> None:
        chat = data.get("chat_id")
        if data.get("allow_paid_broadcast"):
            await self._paid.acquire("all")
        elif chat is not None:
            await self._chats.acquire(str(chat), kind=_kind(str(chat)))
        loop = asyncio.get_running_loop()
        while (left := self._paused_until - loop.time()) > 0:
            await asyncio.sleep(left)

    def _pause(self, refused: RetryAfter) -> None:
        # The public property warns that it will be a timedelta one day; this one is already.
        wait = getattr(refused, "_retry_after", None) or refused.retry_after
        seconds = wait.total_seconds() if isinstance(wait, timedelta) else wait
        until = asyncio.get_running_loop().time() + seconds + _GRACE
        self._paused_until = max(self._paused_until, until)


def _kind(chat: str) -> str:
    # Groups and channels have negative ids, or names; a person never has a name here.
    return "person" if chat.isdecimal() else "group"


class Incoming(UpdateFilter):
    """A filter that passes the messages of a sender as long as a rule allows them.

    Each update is one hit, made by the first handler that uses the filter. Later handlers get the
    same answer. The key is the sender, or the chat where there is no sender. One filter is for one
    bot.

    Args:
        rule: A rule, a limiter with one rule, or limits as text.
        key: Makes the key of an update. `None` for one that is not to be limited.
    """

    __slots__ = ("_decided", "_key", "_rule", "to_notify")

    to_notify: UpdateFilter
    """Passes denied messages whose sender should get a notice, by the rule's `notify`."""

    def __init__(self, rule: RuleLike, *,
                 key: Callable[[Update], Key | None] | None = None) -> None:
        super().__init__(name="tidegate.telegram.Incoming")
        self._rule = as_rule(rule)
        self._key = key or _sender
        self._decided: OrderedDict[int, Decision] = OrderedDict()
        self.to_notify = _ToNotify(self)

    def filter(self, update: Update) -> bool:
        """Whether a message passes."""
        decision = self.decide(update)
        return decision is None or decision.allowed

    def decide(self, update: Update) -> Decision | None:
        """The decision on an update of any kind; `None` for one that is not limited."""
        key = None if update.update_id in self._decided else self._key(update)
        if key is not None:
            self._decided[update.update_id] = self._rule.hit(key)
            if len(self._decided) > _REMEMBERED:
                self._decided.popitem(last=False)
        return self.decided(update)

    def decided(self, update: Update) -> Decision | None:
        """What was decided on an update, if anything was."""
        return self._decided.get(update.update_id)


class _ToNotify(UpdateFilter):
    __slots__ = ("_incoming",)

    def __init__(self, incoming: Incoming) -> None:
        super().__init__(name="tidegate.telegram.Incoming.to_notify")
        self._incoming = incoming

    def filter(self, update: Update) -> bool:
        decision = self._incoming.decided(update)
        return decision is not None and not decision.allowed and decision.notify


def _sender(update: Update) -> int | None:
    who = update.effective_user or update.effective_chat
    return who.id if who else None
