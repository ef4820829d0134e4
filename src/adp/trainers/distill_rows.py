"""Rows for distillation, cut out of the rows that SFT would train on.

A row is what stands before, and what the store has after it with the exact mask: for
``lmbda: 0`` all of a rendered row, else a single trained step. What stands before a step in a
rendered row is the prompt that the model has at inference.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from adp.trainers.prepared_rows import IDS, MASK
from adp.trainers.rendered_rows import BATCH, RenderedPart
from adp.trainers.rows import write_arrow

SCHEMA = pa.schema([("prompt", pa.struct([("ids", IDS), ("answer", IDS), ("mask", MASK)]))])
"""The one column that TRL's trainer hands through: what stands before, what follows, its mask."""

Array = np.ndarray[Any, Any]


@dataclass(frozen=True, slots=True)
class DistillRow:
    """One row.

    Attributes:
        prompt: token ids before the first trained one; at least one.
        answer: token ids from there to the last trained one.
        mask: True for those in the loss.
    """

    prompt: Array
    answer: Array
    mask: Array


def complete_row(ids: Array, labels: Array) -> DistillRow | None:
    """All trained tokens of a rendered row; None when there is none that has a token before it."""
    places = np.flatnonzero(labels[1:] >= 0) + 1
    if not len(places):
        return None
    first, stop = int(places[0]), int(places[-1]) + 1
    return DistillRow(ids[:first], ids[first:stop], labels[first:stop] >= 0)


def step_rows(ids: Array, labels: Array, steps: Array) -> Iterator[DistillRow]:
    """A row for each trained step of a rendered row.

    Args:
        ids: token ids.
        labels: the ids that are trained, negative elsewhere.
        steps: the step that each token trains, -1 elsewhere.
    """
    for step in np.unique(steps[steps >= 0]):
        row = complete_row(ids, np.where(steps == step, labels, -100))
        if row is not None:
            yield row


def distill_rows(part: RenderedPart, *, by_step: bool) -> Iterator[DistillRow]:
    """The rows of a part of the run, in their order.

    Args:
        part: rendered rows.
        by_step: a row for each trained step.
    """
    for batch in part.batches(["input_ids", "labels", "step_index"]):
        columns = [batch.column(name) for name in ("input_ids", "labels", "step_index")]
        for values in zip(*columns, strict=True):
            ids, labels, steps = (np.asarray(value.values) for value in values)
            if by_step:
                yield from step_rows(ids, labels, steps)
            elif (row := complete_row(ids, labels)) is not None:
                yield row


def write_distill_rows(path: Path, rows: Iterable[DistillRow]) -> int:
    """Write rows for the trainer, and return their number.

    Args:
        path: the file.
        rows: the rows.
    """
    return write_arrow(path, SCHEMA, _batches(rows))


def _batches(rows: Iterable[DistillRow]) -> Iterator[pa.RecordBatch]:
    plain: list[dict[str, Any]] = []
    for row in rows:
        plain.append({"ids": row.prompt, "answer": row.answer, "mask": row.mask.astype(np.int8)})
        if len(plain) == BATCH:
            yield _batch(plain)
            plain = []
    if plain:
        yield _batch(plain)


def _batch(plain: list[dict[str, Any]]) -> pa.RecordBatch:
    return pa.record_batch([pa.array(plain, SCHEMA.field("prompt").type)], schema=SCHEMA)
