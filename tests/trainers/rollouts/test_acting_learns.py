"""A model that was trained a little learns the rest by acting: the reward rises in 60 steps.

The start is that of `examples/loop`: random weights, a lesson in copying, and a short supervised
training. There two of five runs answer at once, without a look at the world, so the model does
so, too. Nothing but the reward tells it that this is wrong.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from adp.rollouts.collecting.collect import alone, collect_now
from adp.rollouts.collecting.settings import CollectSettings
from adp.rollouts.environments.toolworld import Toolworld, ToolworldSettings, make_tasks
from adp.rollouts.experts.spec import cast_of
from adp.rollouts.policies.expert import ExpertPolicy
from adp.rollouts.policies.scripted import Scripted
from adp.rollouts.policies.transformers import TransformersPolicy, TransformersSettings
from adp.rollouts.turns import Turn
from adp.stores.merge import merge
from adp.trainers.config_file import read_config
from adp.trainers.run import train
from adp_schema.store import Store
from tests.trainers.small_runs import log_of

pytestmark = [
    pytest.mark.train,
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore::FutureWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::UserWarning"),
]

NAME = "toolworld:kinds=[c1],failures=0,distractors=0"
WORLD = ToolworldSettings(kinds=("c1",), failures=0.0, distractors=0)
ACTS = {"max_tokens": 48, "batch_size": 256, "temperature": 1.0}

SHARED = {
    "render.max_length": 640,
    "lora": None,
    "training.gradient_checkpointing": False,
    "training.use_cpu": True,
    "training.save_strategy": "no",
}
SFT = {
    "method": "sft",
    "data.workers": 1,
    "training.max_steps": 200,
    "training.packing": True,
    "training.per_device_train_batch_size": 1,
    "training.gradient_accumulation_steps": 2,
    "training.learning_rate": 2e-3,
    "training.warmup_steps": 10,
    "training.weight_decay": 0.05,
    "training.adam_beta2": 0.98,
}
GRPO = {
    "method": "grpo",
    "grpo.environment.name": NAME,
    "grpo.environment.tasks": "train:600",
    "grpo.environment.max_turns": 3,
    "grpo.num_generations": 4,
    "grpo.max_completion_length": 48,
    "training.max_steps": 60,
    "training.per_device_train_batch_size": 32,
    "training.gradient_accumulation_steps": 1,
    "training.learning_rate": 1e-4,
    "training.lr_scheduler_type": "constant",
    "training.warmup_steps": 0,
}


def trained(base: Path, out: Path, **values: Any) -> Path:
    """Train all weights of a model, and return the folder of the new one."""
    given = {name.replace("__", "."): value for name, value in values.items()}
    more = {**SHARED, "model.model_name_or_path": str(base), **given}
    train(read_config(None, more=more)[0], out)
    return out / "model"


def played(out: Path, actors: Any, count: int, seed: int = 0, **more: Any) -> Path:
    """Episodes of a policy at tasks that are trained on."""
    settings = CollectSettings(dataset=out.name, policy=out.name, timed=False, **more)
    tasks = make_tasks(WORLD, "train", count, seed)
    collect_now(out, lambda: Toolworld(WORLD), actors, tasks, settings)
    return out


def start(folder: Path) -> Path:
    """A model that mostly knows how to look a value up, and often does not care to."""
    from examples.loop.model import make_base
    from examples.loop.scale import QUICK

    # Of the lessons one step: what is to be learnt here must not be known before.
    make_base(folder / "base", 0, replace(QUICK, lesson_steps=1), notice=lambda *_: None)
    careful = played(folder / "careful", cast_of(ExpertPolicy()).actors, 600)
    hasty = Scripted(lambda request: Turn(text="answer: red"))
    played(folder / "hasty", alone(hasty), 400, seed=5)
    merge([str(careful), str(folder / "hasty")], str(folder / "mix"))
    return trained(folder / "base", folder / "sft", data__store=str(folder / "mix"), **_named(SFT))


def _named(values: dict[str, Any]) -> dict[str, Any]:
    return {name.replace(".", "__"): value for name, value in values.items()}


def success(model: Path, out: Path) -> float:
    """How often a model answers questions of the held-out split, drawn as while it is trained."""
    policy = TransformersPolicy(TransformersSettings(model=str(model), **ACTS))
    tasks = make_tasks(WORLD, "test", 150, 0)
    settings = CollectSettings(policy="model", timed=False)
    collect_now(out, lambda: Toolworld(WORLD), alone(policy), tasks, settings, policies=[policy])
    rows = list(Store.open(str(out)).trajectories())
    assert len(rows) == 150
    return sum(bool(row.success) for row in rows) / len(rows)


@pytest.fixture
def one_thread() -> Iterator[None]:
    """On a busy machine the threads of so small a model wait for each other."""
    import torch

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.mark.usefixtures("one_thread")
def test_the_reward_rises_by_more_than_its_noise_over_three_seeds(tmp_path):
    model = start(tmp_path)
    before = success(model, tmp_path / "before")
    rises, gains = [], []
    for seed in range(3):
        out = tmp_path / f"grpo-{seed}"
        new = trained(model, out, training__seed=seed, **_named(GRPO))
        rewards = [line["reward"] for line in log_of(out) if "reward" in line]
        assert len(rewards) == 60
        rises.append(statistics.mean(rewards[-20:]) - statistics.mean(rewards[:10]))
        gains.append(success(new, tmp_path / f"after-{seed}") - before)
    print(f"before {before:.3f}, rises {rises}, gains on held-out tasks {gains}")
    for changes in (rises, gains):
        assert min(changes) > 0.05
        assert statistics.mean(changes) > 2 * statistics.stdev(changes)
