"""Supervised fine-tuning: the rows that rendering made, in TRL's `SFTTrainer`.

The rows have their labels already, so TRL prepares nothing: it renders, cuts, masks and drops no
row. Weights between 0 and 1 need a small subclass (`adp.trainers.weighted_sft`); with weights of 0
and 1 the trainer is TRL's own. Packed rows keep to themselves: their positions begin at 0 again and
there is no attention mask, which transformers takes as the border between documents.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from adp.core.progress import Progress
from adp.rendering.report import RenderReport, check_ends
from adp.rendering.run import render_store
from adp.trainers.arguments import check_other, trainer_arguments
from adp.trainers.config import TrainConfig
from adp.trainers.held_out import held_out
from adp.trainers.method import TrainingPlan
from adp.trainers.rows import TOKENS, WEIGHTS, read_arrow, write_arrow
from adp_schema.errors import EmptyResultError, UsageError
from adp_schema.store import Store

if TYPE_CHECKING:
    from datasets import Dataset

_BATCH = 256
"""Rows in memory at once."""


@dataclass
class _Part:
    """Rows of one rendering that are trained on, or measured.

    Attributes:
        report: the rendering.
        take: which of its rows, in order; None: all.
    """

    report: RenderReport
    take: np.ndarray[Any, np.dtype[np.bool_]] | None = None

    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """The rows, some columns of them."""
        begin = 0
        for path in self.report.files():
            for batch in pq.ParquetFile(path).iter_batches(_BATCH, columns=list(columns)):
                if self.take is not None:
                    wanted = self.take[begin : begin + batch.num_rows]
                    begin += batch.num_rows
                    batch = batch.filter(pa.array(wanted))
                if batch.num_rows:
                    yield batch


class Sft:
    """Supervised fine-tuning."""

    name = "sft"

    def prepare(self, config: TrainConfig, folder: Path, progress: Progress) -> TrainingPlan:
        """Render the store, choose the rows and write them under the folder."""
        progress.status("rendering rows")
        train, measured = _parts(config, progress)
        plan = _plan(config, train)
        weighted = train.report.fractional
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
        collator = collator_kind(
            pad_token_id=tokenizer.pad_token_id, padding_free=config.training.packing
        )
        return kind(args=settings, data_collator=collator, **given)


METHOD = Sft()


def _parts(config: TrainConfig, progress: Progress) -> tuple[_Part, _Part | None]:
    """What is trained on, and what is measured."""
    data = config.data
    assert data.store is not None
    tokenizer = config.model.tokenizer_name_or_path or config.model.model_name_or_path

    def render(path: str, splits: tuple[str, ...] | None) -> RenderReport:
        report = render_store(
            Store.open(path),
            tokenizer,
            options=config.render,
            splits=splits,
            workers=data.workers,
            progress=progress,
        )
        check_ends(report.notes, config.render)
        return report

    report = render(data.store, data.splits)
    train, measured = _Part(report), None
    if data.eval_store or data.eval_splits:
        measured = _Part(render(data.eval_store or data.store, data.eval_splits))
    elif data.eval_share:
        out = held_out(Store.open(data.store), data.eval_share)
        ids = [str(item) for item in _column(train, "trajectory_id")]
        chosen = np.array([id_ in out for id_ in ids], dtype=bool)
        if not chosen.any():
            raise UsageError(
                f"data.eval_share {data.eval_share} of {len(set(ids)):,} trajectories is none; use "
                "more, or leave it out"
            )
        train, measured = _Part(report, ~chosen), _Part(report, chosen)
    if data.max_rows is not None:
        train = _fewer(train, data.max_rows, config.training.seed)
    return train, measured


def _fewer(part: _Part, most: int, seed: int) -> _Part:
    """So many rows at most, chosen by the seed."""
    take = np.ones(part.report.rows, dtype=bool) if part.take is None else part.take.copy()
    places = np.flatnonzero(take)
    if len(places) > most:
        take[np.random.default_rng(seed).permutation(places)[most:]] = False
    return _Part(part.report, take)


def _column(part: _Part, name: str) -> list[Any]:
    return [value for batch in part.batches([name]) for value in batch.column(0).to_pylist()]


def _plan(config: TrainConfig, train: _Part) -> TrainingPlan:
    """Count what is in the rows."""
    report = train.report
    lengths, trained = _column(train, "length"), _column(train, "trained")
    if not lengths:
        raise EmptyResultError(
            "no row is left to train on; lower data.eval_share, or train on more trajectories"
        )
    plan = TrainingPlan(
        rows=len(lengths),
        tokens=sum(lengths),
        trained=sum(trained),
        longest=max(lengths),
        dropped=report.lost.copy(),
        notes=report.notes.copy(),
    )
    if len(lengths) < report.rows:
        plan.notes["rows that were rendered and are not trained on"] = report.rows - len(lengths)
    plan.facts = {
        "store": report.store,
        "render": report.key,
        "tokenizer": report.tokenizer,
        "template": report.template,
        "steps_with_weight": report.steps,
        "steps_trained": report.trained,
    }
    return plan


def _write(config: TrainConfig, part: _Part, folder: Path, name: str, *, weighted: bool) -> int:
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
    longest = max(len(ids) for batch in rows.with_format("arrow").iter(_BATCH)
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
