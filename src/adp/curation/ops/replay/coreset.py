"""The part of a buffer that SAGE's CoresetSelector keeps: the highest scores, and the most diverse.

Features of a text are the relative frequencies of its words: letters, digits and underscores, in
lower case, longer than two characters. The distance of a candidate is 1 minus its largest inner
product with what is chosen; the products are not normalised.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import polars as pl

    from adp.curation.partitions import Partition
    from adp.curation.pool import Pool

Vector = np.ndarray[Any, np.dtype[np.float64]]

SCORED = 0.6
"""Part of the buffer that is kept by score; the rest by diversity."""

_WORD = re.compile(r"[a-zA-Z0-9_]+")


def highest(scores: Sequence[float], count: int) -> list[int]:
    """Places of the highest scores; of equal ones the first."""
    return sorted(range(len(scores)), key=lambda place: -scores[place])[:count]


def hybrid(pool: Pool, rows: pl.DataFrame, scores: Sequence[float], count: int) -> list[int]:
    """Places of the rows to keep: the highest scores first, then the most diverse of the others.

    Args:
        pool: the pool, to read with.
        rows: trajectories, with ``seq`` and ``size``.
        scores: a score a row.
        count: how many to keep, fewer than there are.
    """
    by_score = int(SCORED * count)
    top = highest(scores, by_score or 1)
    taken = set(top)
    rest = [place for place in range(len(scores)) if place not in taken]
    counts = word_counts(pool, rows[rest])
    found = diverse(features(counts, rows["seq"][rest].to_list()), max(count - by_score, 1))
    return (top + [rest[place] for place in found])[:count]


def word_counts(pool: Pool, rows: pl.DataFrame) -> pl.DataFrame:
    """``seq``, ``word``, ``count`` for some trajectories of the inputs, sorted by all three."""
    from adp.curation.pool import Pool

    folder = pool.scratch / "words"
    folder.mkdir(exist_ok=True)
    own = Pool(pool.inputs, rows.sort("seq"), folder, workers=pool.workers)
    return own.map(_words).sort("seq", "word")


def _words(partition: Partition, _: Any) -> pl.DataFrame:
    """The words of all steps and observations of a partition."""
    import polars as pl

    texts = [partition.read(table, ["text"]) for table in ("steps", "observations")]
    counts: dict[int, Counter[str]] = {}
    for seq, text in pl.concat(texts).drop_nulls().iter_rows():
        words = (word for word in _WORD.findall(text.lower()) if len(word) > 2)
        counts.setdefault(seq, Counter()).update(words)
    found = [(seq, *item) for seq, words in counts.items() for item in words.items()]
    return pl.DataFrame(
        found, schema={"seq": pl.Int64, "word": pl.String, "count": pl.Int64}, orient="row"
    )


@dataclass(frozen=True)
class Features:
    """Relative frequencies of words, as a sparse matrix.

    Attributes:
        rows: row of each value, rising.
        columns: its word; rising within a row, in the order of the words.
        values: the frequencies.
        shape: number of rows and of words.
    """

    rows: np.ndarray[Any, np.dtype[np.int64]]
    columns: np.ndarray[Any, np.dtype[np.int64]]
    values: np.ndarray[Any, np.dtype[np.float64]]
    shape: tuple[int, int]

    def products(self, vector: Vector) -> Vector:
        """The inner product of each row with a vector; sums go from the first word to the last."""
        parts = self.values * vector[self.columns]
        return np.bincount(self.rows, parts, self.shape[0]).astype(np.float64)

    def row(self, place: int) -> Vector:
        """One row, dense."""
        start, end = np.searchsorted(self.rows, [place, place + 1])
        found = np.zeros(self.shape[1])
        found[self.columns[start:end]] = self.values[start:end]
        return found


def features(counts: pl.DataFrame, seqs: Sequence[int]) -> Features:
    """Relative frequencies, one row for each ``seq``."""
    import polars as pl

    words = counts["word"].unique().sort().to_frame().with_row_index("column")
    places = pl.DataFrame({"seq": seqs}, schema={"seq": pl.Int64}).with_row_index("row")
    rows = (
        counts.join(words, on="word")
        .join(places, on="seq")
        .with_columns((pl.col("count") / pl.col("count").sum().over("seq")).alias("value"))
        .sort("row", "column")
    )
    return Features(
        rows["row"].cast(pl.Int64).to_numpy(),
        rows["column"].cast(pl.Int64).to_numpy(),
        rows["value"].to_numpy(),
        (len(seqs), words.height),
    )


def diverse(matrix: Features, count: int) -> list[int]:
    """Greedy choice: the row of the largest norm, then always the row farthest from the chosen.

    Of rows that are equally far the first is taken.
    """
    number = matrix.shape[0]
    if not number:
        return []
    squares = np.bincount(matrix.rows, matrix.values * matrix.values, number)
    chosen = [int(np.argmax(np.sqrt(squares)))]
    nearest = np.zeros(number)
    taken = np.zeros(number, dtype=np.bool_)
    while len(chosen) < min(count, number):
        last = chosen[-1]
        taken[last] = True
        nearest = np.maximum(nearest, matrix.products(matrix.row(last)))
        chosen.append(int(np.argmax(np.where(taken, -np.inf, 1.0 - nearest))))
    return chosen
