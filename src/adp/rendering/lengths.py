"""How long rendered rows are, and what a window of tokens costs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow.parquet as pq

if TYPE_CHECKING:
    from pathlib import Path

WINDOWS = tuple(1 << power for power in range(10, 21))
"""Windows that are looked at: 1,024 to 1,048,576 tokens."""

QUANTILES = (0.5, 0.9, 0.99, 1.0)


@dataclass(frozen=True)
class WindowCost:
    """What a window costs.

    Attributes:
        tokens: size of the window.
        fits: rows that fit.
        rows: all rows.
        drop: share of the trained tokens that are lost when rows that are too long are dropped.
        keep_start: share of them that is lost when these are cut after the last step that fits.
        sliding: share of them that no window can hold, about: in steps that are longer than the
            window together with what stands before the first trained step.
    """

    tokens: int
    fits: int
    rows: int
    drop: float
    keep_start: float
    sliding: float


@dataclass(frozen=True)
class RowLengths:
    """Lengths of rows in tokens.

    Attributes:
        quantiles: share of the rows -> length that they do not go beyond.
        trained: the same for the tokens under the loss.
        windows: costs, up to the first window that holds every row.
    """

    quantiles: dict[float, int]
    trained: dict[float, int]
    windows: tuple[WindowCost, ...]


def lengths_of(files: list[Path]) -> RowLengths:
    """Measure rendered rows.

    Args:
        files: files of rows, rendered without a window.
    """
    lengths: list[Any] = [np.empty(0, np.int64)]
    trained: list[Any] = [np.empty(0, np.int64)]
    # One entry a trained step: length of its row, end of the step in it, tokens of the step,
    # tokens before the first trained step of the row.
    steps: list[Any] = [np.empty((0, 4), np.int64)]
    for path in files:
        file = pq.ParquetFile(path)
        for group in range(file.num_row_groups):
            rows = file.read_row_group(group, columns=["length", "trained", "step_index"])
            row_lengths = rows["length"].to_numpy().astype(np.int64)
            lengths.append(row_lengths)
            trained.append(rows["trained"].to_numpy().astype(np.int64))
            steps.append(
                _steps(rows["step_index"].combine_chunks().flatten().to_numpy(), row_lengths)
            )
    length, weight = np.concatenate(lengths), np.concatenate(trained)
    parts = np.concatenate(steps)
    windows = []
    for window in WINDOWS:
        windows.append(_cost(window, length, weight, parts))
        if not len(length) or window >= length.max():
            break
    return RowLengths(_quantiles(length), _quantiles(weight), tuple(windows))


def _steps(step: Any, lengths: Any) -> Any:
    """Row length, end in the row, number of tokens of each trained step, and those before all."""
    row = np.repeat(np.arange(len(lengths)), lengths)
    begins = np.concatenate([[0], np.cumsum(lengths)[:-1]]) if len(lengths) else np.empty(0)
    place = np.arange(len(step)) - np.repeat(begins, lengths)
    kept = step >= 0
    row, step, place = row[kept], step[kept], place[kept]
    if not len(row):
        return np.empty((0, 4), np.int64)
    new = np.concatenate([[True], (row[1:] != row[:-1]) | (step[1:] != step[:-1])])
    first = np.flatnonzero(new)
    last = np.concatenate([first[1:], [len(row)]]) - 1
    counts = last - first + 1
    before = place[first].astype(np.int64)
    opens = np.concatenate([[True], row[first][1:] != row[first][:-1]])
    heads = before[opens][np.cumsum(opens) - 1]
    ends = place[last].astype(np.int64) + 1
    return np.stack([lengths[row[first]], ends, counts, heads], axis=1)


def _cost(window: int, length: Any, weight: Any, steps: Any) -> WindowCost:
    full = max(int(weight.sum()), 1)
    fits = length <= window
    alone = (steps[:, 0] > window) & (steps[:, 2] + steps[:, 3] > window)
    late = (steps[:, 0] > window) & (steps[:, 1] > window)
    return WindowCost(
        tokens=window,
        fits=int(fits.sum()),
        rows=len(length),
        drop=float(weight[~fits].sum() / full),
        keep_start=float(steps[late, 2].sum() / full),
        sliding=float(steps[alone, 2].sum() / full),
    )


def _quantiles(values: Any) -> dict[float, int]:
    if not len(values):
        return dict.fromkeys(QUANTILES, 0)
    quantile = np.quantile(values, QUANTILES, method="inverted_cdf")
    return {share: int(value) for share, value in zip(QUANTILES, quantile, strict=True)}
