"""Run-time changes that end, with a name and a reason; blocks, the mode, and
the trail of changes."""

import asyncio
import collections
import copy
import datetime
import inspect
import pickle

import pytest
import tidegate
from tidegate import BlockedKey, Change, Changes, Limiter, ManualClock, Rule

WALL = 1_700_000_000.0
OPS = {"by": "ops", "reason": "a drill"}
HOUR = {"for_": "1h", **OPS}


@pytest.fixture
def clock():
    return ManualClock(100.0, wall=WALL)


@pytest.fixture
def limiter(clock):
    return Limiter({"l": "5/h"}, clock=clock)


@pytest.mark.parametrize("hour", [3600, 3600.0, "1h", "60 min", datetime.timedelta(hours=1)])
def test_a_time_has_many_forms(hour, limiter, clock):
    assert limiter.block("alice", hour) == 1
    assert limiter.set_mode("shadow", for_=hour) == 2
    assert limiter.blocks()[0].until == WALL + 3600
    assert [change.until for change in limiter.changes().changes] == [WALL + 3600] * 2
    clock.advance(3599.999)
    assert limiter.hit("alice").would_deny == "blocked"
    clock.advance(0.001)
    assert limiter.hit("alice").would_deny is None and limiter.blocks() == []


def test_fractions_of_a_second_are_times(limiter, clock):
    limiter.block("alice", 0.25)
    assert limiter.hit("alice").retry_after == 0.25
    clock.advance(0.25)
    assert limiter.hit("alice")


NO_TIMES = [0, -1, -0.5, 0.0009, float("nan"), float("inf"), 1e300, 10**400, -(10**400)]


@pytest.mark.parametrize("wrong", [*NO_TIMES, datetime.timedelta(0), datetime.timedelta(-1)],
                         ids=range(11))
def test_times_that_cannot_be_had(wrong, limiter):
    for call in (lambda: limiter.block("a", wrong), lambda: limiter.set_default("9/h", for_=wrong)):
        with pytest.raises(tidegate.RangeError,
                           match="for_: a change is made for 1 ms to 36,600 days"):
            call()
    assert limiter.changes() == ([], 0, 0)


@pytest.mark.parametrize("wrong", ["", "soon", "5", "1 fortnight", "-1h"])
def test_texts_that_are_no_times(wrong, limiter):
    with pytest.raises(tidegate.RangeError, match="^for_: .*(unit|missing)"):
        limiter.set_mode("off", for_=wrong)


@pytest.mark.parametrize("wrong",
                         [True, b"1h", [1], {"s": 1}, object(), datetime.datetime(2026, 1, 1)])
def test_what_is_no_time(wrong, limiter):
    wanted = 'for_ should be a number of seconds, a timedelta, or a text such as "1h", not'
    for call in (lambda: limiter.block("a", wrong),
                 lambda: limiter.add_exempt({"role": "a"}, for_=wrong)):
        with pytest.raises(TypeError, match=wanted):
            call()


def changing(on):
    """Each change, but for its options."""
    return {
        "set_override": lambda **options: on.set_override("a", "9/h", **options),
        "clear_override": lambda **options: on.clear_override("a", **options),
        "set_default": lambda **options: on.set_default("9/h", **options),
        "add_exempt": lambda **options: on.add_exempt({"role": "a"}, **options),
        "remove_exempt": lambda **options: on.remove_exempt({"role": "a"}, **options),
        "set_exempts": lambda **options: on.set_exempts([{"role": "b"}], **options),
        "set_mode": lambda **options: on.set_mode("shadow", **options),
        "clear_mode": lambda **options: on.clear_mode(**options),
        "block": lambda **options: on.block("a", **options),
        "unblock": lambda **options: on.unblock("a", **options),
    }


