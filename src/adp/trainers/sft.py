"""Supervised fine-tuning: the rows that rendering made, in TRL's `SFTTrainer`.

The rows have their labels already, so TRL prepares nothing: it renders, cuts, masks and drops no
row. Weights between 0 and 1 need a small subclass (`adp.trainers.weighted_sft`); with weights of 0
and 1 the trainer is TRL's own. Packed rows keep to themselves: their positions begin at 0 again and
there is no attention mask, which transformers takes as the border between documents.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from adp.core.progress import Progress
from adp.trainers.arguments import check_other, trainer_arguments
from adp.trainers.config import TrainConfig
from adp.trainers.method import TrainingPlan
from adp.trainers.rendered_rows import (
    BATCH,
    RenderedPart,
    column,
    rendered_parts,
    rendered_plan,
    replayed_part,
)
from adp.trainers.replay import make_plan, read_plan, write_plan
from adp.trainers.rows import TOKENS, WEIGHTS, read_arrow, write_arrow
from adp_schema.errors import UsageError

if TYPE_CHECKING:
    from datasets import Dataset


class Sft:
    """Supervised fine-tuning."""

    name = "sft"

    def prepare(self, config: TrainConfig, folder: Path, progress: Progress) -> TrainingPlan:
        """Render the store, choose the rows and write them under the folder."""
        progress.status("rendering rows")
        train, measured = rendered_parts(config, progress)
        plan = rendered_plan(train)
        old = replayed_part(config, progress)
        weighted = train.report.fractional or (old is not None and old.report.fractional)
        if weighted and config.training.loss_type == "dft":
            raise UsageError(
                "weights between 0 and 1 do not go with training.loss_type: dft, which weighs "
                "tokens itself; use nll"
            )
        if weighted and config.training.other.get("use_liger_kernel"):
            raise UsageError(
                "weights between 0 and 1 multiply the log-probabilities of TRL's own forward pass, "
                "which Liger replaces; leave out training.other.use_liger_kernel"
            )
        plan.facts |= {"fractional_weights": weighted}
        plan.sequences = _write(config, train, folder, "train", weighted=weighted)
        if old is not None:
            held = _write(config, old, folder, "replay", weighted=weighted)
            _plan_replay(config, folder, plan, held, [train, old])
        if measured is not None:
            _write(config, measured, folder, "eval", weighted=weighted)
            plan.eval_rows = sum(batch.num_rows for batch in measured.batches(["length"]))
        return plan

    def trainer(
        self, config: TrainConfig, folder: Path, args: dict[str, Any], callbacks: Sequence[Any]
    ) -> Any:
        """TRL's trainer with the model, the adapter and the rows."""
        from trl import SFTConfig, SFTTrainer
        from trl.trainer.sft_trainer import DataCollatorForLanguageModeling

        from adp.trainers.lora import add_adapter
        from adp.trainers.model import load_model, load_tokenizer

        check_other(config, SFTConfig)
        settings = SFTConfig(
            **args,
            max_length=None,
            packing=False,
            loss_type=config.training.loss_type,
            dataset_kwargs={"skip_prepare_dataset": True},
        )
        tokenizer = load_tokenizer(config, folder)
        model = add_adapter(load_model(config, folder), config, folder)
        given = trainer_arguments(config, model, tokenizer, folder, callbacks)
        kind: Any = SFTTrainer
        collator_kind: Any = DataCollatorForLanguageModeling
        if "loss_weights" in given["train_dataset"].column_names:
            from adp.trainers.weighted_sft import WeightedCollator, WeightedTrainer

            kind, collator_kind = WeightedTrainer, WeightedCollator
        if config.data.replay is not None:
            kind = _replaying(kind, folder, given)
        collator = collator_kind(
            pad_token_id=tokenizer.pad_token_id, padding_free=config.training.packing
        )
        return kind(args=settings, data_collator=collator, **given)


METHOD = Sft()


def _plan_replay(
    config: TrainConfig, folder: Path, plan: TrainingPlan, held: int, parts: Sequence[RenderedPart]
) -> None:
    """Write the order of new and replayed rows, and say how many there are."""
    order = make_plan(config, plan.sequences, held)
    names: list[str] = []
    if order.reservoir is not None:
        names = [str(name) for part in parts for name in column(part, "trajectory_id")]
    write_plan(order, folder, names)
    plan.sequences = order.length()
    plan.longest = max(plan.longest, *column(parts[-1], "length"))
    plan.facts |= {
        "replay": {
            "store": parts[-1].report.store,
            "render": parts[-1].report.key,
            "rows": held,
            "new_a_step": order.new_a_step,
            "replayed_a_step": order.total - order.new_a_step,
            "reservoir": order.reservoir,
        }
    }


def _replaying(kind: Any, folder: Path, given: dict[str, Any]) -> Any:
    """The trainer with the rows of the replay store behind the new ones, in the planned order."""
    from datasets import concatenate_datasets

    from adp.trainers.trl_replay import ReplayOrder

    old = read_arrow(folder / "replay.arrow")
    assert old is not None
    given["train_dataset"] = concatenate_datasets([given["train_dataset"], old])
    return type(kind.__name__, (ReplayOrder, kind), {"plan": read_plan(folder)[0]})


def _write(
    config: TrainConfig, part: RenderedPart, folder: Path, name: str, *, weighted: bool
) -> int:
    """Write the rows for the trainer, packed if it is asked for; returns their number."""
    columns = ["input_ids", "labels", *(["loss_weights"] if weighted else [])]
    kinds = {"input_ids": TOKENS, "labels": TOKENS, "loss_weights": WEIGHTS}
    schema = pa.schema([pa.field(column, kinds[column]) for column in columns])
    path = folder / f"{name}.arrow"
    rows = (
        pa.RecordBatch.from_arrays([batch.column(column) for column in columns], schema=schema)
        for batch in part.batches(columns)
    )
    if not config.training.packing:
        return write_arrow(path, schema, rows)
    plain = folder / f"{name}.plain.arrow"
    write_arrow(plain, schema, rows)
    count = _pack(plain, path, config.render.max_length)
    plain.unlink()
    return count


def _pack(plain: Path, packed: Path, length: int | None) -> int:
    """Put rows together by best-fit decreasing, with TRL's own function.

    It would cut a row that is longer than the window; rendering lets none through.
    """
    import datasets
    from trl import pack_dataset

    rows: Dataset | None = read_arrow(plain)
    assert rows is not None
    longest = max(len(ids) for batch in rows.with_format("arrow").iter(BATCH)
                  for ids in batch["input_ids"])  # fmt: skip
    if length is None or longest > length:
        raise UsageError(
            f"a row of {longest:,} tokens does not fit into packs of {length}; set "
            "render.max_length and render.window"
        )
    shown = datasets.are_progress_bars_disabled()
    datasets.disable_progress_bars()
    try:
        result = pack_dataset(
            rows,
            length,
            "bfd",
            {"cache_file_name": str(packed), "load_from_cache_file": False},
        )
    finally:
        if not shown:
            datasets.enable_progress_bars()
    return len(result)
