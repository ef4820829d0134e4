"""GRPO of a model that acts in an environment: its rows and its trainer."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from adp.core.progress import Progress
from adp.rollouts.collecting.task_files import TaskSet
from adp.trainers.arguments import trainer_arguments
from adp.trainers.config import TrainConfig
from adp.trainers.method import TrainingPlan
from adp.trainers.prepared_rows import renderer_of
from adp.trainers.rollouts.acting import (
    ActingPlace,
    acting_place,
    acting_tokenizer,
    policy_settings,
    section_of,
)
from adp.trainers.rollouts.batch import RolloutMaker
from adp.trainers.rollouts.first_prompt import first_prompt
from adp.trainers.rollouts.reward_functions import make_rollout_rewards
from adp.trainers.rollouts.rollout_store import RolloutStore
from adp.trainers.rows import TRAIN, write_arrow
from adp_schema.model import Task

SCHEMA = pa.schema(
    [(name, pa.string()) for name in ("task_id", "prompt", "answers", "expected_calls", "task")]
)
"""Columns of a row: the task, and what functions of the user's own ask for."""


def prepare_tasks(
    config: TrainConfig, place: ActingPlace, tasks: TaskSet, folder: Path, progress: Progress
) -> TrainingPlan:
    """Write the tasks as rows, and try out what can go wrong without a model.

    Args:
        config: the run.
        place: the environment.
        tasks: the tasks.
        folder: where to.
        progress: what is told about it.

    Raises:
        UsageError: environment, tasks, rewards or chat template do not fit together.
        InputError: there are no tasks.
    """
    make_rollout_rewards(config.grpo, Path.cwd())
    renderer = renderer_of(config)
    progress.status("writing the first prompt")
    tokenizer = acting_tokenizer(config, renderer.tokenizer)
    prompt = first_prompt(place, tasks.tasks, policy_settings(config), tokenizer)
    table = pa.Table.from_pylist([_row(task) for task in tasks.tasks], SCHEMA)
    write_arrow(folder / TRAIN, SCHEMA, table.to_batches())
    return _plan(tasks, place, len(prompt.ids), renderer)


def _row(task: Task) -> dict[str, Any]:
    return {
        "task_id": task.task_id,
        "prompt": task.instruction or str(task.task_id),
        "answers": task.answers,
        "expected_calls": task.expected_calls,
        "task": task.model_dump_json(exclude_none=True),
    }


def _plan(tasks: TaskSet, place: ActingPlace, longest: int, renderer: Any) -> TrainingPlan:
    count = len(tasks.tasks)
    plan = TrainingPlan(rows=count, sequences=count, longest=longest)
    plan.dropped.update(tasks.reasons)
    if tasks.refused > len(tasks.reasons):
        plan.dropped["further tasks that were refused"] = tasks.refused - len(tasks.reasons)
    plan.notes.update(tasks.notes)
    plan.facts = {
        **place.facts(tasks.tasks),
        "tokenizer": renderer.encoder.digest,
        "template": renderer.template.digest,
    }
    return plan


def environment_trainer(
    config: TrainConfig,
    folder: Path,
    loaded: tuple[Any, Any],
    settings: Any,
    callbacks: Sequence[Any],
) -> Any:
    """Build TRL's trainer.

    Args:
        config: the run.
        folder: what `prepare_tasks` wrote.
        loaded: the model that is trained, and its tokenizer.
        settings: TRL's ``GRPOConfig``.
        callbacks: of transformers.
    """
    from adp.trainers.trl_environment import EnvironmentGRPOTrainer

    policy, tokenizer = loaded
    maker = RolloutMaker(config, acting_place(config), int(tokenizer.eos_token_id or 0))
    run = Path(settings.output_dir).parent
    return EnvironmentGRPOTrainer(
        maker=maker,
        acting=(policy_settings(config), acting_tokenizer(config, tokenizer)),
        kept=RolloutStore(run) if section_of(config).rollouts else None,
        reward_funcs=make_rollout_rewards(config.grpo, Path.cwd()),
        args=settings,
        **trainer_arguments(config, policy, tokenizer, folder, callbacks),
    )


def environment_settings(config: TrainConfig) -> dict[str, Any]:
    """Arguments of TRL's ``GRPOConfig`` besides those of single answers."""
    length, other = config.render.max_length, config.training.other
    if config.grpo.use_vllm and length is not None and "vllm_max_model_length" not in other:
        return {"vllm_max_model_length": length}
    return {}
