"""A scorer as a reward of a training: the numbers that adp score gives."""

from __future__ import annotations

import importlib
import tomllib
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from adp.core.registry import Registry
from adp.eval.scorer import Item
from adp.eval.scoring import choose
from adp.trainers.config_methods import GrpoSection
from adp.trainers.rewards import check_python, is_code
from adp.trainers.rollouts import reward_functions
from adp.trainers.rollouts.reward import FinishedRollout, RewardStage, RolloutRewardKind
from adp.trainers.rollouts.reward_functions import rollout_reward
from adp.workflows.scorer_reward import KIND, ScorerReward, ScorerRewardSettings
from adp_schema.errors import TrainingError, UsageError
from adp_schema.model import Step, Task, ToolCall, Trajectory

ROOT = Path(__file__).parents[2]
STAGE = RewardStage()


def episode(name: str, *calls: str, success: bool = True) -> FinishedRollout:
    steps = [
        Step(
            step=n,
            source="agent",
            kind="llm_turn",
            calls=[ToolCall(call_id=f"c{n}", name=call, arguments="{}")],
        )
        for n, call in enumerate(calls)
    ]
    expected = '[{"name": "look", "arguments": {}}, {"name": "add", "arguments": {}}]'
    task = Task(task_id=name, expected_calls=expected)
    run = Trajectory(task_id=name, success=success, reward=0.5, steps=steps, task=task)
    return FinishedRollout(name, run)


EPISODES = [
    episode("a", "look", "add"),
    episode("b", "look", success=False),
    episode("c", "other"),
]


@pytest.fixture
def registry(monkeypatch) -> Registry[RolloutRewardKind]:
    """The registry as an installed package fills it: from the project's own declaration."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    declared = project["entry-points"]["adp.rollout_rewards"]
    entries = [EntryPoint(name, value, "adp.rollout_rewards") for name, value in declared.items()]
    monkeypatch.setattr("adp.core.registry.entry_points", lambda group: entries)
    made = Registry[RolloutRewardKind](
        "rollout reward",
        "adp.rollout_rewards",
        {"environment": "adp.trainers.rollouts.environment_reward:KIND"},
    )
    for place in (reward_functions, importlib.import_module("adp.trainers.rewards")):
        monkeypatch.setattr(place, "ROLLOUT_REWARDS", made)
    return made


@pytest.mark.parametrize(("spec", "scorer", "metric"), [
    ("scorer:tool_f1", "tool_f1", "tool_f1"),
    ("scorer:outcome,metric=reward", "outcome", "reward"),
    ("scorer:name=outcome", "outcome", "success"),
    ("scorer:name='tool_f1:arguments=ignore'", "tool_f1:arguments=ignore", "tool_f1"),
])  # fmt: skip
def test_numbers_are_those_of_the_scorer(registry, spec, scorer, metric):
    made = rollout_reward(spec)
    (chosen,) = choose([scorer])
    wanted = []
    for rollout in EPISODES:
        scores = chosen.scorer.score(Item(rollout.trajectory, rollout.trajectory.task))
        wanted.append(next(score.value for score in scores if score.metric == metric))
    assert list(made(EPISODES, STAGE)) == wanted
    assert len(set(wanted)) > 1 or metric == "reward"


def test_it_is_found_by_its_name_and_is_no_code(registry):
    assert registry.get("scorer") is KIND
    assert not is_code("scorer:tool_f1")
    assert is_code("my_module:reward")
    code = GrpoSection.model_validate({"rewards": ["scorer:name='mine.py:Scorer'"]})
    with pytest.raises(UsageError, match="is Python code"):
        check_python(code, allowed=False)


def test_what_cannot_be_scored_does_not_apply_or_has_a_number():
    unknown = FinishedRollout("x", Trajectory(task_id="x"))
    reward = ScorerReward(ScorerRewardSettings(name="tool_f1"))
    assert reward([unknown, EPISODES[0]], STAGE) == [None, 1.0]
    zero = ScorerReward(ScorerRewardSettings(name="tool_f1", unscored=0.0))
    assert zero([unknown], STAGE) == [0.0]


def test_wrong_names_and_a_scorer_that_raises(monkeypatch):
    with pytest.raises(UsageError, match="unknown scorer 'nothing'"):
        ScorerReward(ScorerRewardSettings(name="nothing"))
    reward = ScorerReward(ScorerRewardSettings(name="outcome", metric="sucess"))
    with pytest.raises(UsageError, match="unknown metric 'sucess'; did you mean success"):
        reward(EPISODES, STAGE)

    def raises(item: Item) -> None:
        raise ValueError("a bug")

    monkeypatch.setattr(reward._chosen.scorer, "score", raises)
    with pytest.raises(TrainingError, match=r"scorer:outcome failed: .*ValueError: a bug"):
        reward(EPISODES, STAGE)
