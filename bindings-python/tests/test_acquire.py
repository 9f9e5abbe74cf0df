"""Waiting: exact, fair, without a thread, and gone without a trace when cancelled."""

import asyncio
import gc
import signal
import subprocess
import sys
import threading
import time
import weakref

import pytest
import tidegate
from tidegate import Limiter, ManualClock


def on_asyncio(main):
    asyncio.run(main())


def on_uvloop(main):
    pytest.importorskip("uvloop").run(main())


def on_trio_by_anyio(main):
    pytest.importorskip("trio")
    pytest.importorskip("anyio").run(main, backend="trio")


LOOPS = [on_asyncio, on_uvloop, on_trio_by_anyio]


@pytest.mark.parametrize("run", LOOPS)
def test_it_waits_for_as_long_as_it_takes(run):
    async def main():
        limiter = Limiter("100/s burst 1")
        start = time.monotonic()
        for _ in range(11):
            assert (await limiter.acquire("a")).allowed
        assert time.monotonic() - start >= 0.0999

    run(main)


@pytest.mark.parametrize("run", LOOPS)
def test_it_says_no_at_once_if_it_cannot_be_in_time(run):
    async def main():
        clock = ManualClock()
        limiter = Limiter("1/h", clock=clock)
        assert await limiter.acquire("a", timeout=0)
        late = await limiter.acquire("a", timeout=3599.999)
        assert not late and late.retry_after == 3600.0 and not late.notify
        never = await limiter.acquire("a", 2)
        assert never.reason == "cost" and never.retry_after is None
        assert limiter.metrics()[0].denied == {}

    run(main)


async def settle():
    """Lets all others run until they sleep."""
    for _ in range(20):
        await asyncio.sleep(0)


def test_the_first_to_come_is_the_first_to_go_whatever_it_costs():
    async def main():
        clock, order = ManualClock(), []
        limiter = Limiter("10/s burst 10", clock=clock)
        assert limiter.hit("a", 10)

        async def one(name, cost):
            assert await limiter.acquire("a", cost)
            order.append(name)

        async with asyncio.timeout(20) if sys.version_info >= (3, 11) else _nothing():
            tasks = [asyncio.create_task(one("large", 8))]
            await settle()
            tasks += [asyncio.create_task(one(f"small {i}", 1)) for i in range(5)]
            await settle()
            for _ in range(20):
                clock.advance(0.1)
                await asyncio.sleep(0.003)
            await asyncio.gather(*tasks)
        assert order[0] == "large" and sorted(order[1:]) == [f"small {i}" for i in range(5)]

    asyncio.run(main())


class _nothing:
    async def __aenter__(self):
        return self

    async def __aexit__(self, *exception):
        return None


def test_cancelling_spends_nothing_and_lets_the_next_one_go():
    async def main():
        clock = ManualClock()
        limiter = Limiter("10/s burst 10", clock=clock)
        assert limiter.hit("a", 10)
        first = asyncio.create_task(limiter.acquire("a", 10))
        await settle()
        second = asyncio.create_task(limiter.acquire("a", 1))
        await settle()
        clock.advance(0.1)
        await asyncio.sleep(0.005)
        assert not first.done() and not second.done()
        first.cancel()
        with pytest.raises(asyncio.CancelledError):
            await first
        assert await asyncio.wait_for(second, 20)
        assert limiter.peek("a", 0).remaining == 0
        clock.advance(1)
        assert limiter.peek("a", 0).remaining == 10

    asyncio.run(main())


def test_one_that_is_dropped_leaves_its_place():
    async def main():
        limiter = Limiter("1/h", clock=ManualClock())
        assert limiter.allow("a")
        waiting = limiter.acquire("a")  # Driven by hand, so that nothing else holds on to it.
        waiting.send(None)
        other = asyncio.create_task(limiter.acquire("a"))
        await settle()
        limiter.refund("a")
        assert not other.done()
        del waiting
        gc.collect()
        assert await asyncio.wait_for(other, 20)

    asyncio.run(main())


def test_a_task_that_nobody_runs_any_more_is_collected():
    limiter = Limiter("1/h", clock=ManualClock())
    assert limiter.allow("a")
    loop = asyncio.new_event_loop()
    # The first has its turn, the second is in line.
    tasks = [loop.create_task(limiter.acquire("a")) for _ in range(2)]
    loop.run_until_complete(asyncio.sleep(0.01))
    left = [weakref.ref(task) for task in tasks]
    for task in tasks:
        task._log_destroy_pending = False
    loop.close()
    del loop, task, tasks
    gc.collect()
    assert [one() for one in left] == [None, None]
    limiter.refund("a")
    assert limiter.wait("a", timeout=5)


def test_a_turn_is_passed_on_between_threads_and_loops():
    limiter, granted = Limiter("500/s burst 1"), []

    async def several():
        granted.extend(await asyncio.gather(*(limiter.acquire("a") for _ in range(10))))

    def blocking():
        granted.extend(limiter.wait("a") for _ in range(10))

    threads = [threading.Thread(target=target)
               for target in (lambda: asyncio.run(several()), blocking) * 2]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert len(granted) == 40 and all(granted)


