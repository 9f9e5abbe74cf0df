"""Waiting in an event loop: it sleeps for as long as the engine says, and is woken for its turn."""

from __future__ import annotations

import asyncio
import contextlib
import weakref
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ._tidegate import Decision, Permit, Reservation, Waiting

    Got = Decision | Permit | Reservation


def _nothing() -> None:
    """Wakes no task: for the first poll, when none sleeps yet."""


async def acquire(waiting: Waiting) -> Got:
    try:
        step = waiting.poll(_nothing)
        if not isinstance(step, float):
            return step
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:  # Not asyncio's loop: trio's.
            return await _on_trio(waiting)
        return await _on_asyncio(waiting, loop)
    finally:
        waiting.close()


def _resolve(turn: asyncio.Future[None]) -> None:
    if not turn.done():
        turn.set_result(None)


async def _on_asyncio(waiting: Waiting, loop: asyncio.AbstractEventLoop) -> Got:
    while True:
        turn = loop.create_future()
        # Weakly: the line that a task stands in must not keep the task alive.
        sleeper = weakref.ref(turn)

        def wake(sleeper: weakref.ref[asyncio.Future[None]] = sleeper) -> None:
            turn = sleeper()
            if turn is not None:
                with contextlib.suppress(RuntimeError):  # A loop that ended has no task to wake.
                    loop.call_soon_threadsafe(_resolve, turn)

        step = waiting.poll(wake)
        if not isinstance(step, float):
            return step
        timer = loop.call_later(step, _resolve, turn)
        try:
            await turn
        finally:
            timer.cancel()


async def _on_trio(waiting: Waiting) -> Got:
    import trio

    token = trio.lowlevel.current_trio_token()
    while True:
        turn = trio.Event()

        def wake(turn: trio.Event = turn) -> None:
            with contextlib.suppress(trio.RunFinishedError):
                token.run_sync_soon(turn.set)

        step = waiting.poll(wake)
        if not isinstance(step, float):
            return step
        with trio.move_on_after(step):
            await turn.wait()
