"""The whole contract, in Python's own manner."""

import copy
import datetime
import inspect
import ipaddress
import pickle

import pytest
import tidegate
from tidegate import Limiter, ManualClock


@pytest.fixture
def clock():
    return ManualClock(100.0, wall=1_700_000_000.0)


def test_a_limiter_of_limits_has_the_operations_itself(clock):
    limiter = Limiter("2/min", clock=clock)
    assert [limiter.allow("alice") for _ in range(3)] == [True, True, False]
    assert limiter.rules() == ["default"]
    assert limiter.rule("default").name == limiter["default"].name == "default"
    assert limiter["default"].hit("alice").reason == "2/min"


def test_options_of_a_rule_are_read_as_a_policy_file_is(clock):
    limiter = Limiter(
        ["5/10s window", {"name": "minute", "max": 20, "per": 60, "algorithm": "window"}],
        clock=clock,
        capacity=100,
        on_full="deny",
        cooldown=datetime.timedelta(seconds=90),
        backoff={"steps": [1, 2.5], "quiet": datetime.timedelta(minutes=1)},
        warn_at=0.5,
        attach={"fee": 3, "why": [None, True, 2.5]},
    )
    hits = [limiter.hit("alice") for _ in range(6)]
    assert [hit.warning for hit in hits] == [False, False, True, True, True, False]
    assert (hits[5].reason, hits[5].retry_after) == ("5/10s", 90.0)
    assert hits[5].attach == {"fee": 3, "why": [None, True, 2.5]}
    clock.advance(89.999)
    assert limiter.peek("alice").reason == "cooldown"
    clock.advance(datetime.timedelta(milliseconds=1))
    assert limiter.allow("alice")
    with pytest.raises(tidegate.PolicyError) as error:
        Limiter("1/s", cooldwon=1, backoff={"steps": ["x"], "quiet": 1})
    assert [path for path, _ in error.value.problems] == ["cooldwon", "backoff.steps[0]"]


def test_a_limiter_of_a_policy(tmp_path, clock):
    policy = {"version": 1, "fallback": "b",
              "rules": {"a": {"limits": "1/s"}, "b": {"limits": {"l": {"max": 2, "per": 60.0}}}}}
    limiter = Limiter.from_policy(policy, clock=clock)
    assert limiter.rules() == ["a", "b"]
    assert limiter["unknown"].name == "b"
    with pytest.raises(tidegate.UnknownRuleError, match="several rules"):
        limiter.allow("x")
    path = tmp_path / "policy.yaml"
    path.write_text("version: 1\nrules: { default: { limits: 1/min } }\n")
    limiter = Limiter.from_file(path, clock=clock)
    assert [limiter.allow("x"), limiter.allow("x")] == [True, False]
    path.write_text("version: 1\nrules: { default: { limits: 3/min } }\n")
    limiter.reload()
    assert limiter.peek("x", 0).limit == 3
    path.write_text("version: 1\nrules: { default: { limits: 3/mni } }\n")
    with pytest.raises(tidegate.PolicyError, match="mni"):
        limiter.reload()
    assert limiter.peek("x", 0).limit == 3


def test_keywords_win_over_the_policy(tmp_path):
    policy = {"version": 1, "store": "redis://nowhere", "capacity": 5,
              "rules": {"default": {"limits": "1/s"}}}
    limiter = Limiter.from_policy(policy, store="memory", capacity=7, on_full="allow")
    assert limiter.metrics()[0].capacity == 7
    assert "full_allows" in [finding.id for finding in limiter.audit()]


@pytest.mark.parametrize("key", ["x", b"x", ["x"], ("x",), [b"x"]])
def test_one_key_in_many_forms(key, clock):
    limiter = Limiter("1/min", clock=clock)
    assert limiter.allow("x")
    assert not limiter.allow(key)
    assert not limiter.hit(key)


def test_numbers_are_their_digits(clock):
    limiter = Limiter("1/min", clock=clock)
    for number in (0, 42, -7, 2**63 - 1, -(2**63), 2**63, 10**40):
        assert limiter.allow(number)
        assert not limiter.allow(str(number))


@pytest.mark.parametrize("key",
                         ["", b"", "\0", "a\0b", "a", "ä\U0001f600", b"\xff\xfe", "x" * (1 << 20)])
