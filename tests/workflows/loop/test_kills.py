"""Loops that are killed at five random points make what undisturbed ones make."""

from __future__ import annotations

import random
from collections import Counter

import pytest

pytest.importorskip("trl", reason="needs the train extra")

from adp.rollouts.evolving.lineage import lineage_of
from adp_schema.store import Store
from tests.workflows.loop.kills import check_kills

pytestmark = [pytest.mark.train, pytest.mark.slow]  # minutes: each run loads torch anew

# The model knows nothing, so no rollout is better than another one by the reward of the loop.
REWARDS = (
    'rewards=["et_agent:sigma_tool=${sigma_tool},sigma_len=${sigma_len}",'
    '"tests.workflows.loop.varied_reward:letters"]'
)


def test_m3(tmp_path):
    made = check_kills(["m3", "--set", "scale=smoke"], tmp_path, 5, random.randrange(1 << 32))
    models = {made["round-1.sft"], made["round-1.dpo"]}
    assert len(models) == 2
    assert len({made[f"round-1.{name}"] for name in ("before", "after_sft", "after_dpo")}) == 3


def test_et_agent(tmp_path):
    words = ["et_agent", "--set", "scale=smoke", "--set", REWARDS, "--allow-python"]
    made = check_kills(words, tmp_path, 5, random.randrange(1 << 32), surely=("flywheel",))
    assert len({made[f"round-{number}.grpo"] for number in (2, 3, 4)}) == 3
    assert len({made[f"round-{number}.rollouts"] for number in (2, 3, 4)}) == 3
    assert made["round-1.rft"] != made["round-2.grpo"]
    flywheel = Store.open(str(tmp_path / "killed" / "round-1" / "flywheel"))
    operators = Counter(lineage_of(row.extra)["operator"] for row in flywheel.trajectories())
    # Nothing is right, so three operators work on each of the 4 questions.
    names = ("initial", "step_refine", "step_hint", "trajectory_hint")
    assert operators == dict.fromkeys(names, 4)


def test_toolworld(tmp_path):
    words = ["toolworld", "--set", "scale=smoke"]
    made = check_kills(words, tmp_path, 5, random.randrange(1 << 32))
    assert made["round-1.sft"] != made["round-1.dpo"]
