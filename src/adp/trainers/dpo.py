"""Direct preference optimisation, and its relatives, on TRL's DPOTrainer."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from adp.core.progress import Progress
from adp.rendering.render import Renderer
from adp.trainers.arguments import check_other, trainer_arguments
from adp.trainers.config import TrainConfig
from adp.trainers.config_methods import DpoSection
from adp.trainers.losses import terms
from adp.trainers.method import TrainingPlan
from adp.trainers.preference import policy_and_reference
from adp.trainers.preference_rows import PairCounts, PairRow, pair_rows
from adp.trainers.prepared_rows import IDS, MASK, Order, TrainingRow, write_rows
from adp.trainers.store_parts import Part, StoreParts
from adp_schema.store import Store

SCHEMA = pa.schema(
    [
        ("pair_id", pa.string()),
        ("prompt_ids", IDS),
        ("chosen_ids", IDS),
        ("chosen_mask", MASK),
        ("rejected_ids", IDS),
        ("rejected_mask", MASK),
    ]
)
"""Columns of a row. The names of the ids are TRL's."""

_AS_THEY_ARE = (
    "beta", "ld_alpha", "f_divergence_type", "f_alpha_divergence_coef", "discopop_tau",
    "use_weighting", "disable_dropout", "precompute_ref_log_probs", "precompute_ref_batch_size",
    "sync_ref_model", "ref_model_mixup_alpha", "ref_model_sync_steps",
)  # fmt: skip


class Dpo:
    """The method ``dpo``."""

    name = "dpo"

    def prepare(self, config: TrainConfig, folder: Path, progress: Progress) -> TrainingPlan:
        """Write the pairs as tokens; see `adp.trainers.method`."""
        return write_rows(config, folder, SCHEMA, examples, Order(), progress)

    def trainer(
        self, config: TrainConfig, folder: Path, args: dict[str, Any], callbacks: Sequence[Any]
    ) -> Any:
        """Build TRL's trainer; see `adp.trainers.method`."""
        from trl import DPOConfig

        from adp.trainers.model import load_tokenizer
        from adp.trainers.trl_preference import ExactDPOTrainer, PairCollator, ReferenceFreeTrainer

        check_other(config, DPOConfig)
        settings = DPOConfig(**args, **dpo_settings(config.dpo))
        tokenizer: Any = load_tokenizer(config, folder)
        free = config.dpo.is_reference_free
        policy, reference, base = policy_and_reference(config, config.dpo, folder, free=free)
        if free and not hasattr(policy, "peft_config"):
            # Otherwise TRL loads a model to compare with.
            settings.precompute_ref_log_probs = True
        kind: Any = ReferenceFreeTrainer if free else ExactDPOTrainer
        kind = type(kind.__name__, (kind,), {"base_is_reference": base})
        if free:
            kind.simpo_gamma = config.dpo.simpo_gamma
        trainer = kind(
            ref_model=reference,
            args=settings,
            data_collator=PairCollator(tokenizer.pad_token_id, settings.pad_to_multiple_of),
            **trainer_arguments(config, policy, tokenizer, folder, callbacks),
        )
        if base:
            trainer.drop_ref_adapter()
        return trainer


METHOD = Dpo()


def dpo_settings(section: DpoSection) -> dict[str, Any]:
    """Arguments of TRL's ``DPOConfig``.

    Args:
        section: the section ``dpo``.
    """
    loss = terms(section.loss_type, section.loss_weights, section.label_smoothing)
    return {
        **{name: getattr(section, name) for name in _AS_THEY_ARE},
        "loss_type": list(loss.loss_type),
        "loss_weights": list(loss.weights),
        "label_smoothing": loss.label_smoothing,
        # Rows fit already; cutting them here would cut answers.
        "max_length": None,
        "remove_unused_columns": False,
    }


def examples(
    store: Store, renderer: Renderer, parts: StoreParts, tally: PairCounts
) -> Iterator[TrainingRow]:
    """The pairs of a store as rows.

    Args:
        store: holds pairs and trajectories.
        renderer: of the model.
        parts: what each trajectory is for.
        tally: counts the rows, and the pairs that give none.
    """
    for part, row in pair_rows(store, renderer, parts, tally):
        yield example(row, part)


def example(row: PairRow, part: Part) -> TrainingRow:
    """One pair as a row of the file."""
    sides = (row.chosen, row.rejected)
    lengths = [len(row.prompt) + len(side.ids) for side in sides]
    columns = {
        "pair_id": row.pair_id,
        "prompt_ids": row.prompt,
        "chosen_ids": row.chosen.ids,
        "chosen_mask": row.chosen.mask.astype("int8"),
        "rejected_ids": row.rejected.ids,
        "rejected_mask": row.rejected.mask.astype("int8"),
    }
    trained = sum(int(side.mask.sum()) for side in sides)
    return TrainingRow(part, columns, sum(lengths), trained, max(lengths))