def test_odd_keys_are_keys_like_others(key, clock):
    limiter = Limiter("1/min", clock=clock)
    others = ["other", b"other"]
    assert limiter.allow(key) and not limiter.allow(key)
    assert limiter.allow_many([key, others[0]]) == b"\0\1"
    assert limiter.stats(key).limits["1/min"].used == 1
    assert len(limiter) == 2


def test_parts_never_meet(clock):
    limiter = Limiter("1/min", key=["channel", "sender"], clock=clock)
    assert (limiter.allow(["a:b", "c"]) and limiter.allow(("a", "b:c"))
            and limiter.allow(("telegram", 42)))
    assert not limiter.allow(("telegram", "42"))
    with pytest.raises(tidegate.InvalidKeyError, match="2 parts"):
        limiter.allow("a")


def test_attributes_are_any_keywords(clock):
    limiter = Limiter("1/min", exempt=[{"role": ["admin", "system"]}, {"level": 3}], clock=clock)
    assert limiter.hit("a", role="admin").reason == "exempt"
    assert limiter.hit("a", level=3, unknown="x").reason == "exempt"
    assert limiter.allow("a", role="guest") and not limiter.allow("a", role="guest")
    assert not limiter.is_limited("a", role="admin") and limiter.is_limited("a")


def test_names_that_operations_take_are_no_attributes(clock):
    limiter = Limiter("1/min", clock=clock)
    slots = Limiter("1 concurrent", clock=clock)
    for call, takes in [
        (lambda: limiter.allow("a", cost=5), "hit"),
        (lambda: limiter.allow("a", max=5), "hit"),
        (lambda: limiter.hit("a", timeout=3), "wait, acquire"),
        (lambda: limiter.hit("a", for_=3), "block, set_override, .*add_exempt"),
        (lambda: limiter.hit("a", by="x"), "block, unblock, set_override, .* and set_exempts"),
        (lambda: limiter.unblock("a", for_=3), "block, set_override"),
        (lambda: limiter.block("a", timeout=3), "wait, acquire"),
        (lambda: limiter.check("a", estimate=3), "reserve"),
        (lambda: limiter.stats("a", by="me"), "block, unblock"),
        (lambda: limiter.is_limited("a", reason="spam"), "block, unblock"),
        (lambda: limiter.reset("a", cost=1), "hit"),
        (lambda: limiter.reserve("a", 1, cost=1), "hit"),
        (lambda: limiter.wait("a", amount=1), "spend"),
        (lambda: limiter.acquire("a", amount=1), "spend"),
        (lambda: limiter.budget("a", amount=1), "spend"),
        (lambda: slots.permit("k", timeout=2), "acquire_permit"),
    ]:
        with pytest.raises(TypeError, match=f"never an attribute.*{takes}"):
            call()
    assert limiter.stats("a") is None and slots.stats("k") is None
    with pytest.raises(tidegate.PolicyError, match="never an attribute"):
        Limiter("1/min", exempt=[{"cost": "1"}])


@pytest.mark.parametrize("name",
                         ["cost", "max", "timeout", "estimate", "amount", "for_", "by", "reason"])
def test_a_refused_name_comes_with_every_operation_that_takes_it(name):
    operations = {one: member for one, member in vars(tidegate.Rule).items()
                  if not one.startswith("_") and callable(member)}
    takers = {one for one, member in operations.items()
              if name in inspect.signature(member).parameters}
    with pytest.raises(TypeError, match=f'"{name}" is never an attribute') as error:
        Limiter("1/min").allow("a", **{name: 1})
    told = str(error.value).split(" an argument of ")[1].replace(" and ", ", ").split(", ")
    assert takers and sorted(told) == sorted(takers)


