"""Processes, however they are started, share one file and every count in it."""

import multiprocessing
import pickle

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
    workers = [context.Process(target=grants, args=(tmp_path / "limits", barrier, answers)) for _ in range(PROCESSES)]
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
