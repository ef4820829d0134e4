"""SAGE's CoresetSelector, number for number; what it does stands on the page of the op.

Sums are added in the order in which a plain loop over a trajectory's own words adds them.
"""

from __future__ import annotations

import hashlib
import math
import random
import re
from collections import Counter
from typing import Any

import numpy as np
import polars as pl

from adp.curation.ops.coreset.greedy import GreedySelection
from adp.curation.partitions import Partition
from adp.curation.pool import Pool

Array = np.ndarray[Any, Any]

BY_LOSS = ("loss_topk", "hybrid")
"""Methods that ask for a loss."""

SHARE = 0.6
_TOKEN = re.compile(r"[a-zA-Z0-9_]+")


def select(pool: Pool, method: str, size: int | None, by: str | None, seed: int) -> GreedySelection:
    """Select as SAGE does.

    Args:
        pool: the pool; its order is that of the samples.
        method: ``loss_topk``, ``random``, ``diversity`` or ``hybrid``.
        size: how many; None or less than 1 means all.
        by: column with the loss; None computes it from the texts.
        seed: seed of `random.Random`.

    Returns:
        The rows; the gain is the loss or the distance that the row was selected for.
    """
    count = len(pool)
    if size is None or size <= 0 or size >= count:
        return GreedySelection(np.arange(count), np.full(count, np.nan))
    if method == "random":
        drawn = random.Random(seed).sample(range(count), size)
        return GreedySelection(np.array(drawn), np.full(size, np.nan))
    texts = None
    if method != "loss_topk" or by is None:
        texts = pool.map(features, method != "loss_topk", name="sage")
    if method == "diversity":
        assert texts is not None
        return diversity(TokenShares(texts), np.arange(count), size)
    top = _by_loss(_losses(pool, by, texts), size if method == "loss_topk" else int(size * SHARE))
    if method == "loss_topk":
        return top
    assert texts is not None
    rest = np.setdiff1d(np.arange(count), top.rows)
    more = diversity(TokenShares(texts), rest, max(size - int(size * SHARE), 1))
    rows = np.append(top.rows, more.rows)[:size]
    return GreedySelection(rows, np.append(top.gains, more.gains)[:size])


def _losses(pool: Pool, by: str | None, texts: pl.DataFrame | None) -> Array:
    if by is not None:
        column = pool.members[by].cast(pl.Float64)
        return column.fill_nan(None).fill_null(0.0).to_numpy()
    assert texts is not None
    return texts["loss"].to_numpy()


def _by_loss(losses: Array, size: int) -> GreedySelection:
    rows = np.argsort(-losses, kind="stable")[: size or 1]
    return GreedySelection(rows, losses[rows])


# ---- texts --------------------------------------------------------------------------------------


def features(partition: Partition, tokens: bool) -> pl.DataFrame:
    """Of each trajectory the loss and, when wanted, the tokens with their shares."""
    rows = []
    for seq, text in whole_texts(partition):
        shares = token_shares(text) if tokens else {}
        rows.append(
            {
                "seq": seq,
                "loss": default_loss(text),
                "norm": math.sqrt(sum(value * value for value in shares.values())),
                "token": [_number(token) for token in shares],
                "share": list(shares.values()),
            }
        )
    schema: dict[str, Any] = {
        "seq": pl.Int64,
        "loss": pl.Float64,
        "norm": pl.Float64,
        "token": pl.List(pl.UInt64),
        "share": pl.List(pl.Float64),
    }
    return pl.DataFrame(rows, schema=schema)


