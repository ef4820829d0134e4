"""Kahneman-Tversky optimisation, on TRL's KTOTrainer."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from adp.core.progress import Progress
from adp.rendering.render import Renderer
from adp.trainers.arguments import check_other, trainer_arguments
from adp.trainers.config import TrainConfig
from adp.trainers.config_methods import KtoSection
from adp.trainers.kto_rows import kto_rows, rotate
from adp.trainers.method import TrainingPlan
from adp.trainers.preference import policy_and_reference
from adp.trainers.preference_rows import PairCounts
from adp.trainers.prepared_rows import IDS, MASK, Order, TrainingRow, write_rows
from adp.trainers.rows import TRAIN, read_arrow
from adp.trainers.store_parts import StoreParts
from adp_schema.store import Store

SCHEMA = pa.schema(
    [
        ("source_id", pa.string()),
        ("prompt_ids", IDS),
        ("completion_ids", IDS),
        ("completion_mask", MASK),
        ("label", pa.bool_()),
    ]
)
"""Columns of a row; for the loss ``kto`` also those of another completion, ``KL_...``."""

_AS_THEY_ARE = (
    "loss_type", "beta", "desirable_weight", "undesirable_weight", "disable_dropout",
    "precompute_ref_log_probs", "precompute_ref_batch_size",
)  # fmt: skip


class Kto:
    """The method ``kto``."""

    name = "kto"

    def prepare(self, config: TrainConfig, folder: Path, progress: Progress) -> TrainingPlan:
        """Write the trajectories as tokens; see `adp.trainers.method`."""
        size = config.training.per_device_train_batch_size
        others = partial(rotate, batch_size=size) if config.kto.loss_type == "kto" else None
        # TRL trains KTO's rows in the order that they have.
        order = Order(True, others, ("completion_ids", "completion_mask"), "KL_")
        made = partial(examples, options=config.kto)
        plan = write_rows(config, folder, SCHEMA, made, order, progress)
        plan.facts["desirable_rows"] = _desirable(folder)
        return plan

    def trainer(
        self, config: TrainConfig, folder: Path, args: dict[str, Any], callbacks: Sequence[Any]
    ) -> Any:
        """Build TRL's trainer; see `adp.trainers.method`."""
        from trl import KTOConfig

        from adp.trainers.model import load_tokenizer
        from adp.trainers.trl_preference import ExactKTOTrainer, KtoCollator

        check_other(config, KTOConfig)
        kto_settings = {name: getattr(config.kto, name) for name in _AS_THEY_ARE}
        full = {**args, **kto_settings, "max_length": None, "remove_unused_columns": False}
        if config.kto.loss_type == "kto":
            full["train_sampling_strategy"] = "sequential"
        settings = KTOConfig(**full)
        tokenizer: Any = load_tokenizer(config, folder)
        policy, reference, base = policy_and_reference(config, config.kto, folder)
        kind: Any = type("ExactKTOTrainer", (ExactKTOTrainer,), {"base_is_reference": base})
        collator = KtoCollator(
            tokenizer.pad_token_id, settings.pad_to_multiple_of, config.render.max_length
        )
        trainer = kind(
            ref_model=reference,
            args=settings,
            data_collator=collator,
            **trainer_arguments(config, policy, tokenizer, folder, callbacks),
        )
        if base:
            trainer.drop_ref_adapter()
        return trainer


METHOD = Kto()


def _desirable(folder: Path) -> int:
    rows = read_arrow(folder / TRAIN)
    assert rows is not None
    return int(np.sum(rows["label"]))


def examples(
    store: Store, renderer: Renderer, parts: StoreParts, tally: PairCounts, options: KtoSection
) -> Iterator[TrainingRow]:
    """The trajectories of a store as rows.

    Args:
        store: the trajectories.
        renderer: of the model.
        parts: what each trajectory is for.
        tally: counts trajectories that give no row.
        options: what says which are good.
    """
    for part, row in kto_rows(store, renderer, parts, tally, options):
        columns = {
            "source_id": row.source_id,
            "prompt_ids": row.prompt,
            "completion_ids": row.completion.ids,
            "completion_mask": row.completion.mask.astype("int8"),
            "label": row.label,
        }
        length = len(row.prompt) + len(row.completion.ids)
        yield TrainingRow(part, columns, length, int(row.completion.mask.sum()), length)
