"""Processes, however they are started, share one file and every count in it."""

import fcntl
import multiprocessing
import os
import pickle
import signal
import threading
import time
import warnings

import pytest
from tidegate import Limiter

PROCESSES, LIMIT = 4, 500


def grants(folder, barrier, answers):
    limiter = Limiter("500/h", store=folder, capacity=100)
    barrier.wait()
    answers.put(sum(limiter.allow("a") for _ in range(400)))


def decide(connection):
    limiter = Limiter("1/h", attach={"fee": 1})
    connection.send([limiter.hit("a"), limiter.hit("a")])
    connection.send(connection.recv().headers("ietf"))
    try:
        limiter["nope"]
    except KeyError as error:
        connection.send(error)


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_together_they_grant_the_limit(method, tmp_path):
    context = multiprocessing.get_context(method)
    barrier, answers = context.Barrier(PROCESSES), context.Queue()
    workers = [context.Process(target=grants, args=(tmp_path / "limits", barrier, answers))
               for _ in range(PROCESSES)]
    [worker.start() for worker in workers]
    total = sum(answers.get(timeout=120) for _ in workers)
    [worker.join(120) for worker in workers]
    assert [worker.exitcode for worker in workers] == [0] * PROCESSES and total == LIMIT
    assert Limiter("500/h", store=tmp_path / "limits", capacity=100).hit("a").reason == "500/h"


def test_a_limiter_made_before_the_fork_is_shared_after_it(tmp_path):
    limiter = Limiter("500/h", store=tmp_path / "limits", capacity=100)
    context = multiprocessing.get_context("fork")
    answers = context.Queue()

    def work():
        answers.put(sum(limiter.allow("a") for _ in range(300)))

    workers = [context.Process(target=work) for _ in range(PROCESSES)]
    [worker.start() for worker in workers]
    total = sum(answers.get(timeout=120) for _ in workers)
    [worker.join(120) for worker in workers]
    assert total == LIMIT and limiter.metrics()[0].keys == 1


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_decisions_and_errors_travel(method):
    context = multiprocessing.get_context(method)
    here, there = context.Pipe()
    process = context.Process(target=decide, args=(there,))
    process.start()
    allowed, denied = here.recv()
    assert allowed and not denied and denied.reason == "1/h" and denied.attach == {"fee": 1}
    here.send(denied)
    assert here.recv() == denied.headers("ietf")
    assert "unknown rule" in str(here.recv())
    process.join(60)


def test_limiters_stay_where_they_are():
    for thing in (Limiter("1/s"), Limiter("1/s")["default"]):
        with pytest.raises(TypeError, match="pickle"):
            pickle.dumps(thing)


def changes_of(limiter):
    return [
        lambda: limiter.set_override("a", "9/h"),
        lambda: limiter.clear_override("b"),
        lambda: limiter.set_default("8/h"),
        lambda: limiter.add_exempt({"role": "a"}),
        lambda: limiter.remove_exempt({"role": "b"}),
        lambda: limiter.set_exempts([{"role": "c"}]),
        lambda: limiter.set_mode("enforce"),
        lambda: limiter.clear_mode(),
        lambda: limiter.block("c", "1h"),
        lambda: limiter.unblock("d"),
        lambda: limiter.reset("e"),
        lambda: limiter.reset_all(),
    ]


def change_and_hit(folder, answers):
    limiter = Limiter("500/h", store=folder, capacity=100)
    changes = [threading.Thread(target=change) for change in changes_of(limiter)]
    [change.start() for change in changes]
    for _ in range(100):
        limiter.hit("a", 0)
        time.sleep(0.001)
    answers.put([change.is_alive() for change in changes])
    [change.join() for change in changes]
    answers.put(limiter.hit("a").limit)


def test_hits_go_on_while_a_change_waits_for_another_process(tmp_path):
    folder = tmp_path / "limits"
    limiter = Limiter("500/h", store=folder, capacity=100)
    limiter.block("d"), limiter.block("e")
    context = multiprocessing.get_context("spawn")
    answers = context.Queue()
    with open(folder / "default.lock") as stopped:
        fcntl.flock(stopped, fcntl.LOCK_EX)
        worker = context.Process(target=change_and_hit, args=(folder, answers))
        worker.start()
        try:
            assert answers.get(timeout=60) == [True] * 12, "the changes wait, the hits do not"
            fcntl.flock(stopped, fcntl.LOCK_UN)
            assert answers.get(timeout=60) == 9
        finally:
            worker.terminate()
            worker.join(60)


def operations(limiter, turn):
    return [
        lambda: limiter.wait("a", timeout=0.01),
        lambda: limiter.metrics(),
        lambda: limiter.set_override(f"{turn % 9}", f"{1 + turn % 9}/s"),
        lambda: limiter.overrides(),
        lambda: (limiter.block(turn % 9, 0.01), limiter.unblock(turn % 7), limiter.blocks()),
        lambda: (limiter.set_mode("enforce", for_=0.01), limiter.changes()),
        lambda: Limiter("9/h", store=f"memory:{turn % 9}", capacity=1).allow("a"),
    ]


def test_no_fork_beside_busy_threads_hangs():
    limiter, over = Limiter("100/s burst 1", capacity=100), threading.Event()

    def busy(index):
        turn = 0
        while not over.is_set():
            operations(limiter, turn)[index]()
            turn += 1

    threads = [threading.Thread(target=busy, args=(index,)) for index in range(7)]
    [thread.start() for thread in threads]
    ended = []
    try:
        for turn in range(40):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", DeprecationWarning)
                child = os.fork()
            if child == 0:
                try:
                    signal.alarm(30)
                    [act() for act in operations(limiter, turn)]
                    os._exit(0)
                finally:
                    os._exit(1)
            ended.append(os.waitpid(child, 0)[1])
    finally:
        over.set()
        [thread.join(60) for thread in threads]
    assert ended == [0] * 40