def test_every_change_takes_by_and_reason_and_what_ends_takes_a_time(limiter):
    for name, change in changing(limiter).items():
        for option in ("by", "reason"):
            with pytest.raises(TypeError, match="'str'"):
                change(**{option: 5})
            with pytest.raises(tidegate.RangeError, match=f"{option}: it has more than"):
                change(**{option: "x" * 1001})
            with pytest.raises(ValueError, match="surrogates"):
                change(**{option: "\ud800"})
        if name in ("clear_override", "remove_exempt", "clear_mode", "unblock"):
            with pytest.raises(TypeError, match="for_"):
                change(for_=5)
    assert limiter.changes() == ([], 0, 0)
    numbers = [change(**OPS) for change in changing(limiter["default"]).values()]
    assert numbers == [1, 2, 3, 4, 5, 6, 7, 8, 9, True]
    assert [type(number) for number in numbers] == [int] * 9 + [bool]
    told = limiter.changes().changes
    assert [change.op for change in told] == list(changing(limiter))
    assert {(change.by, change.reason) for change in told} == {("ops", "a drill")}


def test_nothing_to_take_back_is_no_change(limiter):
    assert (limiter.clear_override("a") == limiter.remove_exempt({"role": "a"})
            == limiter.clear_mode() == 0)
    assert limiter.unblock("a") is False
    assert limiter.changes() == ([], 0, 0)


def test_the_trail_tells_of_every_change(limiter, clock):
    staff = {"role": ["staff"]}
    limiter.set_override("alice", "7/h", **HOUR)
    limiter.set_override(["alice"], {"l": {"max": 9}}, **HOUR)
    limiter.clear_override("alice", **OPS)
    limiter.set_default({"l": {"max": 4, "per": 90.5}}, **HOUR)
    limiter.set_default({}, **OPS)
    clock.advance(1.5)
    limiter.add_exempt({"role": "staff"}, **HOUR)
    limiter.remove_exempt(staff, **OPS)
    limiter.set_exempts(iter([staff]), **HOUR)
    limiter.set_mode("shadow", **HOUR)
    limiter.clear_mode(**OPS)
    limiter.block(b"\xff", **HOUR)
    limiter.unblock(b"\xff", **OPS)
    seen = limiter.changes()
    assert isinstance(seen, Changes) and all(isinstance(change, Change) for change in seen.changes)
    seven = {"l": {"max": 7, "per": "3600000ms"}}
    expected = [
        ("set_override", ("alice",), None, seven, WALL + 3600),
        ("set_override", ("alice",), seven, {"l": {"max": 9}}, WALL + 3600),
        ("clear_override", ("alice",), {"l": {"max": 9}}, None, None),
        ("set_default", None, None, {"l": {"max": 4, "per": "90500ms"}}, WALL + 3600),
        ("set_default", None, {"l": {"max": 4, "per": "90500ms"}}, {}, None),
        ("add_exempt", staff, False, True, WALL + 3601.5),
        ("remove_exempt", staff, True, False, None),
        ("set_exempts", None, [], [staff], WALL + 3601.5),
        ("set_mode", None, None, "shadow", WALL + 3601.5),
        ("clear_mode", None, "shadow", None, None),
        ("block", (b"\xff",), False, True, WALL + 3601.5),
        ("unblock", (b"\xff",), True, False, None),
    ]
    for number, (change, (op, *states, until)) in enumerate(zip(seen.changes, expected,
                                                                strict=True), 1):
        at = WALL if number <= 5 else WALL + 1.5
        assert change == (number, at, "default", op, *states, until, "ops", "a drill")
    assert (seen.next, seen.missed) == (12, 0)
    # What stood before can be set again.
    assert limiter.set_override(seen.changes[1].target, seen.changes[1].before) == 13
    later = limiter.changes(since=seen.next)
    assert ([change.number for change in later.changes] == [13]
            and limiter.changes(13) == ([], 13, 0))
    assert pickle.loads(pickle.dumps(seen)) == copy.deepcopy(seen) == seen


def test_a_rule_tells_of_its_own_changes(clock):
    rules = {"a": {"limits": "5/h"}, "b": {"limits": "5/h"}}
    limiter = Limiter.from_policy({"version": 1, "rules": rules}, clock=clock)
    a, b = limiter["a"], limiter["b"]
    assert [a.set_mode("off"), b.set_mode("off"), a.clear_mode()] == [1, 2, 3]
    assert [change.rule for change in limiter.changes().changes] == ["a", "b", "a"]
    assert [change.number for change in a.changes().changes] == [1, 3]
    assert [change.number for change in a.changes(1).changes] == [3]
    assert ([change.number for change in b.changes().changes], b.changes().next) == ([2], 3)
    with pytest.raises(tidegate.UnknownRuleError, match="several rules"):
        limiter.block("x")


