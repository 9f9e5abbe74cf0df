"""What does the ASGI middleware cost a request?

An application that sends five bytes is called as a server calls it, without a server: its scope has
seven headers, and what it sends is dropped. It is called alone, and with a limit in front that
allows every request or none. All contenders take turns, round by round. A figure is microseconds
a request: the median of the rounds, and the minimum in brackets. A difference is the median of the
rounds' differences. A busy machine distorts the figures.
"""

import statistics
import time

from tidegate import Limiter
from tidegate.asgi import RateLimitMiddleware

ROUNDS = 201
HEADERS = [
    (b"host", b"example.org"),
    (b"user-agent", b"Mozilla/5.0 (X11; Linux x86_64)"),
    (b"accept", b"*/*"),
    (b"accept-language", b"en"),
    (b"accept-encoding", b"gzip, deflate, br"),
    (b"connection", b"keep-alive"),
    (b"x-forwarded-for", b"198.51.100.7"),
]
SCOPES = [
    {"type": "http", "headers": HEADERS, "client": (f"203.0.113.{i}", 4711), "path": "/"}
    for i in range(250)
]


async def app(scope, receive, send):
    headers = [(b"content-type", b"text/plain"), (b"content-length", b"5")]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": b"hello"})


async def receive():
    return {"type": "http.request"}


async def drop(message):
    pass


def tier(scope):
    return {"tier": "free"}


def timed(application):
    start = time.perf_counter_ns()
    for scope in SCOPES:
        try:
            # Nothing in it waits, so that it ends with the first step.
            application(scope, receive, drop).send(None)
        except StopIteration:
            pass
    return (time.perf_counter_ns() - start) / len(SCOPES) / 1000


def contenders():
    def limited(limits, **options):
        return RateLimitMiddleware(app, Limiter(limits), **options)

    return {
        "the application alone": app,
        "allowed": limited("1000000/s"),
        "allowed, a trusted hop": limited("1000000/s", trusted_hops=1),
        "allowed, with an attribute": limited("1000000/s", attributes=tier),
        "allowed, with a permit": limited("50 concurrent"),
        "denied": limited("0/min"),
    }


def main():
    applications, rounds = contenders(), {}
    for _ in range(ROUNDS):
        for name, application in applications.items():
            timed(application)  # So that none pays for the memory of the contender before it.
            rounds.setdefault(name, []).append(timed(application))
    alone = rounds["the application alone"]
    print("\n| | µs | over the application |\n|---|--:|--:|")
    for name, times in rounds.items():
        over = statistics.median(a - b for a, b in zip(times, alone))
        print(f"| {name} | {statistics.median(times):.2f} ({min(times):.2f}) | "
              f"{over:.2f} ({min(times) - min(alone):.2f}) |")


main()
