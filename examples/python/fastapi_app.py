"""A FastAPI service: every client has 100 requests a minute, and 5 searches in 10 seconds.

    pip install tidegate fastapi uvicorn
    uvicorn fastapi_app:app --workers 2

Both workers share the folder `limits`: together they grant the limit. Behind a load balancer start
uvicorn with `--no-proxy-headers` and set `trusted_hops=1`, or every client is the load balancer.
"""

import os

from fastapi import Depends, FastAPI

from tidegate import Limiter
from tidegate.asgi import RateLimitMiddleware
from tidegate.fastapi import RateLimit, TooManyRequests, problem

limiter = Limiter.from_policy(
    {
        "version": 1,
        "store": "file:" + os.environ.get("LIMITS", "limits"),
        "rules": {
            "requests": {"limits": "100/min burst 20"},
            "searches": {"limits": "5/10s window", "cooldown": "30s", "attach": {"help": "/docs"}},
        },
    }
)

app = FastAPI()
app.add_middleware(RateLimitMiddleware, rule=limiter.rule("requests"))
app.add_exception_handler(TooManyRequests, problem)


@app.get("/")
async def hello() -> str:
    return "hello"


@app.get("/search", dependencies=[Depends(RateLimit(limiter.rule("searches")))])
async def search(q: str = "") -> list[str]:
    return [q]
