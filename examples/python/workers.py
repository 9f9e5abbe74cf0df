"""Four gunicorn workers on one file: together they grant the limit, not four times the limit.

    pip install tidegate gunicorn

    # Starts them, sends 2,000 requests, and adds up.
    python workers.py

    # Only serves.
    LIMITS=limits gunicorn --preload -w 4 workers:app
"""

import http.client
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from tidegate import Limiter
from tidegate.wsgi import RateLimitMiddleware

WORKERS, REQUESTS, LIMIT = 4, 2_000, 100


def hello(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
    time.sleep(0.005)  # as some work takes, so that each worker gets its share
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [b"hello\n"]


def telling_worker(app: Callable[..., Iterable[bytes]]) -> Callable[..., Iterable[bytes]]:
    """Adds the worker's process id to each response."""

    def telling(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        def starting(status: str, headers: list[tuple[str, str]], *more: Any) -> Any:
            return start_response(status, [*headers, ("X-Worker", str(os.getpid()))], *more)

        return app(environ, starting)

    return telling


if folder := os.environ.get("LIMITS"):
    limiter = Limiter(f"{LIMIT}/day window", store=f"file:{folder}", capacity=1000)
    app = telling_worker(RateLimitMiddleware(hello, limiter))


def serve(listener: socket.socket, folder: Path) -> "subprocess.Popen[bytes]":
    """gunicorn at work on a socket that listens already, so no client has to wait for it."""
    gunicorn = [sys.executable, "-m", "gunicorn", "--preload", "--workers", str(WORKERS),
                "--log-level", "error"]
    return subprocess.Popen(
        [*gunicorn, "--bind", f"fd://{listener.fileno()}", "workers:app"],
        pass_fds=[listener.fileno()],
        cwd=Path(__file__).parent,
        env={**os.environ, "LIMITS": str(folder)},
    )


def ask(port: int) -> tuple[str, int]:
    """One request on a connection of its own: which worker answered, and how."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    connection.request("GET", "/")
    response = connection.getresponse()
    connection.close()
    return response.headers["X-Worker"], response.status


def main() -> int:
    with tempfile.TemporaryDirectory() as folder, socket.create_server(("127.0.0.1", 0),
                                                                       backlog=128) as listener:
        server = serve(listener, Path(folder, "limits"))
        try:
            with ThreadPoolExecutor(16) as clients:
                answers = list(clients.map(ask, [listener.getsockname()[1]] * REQUESTS))
        finally:
            server.terminate()
            server.wait()
    print(f"\n{WORKERS} gunicorn workers, one file, {LIMIT}/day window, {REQUESTS:,} requests:\n")
    answered, granted = (Counter(who for who, _ in answers),
                         Counter(who for who, how in answers if how == 200))
    for number, (who, count) in enumerate(sorted(answered.items()), 1):
        print(f"  worker {number}: answered {count:>5}, granted {granted[who]:>3}")
    total, refused = granted.total(), sum(how == 429 for _, how in answers)
    print(f"\nworkers: {len(answered)} processes, {REQUESTS:,} requests, {total} granted, limit "
          f"{LIMIT}")
    return 0 if (total, refused) == (LIMIT, REQUESTS - LIMIT) else 1


if __name__ == "__main__":
    sys.exit(main())