def whole_texts(partition: Partition) -> list[tuple[int, str]]:
    """``seq`` and text of each trajectory of a partition; see above for the text."""

    def part(rows: pl.DataFrame, rank: int, place: str | None, *texts: str) -> pl.DataFrame:
        at = pl.col(place).fill_null(0).cast(pl.Int32) if place else pl.lit(0, pl.Int32)
        text = pl.concat_str([pl.col(name) for name in texts], separator=" ", ignore_nulls=True)
        return rows.select(
            "seq",
            pl.col("step").fill_null(-1).cast(pl.Int32),
            pl.lit(rank).alias("rank"),
            at.alias("place"),
            text.alias("text"),
        )

    steps = partition.read("steps", ["step", "text"])
    calls = partition.read("tool_calls", ["step", "call", "name", "arguments", "arguments_raw"])
    results = partition.read("observations", ["step", "order", "text"])
    rows = pl.concat(
        [
            part(steps, 0, None, "text"),
            part(calls, 1, "call", "name", "arguments", "arguments_raw"),
            part(results, 2, "order", "text"),
        ]
    )
    rows = rows.filter(pl.col("text").str.len_bytes() > 0)
    rows = rows.sort("seq", "step", "rank", "place", maintain_order=True)
    joined = rows.group_by("seq", maintain_order=True).agg(pl.col("text").str.join("\n"))
    full = partition.seqs().join(joined, on="seq", how="left", maintain_order="left")
    return list(full.with_columns(pl.col("text").fill_null("")).iter_rows())


def default_loss(text: str) -> float:
    """The loss that stands in for one of a model; see above."""
    tokens = text.lower().split()
    total = float(len(tokens))
    entropy = 0.0
    if tokens:
        entropy = -sum(
            (count / total) * math.log(count / total + 1e-9) for count in Counter(tokens).values()
        )
    return float(min(max(len(tokens) / 512.0 + entropy / 5.0, 0.0), 5.0))


def token_shares(text: str) -> dict[str, float]:
    """The share of each token, in the order of the text; see above."""
    counts = Counter(token for token in _TOKEN.findall(text.lower()) if len(token) > 2)
    total = sum(counts.values()) or 1.0
    return {token: count / total for token, count in counts.items()}


def _number(token: str) -> int:
    """The token as a number; two tokens with one number do not happen."""
    return int.from_bytes(hashlib.blake2b(token.encode(), digest_size=8).digest(), "little")


# ---- diversity ----------------------------------------------------------------------------------


class TokenShares:
    """Features of all trajectories as one sparse matrix: owner, token and share of each entry."""

    def __init__(self, texts: pl.DataFrame) -> None:
        some = texts.filter(texts["token"].list.len() > 0)
        tokens = some["token"].explode().to_numpy()
        self.share = some["share"].explode().to_numpy()
        lengths = texts["token"].list.len().to_numpy().astype(np.int64)
        self.starts = np.append(0, np.cumsum(lengths))
        self.owner = np.repeat(np.arange(len(lengths)), lengths)
        names, self.token = np.unique(tokens, return_inverse=True)
        self.vocabulary = len(names)
        self.norm = texts["norm"].to_numpy()


def diversity(shares: TokenShares, rows: Array, size: int) -> GreedySelection:
    """Select the least similar rows.

    Products are added in the order of the tokens of the row's own text, one after another, as a
    loop over them would; `numpy.bincount` does so.
    """
    inside = np.zeros(len(shares.norm), bool)
    inside[rows] = True
    closest = np.full(len(shares.norm), -np.inf)
    best = int(rows[shares.norm[rows].argmax()])
    result, gains = [best], [math.nan]
    weights = np.zeros(shares.vocabulary)
    while len(result) < min(size, len(rows)):
        inside[best] = False
        span = slice(shares.starts[best], shares.starts[best + 1])
        weights[shares.token[span]] = shares.share[span]
        products = shares.share * weights[shares.token]
        weights[shares.token[span]] = 0
        np.maximum(closest, np.bincount(shares.owner, products, len(closest)), out=closest)
        distance = np.where(inside, 1.0 - closest, -np.inf)
        best = int(distance.argmax())
        result.append(best)
        gains.append(float(distance[best]))
    return GreedySelection(np.array(result), np.array(gains))
