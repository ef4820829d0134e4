"""Distillation from a teacher (GKD, on-policy distillation), on TRL's DistillationTrainer.

Agarwal et al. 2024, arXiv 2306.13649: the model learns the teacher's probabilities of the next
token, on its own answers (a share ``lmbda`` of the steps) and on the steps of the store.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from adp.core.progress import Progress
from adp.trainers.arguments import check_other, trainer_arguments
from adp.trainers.config import TrainConfig
from adp.trainers.config_methods import DistillSection
from adp.trainers.distill_rows import DistillRow, distill_rows, write_distill_rows
from adp.trainers.method import TrainingPlan
from adp.trainers.prepared_rows import renderer_of
from adp.trainers.rendered_rows import RenderedPart, rendered_parts, rendered_plan
from adp.trainers.rows import EVAL, TRAIN
from adp.trainers.teacher import check_teacher, load_teacher
from adp_schema.errors import EmptyResultError, UsageError

FILLED = "rows taken once more to fill the last step of an epoch"
"""The note that counts them."""

_AS_THEY_ARE = ("beta", "temperature", "top_p", "top_k", "max_completion_length", "disable_dropout")


class Distill:
    """The method ``distill``."""

    name = "distill"

    def prepare(self, config: TrainConfig, folder: Path, progress: Progress) -> TrainingPlan:
        """Write the rows; see `adp.trainers.method`."""
        warnings = check_teacher(config)
        progress.status("rendering rows")
        train, measured = rendered_parts(_all_rows(config), progress)
        if train.report.fractional:
            raise UsageError(
                "there are weights between 0 and 1, and TRL's DistillationTrainer knows none: make "
                "them 0 or 1 (the op mask of adp curate)"
            )
        plan = rendered_plan(train)
        plan.warnings += warnings
        by_step = config.distill.lmbda > 0
        rows = _chosen(train, config, plan) if by_step else distill_rows(train, by_step=False)
        write_distill_rows(folder / TRAIN, _counted(rows, plan, config.distill))
        if not plan.rows:
            raise EmptyResultError("no trained token has another one before it to learn it from")
        if measured is not None:
            held = distill_rows(measured, by_step=by_step)
            plan.eval_rows = write_distill_rows(folder / EVAL, held)
        batch = config.training.per_device_train_batch_size * config.launch.processes
        batch *= config.training.gradient_accumulation_steps
        plan.sequences = -(-plan.rows // batch) * batch
        if plan.sequences > plan.rows:
            plan.notes[FILLED] = plan.sequences - plan.rows
        return plan

    def trainer(
        self, config: TrainConfig, folder: Path, args: dict[str, Any], callbacks: Sequence[Any]
    ) -> Any:
        """Build TRL's trainer; see `adp.trainers.method`."""
        from transformers import set_seed
        from trl import DistillationConfig

        from adp.trainers.lora import add_adapter
        from adp.trainers.model import load_model, load_tokenizer
        from adp.trainers.trl_distill import ExactDistillationTrainer

        check_other(config, DistillationConfig)
        section = config.distill
        settings = DistillationConfig(
            **args,
            **{name: getattr(section, name) for name in _AS_THEY_ARE},
            shuffle_dataset=config.training.train_sampling_strategy == "random",
        )
        tokenizer = load_tokenizer(config, folder)
        # New adapters are random.
        set_seed(config.training.seed)
        model = add_adapter(load_model(config, folder), config, folder)
        trainer = ExactDistillationTrainer(
            teacher_model=load_teacher(config),
            args=settings,
            **trainer_arguments(config, model, tokenizer, folder, callbacks),
        )
        trainer.lmbda = section.lmbda
        trainer.stop_at(renderer_of(config).template.stops)
        trainer.check_heads()
        return trainer


METHOD = Distill()


def _all_rows(config: TrainConfig) -> TrainConfig:
    """Without a limit of rendered rows, where the rows to count are their steps."""
    if not config.distill.lmbda:
        return config
    data = config.data.model_copy(update={"max_rows": None})
    return config.model_copy(update={"data": data})


def _chosen(part: RenderedPart, config: TrainConfig, plan: TrainingPlan) -> Iterator[DistillRow]:
    """A row for each step, so many at most as the configuration says, chosen by the seed."""
    most = config.data.max_rows
    count = sum(1 for _ in distill_rows(part, by_step=True)) if most is not None else 0
    if most is None or count <= most:
        yield from distill_rows(part, by_step=True)
        return
    plan.notes["rows that were rendered and are not trained on"] += count - most
    places = np.random.default_rng(config.training.seed).permutation(count)[:most]
    wanted = set(places.tolist())
    for place, row in enumerate(distill_rows(part, by_step=True)):
        if place in wanted:
            yield row


def _counted(
    rows: Iterable[DistillRow], plan: TrainingPlan, section: DistillSection
) -> Iterator[DistillRow]:
    """The rows, counted in the plan as they pass."""
    plan.rows = plan.tokens = plan.trained = plan.longest = 0
    room = section.max_completion_length if section.lmbda else 0
    for row in rows:
        # Of a model that writes all answers itself, nothing of the store is under the loss.
        stored = len(row.answer) if section.lmbda < 1 else 0
        plan.rows += 1
        plan.tokens += len(row.prompt) + stored
        plan.trained += int(row.mask.sum()) if stored else 0
        plan.longest = max(plan.longest, len(row.prompt) + max(stored, room))
        yield row
