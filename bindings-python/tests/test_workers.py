"""Real servers with several worker processes, asked over real sockets: together they grant
the limit, to the unit."""

from __future__ import annotations

import http.client
import os
import re
import socket
import subprocess
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

EXAMPLES = Path(__file__).parents[2] / "examples" / "python"
LIMIT, REQUESTS = 100, 600

APP = f"""
import asyncio, os
from tidegate import Limiter
from tidegate.asgi import RateLimitMiddleware

async def hello(scope, receive, send):
    await asyncio.sleep(0.001)
    pid = str(os.getpid()).encode()
    await send({{"type": "http.response.start", "status": 200, "headers": [(b"x-worker", pid)]}})
    await send({{"type": "http.response.body", "body": b"hello"}})

limiter = Limiter("{LIMIT}/day window", store="file:" + os.environ["LIMITS"], capacity=100)
app = RateLimitMiddleware(hello, limiter)
"""


def ask(port: int) -> tuple[int, str | None, str | None]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    connection.request("GET", "/", headers={"Connection": "close"})
    response = connection.getresponse()
    connection.close()
    return response.status, response.headers["X-Worker"], response.headers["X-RateLimit-Remaining"]


def test_two_uvicorn_workers_grant_one_limit(tmp_path: Path) -> None:
    (tmp_path / "served.py").write_text(APP)
    with socket.create_server(("127.0.0.1", 0), backlog=128) as listener:
        fd, port = listener.fileno(), listener.getsockname()[1]
        uvicorn = [sys.executable, "-m", "uvicorn", "served:app", "--workers", "2", "--log-level",
                   "error"]
        environ = {**os.environ, "LIMITS": str(tmp_path / "limits")}
        server = subprocess.Popen([*uvicorn, "--fd", str(fd)], pass_fds=[fd], cwd=tmp_path,
                                  env=environ)
        try:
            with ThreadPoolExecutor(16) as clients:
                answers = list(clients.map(ask, [port] * REQUESTS))
        finally:
            server.terminate()
            server.wait(60)
    assert Counter(status for status, _, _ in answers) == {200: LIMIT, 429: REQUESTS - LIMIT}
    # Each of the units was granted once, whichever worker did it.
    assert (sorted(int(left or -1) for status, _, left in answers if status == 200)
            == list(range(LIMIT)))


def test_four_gunicorn_workers_grant_one_limit() -> None:
    run = subprocess.run([sys.executable, EXAMPLES / "workers.py"], capture_output=True, text=True,
                         timeout=120)
    assert (run.returncode, run.stderr) == (0, ""), run.stdout + run.stderr
    assert (run.stdout.splitlines()[-1]
            == "workers: 4 processes, 2,000 requests, 100 granted, limit 100")
    granted = [int(count) for count in re.findall(r"worker \d: .* granted +(\d+)", run.stdout)]
    assert (len(granted) == 4 and sum(granted) == 100
            and max(granted) < 100), "more than one of them granted"
