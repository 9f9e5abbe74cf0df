"""What does a hit cost from Python?

It is compared with a method that does nothing, with a dict of buckets, and with other limiters.

One process, one thread unless stated, 10,000 keys of 24 characters in turn, nothing denied. All
contenders take turns, round by round. A figure is nanoseconds a call with the loop around it: the
median of the rounds, and the minimum in brackets. A ratio is the median of the rounds' ratios. Each
contender goes over the keys once before it is timed. A busy machine distorts the figures.

Peers are set up as their users would, in memory. `limits` has fixed windows, its fastest strategy.
`pyrate-limiter` has one token bucket for each key, made by a factory. `throttled-py` has token
buckets, and room for all keys.
"""

import statistics
import threading
import time

import limits
import pyrate_limiter
import throttled
from tidegate import Limiter
from tidegate._tidegate import Noop

KEYS = [f"user-{i:019d}" for i in range(10_000)]
ROUNDS = 15
MANY = 1_000_000


class DictBucket:
    """A token bucket for each key in a dict, as written by hand. No lock, so for one thread."""

    def __init__(self, rate, burst):
        self.rate, self.burst, self.keys = rate, burst, {}

    def allow(self, key):
        now = time.monotonic()
        tokens, seen = self.keys.get(key, (self.burst, now))
        tokens = min(self.burst, tokens + (now - seen) * self.rate)
        if tokens < 1:
            self.keys[key] = (tokens, now)
            return False
        self.keys[key] = (tokens - 1, now)
        return True


class PerKey(pyrate_limiter.BucketFactory):
    def __init__(self):
        self.clock, self.buckets = pyrate_limiter.MonotonicClock(), {}
        self.rates = [pyrate_limiter.Rate(MANY, pyrate_limiter.Duration.SECOND)]

    def wrap_item(self, name, weight=1):
        return pyrate_limiter.RateItem(name, self.clock.now(), weight=weight)

    def get(self, item):
        if item.name not in self.buckets:
            self.buckets[item.name] = pyrate_limiter.StateBucket(self.rates,
                                                                 pyrate_limiter.TokenBucket())
        return self.buckets[item.name]


def contenders():
    limiter = Limiter(f"{MANY}/s")
    rule = limiter["default"]
    staff = {"match": {"role": "staff"}, "limits": {f"{MANY}/s": {"max": 2 * MANY}}}
    tiers = Limiter(f"{MANY}/s", when=[staff])["default"]
    fixed, item = (limits.strategies.FixedWindowRateLimiter(limits.storage.MemoryStorage()),
                   limits.parse(f"{MANY}/second"))
    pyrate = pyrate_limiter.Limiter(PerKey())
    store = throttled.MemoryStore(options={"MAX_SIZE": 2 * len(KEYS)})
    throttle = throttled.Throttled(using="token_bucket", quota=throttled.per_sec(MANY, burst=MANY),
                                   store=store)
    return {
        "noop(str) -> bool": Noop().noop,
        "rule.allow(str)": rule.allow,
        "rule.hit(str)": rule.hit,
        "rule.allow(int)": lambda key, allow=rule.allow: allow(42),
        "rule.allow(str, role=…)": lambda key, allow=rule.allow: allow(key, role="guest"),
        "rule.hit(str, role=…)": lambda key, hit=rule.hit: hit(key, role="guest"),
        "rule.allow(str, role=…), named": lambda key, allow=tiers.allow: allow(key, role="guest"),
        "dict bucket": DictBucket(MANY, MANY).allow,
        "limits": lambda key: fixed.hit(item, key),
        "pyrate-limiter": lambda key: pyrate.try_acquire(key, blocking=False),
        "throttled-py": lambda key: not throttle.limit(key).limited,
    } | {"rule.allow_many, a key": rule.allow_many}


def timed(name, call):
    start = time.perf_counter_ns()
    if name.startswith("rule.allow_many"):
        allowed = call(KEYS)
        assert allowed.count(1) == len(KEYS)
    else:
        for key in KEYS:
            call(key)
    return (time.perf_counter_ns() - start) / len(KEYS)


def threads(capacity):
    """Calls a second of 16 threads together, and of one, in turns; the median of the ratios."""
    rule, ratios = Limiter(f"{MANY}/s", capacity=capacity)["default"], []

    def work():
        allow = rule.allow
        for key in KEYS:
            allow(key)

    def together(count):
        workers = [threading.Thread(target=lambda: [work() for _ in range(480 // count)])
                   for _ in range(count)]
        start = time.perf_counter()
        [worker.start() for worker in workers]
        [worker.join() for worker in workers]
        return time.perf_counter() - start

    for _ in range(5):
        ratios.append(together(1) / together(16))
    return statistics.median(ratios), max(ratios)


def main():
    calls, rounds = contenders(), {}
    for name, call in calls.items():
        assert name.startswith(("rule.allow_many", "noop")) or call(KEYS[0]), name
    for _ in range(ROUNDS):
        for name, call in calls.items():
            timed(name, call)  # So that none pays for the memory of the contender before it.
            rounds.setdefault(name, []).append(timed(name, call))

    def ratio(name, to):
        return statistics.median(a / b for a, b in zip(rounds[name], rounds[to]))

    print("| | ns | ÷ noop | × `rule.allow` |\n|---|--:|--:|--:|")
    for name, times in rounds.items():
        of_noop, of_allow = ratio(name, "noop(str) -> bool"), ratio(name, "rule.allow(str)")
        print(f"| {name} | {statistics.median(times):.0f} ({min(times):.0f}) | {of_noop:.2f} | "
              f"{of_allow:.1f} |")
    least = {name: min(times) for name, times in rounds.items()}
    print(f"\nby minima: allow {least['rule.allow(str)'] / least['noop(str) -> bool']:.2f} noop, "
          f"hit {least['rule.hit(str)'] / least['rule.allow(str)']:.2f} allow")
    for capacity in (len(KEYS), 65_536):
        done = threads(capacity)
        print("16 threads do %.2f (at best %.2f) of what one does, with room for %d keys" % (
            *done, capacity))


main()