def test_others_run_while_a_thread_waits():
    limiter, ticks, done = Limiter("5/s burst 1"), 0, threading.Event()
    assert limiter.allow("a")
    thread = threading.Thread(target=lambda: (limiter.wait("a"), done.set()))
    thread.start()
    while not done.is_set():
        ticks += 1
    thread.join()
    # With the interpreter held, the loop would turn no more than once or twice.
    assert ticks > 100


def test_waiting_counts_no_denial_and_takes_a_timeout():
    limiter = Limiter("1/h", clock=ManualClock())
    assert limiter.wait("a", timeout=5) and not limiter.wait("a", timeout=5)
    assert not limiter.wait("a", timeout=None, cost=2)
    assert limiter.metrics()[0].denied == {}


def test_closing_ends_all_waiting():
    async def main():
        limiter = Limiter("1/h", clock=ManualClock())
        assert limiter.allow("a")
        tasks = [asyncio.create_task(limiter.acquire("a")) for _ in range(3)]
        await settle()
        limiter.close()
        for result in await asyncio.gather(*tasks, return_exceptions=True):
            assert isinstance(result, tidegate.ClosedError)

    asyncio.run(main())


def test_a_wait_can_be_interrupted():
    code = (
        "import signal, tidegate\n"
        # A shell that runs the tests in the background has it ignored.
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "limiter = tidegate.Limiter('1/h'); limiter.allow('a')\n"
        "try: print('waiting', flush=True); limiter.wait('a')\n"
        "except KeyboardInterrupt: print('interrupted', limiter.peek('a', 0).remaining)\n"
    )
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "waiting\n"
    process.send_signal(signal.SIGINT)
    assert process.communicate(timeout=60)[0] == "interrupted 0\n"


def test_a_loop_that_ended_is_not_woken():
    limiter = Limiter("1/h", clock=ManualClock())
    assert limiter.allow("a")

    async def first(waiting):
        waiting.send(None)

    waiting = limiter.acquire("a")
    asyncio.run(first(waiting))
    behind = limiter.acquire("a")
    asyncio.run(first(behind))
    waiting.close()  # Passes the turn on to a loop that is closed.
    behind.close()


@pytest.mark.parametrize("run", LOOPS)
def test_a_permit_is_had_as_soon_as_one_is_released(run):
    async def main():
        limiter = Limiter("1 concurrent lease 1h")
        held = limiter.permit("job")
        late = await limiter.acquire_permit("job", timeout=0.01)
        assert isinstance(late, tidegate.Permit) and not late and late.decision.reason == "1"
        start = time.monotonic()
        threading.Timer(0.05, held.release).start()
        with await limiter.acquire_permit("job", timeout=30) as permit:
            assert permit and not limiter.permit("job")
        # A poll once a second would take longer.
        assert 0.04 < time.monotonic() - start < 0.9
        assert limiter.permit("job")

    run(main)


@pytest.mark.parametrize("run", LOOPS)
def test_a_reservation_is_had_when_its_estimate_is_there(run):
    async def main():
        limiter = Limiter("1000/s burst 100")
        limiter.hit("a", 100)
        reserved = await limiter.acquire_reservation("a", 50, timeout=5)
        assert isinstance(reserved, tidegate.Reservation) and reserved
        assert reserved.cancel() and not reserved.cancel()
        never = await limiter.acquire_reservation("a", 101)
        assert not never and never.decision.reason == "cost" and not never.settle(1)

    run(main)


def test_threads_wait_for_permits_and_reservations():
    limiter = Limiter("1 concurrent lease 1h")
    held = limiter.permit("job")
    threading.Timer(0.05, held.release).start()
    start = time.monotonic()
    with limiter.wait_permit("job", timeout=30) as permit:
        assert permit and time.monotonic() - start < 0.9
        assert not limiter.wait_permit("job", timeout=0.01)
    clock = ManualClock()
    tokens = Limiter("100/s", clock=clock)
    assert tokens.wait_reservation("a", 80).settle(30)
    assert tokens.peek("a", 0).remaining == 70
    assert tokens.wait_reservation("b", 10, max=20).decision.limit == 20
    late = tokens.wait_reservation("a", 90, timeout=0.1)
    assert not late and late.decision.retry_after == 0.2
    with pytest.raises(tidegate.OperationError, match="acquire_permit"):
        limiter.wait_reservation("job", 1)
    with pytest.raises(tidegate.OperationError, match="acquire"):
        tokens.wait_permit("a")


def test_a_cancelled_task_holds_no_permit():
    async def main():
        limiter = Limiter("1 concurrent lease 1h")
        held = limiter.permit("job")
        task = asyncio.create_task(limiter.acquire_permit("job"))
        await settle()
        task.cancel()
        held.release()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert limiter.permit("job")

    asyncio.run(main())