def test_whole_numbers_addresses_and_mixed_parts_are_keys(clock):
    def one(keys, **options):
        limiter = Limiter("1/min", clock=clock, **options)
        return [limiter.allow(key) for key in keys]

    v4, v6 = ipaddress.ip_address("192.0.2.1"), ipaddress.ip_address("2001:db8::1")
    mapped = ipaddress.ip_address("::ffff:192.0.2.1")
    assert one([2**64 - 1, str(2**64 - 1), [2**64 - 1]]) == [True, False, False]
    assert one([-(2**63), str(-(2**63))]) == [True, False]
    assert (one([v4, "192.0.2.1", [v4], mapped, "::ffff:192.0.2.1"])
            == [True, False, False, True, False])
    assert one([v6, b"2001:db8::1", ipaddress.ip_address("2001:db8::2")]) == [True, False, True]
    assert (one([ipaddress.ip_address("fe80::1%eth0"), "fe80::1%eth0", "fe80::1"])
            == [True, False, True])
    mixed = [("telegram", 42), ["telegram", "42"], ("telegram", b"42"), (v4, 7), ("192.0.2.1", "7")]
    assert one(mixed, key=["a", "b"]) == [True, False, False, True, False]
    limiter = Limiter("1/min", clock=clock)
    assert limiter.allow_many([v4, 7, "7"]) == bytes([1, 1, 0])
    limiter.set_override(v6, "5/min")
    assert limiter.hit("2001:db8::1").limit == 5
    for wrong in (1.5, True, None, ipaddress.ip_network("10.0.0.0/8"),
                  ipaddress.ip_interface("10.0.0.1/8")):
        with pytest.raises(TypeError, match="a key is"):
            limiter.allow(wrong)


def test_an_unstated_capacity_adapts_to_memory(tmp_path):
    limiter = Limiter("500/h window")
    assert 1024 <= limiter.metrics()[0].capacity < 65536
    assert "capacity_adapted" in [finding.id for finding in limiter.audit()]
    assert Limiter("500/h window", memory="1GB").metrics()[0].capacity == 65536
    small = Limiter("20/min", memory=2**20).metrics()[0]
    assert 1024 <= small.capacity < 65536 and small.bytes <= 2**20
    policy = {"version": 1, "memory": "1KB", "rules": {"default": {"limits": "20/min"}}}
    assert Limiter.from_policy(policy, memory="8MB").metrics()[0].capacity == 65536
    for made in (lambda: Limiter.from_policy(policy), lambda: Limiter("20/min", memory=1)):
        with pytest.raises(tidegate.TidegateError, match="1024 keys"):
            made()
    for wrong, kind in (("many", tidegate.PolicyError), (-1, tidegate.RangeError),
                        (1.5, TypeError)):
        with pytest.raises(kind):
            Limiter("20/min", memory=wrong)
    Limiter("20/min", store=tmp_path / "limits", capacity=2000).close()
    assert Limiter("30/min", store=tmp_path / "limits").metrics()[0].capacity == 2000


def test_a_text_limit_gets_other_numbers_on_the_same_store(tmp_path):
    with Limiter("5/h fixed", store=tmp_path / "limits") as before:
        assert before.hit("a", 4)
        before.set_override("b", "2/h fixed")
    with Limiter("9/h fixed", store=tmp_path / "limits") as after:
        assert after.peek("a", 0).remaining == 5
        assert after.peek("b", 0).limit == 2
        assert [list(limits) for _, limits in after.overrides()] == [["9/h"]]


def test_options_of_a_redis_store_are_refused():
    rules = {"default": {"limits": "1/s"}}
    for name, value in {"on_outage": "allow", "deadline": "25ms", "share": 0.5,
                        "lease": "10s"}.items():
        with pytest.raises(tidegate.PolicyError, match="no Redis store"):
            Limiter.from_policy({"version": 1, name: value, "rules": rules})
    for store in ("redis://host", "rediss://host", "redis+cluster://a,b", "redis+sentinel://a/b"):
        with pytest.raises(tidegate.StoreError, match="no Redis store"):
            Limiter("1/s", store=store)


def test_a_decision_says_all(clock):
    decision = Limiter("2/min", clock=clock).hit("a")
    assert decision and decision.allowed
    told = (decision.rule, decision.reason, decision.limit, decision.remaining,
            decision.retry_after, decision.reset_after)
    assert told == ("default", None, 2, 1, 0.0, 30.0)
    assert ((decision.warning, decision.alert, decision.notify, decision.would_deny,
             decision.attach) == (False, False, False, None, None))
    assert repr(decision) == "<Decision allowed rule='default' remaining=1/2 reset_after=30>"
    with pytest.raises(AttributeError):
        decision.allowed = False


