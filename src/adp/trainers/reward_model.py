"""Training of a reward model on pairs, on TRL's RewardTrainer.

The model reads a whole conversation, with the better or the worse side at its end, and gives a
number at the last token; the loss is that of Bradley and Terry, -log sigmoid of the difference.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from adp.core.progress import Progress
from adp.rendering.render import Renderer
from adp.trainers.arguments import check_other, trainer_arguments
from adp.trainers.config import TrainConfig
from adp.trainers.method import TrainingPlan
from adp.trainers.preference_rows import PairCounts, PairRow, pair_rows
from adp.trainers.prepared_rows import IDS, Order, TrainingRow, write_rows
from adp.trainers.store_parts import Part, StoreParts
from adp_schema.store import Store

SCHEMA = pa.schema([("pair_id", pa.string()), ("chosen_ids", IDS), ("rejected_ids", IDS)])
"""Columns of a row. The names of the ids are TRL's."""


class RewardModel:
    """The method ``reward``."""

    name = "reward"

    def prepare(self, config: TrainConfig, folder: Path, progress: Progress) -> TrainingPlan:
        """Write the pairs as tokens; see `adp.trainers.method`."""
        return write_rows(config, folder, SCHEMA, examples, Order(), progress)

    def trainer(
        self, config: TrainConfig, folder: Path, args: dict[str, Any], callbacks: Sequence[Any]
    ) -> Any:
        """Build TRL's trainer; see `adp.trainers.method`."""
        from transformers import set_seed
        from trl import RewardConfig, RewardTrainer

        from adp.trainers.lora import add_adapter
        from adp.trainers.model import load_model, load_tokenizer

        check_other(config, RewardConfig)
        section = config.reward
        settings = RewardConfig(
            **args,
            center_rewards_coefficient=section.center_rewards_coefficient,
            disable_dropout=section.disable_dropout,
            # Rows fit already; TRL would leave longer ones out without a word.
            max_length=None,
        )
        tokenizer = load_tokenizer(config, folder)
        # The head and new adapters are random.
        set_seed(config.training.seed)
        model = add_adapter(load_model(config, folder, scores=True), config, folder)
        return RewardTrainer(
            args=settings, **trainer_arguments(config, model, tokenizer, folder, callbacks)
        )


METHOD = RewardModel()


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
        yield _example(row, part)


def _example(row: PairRow, part: Part) -> TrainingRow:
    """A pair as a row of the file."""
    sides = [[*row.prompt.tolist(), *side.ids.tolist()] for side in (row.chosen, row.rejected)]
    lengths = [len(side) for side in sides]
    columns = {"pair_id": row.pair_id, "chosen_ids": sides[0], "rejected_ids": sides[1]}
    # A single number is trained for each side.
    return TrainingRow(part, columns, sum(lengths), 2, max(lengths))