def test_numbers_to_go_on_from(limiter):
    for on in (limiter, limiter["default"]):
        for wrong in ("1", None, 1.0):
            with pytest.raises(TypeError):
                on.changes(wrong)
        for wrong in (-1, 2**64):
            with pytest.raises(tidegate.RangeError):
                on.changes(wrong)
        assert on.changes(2**64 - 1) == ([], 2**64 - 1, 0)


def test_more_changes_than_are_kept(limiter):
    for _ in range(300):
        limiter.set_mode("shadow")
    seen = limiter.changes(10)
    assert (len(seen.changes), seen.changes[0].number, seen.next, seen.missed) == (256, 45, 300, 34)


def test_a_blocked_key_is_refused(limiter, clock):
    assert limiter.block("mallory", 60, by="ops", reason="spam") == 1
    denied = limiter.hit("mallory")
    assert not denied and denied.reason == "blocked"
    assert (denied.limit, denied.remaining, denied.retry_after) == (None, 0, 60.0)
    assert not limiter.allow("mallory") and limiter.allow_many(["mallory", "bob"]) == b"\0\1"
    assert denied.headers("legacy")["Retry-After"] == "60" and "reason='blocked'" in repr(denied)
    assert limiter.is_limited("mallory") and not limiter.is_limited("bob")
    assert limiter.metrics()[0].denied == {"blocked": 3}
    assert limiter.record("mallory").used == 1
    block = BlockedKey(("mallory",), WALL + 60, "ops", "spam")
    assert limiter.blocks() == [block] and limiter.stats("mallory").blocked == block
    assert limiter.stats("bob").blocked is None
    assert pickle.loads(pickle.dumps(limiter.stats("mallory"))).blocked == block
    clock.advance(60)
    assert (limiter.allow("mallory") and limiter.blocks() == []
            and limiter.stats("mallory").blocked is None)


def test_a_block_without_an_end_is_ended_by_hand(limiter):
    limiter.block("mallory")
    assert limiter.blocks() == [(("mallory",), None, None, None)]
    assert limiter.hit("mallory").retry_after is None
    assert limiter.wait("mallory", timeout=5).reason == "blocked"
    assert limiter.unblock("mallory") is True and limiter.unblock("mallory") is False
    assert limiter.hit("mallory")
    limiter.block("mallory"), limiter.block("eve"), limiter.reset("mallory")
    assert [block.key for block in limiter.blocks()] == [("eve",)]
    limiter.reset_all()
    assert limiter.blocks() == [] and limiter.changes().changes[-1].op == "unblock"


def test_a_block_is_for_a_key_of_any_form(clock):
    limiter = Limiter("5/h", key=["channel", "sender"], exempt=[{"role": "admin"}], clock=clock)
    limiter.block(("telegram", 42), "1h", role="guest")
    assert limiter.hit(["telegram", "42"]).reason == "blocked"
    assert limiter.hit(("telegram", 42), role="admin").reason == "exempt"
    assert limiter.blocks()[0].key == ("telegram", "42")
    assert limiter.unblock([b"telegram", 42], role="guest")
    for call in (limiter.block, limiter.unblock):
        with pytest.raises(tidegate.InvalidKeyError, match="2 parts"):
            call("telegram")
        with pytest.raises(TypeError, match="a key is"):
            call(1.5)
        with pytest.raises(TypeError, match='"cost" is never an attribute'):
            call(("a", "b"), cost=1)


def test_there_is_room_for_as_many_blocks_as_keys(clock):
    limiter = Limiter("5/h", capacity=64, clock=clock)
    with pytest.raises(tidegate.StoreError, match="no room for another blocked key"):
        for number in range(100_000):
            limiter.block(number)
    assert len(limiter.blocks()) == limiter.metrics()[0].capacity


