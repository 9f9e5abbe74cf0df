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
        assert any(line.startswith(path) for line in lines), f"{case['name']}: no problem at {path}: {lines}"
    return 1


def played(case):
    player = Player(case["policy"], case.get("start_ms", 0), case.get("wall_ms", 0))
    for index, step in enumerate(case["steps"]):
        for _ in range(step.get("repeat", 1)):
            where = f"{case['name']}: step {index} {step}"
            if "error" in step:
                with pytest.raises(tidegate.TidegateError) as error:
                    player.play(step)
                assert step["error"] in f"{error.value.code} {error.value}", where
                continue
            got = player.play(step)
            assert "expect" not in step or holds(step["expect"], got), f"{where}: got {got}"
    return len(case["steps"])
