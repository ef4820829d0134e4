"""How large a trajectory is: steps, turns, calls, observations and tokens.

Tokens are counted by a tokenizer, or estimated from the bytes of the text: every byte counts by
what it is, a letter less than a digit (`BYTE_WEIGHTS`). The weights were fitted, with equal weight
for each of 53 data sets of the common agent formats, to a tokenizer with a vocabulary of 131,000
that reads numbers digit by digit. On data sets that were left out of the fit, the tokens of a
trajectory come out wrong by 5 % in the median, by less than 11 % in nine of ten, by 24 % at worst;
a quarter of the bytes, the usual rule, is wrong by 14 %, 28 % and 68 %.

What is counted: texts and reasoning of steps, names and arguments of calls (unless they stand in
the text already), results. The list of tools and what a chat template adds are not.
"""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa

from adp.curation.ops.measure.rows import PartitionRows
from adp_schema.errors import MissingExtraError, RecipeError

BYTE_WEIGHTS = {
    "lower": 0.15, "upper": 0.42, "digit": 1.3, "space": 0.34, "line": 0.4, "other": 0.6,
    "beyond": 0.2,
}  # fmt: skip
"""Tokens that a byte counts: of a small or capital ASCII letter, a digit, a space, a line end or
tab, another ASCII character, and a byte of a character beyond ASCII."""

TEXT_WEIGHT = 0.7
"""Tokens that each text counts besides."""

SLICE = 2_000
"""Texts that are estimated at a time; small enough for their bytes to stay in memory's caches."""

BATCH = 4_000_000
"""Bytes of text that go to the tokenizer at a time."""


def measure(rows: PartitionRows, tokenizer: str | None) -> pl.DataFrame:
    """Sizes of each trajectory."""
    texts = _texts(rows)
    count = functools.partial(count_tokens, path=tokenizer) if tokenizer else estimate_tokens
    texts = texts.with_columns(pl.Series("tokens", count(texts["text"]), pl.Float64))
    trained = pl.col("tokens").filter("trained").sum()
    tokens = texts.group_by("seq").agg(
        pl.col("tokens").sum().round().cast(pl.Int64).alias("tokens"),
        trained.round().cast(pl.Int64).alias("tokens_trained"),
    )
    steps = rows.steps.group_by("seq").agg(
        pl.len().cast(pl.Int64).alias("n_steps"),
        pl.col("agent").sum().cast(pl.Int64).alias("n_agent_steps"),
        pl.col("turn").drop_nulls().n_unique().cast(pl.Int64).alias("n_turns"),
    )
    counted = [
        frame.group_by("seq").agg(pl.len().cast(pl.Int64).alias(name))
        for frame, name in ((rows.calls, "n_calls"), (rows.observations, "n_observations"))
    ]
    seqs = rows.seqs
    for frame in (tokens, steps, *counted):
        seqs = seqs.join(frame, on="seq", how="left")
    return seqs.fill_null(0)


def _texts(rows: PartitionRows) -> pl.DataFrame:
    """``seq``, ``text`` and ``trained`` of every text that counts."""
    weight = pl.col("loss_weight").fill_null(1.0) > 0
    generated = pl.col("agent") & weight & ~pl.col("is_copied_context").fill_null(value=False)
    steps = rows.steps.with_columns(trained=generated)
    calls = rows.calls.filter(pl.col("span_start").is_null()).join(
        steps.select("seq", "step", "trained"), on=["seq", "step"], how="left"
    )
    arguments = pl.coalesce("arguments", "arguments_raw", pl.lit(""))
    parts = [
        steps.select("seq", "text", "trained"),
        steps.select("seq", pl.col("reasoning").alias("text"), "trained"),
        calls.select(
            "seq",
            pl.concat_str(pl.col("name").fill_null(""), pl.lit(" "), arguments).alias("text"),
            pl.col("trained").fill_null(value=False),
        ),
        rows.observations.select("seq", "text", pl.lit(value=False).alias("trained")),
    ]
    return pl.concat(part.filter(pl.col("text") != "") for part in parts)


def _weights() -> np.ndarray[Any, Any]:
    weights = np.full(256, BYTE_WEIGHTS["beyond"])
    for byte in range(128):
        letter = chr(byte)
        if letter.islower():
            kind = "lower"
        elif letter.isupper():
            kind = "upper"
        elif letter.isdigit():
            kind = "digit"
        elif letter == " ":
            kind = "space"
        else:
            kind = "line" if letter in "\n\r\t" else "other"
        weights[byte] = BYTE_WEIGHTS[kind]
    return weights


def estimate_tokens(texts: pl.Series) -> np.ndarray[Any, Any]:
    """Estimated tokens of each text, as floats; no text may be null.

    The weights are multiples of a hundredth, so sums are made in whole numbers: the outcome does
    not depend on how the texts are cut into batches.
    """
    table = bytes(np.round(_weights() * 100).astype(np.uint8))
    total = np.zeros(len(texts), np.float64)
    for start in range(0, len(texts), SLICE):
        piece = texts.slice(start, SLICE).to_arrow().cast(pa.large_string())
        ends = np.frombuffer(piece.buffers()[1], np.int64)
        ends = ends[piece.offset : piece.offset + len(piece) + 1]
        data = memoryview(piece.buffers()[2] or b"")[ends[0] : ends[-1]]
        hundredths = np.frombuffer(bytes(data).translate(table), np.uint8)
        of_texts = pa.LargeListArray.from_arrays(ends - ends[0], hundredths)
        total[start : start + len(piece)] = pl.Series(of_texts).list.sum().to_numpy() / 100
    return total + TEXT_WEIGHT


def count_tokens(texts: pl.Series, path: str) -> np.ndarray[Any, Any]:
    """Tokens of each text by a tokenizer, without those that it adds at the ends."""
    tokenizer = load_tokenizer(path)
    counts: list[int] = []
    batch: list[str] = []
    size = 0
    for text in texts:
        batch.append(text)
        size += len(text)
        if size >= BATCH:
            counts += _encoded(tokenizer, batch)
            batch, size = [], 0
    return np.array(counts + _encoded(tokenizer, batch), np.float64)


def _encoded(tokenizer: Any, texts: list[str]) -> list[int]:
    return [len(item) for item in tokenizer.encode_batch_fast(texts, add_special_tokens=False)]


@functools.lru_cache(maxsize=2)
def load_tokenizer(path: str) -> Any:
    """Load a ``tokenizer.json``.

    Args:
        path: the file, or a folder that holds it.

    Raises:
        MissingExtraError: the package tokenizers is not installed.
        RecipeError: there is no such file, or it is no tokenizer.
    """
    try:
        from tokenizers import Tokenizer
    except ImportError:
        raise MissingExtraError("tokenizers", "tokenizers") from None
    file = Path(path)
    file = file / "tokenizer.json" if file.is_dir() else file
    if not file.is_file():
        raise RecipeError(f"measure finds no tokenizer at {path}; name a tokenizer.json")
    try:
        return Tokenizer.from_file(str(file))
    except Exception as error:  # the library raises nothing more special
        raise RecipeError(f"measure cannot read the tokenizer {path}: {error}") from None
