"""The training loss of each trajectory by a model: how hard it is, before it is trained on.

Trajectories become rows as in a training (`docs/training.md`): the same chat template, windows and
masks, with the weights and repaired texts of earlier ops. Any causal model of transformers, with or
without an adapter, reads them; nothing is written by it.

- ``loss``: the sum of weight times cross entropy of the trained tokens, over their number: what a
  training would show for these rows. The mean is over the tokens of all rows of a trajectory.
- ``perplexity``: exp of the mean cross entropy of the same tokens, without weights.
- ``ifd``: Instruction-Following Difficulty (Li and others, 2023): the mean cross entropy of the
  answers in their context over that of the answers alone. Below 1 the context helps; near 1 it
  hardly does.

An answer alone is what the model writes in one step, behind the words with which the chat template
begins an answer. Of several steps the sums are divided, so one question with one answer gives the
ratio of the paper. Steps have the same columns in the view ``step_columns``.

What cannot be scored is null, and the ledger says why (``not_scored``): a row too long for
``render.window``, no trained token, a template that refuses, a model that gives no finite number.
``partly_scored`` names what is missing of the others.

Sums are kept in a cache (``$ADP_CACHE``, else that of the user) under the tokens, the mask, and a
hash of the model's files: a second run, or one that goes on after a kill, asks for what is missing.
Numbers are rounded to five digits behind the point, perplexity to six in all. In float32 they are
the same for any ``batch_tokens``, except where a number lies at the edge of rounding: matrix
products of other shapes add in another order. In 16 bits they differ in the third digit. How many
tokens were asked, and how many a second of the processor, is printed beside the progress: it is no
part of the record, which is the same whatever was in the cache.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import polars as pl
from pydantic import ConfigDict

from adp.curation.op import Op, OpOptions, OpResult
from adp.curation.pool import Pool
from adp.curation.training_loss.figures import figures
from adp.curation.training_loss.model_sums import SequencePlace, model_sums
from adp.curation.training_loss.render_pool import render_pool
from adp.curation.training_loss.settings import ScoreSettings
from adp_schema.errors import RecipeError


class ModelScore(ScoreSettings, OpOptions):
    """Options of `score`."""

    model_config = ConfigDict(coerce_numbers_to_str=False)


def run(pool: Pool, options: ModelScore) -> OpResult:
    """Score."""
    settings = _placed(options, pool.folder)
    index, files = render_pool(pool, settings)
    asked = index.filter(pl.col("steps").list.len() > 0)
    places = [
        SequencePlace(key, length, lambda at=(part, row): files.sequence(*at))  # type: ignore[misc]
        for key, length, part, row in asked.select("key", "length", "part", "row").iter_rows()
    ]
    sums, effort = model_sums(places, settings.which, settings.batch_tokens, pool.progress)
    pool.progress.note(f"score: {effort.words()}")
    columns, steps, events = figures(index, sums, ifd=options.ifd)
    summary, lines = _summary(columns, events)
    return OpResult(columns, steps, events=events, summary=summary, lines=lines)


def _placed(options: ModelScore, folder: Path) -> ScoreSettings:
    """The settings, with folders as they can be opened; paths are relative to the recipe."""
    if options.trust_remote_code or options.render.trust_remote_code:
        raise RecipeError(
            "score does not run code that a model brings with it; leave out trust_remote_code"
        )
    names = {
        name: str(folder / value)
        for name in ("model", "adapter", "tokenizer")
        if (value := getattr(options, name)) is not None and (folder / value).exists()
    }
    return ScoreSettings(**{**options.fields_of(ScoreSettings), **names})


def _summary(columns: pl.DataFrame, events: pl.DataFrame) -> tuple[dict[str, Any], list[str]]:
    """The figures of all, for the report and for a person."""
    scored = int(columns["loss"].count())
    bad = events.filter(pl.col("verdict") == "not_scored")
    reasons = dict(bad.group_by("reason").len().sort("reason").iter_rows())
    summary: dict[str, Any] = {
        "scored": scored,
        "not_scored": reasons,
        "trained_tokens": int(columns["trained_tokens"].sum()),
        "row_tokens": int(columns["row_tokens"].sum()),
    }
    lines = [f"{scored:,} of {columns.height:,} trajectories have a training loss"]
    for name in ("loss", "perplexity", "ifd"):
        if name in columns.columns and columns[name].count():
            column = columns[name]
            summary[name] = {"median": column.median(), "min": column.min(), "max": column.max()}
            middle, low, high = summary[name].values()
            lines.append(f"{name}: median {middle:,.4g}, {low:,.4g} to {high:,.4g}")
    lines += [f"{count:,} not scored: {reason}" for reason, count in reasons.items()]
    return summary, lines


def _columns(options: ModelScore) -> Mapping[str, str]:
    ratio = {"ifd": "Instruction-Following Difficulty of its answers."} if options.ifd else {}
    return {
        "loss": "The training loss by the model, a token; null when it cannot be had.",
        "perplexity": "Perplexity of the trained tokens.",
        **ratio,
        "trained_tokens": "Trained tokens that the loss is the mean of.",
        "row_tokens": "Tokens of its rows, context included.",
        "training_rows": "Its rows.",
    }


def _step_columns(options: ModelScore) -> Mapping[str, str]:
    ratio = {"ifd": "Instruction-Following Difficulty of the step."} if options.ifd else {}
    return {
        "loss": "The training loss of the step, a token.",
        "perplexity": "Perplexity of its trained tokens.",
        **ratio,
        "trained_tokens": "Its trained tokens.",
    }


OP = Op(
    name="score",
    title="Ask a model for the training loss of each trajectory.",
    options=ModelScore,
    run=run,
    cost="One forward pass over the rows, with ifd one over their answers; memory for the model "
    "and the logits of the trained tokens of a batch. Hashing takes a second a gigabyte.",
    source="ifd: Li and others, From Quantity to Quality (2023, arXiv 2308.12032), section 2.2.",
    columns=_columns,
    step_columns=_step_columns,
)