def test_a_decision_says_how_it_left_each_limit(clock):
    fresh = Limiter("1/min", clock=clock).hit("a").limits
    assert (fresh == (tidegate.LimitLeft("1/min", max=1, remaining=0, reset_after=60.0,
                                         more_after=60.0),))
    assert type(fresh) is tuple and type(fresh[0]) is tidegate.LimitLeft
    assert [type(field) for field in fresh[0]] == [str, int, int, float, float]

    limiter = Limiter(["4/min", "9/h window"], clock=clock)
    assert (limiter.hit("a", 2).limits
            == (("4/min", 4, 2, 30.0, 15.0), ("9/h", 9, 7, 3600.0, 3600.0)))
    clock.advance(15)
    denied = limiter.hit("a", 4)
    assert denied.reason == "4/min"
    assert denied.limits == (("4/min", 4, 3, 15.0, 15.0), ("9/h", 9, 7, 3585.0, 3585.0))
    assert limiter.hit("b", 4, role="x").limits[0].remaining == 0
    assert [one.max for one in Limiter("4/min burst 9", clock=clock).peek("a").limits] == [9]
    assert (limiter.hit_many(["c"])[0].limits == limiter.peek("c", 0).limits
            == limiter.why("c", 0).decision.limits)


def test_times_of_a_long_limit_are_exact_to_the_millisecond(clock):
    month = Limiter("2/30d window", clock=clock)
    month.hit("a")
    clock.advance(0.25)
    assert month.hit("a").limits == (("2/30d", 2, 0, 30 * 86_400.0, 30 * 86_400 - 0.25),)
    third = Limiter("7/30d", clock=clock).hit("a").limits[0]
    assert (third.reset_after, third.more_after) == (370_285.715, 370_285.715)


def test_a_limit_that_never_has_more_says_so(clock):
    never = Limiter("0/min", clock=clock).hit("a")
    assert not never and never.retry_after is None
    assert never.limits == (("0/min", 0, 0, 0.0, None),)
    assert pickle.loads(pickle.dumps(never)).limits == never.limits


def test_headers_in_each_style(clock):
    limiter = Limiter("2/min", clock=clock)
    both = limiter.hit("a").headers()
    assert both == {
        "X-RateLimit-Limit": "2",
        "X-RateLimit-Remaining": "1",
        "X-RateLimit-Reset": "1700000030",
        "RateLimit-Policy": '"2/min";q=2;w=60',
        "RateLimit": '"2/min";r=1;t=30',
    }
    denied = limiter.hit("a", 2)
    assert denied.headers("legacy") == {
        "X-RateLimit-Limit": "2",
        "X-RateLimit-Remaining": "1",
        "X-RateLimit-Reset": "1700000030",
        "Retry-After": "30",
    }
    assert list(denied.headers(style="ietf")) == ["RateLimit-Policy", "RateLimit", "Retry-After"]
    with pytest.raises(tidegate.RangeError):
        denied.headers("nope")


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_decisions_are_compared_and_pickled(protocol, clock):
    limiter = Limiter("1/min", attach={"fee": [1, None]}, clock=clock)
    allowed, denied, again = limiter.hit("a"), limiter.hit("a"), limiter.hit("a")
    assert denied == again and hash(denied) == hash(again) and allowed != denied
    assert denied != "denied" and len({allowed, denied, again}) == 2
    headers = denied.headers("both"), denied.headers("legacy"), denied.headers("ietf")
    restored = pickle.loads(pickle.dumps(denied, protocol))
    assert restored == denied and hash(restored) == hash(denied) and repr(restored) == repr(denied)
    assert ((restored.headers("both"), restored.headers("legacy"), restored.headers("ietf"))
            == headers)
    assert pickle.loads(pickle.dumps(restored)) == denied and copy.deepcopy(denied) == denied
    assert not restored and restored.attach == {"fee": [1, None]}
    assert restored.limits == denied.limits == (("1/min", 1, 0, 60.0, 60.0),)
    assert type(restored.limits[0]) is tidegate.LimitLeft
    left = pickle.loads(pickle.dumps(denied.limits, protocol))
    assert left == denied.limits and hash(left) == hash(denied.limits)


def test_decisions_that_left_their_limits_otherwise_are_not_equal(clock):
    one, other = (Limiter({"minute": text, "hour": "1/h"}, clock=clock).hit("a")
                  for text in ("10/min", "20/min"))
    assert ((one.limit, one.remaining, one.reset_after)
            == (other.limit, other.remaining, other.reset_after))
    assert one != other and len({one, other}) == 2
    assert pickle.loads(pickle.dumps(one)) != other


def test_a_pickle_from_before_decisions_had_limits_is_read(clock):
    decision = Limiter("1/min", clock=clock).hit("a")
    restore, (*older, _) = decision.__reduce__()
    assert restore(*older).limits == () and restore(*older).headers() == decision.headers()


