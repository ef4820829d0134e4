"""The rendered rows of a run, as SFT and distillation take them: to train on, and to measure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from adp.core.progress import Progress
from adp.rendering.report import RenderReport, check_ends
from adp.rendering.run import render_store
from adp.trainers.config import TrainConfig
from adp.trainers.held_out import held_out
from adp.trainers.method import TrainingPlan
from adp_schema.errors import EmptyResultError, UsageError
from adp_schema.store import Store

BATCH = 256
"""Rows in memory at once."""

_PASSES = 1000
"""Passes over the rows, at most, that are written out for ``data.trained_tokens``."""

Mask = np.ndarray[Any, np.dtype[np.bool_]]
"""For each row of a rendering whether it is taken."""


@dataclass
class RenderedPart:
    """Rows of one rendering that are trained on, or measured.

    Attributes:
        report: the rendering.
        take: which of its rows, in order; None: all.
        passes: passes over rows that come before.
        passed: which rows these are; None: all.
    """

    report: RenderReport
    take: Mask | None = None
    passes: int = 0
    passed: Mask | None = None

    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """The rows, some columns of them."""
        for take in (*[self.passed] * self.passes, self.take):
            yield from self._pass(columns, take)

    def _pass(self, columns: Sequence[str], take: Mask | None) -> Iterator[pa.RecordBatch]:
        begin = 0
        for path in self.report.files():
            for batch in pq.ParquetFile(path).iter_batches(BATCH, columns=list(columns)):
                if take is not None:
                    wanted = take[begin : begin + batch.num_rows]
                    begin += batch.num_rows
                    batch = batch.filter(pa.array(wanted))
                if batch.num_rows:
                    yield batch


def rendered_parts(
    config: TrainConfig, progress: Progress
) -> tuple[RenderedPart, RenderedPart | None]:
    """What is trained on, and what is measured; None without.

    Args:
        config: the run.
        progress: told about the rendering.

    Raises:
        UsageError: the share to measure is none, or steps do not end.
        EmptyResultError: no row comes out.
    """
    data = config.data
    assert data.store is not None
    report = _render(config, data.store, data.splits, progress)
    train, measured = RenderedPart(report), None
    if data.eval_store or data.eval_splits:
        place = data.eval_store or data.store
        measured = RenderedPart(_render(config, place, data.eval_splits, progress))
    elif data.eval_share:
        chosen = _held_out(train, data.store, data.eval_share)
        if not chosen.any():
            count = len(set(column(train, "trajectory_id")))
            raise UsageError(
                f"data.eval_share {data.eval_share} of {count:,} trajectories is none; use "
                "more, or leave it out"
            )
        train, measured = RenderedPart(report, ~chosen), RenderedPart(report, chosen)
    if data.max_rows is not None:
        train = _fewer(train, data.max_rows, config.training.seed)
    if data.trained_tokens is not None:
        train = _as_long(train, data.trained_tokens, config.training.seed)
    return train, measured


def replayed_part(config: TrainConfig, progress: Progress) -> RenderedPart | None:
    """The rows of the replay store, without those that are held out; None without a store.

    Args:
        config: the run.
        progress: told about the rendering.

    Raises:
        UsageError: steps do not end.
        EmptyResultError: no row comes out.
    """
    section = config.data.replay
    if section is None:
        return None
    part = RenderedPart(_render(config, section.store, section.splits, progress))
    if not config.data.eval_share:
        return part
    chosen = ~_held_out(part, section.store, config.data.eval_share)
    if not chosen.any():
        raise EmptyResultError("all rows of data.replay.store are held out to be measured")
    return RenderedPart(part.report, chosen)


def _render(
    config: TrainConfig, place: str, splits: tuple[str, ...] | None, progress: Progress
) -> RenderReport:
    report = render_store(
        Store.open(place),
        config.model.tokenizer_name_or_path or config.model.model_name_or_path,
        options=config.render,
        splits=splits,
        workers=config.data.workers,
        progress=progress,
    )
    check_ends(report.notes, config.render)
    return report


def _held_out(part: RenderedPart, place: str, share: float) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Which rows are of trajectories that are held out."""
    out = held_out(Store.open(place), share)
    return np.array([str(name) in out for name in column(part, "trajectory_id")], dtype=bool)


def _fewer(part: RenderedPart, most: int, seed: int) -> RenderedPart:
    """So many rows at most, chosen by the seed."""
    take = np.ones(part.report.rows, dtype=bool) if part.take is None else part.take.copy()
    places = np.flatnonzero(take)
    if len(places) > most:
        take[np.random.default_rng(seed).permutation(places)[most:]] = False
    return RenderedPart(part.report, take)


def _as_long(part: RenderedPart, tokens: int, seed: int) -> RenderedPart:
    """As many tokens under the loss, to half a row: whole passes, and a part chosen by the seed."""
    take = np.ones(part.report.rows, dtype=bool) if part.take is None else part.take
    trained = np.zeros(part.report.rows, dtype=np.int64)
    trained[take] = column(part, "trained")
    full = int(trained.sum())
    if not full:
        return part
    if tokens > _PASSES * full:
        raise UsageError(
            f"data.trained_tokens {tokens:,} are more than {_PASSES:,} passes over the {full:,} "
            "tokens under the loss that there are; ask for fewer"
        )
    places = np.random.default_rng(seed).permutation(np.flatnonzero(take))
    sums = np.concatenate([[0], np.cumsum(trained[places])])
    chosen = places[: int(np.abs(sums - tokens % full).argmin())]
    last = np.zeros(part.report.rows, dtype=bool)
    last[chosen] = True
    if not tokens // full and not len(chosen):
        last[places[0]] = True  # less than half a row is asked for
    return RenderedPart(part.report, last, tokens // full, take)


def column(part: RenderedPart, name: str) -> list[Any]:
    """All values of a column."""
    return [value for batch in part.batches([name]) for value in batch.column(0).to_pylist()]


def rendered_plan(train: RenderedPart) -> TrainingPlan:
    """What is in the rows, counted.

    Args:
        train: the rows to train on.

    Raises:
        EmptyResultError: there is none.
    """
    report = train.report
    lengths, trained = column(train, "length"), column(train, "trained")
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
