"""One limiter, sixteen threads: not one grant too many, none lost."""

import concurrent.futures
import os
import threading
import tracemalloc

import pytest
import tidegate
from tidegate import Limiter, ManualClock

THREADS = 16


def together(work):
    """What each of the threads returns, started at once."""
    barrier = threading.Barrier(THREADS)

    def run(index):
        barrier.wait()
        return work(index)

    with concurrent.futures.ThreadPoolExecutor(THREADS) as pool:
        return list(pool.map(run, range(THREADS)))


LIMITS = ["1000/h", "1000/h window", "1000/h fixed", "1000/h counter", "1000/h window, 5000/d"]


@pytest.mark.parametrize("limits", LIMITS)
def test_together_they_get_the_limit(limits):
    limiter = Limiter(limits, capacity=100, clock=ManualClock())
    rule = limiter["default"]

    def work(index):
        ways = [limiter.allow, rule.hit, lambda _: rule.allow(b"a"), lambda _: limiter.hit(["a"])]
        return sum(bool(ways[(index + turn) % 4]("a")) for turn in range(400))

    assert sum(together(work)) == 1000


def test_batches_and_reservations_together():
    limiter = Limiter("1000/h", clock=ManualClock())

    def work(index):
        spent = limiter.allow_many(["a"] * 50).count(1)
        reserved = limiter.reserve("a", 10)
        return spent + (10 if reserved and index % 2 else 0 if reserved.cancel() else 0)

    spent = sum(together(work))
    assert spent + limiter.peek("a", 0).remaining == 1000


def test_permits_together():
    limiter, most, held, lock = Limiter("3 concurrent"), 0, 0, threading.Lock()

    def work(_):
        nonlocal most, held
        granted = 0
        for _ in range(200):
            with limiter.permit("a") as permit:
                if permit:
                    with lock:
                        held, most = held + 1, max(most, held + 1)
                    granted += 1
                    with lock:
                        held -= 1
        return granted

    assert sum(together(work)) > 0 and most <= 3 and held == 0
    permits = [limiter.permit("a") for _ in range(4)]
    assert [bool(permit) for permit in permits] == [True, True, True, False]


def test_changes_while_others_hit(tmp_path):
    path = tmp_path / "policy.yaml"
    text = "version: 1\nrules: {{ default: {{ limits: {{ l: {{ max: {}, per: 1h }} }} }} }}\n"
    path.write_text(text.format(10))
    limiter, done = Limiter.from_file(path), threading.Event()

    def change():
        for turn in range(200):
            limiter.set_override("a", {"l": {"max": 5 + turn % 5}})
            limiter.add_exempt({"role": f"{turn % 3}"})
            limiter.reload()
            limiter.clear_override("a")
        done.set()

    def hit():
        seen = set()
        while not done.is_set():
            seen.add(limiter.hit("a").limit)
        return seen

    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        hits = [pool.submit(hit) for _ in range(3)]
        pool.submit(change).result()
        assert set().union(*(one.result() for one in hits)) <= set(range(5, 11))


def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def rounds(count):
    limiter = Limiter("5/h window", attach={"a": [1, "b"]}, exempt=[{"role": "admin"}],
                      capacity=1000)
    rule, permits = limiter["default"], Limiter("3 concurrent")
    for turn in range(count):
        key = f"key {turn % 2000}"
        rule.allow(key), rule.hit(key), rule.hit((key,), role="admin"), rule.hit(turn)
        decision = rule.hit(key, 9)
        if turn % 50 == 0:
            decision.headers(), decision.attach, repr(decision), hash(
                decision), decision == decision
            rule.allow_many([key, b"x", key]), rule.hit_many([key, 5])
            rule.stats(key), rule.record(key), rule.reserve(key, 1).cancel(), rule.wait(key,
                                                                                        timeout=0)
            rule.acquire(key, timeout=0).close()
            with permits.permit(key):
                pass
            for key, cost in ((None, 1), ("\ud800", 1), ("a", -1), (("a", "b"), 1)):
                try:
                    rule.hit(key, cost)
                except (TypeError, tidegate.TidegateError):
                    pass
    limiter.metrics(), limiter.events(), limiter.audit()


@pytest.mark.filterwarnings("ignore:coroutine")
@pytest.mark.skipif(not os.path.exists("/proc/self/statm"), reason="no /proc")
def test_a_million_calls_leave_nothing_behind():
    rounds(2000)
    tracemalloc.start()
    before = tracemalloc.take_snapshot()
    rounds(2000)
    after = tracemalloc.take_snapshot()
    tracemalloc.stop()
    assert sum(one.size_diff for one in after.compare_to(before, "filename")) < 64 << 10
    size = resident()
    rounds(200_000)
    assert resident() - size < 8 << 20
