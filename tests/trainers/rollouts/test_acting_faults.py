"""What breaks in a training in an environment, and what is refused before it."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from adp.core.progress import Silent
from adp.trainers.config_file import read_config
from adp.trainers.incompatible import Machine, faults
from adp.trainers.run import TrainOptions, plan_run, train
from adp_schema.errors import AdpError, RolloutError, TrainingError, UsageError
from adp_schema.store import Store
from tests.trainers.rollouts.acting_runs import (
    ScriptedWriter,
    acting_config,
    call_text,
    sums,
    works_out,
)
from tests.trainers.small_runs import log_of

pytestmark = [
    pytest.mark.train,
    pytest.mark.filterwarnings("ignore::FutureWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::UserWarning"),
]

CODE = TrainOptions(allow_python=True)

SHOP = '''
"""A shop in which one task crashes, one hangs, and one cannot be begun."""

import time


class Shop:
    blocking = True

    def reset(self, task_id="", instruction="", **columns):
        self.task, self.bought = task_id, 0
        if self.task == "cannot":
            raise RuntimeError("the shop is closed")

    def buy(self, item: str) -> str:
        """Buys something.

        Args:
            item: what to buy.
        """
        if self.task == "hangs":
            time.sleep(60)
        self.bought += 1
        return f"{self.bought} things"

    def get_reward(self) -> float:
        if self.task == "crashes":
            raise RuntimeError("the till is broken")
        return float(self.bought)
'''


def shop(folder: Path, *names: str) -> tuple[str, Path]:
    """A file with the shop, and one with tasks of these names."""
    (folder / "shop.py").write_text(SHOP)
    tasks = folder / "tasks.jsonl"
    rows = [{"task_id": name, "question": f"Buy bread, {name}."} for name in names]
    tasks.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return f"{folder / 'shop.py'}:Shop", tasks


def buys(prompt: str, seen: int) -> str:
    """Every second episode buys, then all say that they are done."""
    if "<tool_response>" in prompt or seen % 2:
        return "done"
    return call_text("buy", item="bread")


def shop_config(
    folder: Path, *names: str, acting: Mapping[str, Any] | None = None, **grpo: Any
) -> Any:
    environment, tasks = shop(folder, *names)
    size = 2 * len(names)
    return acting_config(
        tasks,
        {"name": environment, "max_seconds": 2, **(acting or {})},
        {"per_device_train_batch_size": size, "max_steps": 1},
        num_generations=2,
        **grpo,
    )


def test_what_breaks_is_left_out_and_the_others_are_trained_on(tmp_path, monkeypatch):
    ScriptedWriter(buys).install(monkeypatch)
    config = shop_config(tmp_path, "good", "crashes", "hangs", "cannot")
    train(config, tmp_path / "run", CODE)
    rows = list(Store.open(str(tmp_path / "run" / "rollouts")).trajectories())
    assert len(rows) == 8
    facts_by_attempt = {}
    for row in rows:
        facts = json.loads(row.extra or "{}")["grpo"]
        facts_by_attempt[row.task_id, (row.attempt or 0) % 2] = facts
        if row.error_type is not None:
            assert facts["left_out"] == "broken"
            assert facts["rewards"] == {"environment": None}
            assert (facts["in_loss"], facts["advantage"]) == (0, 0.0)
    broken = {key for key, facts in facts_by_attempt.items() if facts["left_out"]}
    # The one that did not buy did not hang.
    assert broken == {("crashes", 0), ("crashes", 1), ("hangs", 0), ("cannot", 0), ("cannot", 1)}
    assert facts_by_attempt["good", 0]["advantage"] > 0 > facts_by_attempt["good", 1]["advantage"]
    (line, *_) = log_of(tmp_path / "run")
    assert line["rollouts/broken"] == 5 / 8
    # One of the good task bought something; the others did not.
    assert line["reward"] == pytest.approx(1 / 3)


def test_a_step_in_which_all_broke_does_not_end_the_training(tmp_path, monkeypatch):
    ScriptedWriter(buys).install(monkeypatch)
    config = shop_config(tmp_path, "cannot", "crashes")
    done = train(config, tmp_path / "run", CODE)
    (line, *_) = log_of(tmp_path / "run")
    assert line["reward"] is None
    assert done.record is not None
    assert "first_reward" not in done.record["result"]


def test_when_too_many_in_a_row_broke_it_stops_with_one_sentence(tmp_path, monkeypatch):
    ScriptedWriter(buys).install(monkeypatch)
    config = shop_config(tmp_path, "crashes", acting={"max_failures": 2})
    with pytest.raises(RolloutError, match=r"2 episodes in a row broke .*till.*--resume"):
        train(config, tmp_path / "run", CODE)
    assert (tmp_path / "run" / "rollouts").exists()


@pytest.mark.parametrize(("choice", "left", "reward"), [
    ("keep", None, 1.0), ("mask", "truncated", 1.0), ("zero", None, 0.0)
])  # fmt: skip
def test_what_a_budget_cut_is_treated_as_chosen(tmp_path, monkeypatch, choice, left, reward):
    """Every episode that buys is cut before it can say that it is done."""
    ScriptedWriter(buys).install(monkeypatch)
    config = shop_config(tmp_path, "good", acting={"max_turns": 1, "truncated": choice})
    train(config, tmp_path / "run", CODE)
    for row in Store.open(str(tmp_path / "run" / "rollouts")).trajectories():
        facts = json.loads(row.extra or "{}")["grpo"]
        if row.truncated:
            assert (facts["left_out"], facts["rewards"]["environment"]) == (left, reward)
            assert bool(facts["in_loss"]) is (left is None)
        else:
            assert facts["in_loss"]
            assert facts["rewards"]["environment"] == 0.0


def test_an_episode_that_makes_several_rows_is_counted_or_refused(tmp_path, monkeypatch):
    """A thought that the template drops from history."""

    def thinks(prompt: str, seen: int) -> str:
        return "done" if "<tool_response>" in prompt else "<think>I think</think>" + buys(prompt, 0)

    ScriptedWriter(thinks).install(monkeypatch)
    render = {"reasoning": "strip"}
    config = shop_config(tmp_path, "good")
    config = config.model_copy(update={"render": config.render.model_copy(update=render)})
    train(config, tmp_path / "run", CODE)
    (line, *_) = log_of(tmp_path / "run")
    assert line["rollouts/rewritten"] == 1
    assert line["rollouts/tokens_left_out"] > 5
    strict = shop_config(tmp_path, "good", acting={"rewritten": "refuse"})
    strict = strict.model_copy(update={"render": strict.render.model_copy(update=render)})
    with pytest.raises(TrainingError, match=r"makes 2 rows, because the chat template"):
        train(strict, tmp_path / "strict", CODE)


# ---- rewards -----------------------------------------------------------------------------------


def test_rewards_are_weighed_and_functions_of_the_users_see_episodes(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my_rewards.py").write_text(
        "def turns(trajectories, completions, task_id, trainer_state, log_metric, **columns):\n"
        "    assert len(trajectories) == len(completions) == len(task_id)\n"
        "    log_metric('mine', trainer_state.max_steps)\n"
        "    return [None if len(t.steps) > 4 else len(t.steps) for t in trajectories]\n"
    )
    ScriptedWriter(buys).install(monkeypatch)
    names = ["environment", "my_rewards:turns"]
    config = shop_config(tmp_path, "good", "crashes", rewards=names, reward_weights=[1.0, 0.5])
    train(config, tmp_path / "run", CODE)
    (line, *_) = log_of(tmp_path / "run")
    assert line["mine"] == 1
    rows = [
        row
        for row in Store.open(str(tmp_path / "run" / "rollouts")).trajectories()
        if row.error_type is None
    ]
    assert len(rows) == 2
    for row in rows:
        facts = json.loads(row.extra or "{}")["grpo"]
        assert facts["rewards"] == {"environment": row.reward, "my_rewards:turns": len(row.steps)}
        assert facts["reward"] == pytest.approx(row.reward + 0.5 * len(row.steps))
    sums_of = [row.reward + 0.5 * len(row.steps) for row in rows]
    assert line["reward"] == pytest.approx(sum(sums_of) / 2)


def test_an_environment_that_begins_no_task_is_refused(tmp_path):
    config = shop_config(tmp_path, "cannot")
    with pytest.raises(UsageError, match="cannot begin the task 'cannot': RuntimeError: the shop"):
        plan_run(config, allow_python=True)


@pytest.mark.parametrize(("body", "words"), [
    ("raise KeyError('x')", "failed: KeyError: 'x'"),
    ("return []", "gave 0 numbers for 2 episodes"),
    ("return None", "gave None for 2 episodes"),
    ("return ['good'] * 2", "gave 'good', which is no finite number"),
    ("return [float('inf'), 0.0]", "gave inf, which is no finite number"),
])  # fmt: skip
def test_a_reward_that_is_wrong_is_one_sentence(tmp_path, monkeypatch, body, words):
    monkeypatch.chdir(tmp_path)
    name = f"wrong_{abs(hash(body))}"
    (tmp_path / f"{name}.py").write_text(f"def reward(**columns):\n    {body}\n")
    ScriptedWriter(buys).install(monkeypatch)
    config = shop_config(tmp_path, "good", rewards=[f"{name}:reward"])
    with pytest.raises(TrainingError, match=f"{words}.*mend it, and go on with --resume"):
        train(config, tmp_path / "run", CODE)


def test_a_reward_that_is_nan_says_nothing_and_episodes_without_one_are_counted(
    tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "nan_reward.py").write_text(
        "async def reward(trajectories, **columns):\n"
        "    return [float('nan') for _ in trajectories]\n"
    )
    ScriptedWriter(buys).install(monkeypatch)
    config = shop_config(tmp_path, "good", "crashes", rewards=["nan_reward:reward"])
    done = train(config, tmp_path / "run", CODE)
    assert done.record is not None
    counts = done.record["result"]["episodes"]
    assert (counts["episodes"], counts["broken"], counts["without_reward"]) == (4, 2, 2)
    assert list(counts["errors"].values()) == [2]
    assert "till" in next(iter(counts["error_messages"].values()))
    for row in Store.open(str(tmp_path / "run" / "rollouts")).trajectories():
        facts = json.loads(row.extra or "{}")["grpo"]
        assert facts["reward"] is None
        assert facts["rewards"] == {"nan_reward:reward": None}


# ---- what is refused before a model is loaded --------------------------------------------------


@pytest.mark.parametrize(("changes", "words"), [
    ({"grpo.environment.name": "nowhere"}, "unknown environment 'nowhere'"),
    ({"grpo.environment.name": "toolworld:hops=1"}, "unknown setting 'hops'"),
    ({"grpo.environment.tasks": "nothing.jsonl"}, "nothing.jsonl"),
    ({"grpo.environment.tasks": None, "grpo.environment.name": "sql:tables=."}, "makes no tasks"),
    ({"grpo.rewards": ["answers"]}, "answers"),
    ({"grpo.rewards": ["answer"]}, "of single answers; .* scorer:answer"),
    ({"grpo.reward_weights": [math.nan]}, "reward_weights has nan; give finite numbers"),
    ({"grpo.environment.branching": "always"}, "branching: 'always' is neither arpo nor key=value"),
    ({"grpo.rewards": ["environment"] * 2}, "one reward twice"),
    ({"grpo.reward_weights": [1.0, 2.0]}, "2 numbers for 1 rewards"),
    ({"grpo.environment.name": "shop.py:Shop"}, "is Python code; add --allow-python"),
    ({"grpo.rewards": ["mine:reward"]}, "is Python code; add --allow-python"),
    ({"grpo.rewards": ["scorers:format"]}, "those with a name: environment, et_agent"),
    ({"grpo.num_generations": 3}, "does not divide the 8 answers"),
    ({"training.per_device_train_batch_size": 64}, "a step takes 16 tasks, and there are 4"),
    ({"render.max_length": 16}, "the first prompt does not fit"),
    ({"grpo.environment.max_turns": 0}, "max_turns"),
])  # fmt: skip
def test_faults_are_told_before_a_model_is_loaded(tmp_path, monkeypatch, changes, words):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("adp.trainers.model.build_tiny", None)
    base = {"method": "grpo", "model.model_name_or_path": "tiny",
            "grpo.num_generations": 4, "training.per_device_train_batch_size": 8,
            "training.gradient_accumulation_steps": 1,
            "grpo.environment.name": "calculator",
            "grpo.environment.tasks": str(sums(tmp_path))}  # fmt: skip
    begun: list[str] = []
    progress = Silent()
    monkeypatch.setattr(progress, "status", begun.append, raising=False)
    with pytest.raises(AdpError, match=words):
        plan_run(read_config(None, more={**base, **changes})[0], progress)
    # What needs no rendering is refused before any work is announced.
    assert begun == (["writing the first prompt"] if "render.max_length" in changes else [])


@pytest.mark.parametrize(("changes", "words"), [
    ({"data.eval_store": "x"}, "measure a loss"),
    ({"grpo.max_prompt_length": 8}, "max_prompt_length is for single answers"),
    ({"grpo.mask_truncated_completions": True}, "environment.truncated"),
    ({"training.other": {"min_p": 0.1}}, "training.other.min_p"),
    ({"grpo.use_vllm": True, "grpo.vllm_mode": "server", "launch.processes": 2}, "vLLM server"),
    ({"grpo.use_vllm": True, "training.other": {"vllm_tensor_parallel_size": 2}}, "tensor"),
    ({"launch.processes": 2, "grpo.num_generations": 16}, "split over processes"),
])  # fmt: skip
def test_what_does_not_go_with_an_environment(changes, words):
    base = {"method": "grpo", "model.model_name_or_path": "tiny",
            "grpo.environment.name": "calculator", "training.use_cpu": True}  # fmt: skip
    config = read_config(None, more={**base, **changes})[0]
    (sentence,) = faults(config, Machine(gpus=2, launched=True))
    assert words in sentence


def test_a_reward_of_episodes_needs_an_environment(tmp_path):
    from adp.rendering.options import RenderOptions
    from adp.rendering.render import Renderer
    from adp.rendering.tiny import tiny_tokenizer
    from adp.trainers.config_methods import GrpoSection
    from adp.trainers.rewards import make_rewards

    section = GrpoSection.model_validate({"rewards": ["environment"]})
    with pytest.raises(UsageError, match="say where the model acts"):
        make_rewards(section, Renderer(tiny_tokenizer(), RenderOptions()), tmp_path)


def test_works_out_alternates():
    """The script that other tests rest on."""
    assert "3 * 7" in works_out("What is 3 * 7?", 0)
    assert "3 + 7" in works_out("What is 3 * 7?", 1)
