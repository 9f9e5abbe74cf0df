"""The shared vectors: every surface gives the same decisions."""

import pytest
import tidegate
from player import Player, cases, holds

ALL = list(cases())


def test_there_are_as_many_as_elsewhere():
    assert len(ALL) > 700


@pytest.mark.parametrize("theme", sorted({theme for theme, _ in ALL}))
def test_vectors(theme):
    steps = 0
    for case in (case for of, case in ALL if of == theme):
        steps += refused(case) if "policy_error" in case else played(case)
    assert steps > 0


def refused(case):
    with pytest.raises(tidegate.TidegateError) as error:
        Player(case["policy"])
    lines = [line.strip() for line in str(error.value).split("\n")]
    for path in case["policy_error"]:
        assert any(line.startswith(path)
                   for line in lines), f"{case['name']}: no problem at {path}: {lines}"
    return 1


def told(error):
    """The code and message. A name that an operation does not take is Python's own error."""
    if isinstance(error, tidegate.TidegateError):
        return f"{error.code} {error}"
    assert "unexpected keyword argument" in str(error) or "never an attribute" in str(error), error
    return f"operation {error}"


def played(case):
    player = Player(case["policy"], case.get("start_ms", 0), case.get("wall_ms", 0))
    for index, step in enumerate(case["steps"]):
        for _ in range(step.get("repeat", 1)):
            where = f"{case['name']}: step {index} {step}"
            if "error" in step:
                with pytest.raises((tidegate.TidegateError, TypeError)) as error:
                    player.play(step)
                assert step["error"] in told(error.value), where
                continue
            got = player.play(step)
            assert "expect" not in step or holds(step["expect"], got), f"{where}: got {got}"
    return len(case["steps"])


def test_limits_of_decisions_are_played_whole():
    minute = {"name": "minute", "max": 4, "remaining": 2, "reset_after_ms": 30_000,
              "more_after_ms": 15_000}
    never = {"name": "never", "max": 0, "remaining": 0, "reset_after_ms": 0, "more_after_ms": None}
    rules = {"default": {"limits": {"minute": "4/min"}}, "shut": {"limits": {"never": "0/min"}}}
    steps = [
        {"op": "hit", "key": "a", "cost": 2, "expect": {"limits": [minute]}},
        {"op": "hit", "key": "a", "rule": "shut", "expect": {"limits": [never]}},
    ]
    case = {"name": "own", "policy": {"version": 1, "rules": rules}, "steps": steps}
    assert played(case) == len(steps)
    without = {name: value for name, value in minute.items() if name != "max"}
    others = [minute | {name: 7} for name in minute] + [without]
    for index, wrong in [(0, []), (0, [minute, minute]),
                         (1, [never | {"more_after_ms": 0}])] + [(0, [one]) for one in others]:
        broken = [step | ({"expect": {"limits": wrong}} if at == index else {})
                  for at, step in enumerate(steps)]
        with pytest.raises(AssertionError, match=f"own: step {index} "):
            played(case | {"steps": broken})


def test_run_time_changes_are_played():
    raw, policy = {"hex": "ff"}, {"version": 1, "rules": {"default": {"limits": {"l": "5/h"}}}}
    unblocked = {"number": 11, "at_ms": 500, "rule": "default", "op": "unblock",
                 "target": {"key": [raw]}}
    unblocked |= {"before": True, "after": False, "until_ms": None, "by": "x", "reason": None}
    steps = [
        {"op": "set_override", "key": "a", "limits": "9/h", "for_ms": 1500,
         "expect": {"number": 1}},
        {"op": "set_override", "match": {"role": "b"}, "limits": {"l": {"max": 7}},
         "expect": {"number": 2}},
        {"op": "clear_override", "match": {"role": "b"}, "reason": "y", "expect": {"number": 3}},
        {"op": "clear_override", "key": "none", "expect": {"number": 0}},
        {"op": "clear_override", "key": "a", "for_ms": 5, "error": "for_"},
        {"op": "set_default", "limits": {"l": {"max": 8}}, "by": "x", "expect": {"number": 4}},
        {"op": "add_exempt", "match": {"role": "c"}, "for_ms": 1, "expect": {"number": 5}},
        {"op": "remove_exempt", "match": {"role": "c"}, "expect": {"number": 6}},
        {"op": "set_exempts", "matches": [{"role": "d"}], "expect": {"number": 7}},
        {"op": "set_mode", "mode": "shadow", "for_ms": 2000, "expect": {"number": 8}},
        {"op": "clear_mode", "by": "x", "expect": {"number": 9}},
        {"op": "block", "key": raw, "attributes": {"role": "e"}, "for_ms": 60000, "by": "x",
         "reason": "y"},
        {"op": "block", "key": "a", "for_ms": 0, "error": "range"},
        {"op": "blocks", "expect": [{"key": [raw], "until_ms": 60500, "by": "x", "reason": "y"}]},
        {"op": "stats", "key": raw,
         "expect": {"blocked": {"until_ms": 60500, "by": "x", "reason": "y"}}},
        {"op": "hit", "key": raw, "expect": {"reason": "blocked", "retry_after_ms": 60000}},
        {"op": "unblock", "key": raw, "by": "x", "expect": {"unblocked": True}},
        {"op": "unblock", "key": "a", "expect": {"unblocked": False}},
        {"op": "blocks", "expect": []},
        {"op": "changes", "since": 10, "expect": {"changes": [unblocked], "next": 11, "missed": 0}},
    ]
    case = {"name": "own", "wall_ms": 500, "policy": policy, "steps": steps}
    assert played(case) == len(steps)
    other = {"changes": [unblocked | {"by": "y"}]}
    for index, wrong in ((0, {"number": 2}), (13, []), (16, {"unblocked": False}), (19, other)):
        broken = [step | ({"expect": wrong} if at == index else {})
                  for at, step in enumerate(steps)]
        with pytest.raises(AssertionError, match=f"own: step {index} "):
            played(case | {"steps": broken})
