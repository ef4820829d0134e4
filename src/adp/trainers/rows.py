"""Rows ready for a trainer, in Arrow files that every process maps into memory."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

if TYPE_CHECKING:
    from datasets import Dataset

TRAIN, EVAL = "train.arrow", "eval.arrow"
"""Files of the prepared rows."""

TOKENS = pa.list_(pa.int32())
WEIGHTS = pa.list_(pa.float32())


def write_arrow(path: Path, schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> int:
    """Write rows and return their number.

    Args:
        path: the file; `datasets.Dataset.from_file` reads it.
        schema: lists of numbers, as a rule.
        batches: the rows; no more than one batch is in memory.
    """
    count = 0
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_stream(file, schema) as writer:
        for batch in batches:
            count += batch.num_rows
            writer.write_batch(batch)
    return count


def read_arrow(path: Path) -> Dataset | None:
    """The rows of a file, mapped into memory; None when there is no such file.

    Nothing is copied to a cache of `datasets`, so several processes may read at once.
    """
    from datasets import Dataset

    return Dataset.from_file(str(path)) if path.exists() else None
