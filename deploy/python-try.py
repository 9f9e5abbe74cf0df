#!/usr/bin/env python3
"""Tries an installed tidegate as a user would, with the standard library alone.

    python deploy/python-try.py

Each part is a small program: a store in memory, one in a file that two processes share, a window,
waiting on asyncio, a policy in YAML, threads, errors. The last line says what ran and where.
"""

import asyncio
import concurrent.futures
import pathlib
import platform
import subprocess
import sys
import sysconfig
import tempfile
import time

import tidegate


def memory():
    limiter = tidegate.Limiter("3/h")
    assert [limiter.allow("alice") for _ in range(4)] == [True, True, True, False]
    refused = limiter.hit("alice")
    assert not refused and refused.reason == "3/h" and refused.retry_after > 1000
    assert refused.headers()["Retry-After"].isdigit()
    assert limiter.hit("bob").remaining == 2


def window():
    clock = tidegate.ManualClock()
    limiter = tidegate.Limiter("2/10s window", clock=clock)
    assert limiter.allow("alice") and limiter.allow("alice") and not limiter.allow("alice")
    clock.advance(10)
    assert limiter.allow("alice")


ELSEWHERE = "import sys, tidegate; print(tidegate.Limiter('5/h', store=sys.argv[1]).allow('alice'))"


def file():
    with tempfile.TemporaryDirectory() as folder:
        store = f"file:{pathlib.Path(folder) / 'store'}"
        if sys.platform != "linux":
            refused = failure(lambda: tidegate.Limiter("5/h", store=store))
            assert isinstance(refused, tidegate.TidegateError), refused
            return
        with tidegate.Limiter("5/h", store=store) as limiter:
            here = [limiter.allow("alice") for _ in range(3)]
            there = [
                subprocess.check_output([sys.executable, "-c", ELSEWHERE, store], text=True).strip()
                for _ in range(3)
            ]
            assert here == [True] * 3 and there == ["True", "True", "False"], (here, there)


def waiting():
    async def calls():
        limiter = tidegate.Limiter("20/s burst 1")
        started = time.monotonic()
        await asyncio.gather(*(limiter.acquire("api") for _ in range(4)))
        return time.monotonic() - started

    assert 0.14 < asyncio.run(calls()) < 10


def policy():
    text = "version: 1\nrules:\n  messages: {limits: 1/min}\n"
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "policy.yaml"
        path.write_text(text, encoding="utf-8")
        messages = tidegate.Limiter.from_file(str(path))["messages"]
        assert messages.allow("alice") and not messages.allow("alice")


def threads():
    limiter = tidegate.Limiter("1000/h")
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        granted = pool.map(lambda _: sum(limiter.allow("all") for _ in range(400)), range(8))
        assert sum(granted) == 1000


def failure(work):
    """What the work raises."""
    try:
        work()
    except Exception as error:
        return error
    raise AssertionError("this should have failed")


def errors():
    wrong = failure(lambda: tidegate.Limiter("many/h"))
    assert isinstance(wrong, tidegate.TidegateError) and isinstance(wrong, ValueError), wrong
    assert isinstance(failure(lambda: tidegate.Limiter("1/h").allow(1.5)), TypeError)
    assert isinstance(failure(lambda: tidegate.Limiter("1/h")["none"]), KeyError)


def gil():
    """On a free-threaded Python the module must not have switched the lock back on."""
    if sysconfig.get_config_var("Py_GIL_DISABLED"):
        assert not sys._is_gil_enabled(), "importing tidegate has switched the GIL on"
        return ", free-threaded"
    return ""


def main():
    for part in (memory, window, file, waiting, policy, threads, errors):
        part()
    name = f"{platform.python_implementation()} {platform.python_version()}{gil()}"
    where = f"{platform.system()} {platform.machine()} {' '.join(platform.libc_ver())}".strip()
    shown = f"tidegate {tidegate.__version__} works on {name}, {where}"
    print(f"{shown}: memory, window, file, asyncio, policy, threads, errors")


if __name__ == "__main__":
    main()
