"""Waiting in an event loop: sleeps exactly as long as the engine says, and is woken when its turn comes."""

from __future__ import annotations

import asyncio
import contextlib
import weakref
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ._tidegate import Decision, Permit, Reservation, Waiting

    Got = Decision | Permit | Reservation


def _nobody() -> None:
    """Wakes nobody: for the first look, when nobody sleeps yet."""


async def acquire(waiting: Waiting) -> Got:
    try:
        step = waiting.poll(_nobody)
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
        # Weakly, so that a task which nobody runs any more is not kept by the line that it stands in.
        sleeper = weakref.ref(turn)

        def wake(sleeper: weakref.ref[asyncio.Future[None]] = sleeper) -> None:
            turn = sleeper()
            if turn is not None:
                with contextlib.suppress(RuntimeError):  # A loop that ended has nobody to wake.
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