def test_who_awaits_waits_for_the_end_of_a_block():
    limiter = Limiter("5/h")
    limiter.block("alice", 0.05)
    assert asyncio.run(limiter.acquire("alice")).allowed
    limiter.block("alice", "1h")
    assert asyncio.run(limiter.acquire("alice", timeout=5)).reason == "blocked"


def test_the_mode_that_is_set_wins(limiter, clock):
    limiter.set_mode("off", for_=10)
    assert limiter.hit("a", 99).reason == "off"
    limiter.set_mode("shadow")
    assert limiter.hit("a", 99).would_deny == "cost"
    limiter.clear_mode()
    assert limiter.hit("a", 99).reason == "cost"
    with pytest.raises(ValueError, match='mode should be one of enforce, shadow, off, not "of"'):
        limiter.set_mode("of")
    for wrong in (None, True, b"off", 1):
        with pytest.raises(TypeError,
                           match="mode should be one of enforce, shadow, off, not [NbBi]"):
            limiter.set_mode(wrong)


def test_matches_are_mappings(limiter):
    for wrong in ("admin", 5, None, [("role", "admin")]):
        for call in (limiter.add_exempt, limiter.remove_exempt,
                     lambda wrong: limiter.set_exempts([wrong])):
            with pytest.raises(TypeError, match="a match is a mapping"):
                call(wrong)
    for wrong in ({"role": "admin"}, "admin", b"admin", 5, None):
        with pytest.raises(TypeError, match="an iterable of mappings"):
            limiter.set_exempts(wrong)
    assert limiter.exempts() == [] and limiter.changes().next == 0
    assert limiter.add_exempt(collections.ChainMap({"role": "admin"})) == 1
    assert limiter.set_exempts(match for match in [{"role": "a"}]) == 2


def test_why_says_who_made_the_change(limiter):
    limiter.set_override("alice", "9/h", by="c")
    limit = limiter.why("alice").steps[-1]
    assert (limit.step, limit.source, limit.by) == ("limit", "override", "c")
    limiter.block("alice", 60, by="d", reason="spam")
    why = limiter.why("alice")
    assert [step.step for step in why.steps][:4] == ["mode", "exempt", "blocked", "cost"]
    assert why.steps[2][1:] == ("deny", None, "spam", "change", WALL + 60, "d")
    assert why.decision.reason == "blocked"


def test_changes_are_kept_with_the_store(tmp_path):
    with Limiter("5/h", store=tmp_path / "limits", capacity=100) as first:
        first.block("mallory", by="ops"), first.set_override("alice", "9/h", for_="1d")
    with Limiter("5/h", store=tmp_path / "limits", capacity=100) as second:
        assert second.hit("mallory").reason == "blocked" and second.hit("alice").limit == 9
        assert second.blocks() == [(("mallory",), None, "ops", None)]
        assert [change.op for change in second.changes().changes] == ["block", "set_override"]
    for call in (second.blocks, second.changes, second.clear_mode, second.reset_all):
        with pytest.raises(tidegate.ClosedError):
            call()
    for call in (second.block, second.unblock, second.reset):
        with pytest.raises(tidegate.ClosedError):
            call("a")


def test_signatures_are_the_same_on_both():
    keep = "for_=None, by=None, reason=None"
    for name, signature in {
        "set_override": f"(self, /, target, limits, *, {keep})",
        "clear_override": "(self, /, target, *, by=None, reason=None)",
        "set_default": f"(self, /, limits, *, {keep})",
        "add_exempt": f"(self, /, match, *, {keep})",
        "remove_exempt": "(self, /, match, *, by=None, reason=None)",
        "set_exempts": f"(self, /, matches, *, {keep})",
        "set_mode": f"(self, /, mode, *, {keep})",
        "clear_mode": "(self, /, *, by=None, reason=None)",
        "block": "(self, /, key, for_=None, *, by=None, reason=None, **attributes)",
        "unblock": "(self, /, key, *, by=None, reason=None, **attributes)",
        "blocks": "(self, /)",
        "changes": "(self, /, since=0)",
    }.items():
        for on in (Limiter, Rule):
            assert str(inspect.signature(getattr(on, name))) == signature
