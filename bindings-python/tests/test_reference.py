"""Random policies and calls against the exact reference of the vectors (tests/vectors/model)."""

import pytest
from player import Player, holds

pytest.importorskip("hypothesis")
from hypothesis import given, settings, strategies as st  # noqa: E402
from model.limiter import Limiter as Model  # noqa: E402

# Buckets whose tokens come in whole thousandths each millisecond, so that the
# reference leaves nothing open.
LIMITS = st.sampled_from(
    ["1/s", "5/s", "10/s burst 3", "60/min burst 4", "3/s window", "5/10s window", "4/2s fixed",
     "2/500ms window"]
)
OPTIONS = st.fixed_dictionaries(
    {},
    optional={
        "cooldown": st.sampled_from(["500ms", "3s"]),
        "backoff": st.sampled_from(
            [{"steps": ["1s", "2s"], "quiet": "5s"},
             {"steps": ["1s"], "quiet": "2s", "enforce": True}]
        ),
        "alert": st.just({"violations": 3, "within": "4s"}),
        "notify": st.sampled_from(["silent", "once", "always"]),
        "warn_at": st.sampled_from([0.5, 0.8]),
        "mode": st.sampled_from(["enforce", "shadow"]),
        "exempt": st.just([{"role": ["admin", "system"]}]),
        "attach": st.just({"upgrade": "now"}),
    },
)
STEP = st.fixed_dictionaries(
    {
        "op": st.sampled_from(
            ["hit", "hit", "allow", "check", "peek", "record", "refund", "is_limited", "stats",
             "reset"]
        ),
        "after": st.sampled_from([0, 0, 1, 100, 250, 1000, 4000]),
        "key": st.sampled_from(["a", "b", "ü\0", 7, -1]),
    },
    optional={
        "cost": st.integers(0, 4),
        "attributes": st.sampled_from([{"role": "admin"}, {"role": "guest"}]),
    },
)


@settings(max_examples=150, deadline=None)
@given(
    limits=st.lists(LIMITS, min_size=1, max_size=3, unique_by=lambda text: text.split()[0]),
    options=OPTIONS,
    steps=st.lists(STEP, max_size=40),
)
def test_every_answer_is_the_references(limits, options, steps):
    policy = {"version": 1, "rules": {"default": {"limits": limits, **options}}}
    player, model, now = Player(policy), Model(policy, 0, 0), 0
    for step in steps:
        now += step["after"]
        step = {name: value for name, value in step.items() if name != "after"} | {"at_ms": now}
        if step["op"] in ("allow", "is_limited", "stats", "reset"):
            step.pop("cost", None)
        due = model.apply(step)
        if step["op"] == "record" and due is not ... and due["used"] is not ...:
            if due["used"] > due["limit"]:
                due["used"] = ...  # Left open, as with the vectors.
        got = player.play(step)
        assert holds(due, got), f"{step}: due {due}, got {got}"
