"""Group relative policy optimisation, on TRL's GRPOTrainer.

Here are prompts that are answered once; `adp.trainers.grpo_environment` has models that act.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa

from adp.core.progress import Progress
from adp.rendering.render import Renderer
from adp.trainers.arguments import check_other, trainer_arguments
from adp.trainers.config import TrainConfig
from adp.trainers.config_methods import GrpoSection
from adp.trainers.grpo_environment import (
    environment_settings,
    environment_trainer,
    prepare_tasks,
)
from adp.trainers.grpo_rows import prompts
from adp.trainers.method import TrainingPlan
from adp.trainers.preference_rows import PairCounts
from adp.trainers.prepared_rows import Order, TrainingRow, renderer_of, write_rows
from adp.trainers.rewards import make_rewards
from adp.trainers.rollouts.acting import acting_place, acting_tasks
from adp.trainers.store_parts import StoreParts
from adp_schema.errors import UsageError
from adp_schema.store import Store

SCHEMA = pa.schema(
    [
        (name, pa.string())
        for name in ("source_id", "task_id", "prompt", "answers", "expected_calls", "tools")
    ]
)
"""Columns of a row; all but the prompt are for rewards."""

_AS_THEY_ARE = (
    "reward_weights", "num_generations", "max_completion_length", "temperature", "top_p", "top_k",
    "beta", "num_iterations", "epsilon", "epsilon_high", "loss_type", "scale_rewards",
    "importance_sampling_level", "mask_truncated_completions", "use_vllm", "vllm_mode",
)  # fmt: skip


class Grpo:
    """The method ``grpo``."""

    name = "grpo"

    def prepare(self, config: TrainConfig, folder: Path, progress: Progress) -> TrainingPlan:
        """Write the prompts; see `adp.trainers.method`."""
        check_groups(config)
        acting = config.grpo.environment
        if acting is not None:
            place = acting_place(config)
            tasks = acting_tasks(config, place)
            check_step(config, len(tasks.tasks), "tasks")
            plan = prepare_tasks(config, place, tasks, folder, progress)
        else:
            make_rewards(config.grpo, renderer_of(config), _config_folder(config))
            made = partial(examples, options=config.grpo)
            plan = write_rows(config, folder, SCHEMA, made, Order(), progress)
            check_step(config, plan.rows, "prompts")
        plan.sequences = plan.rows * config.grpo.num_generations * config.grpo.num_iterations
        return plan

    def trainer(
        self, config: TrainConfig, folder: Path, args: dict[str, Any], callbacks: Sequence[Any]
    ) -> Any:
        """Build TRL's trainer; see `adp.trainers.method`."""
        from transformers import set_seed
        from trl import GRPOConfig

        from adp.trainers.lora import add_adapter
        from adp.trainers.model import load_model, load_tokenizer
        from adp.trainers.trl_grpo import ExactGRPOTrainer

        check_other(config, GRPOConfig)
        acting = config.grpo.environment is not None
        more = environment_settings(config) if acting else {}
        settings = GRPOConfig(**{**args, **grpo_settings(config.grpo), **more})
        # New adapters are random, and TRL sets the seed later.
        set_seed(config.training.seed)
        tokenizer: Any = load_tokenizer(config, folder)
        tokenizer.padding_side = "left"
        policy = add_adapter(load_model(config, folder), config, folder)
        if acting:
            return environment_trainer(config, folder, (policy, tokenizer), settings, callbacks)
        renderer = Renderer(tokenizer, config.render)
        return ExactGRPOTrainer(
            reward_funcs=make_rewards(config.grpo, renderer, _config_folder(config)),
            args=settings,
            **trainer_arguments(config, policy, tokenizer, folder, callbacks),
        )


METHOD = Grpo()


def check_step(config: TrainConfig, rows: int, what: str) -> None:
    """Check that there are enough prompts or tasks for a step.

    Args:
        config: the run.
        rows: how many there are.
        what: what they are called.

    Raises:
        UsageError: there are fewer.
    """
    at_once = answers_of_a_step(config) // config.grpo.num_generations
    if rows < at_once:
        raise UsageError(
            f"a step takes {at_once} {what}, and there are {rows}; use a smaller "
            "training.per_device_train_batch_size or training.gradient_accumulation_steps"
        )


def check_groups(config: TrainConfig) -> None:
    """Check that batches hold whole groups of answers.

    Raises:
        UsageError: they do not; says which sizes would.
    """
    group, batch = config.grpo.num_generations, answers_of_a_step(config)
    if batch % group:
        raise UsageError(
            f"grpo.num_generations {group} does not divide the {batch} answers of a step "
            "(per_device_train_batch_size * gradient_accumulation_steps * processes); change one "
            "of them"
        )


def answers_of_a_step(config: TrainConfig) -> int:
    """Answers that are written for one step of the optimiser."""
    training = config.training
    result = training.per_device_train_batch_size * training.gradient_accumulation_steps
    return result * config.launch.processes


def grpo_settings(section: GrpoSection) -> dict[str, Any]:
    """Arguments of TRL's ``GRPOConfig``.

    Args:
        section: the section ``grpo``.
    """
    settings = {name: getattr(section, name) for name in _AS_THEY_ARE}
    if settings["reward_weights"] is not None:
        settings["reward_weights"] = list(settings["reward_weights"])
    # Rewards need the other columns.
    return {**settings, "remove_unused_columns": False}


def _config_folder(config: TrainConfig) -> Path:
    """Where functions of the user's own are looked for."""
    return Path.cwd()


def examples(
    store: Store, renderer: Renderer, parts: StoreParts, tally: PairCounts, options: GrpoSection
) -> Iterator[TrainingRow]:
    """The prompts of a store as rows.

    Args:
        store: trajectories and tasks.
        renderer: of the model.
        parts: what each trajectory is for.
        tally: counts what gives no prompt.
        options: which prompts are made.
    """
    for part, prompt in prompts(store, renderer, parts, tally, options):
        columns = {
            "source_id": prompt.source_id,
            "task_id": prompt.task_id,
            "prompt": prompt.text,
            "answers": prompt.answers,
            "expected_calls": prompt.expected_calls,
            "tools": prompt.tools,
        }
        yield TrainingRow(part, columns, prompt.tokens, 0, prompt.tokens)
