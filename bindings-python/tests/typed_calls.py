"""Real calls, for type checkers: what they should accept, with the types that they
should see. Never run."""

import datetime
import pathlib
from collections.abc import Coroutine
from ipaddress import IPv4Address
from typing import Any

from typing_extensions import assert_type

import tidegate
from tidegate import Decision, Limiter, ManualClock, Permit, Reservation, Rule


def construction(path: pathlib.Path) -> None:
    clock = ManualClock(0.0, wall=datetime.timedelta(days=1))
    clock.advance(1)
    Limiter("20/min")
    Limiter(["5/10s window", {"max": 20, "per": 60}], cooldown="60s", clock=clock)
    Limiter({"burst": {"max": 5, "per": "10s"}}, store=path, capacity=10, on_full="deny",
            recreate=True)
    assert_type(Limiter.from_policy({"version": 1, "rules": {}}, store="memory", clock=None),
                Limiter)
    assert_type(Limiter.from_file(path), Limiter)
    Limiter("1/s", on_full="burn")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]


def operations(limiter: Limiter) -> None:
    rule = limiter["messages"]
    assert_type(rule, Rule)
    for on in (limiter, limiter.rule("messages")):
        assert_type(on.allow("a"), bool)
        assert_type(on.hit(b"a", 2, max=5, role="admin", level=3), Decision)
        assert_type([on.check(42), on.peek(["a", "b"], 0)], list[Decision])
        on.refund(("a", "b"))
        assert_type(on.record("a"), tidegate.Recorded)
        assert_type(on.allow_many(["a", 5, ("b",)]), bytes)
        assert_type(on.hit_many(key for key in "abc"), list[Decision])
        assert_type(on.spend("a", 5).spent, int)
        assert_type(on.budget("a").reset_after, float)
        assert_type(on.stats("a"), tidegate.Stats | None)
        assert_type(on.wait("a", timeout=datetime.timedelta(seconds=1)), Decision)
        assert_type(on.why("a", 2, max=9, role="admin"), tidegate.Why)
        assert_type(on.wait_permit("a", timeout=1.5), Permit)
        assert_type(on.wait_reservation("a", 5, timeout=1.5, max=9), Reservation)
        coroutine: Coroutine[Any, Any, Decision] = on.acquire("a", timeout=1.5)
        coroutine.close()
        assert_type(on.set_override("a", "60/min"), int)
        on.set_override({"role": ["a", "b"]}, {"minute": {"max": 5}}, for_=1.5, by="me",
                        reason="a test")
        assert_type(on.clear_override("a", by="me"), int)
        assert_type(on.set_default({}, for_=60, by=None), int)
        assert_type(on.add_exempt({"ip": "10.0.0.0/8"}, for_="1h"), int)
        assert_type(on.remove_exempt({"ip": "10.0.0.0/8"}, reason="over"), int)
        assert_type(on.set_exempts([{"role": "admin"}], for_=datetime.timedelta(hours=1)), int)
        assert_type(on.set_mode("shadow", for_="1h") + on.clear_mode(by="me"), int)
        assert_type(on.block(("a", 5), "1h", by="me", reason="spam", role="guest"), int)
        assert_type(on.unblock("a", by="me", role="guest"), bool)
        assert_type(on.blocks(), list[tidegate.BlockedKey])
        seen = on.changes()
        assert_type(on.changes(since=seen.next), tidegate.Changes)
        assert_type([change.until for change in seen.changes], list[float | None])
        for target, limits in on.overrides():
            on.set_override(target, limits)
        assert_type(len(on) + on.prune(), int)
        on.reset("a")
        on.reset_all()
    rule.set_mode("of")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    rule.clear_mode(for_=5)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    rule.block("a", b"1h")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    rule.allow(1.5)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]


def decisions(decision: Decision) -> None:
    assert_type(decision.retry_after, float | None)
    assert_type(decision.headers("ietf"), dict[str, str])
    assert_type(decision.limits, tuple[tidegate.LimitLeft, ...])
    assert_type([one.more_after for one in decision.limits], list[float | None])
    if not decision and decision.reason == "cooldown":
        raise tidegate.TidegateError(decision.rule)
    decision.headers("nope")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]


async def waiting(limiter: Limiter) -> Decision:
    assert_type(await limiter.acquire_permit("a", timeout=1.5, role="admin"), Permit)
    assert_type(await limiter.acquire_reservation("a", 5, timeout=1.5, max=9), Reservation)
    return await limiter.acquire("a")


def held(rule: Rule) -> None:
    with rule.permit("job") as permit:
        assert_type(permit, Permit)
        permit.renew()
    reserved = rule.reserve("a", 5)
    assert_type(reserved, Reservation)
    if reserved:
        reserved.settle(3)


def limiters(limiter: Limiter) -> None:
    with limiter as same:
        assert_type(same, Limiter)
    stats = limiter.stats("a")
    assert_type(stats and stats.blocked, tidegate.BlockedKey | None)
    assert_type(limiter.metrics()[0].denied, dict[str, int])
    limiter.allow(IPv4Address("192.0.2.1"))
    limiter.allow(("telegram", 42, IPv4Address("192.0.2.1")))
    seen = limiter.events()
    assert_type(limiter.events(since=seen.next).events[0].key, tuple[str, ...])
    assert_type(seen.missed, int)
    assert_type([finding.id for finding in limiter.audit()], list[str])
    assert_type(tidegate.ip_key("::1", v6_prefix=64), str)
    try:
        limiter["nope"]
    except KeyError as error:
        assert isinstance(error, tidegate.UnknownRuleError)
    except tidegate.PolicyError as error:
        assert_type(error.problems, list[tuple[str, str]])
