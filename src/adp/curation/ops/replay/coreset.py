"""What a buffer keeps by scores: SAGE's CoresetSelector on buffer and new trajectories together."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl

from adp.curation.ops.coreset.sage import SHARE, TokenShares, diversity, features
from adp.curation.pool import Pool


def highest(scores: Sequence[float], count: int) -> list[int]:
    """Places of the highest scores; of equal ones the first."""
    return sorted(range(len(scores)), key=lambda place: -scores[place])[:count]


def texts_of(pool: Pool, rows: pl.DataFrame, *, tokens: bool) -> pl.DataFrame:
    """What `features` says of some trajectories of the inputs, in the order of the rows.

    Args:
        pool: the pool; the rows need not be members.
        rows: trajectories, with ``seq`` and ``size``.
        tokens: whether the tokens are wanted, besides the loss.
    """
    folder = pool.scratch / "texts"
    folder.mkdir(exist_ok=True)
    buffer_pool = Pool(pool.inputs, rows.sort("seq"), folder, workers=pool.workers)
    result = buffer_pool.map(features, tokens)
    return rows.select("seq").join(result, on="seq", how="left", maintain_order="left")


def hybrid(texts: pl.DataFrame, scores: Sequence[float], count: int) -> list[int]:
    """Places to keep: 60 % with the highest scores, then the most diverse of the others.

    Args:
        texts: what `texts_of` gives, with tokens.
        scores: a score a row.
        count: how many to keep, fewer than there are.
    """
    by_score = int(SHARE * count)
    top = highest(scores, by_score or 1)
    rest = np.setdiff1d(np.arange(len(scores)), top)
    more = diversity(TokenShares(texts), rest, max(count - by_score, 1))
    return [*top, *map(int, more.rows)][:count]