def test_check_then_record(clock):
    limiter = Limiter("3/min", clock=clock)
    assert limiter.check("a", 2) and limiter.peek("a", 0).remaining == 3
    recorded = limiter.record("a", 2)
    assert recorded == (2, 3, 1, 40.0) and recorded.used == 2
    limiter.refund("a", 2)
    assert limiter.peek("a", 0).remaining == 3
    assert limiter.hit("a", 4).reason == "cost"
    assert limiter.hit("c", 4, max=4).allowed
    assert limiter.hit("b", cost=0) and limiter.stats("b") is None


def test_a_reservation_is_settled_once(clock):
    limiter = Limiter("10/min", clock=clock)
    reserved = limiter.reserve("a", 6)
    assert reserved and reserved.decision.remaining == 4
    assert reserved.settle(2) and not reserved.settle(9) and not reserved.cancel()
    assert limiter.peek("a", 0).remaining == 8
    with limiter.reserve("a", 3) as reserved:
        reserved.settle(1)
    with pytest.raises(ZeroDivisionError), limiter.reserve("a", 7) as reserved:
        1 / 0
    assert limiter.peek("a", 0).remaining == 7
    denied = limiter.reserve("a", 8)
    assert not denied and not denied.settle(0) and not denied.cancel()
    limiter.reserve("a", 7)
    assert limiter.peek("a", 0).remaining == 0


def test_a_permit_is_a_context_manager(clock):
    limiter = Limiter("1 concurrent lease 30s", clock=clock)
    with limiter.permit("job") as permit:
        assert permit and permit.renew()
        second = limiter.permit("job")
        assert not second and second.decision.reason == "1" and not second.release()
    assert not permit.release() and not permit.renew()
    held = limiter.permit("job")
    clock.advance(30)
    assert limiter.permit("job").release() and not held.release()
    held = limiter.permit("job")
    assert held
    del held
    assert limiter.permit("job")
    for operation in (limiter.hit, limiter.allow, limiter.check, limiter.record):
        with pytest.raises(tidegate.OperationError, match="permit"):
            operation("job")


def test_batches(clock):
    limiter = Limiter("1/min", clock=clock)
    assert limiter.allow_many(["a", b"b", "a"]) == b"\1\1\0"
    assert limiter.allow_many(iter(["a", 5, ("c",), "5"])) == b"\0\1\1\0"
    assert limiter.allow_many([]) == b"" and limiter.hit_many([]) == []
    assert [hit.allowed for hit in limiter.hit_many({"d": 1, 7: 2})] == [True, True]
    assert limiter.allow_many([str(key) for key in range(10_000)]).count(1) == 9_998
    parts = Limiter("1/min", key=["a", "b"], clock=clock)
    assert parts.allow_many([("x", "y"), ["x", "y"]]) == b"\1\0"


def test_budgets(clock):
    limiter = Limiter("9/min", budget={"daily": 100, "per_hit": 60}, clock=clock)
    assert limiter.budget("a") == (0, 100, False, False, 6400.0)
    assert limiter.spend("a", 70).over_per_hit and limiter.spend("a", 40).over
    assert limiter.hit("a").reason == "budget" and limiter.stats("a").budget.spent == 110
    clock.advance(6400)
    assert limiter.hit("a").allowed
    with pytest.raises(tidegate.OperationError, match="budget"):
        Limiter("1/s").spend("a", 1)


def test_stats_and_reset(clock):
    limiter = Limiter("3/min window", cooldown=5, clock=clock)
    assert limiter.stats("a") is None
    limiter.hit("a", 3), limiter.hit("a")
    stats = limiter.stats("a")
    assert stats.limits == {"3/min": ("3/min", 3, 3, 0, 60.0)}
    assert (stats.cooldown_left, stats.last_allowed, stats.budget) == (5.0, 0.0, None)
    assert limiter.is_limited("a")
    limiter.reset("a")
    assert limiter.stats("a") is None and limiter.allow("a")
    limiter.reset_all()
    assert limiter.stats("a") is None
    limiter.allow("b")
    clock.advance(61)
    assert limiter.prune() >= 1 and len(limiter) == 0


def test_changes_at_run_time(clock):
    limiter = Limiter({"minute": {"max": 2, "per": "1m", "algorithm": "window"}}, ceiling=50,
                      clock=clock)
    rule = limiter["default"]
    rule.set_override("alice", {"minute": {"max": 5}})
    limiter.set_override({"role": "staff"}, "9/min")
    assert (rule.hit("alice").limit == 5 and limiter.hit("bob", role="staff").limit == 9
            and limiter.hit("bob").limit == 2)
    limiter.set_override(b"\xff", {"minute": {"max": 4, "per": 30.5}})
    overrides = limiter.overrides()
    assert overrides == [
        (("alice",), {"minute": {"max": 5}}),
        ({"role": ["staff"]}, {"minute": {"max": 9, "per": 60.0}}),
        ((b"\xff",), {"minute": {"max": 4, "per": 30.5}}),
    ]
    for target, limits in overrides:
        limiter.set_override(target, limits)
    assert limiter.overrides() == overrides
    assert limiter.clear_override("alice") > 0 and limiter.clear_override("alice") == 0
    assert limiter.clear_override({"role": "staff"}) and len(rule.overrides()) == 1
    limiter.set_default({"minute": {"max": 7}})
    assert limiter.peek("bob").limit == 7
    limiter.set_default({})
    assert limiter.peek("bob").limit == 2
    with pytest.raises(tidegate.PolicyError, match="ceiling"):
        limiter.set_override("alice", {"minute": {"max": 51}})
    with pytest.raises(tidegate.RangeError, match="ceiling"):
        limiter.hit("alice", max=51)
    with pytest.raises(tidegate.PolicyError, match="did you mean"):
        limiter.set_override("alice", {"minuet": {"max": 5}})


def test_exemptions_at_run_time(clock):
    limiter = Limiter("1/min", exempt=[{"role": "admin"}], clock=clock)
    limiter.add_exempt({"ip": "10.0.0.0/8"})
    assert limiter.exempts() == [{"role": ["admin"]}, {"ip": ["10.0.0.0/8"]}]
    assert limiter.hit("a", ip="10.1.2.3").reason == "exempt"
    assert (limiter.remove_exempt({"role": "admin"}) == 2
            and limiter.remove_exempt({"role": "admin"}) == 0)
    limiter.set_exempts([{"key": "vip"}, {"role": ["a", "b"]}])
    assert limiter.exempts() == [{"key": ["vip"]}, {"role": ["a", "b"]}]
    assert limiter.hit("vip").reason == "exempt"


def test_metrics_events_and_audit(clock):
    limiter = Limiter("1/min", alert={"violations": 2, "within": "1m"}, mode="shadow", clock=clock)
    for _ in range(3):
        assert limiter.allow(("alice",))
    metrics = limiter.metrics()[0]
    assert (metrics.rule, metrics.shadowed, metrics.alerts, metrics.keys) == ("default", 2, 1, 1)
    assert limiter["default"].metrics() == metrics
    limiter = Limiter("1/min", on_full="allow", clock=clock)
    limiter.allow("alice"), limiter.hit("alice"), limiter.hit("alice", 5)
    metrics, events = limiter.metrics()[0], limiter.events()
    assert metrics.denied == {"1/min": 1, "cost": 1} and metrics.top_offenders[0].key == ("alice",)
    assert [event.reason for event in events.events] == ["1/min", "cost"] and events.missed == 0
    assert events.events[0].at == 1_700_000_000.0
    assert limiter["default"].events() == events
    assert (limiter.events(events.next).events
            == limiter["default"].events(since=events.next).events == [])
    limiter.hit("alice")
    assert [event.number for event in limiter.events(since=events.next).events] == [3]
    for wrong in ("yesterday", ""):
        with pytest.raises(tidegate.RangeError):
            limiter.events(wrong)
    with pytest.raises(TypeError):
        limiter.events(1)
    assert [finding.id for finding in limiter.audit()] == ["no_budget", "full_allows"]
    assert limiter.audit()[1].severity == "warn"


def test_modes_and_notices(clock):
    off = Limiter("1/min", mode="off", clock=clock).hit("a")
    assert off and off.reason == "off" and off.limit is None and off.headers() == {}
    shadow = Limiter("1/min", mode="shadow", clock=clock)
    shadow.allow("a")
    assert shadow.hit("a").would_deny == "1/min"
    for notify, due in (("silent", [False, False]), ("once", [True, False]),
                        ("always", [True, True])):
        limiter = Limiter("1/min", notify=notify, clock=clock)
        limiter.allow("a")
        assert [limiter.hit("a").notify for _ in range(2)] == due


def test_a_context_manager_that_closes_and_is_always_true():
    with Limiter("1/min") as limiter:
        assert limiter and len(limiter) == 0 and limiter["default"]
        rule = limiter["default"]
    assert limiter
    for call in (lambda: limiter.allow("a"), lambda: rule.hit("a"), lambda: len(rule),
                 lambda: rule.wait("a"), limiter.metrics):
        with pytest.raises(tidegate.ClosedError):
            call()
    limiter.close()


def test_a_rule_keeps_its_limiter():
    rule = Limiter("1/min")["default"]
    assert rule.allow("a") and not rule.allow("a")
    assert repr(rule) == '<Rule "default">' and repr(Limiter("1/s")) == '<Limiter ["default"]>'


def test_stores(tmp_path):
    first, second = Limiter("1/min", store="memory:shared"), Limiter("1/min", store="memory:shared")
    assert first.allow("a") and not second.allow("a")
    folder = tmp_path / "limits"
    first = Limiter("1/min", store=folder, capacity=100)
    second = Limiter("1/min", store=f"file:{folder}", capacity=100)
    assert first.allow("a") and not second.allow("a")
    first.sync()
    seen = Limiter.inspect(folder)[0]
    assert ((seen.rule, seen.keys, seen.capacity) == ("default", 1, 100)
            and seen.limits[0]["name"] == "1/min")
    old = Limiter("1/min", store=folder, capacity=999)
    assert not old.allow("a") and first.metrics()[0].retired
    with pytest.raises(tidegate.StoreError, match="to move it back"):
        Limiter("1/min", store=folder, capacity=100)
    assert not old.metrics()[0].retired
    assert Limiter("1/min", store=folder, capacity=998, recreate=True).allow("a")
    assert old.metrics()[0].retired
    assert [event.reason for event in old.events().events] == ["1/min", "retired"]
    Limiter("1/min", store=tmp_path / "shared", group=True)
    assert (tmp_path / "shared").stat().st_mode & 0o777 == 0o770
    with pytest.raises(tidegate.TidegateError):
        Limiter("1/min", store="nowhere:x")


def test_a_full_table(clock):
    limiter = Limiter("1/h", capacity=64, on_full="deny", clock=clock)
    hits = limiter.hit_many([f"key {i}" for i in range(1000)])
    assert {hit.reason for hit in hits} == {None, "full"}
    assert limiter.metrics()[0].full > 0


def test_ip_keys():
    assert tidegate.ip_key("192.0.2.7") == tidegate.ip_key("::ffff:192.0.2.7") == "192.0.2.7"
    assert tidegate.ip_key("2001:db8:1:2:3::9") == tidegate.ip_key("2001:db8:1:ff::1")
    assert tidegate.ip_key("2001:db8::1", v6_prefix=128) != tidegate.ip_key("2001:db8::2", 128)
    for address, prefix in (("nonsense", 56), ("::1", 129), ("::1", 10**30)):
        with pytest.raises(ValueError):
            tidegate.ip_key(address, prefix)


def test_a_manual_clock():
    clock = ManualClock(start=datetime.timedelta(seconds=5), wall=10)
    clock.advance(0.5)
    assert clock.now() == 5.5 and repr(clock) == "<ManualClock at 5.5>"
    clock.set(2)
    clock.set_wall(1_700_000_000)
    assert clock.now() == 2.0
    for wrong in (-1, float("nan"), float("inf"), 1e300, datetime.timedelta(-1)):
        with pytest.raises(tidegate.RangeError):
            clock.advance(wrong)


def test_everything_is_documented_and_signed():
    for name in tidegate.__all__:
        thing = getattr(tidegate, name)
        if not inspect.isclass(thing) or issubclass(thing, (tuple, Exception)):
            continue
        assert thing.__doc__ and thing.__module__ == "tidegate", name
        for attribute, member in vars(thing).items():
            if not attribute.startswith("_") and attribute not in ("inspect",):
                assert member.__doc__, f"{name}.{attribute}"
    assert (str(inspect.signature(Limiter.hit))
            == "(self, /, key, cost=1, *, max=None, **attributes)")
    assert str(inspect.signature(Limiter.allow)) == "(self, /, key, **attributes)"
    assert str(inspect.signature(Limiter)).startswith(
        "(limits, *, store='memory', capacity=None, on_full='overflow', clock=None")
    assert tidegate.IETF_DRAFT.startswith("draft-ietf-httpapi-ratelimit-headers")
