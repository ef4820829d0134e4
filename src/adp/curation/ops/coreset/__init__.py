"""Keep a part that stands for the whole.

| method | what it keeps |
|---|---|
| ``random`` | any, all with the same chance |
| ``top`` | the highest scores: a loss, a reward, any column |
| ``k_center`` | those farthest from each other: rare cases and outliers (Gonzalez, 1985) |
| ``facility_location`` | those that many others resemble (Nemhauser and others, 1978) |
| ``hybrid`` | a part by score, and then those farthest from what is kept |
| ``stratified`` | so many of each stratum, by largest remainder |
| ``mmr`` | high scores that are unlike each other (Carbonell and Goldstein, 1998) |

Trajectories are compared by vectors of length 1: a column of the pool, or vectors of their words.
The distance of two is that between the ends of their vectors, from 0 to 2; a cosine c is a
distance of sqrt(2 - 2 c). Equal scores and distances go to the trajectory that comes first.

Whether a selection is better than chance shows only when the two are compared. So three figures
are shown for the selection, for a random one of the same size, and for the longest trajectories:
the radius (the largest distance of a trajectory to the nearest one kept), the mean of these
distances, and the sum of the cosines with the nearest one kept (the facility-location objective).
Above two thousand million pairs they are measured on a sample of the trajectories.

``compat: sage`` follows SAGE's CoresetSelector number for number:

- The text of a trajectory is the text of its steps, its calls (name and arguments) and its
  observations, in the order of the view ``transcript``, joined by line ends.
- The loss is the column ``by``; else the column ``loss``, when the op score (a model's training
  loss) or another one gives it. Without one it is made of the texts: over the words of the text in
  lower case, cut at white space, ``min(max(L / 512 + H / 5, 0), 5)`` with L words and the entropy
  ``H = -sum p ln(p + 1e-9)``.
- ``loss_topk``: the highest first; equal ones stay in order. A null counts 0.
- ``random``: ``random.Random(random_seed).sample``.
- ``diversity``: features are the shares of the tokens ``[a-zA-Z0-9_]+`` of more than two
  characters. The first is the one with the longest feature vector; then, again and again, the one
  with the highest ``1 - max s``, where s is the product with a selected one. It is called a cosine
  there, but nothing is divided by the lengths.
- ``hybrid``: ``int(0.6 k)`` by loss (at least one), the others by diversity among the rest.
- Without a size, with one of 0 or less, or with one that is not less than there are, all stay.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import numpy as np
import polars as pl

from adp.curation.allocate import allocate
from adp.curation.op import Op, OpResult
from adp.curation.ops.coreset import sage
from adp.curation.ops.coreset.cover import Coverage, coverage
from adp.curation.ops.coreset.facility import facility_location
from adp.curation.ops.coreset.greedy import GreedySelection, k_center, mmr
from adp.curation.ops.coreset.options import Coreset
from adp.curation.pool import Pool
from adp.curation.texts.vectors import Vectors, vectors_of
from adp_schema.errors import QueryError, RecipeError

Array = np.ndarray[Any, Any]

REASON = "not in the coreset"
PAIRS = 2_000_000_000
"""Above so many pairs of a trajectory and a selected one, coverage is measured on a sample."""

_STRATA = "SELECT seq, CAST(({}\n) AS VARCHAR) AS stratum FROM pool ORDER BY seq"
_NAMES = {"loss_topk": "top", "diversity": "k_center"}
_SHOWN = 100
"""Strata that the summary shows."""

_BY_VECTORS = ("k_center", "facility_location", "hybrid", "mmr")


def run(pool: Pool, options: Coreset) -> OpResult:
    """Select."""
    size = _size(len(pool), options)
    vectors = None
    summary: dict[str, Any] = {"method": options.method, "of": len(pool)}
    everything = size >= len(pool) or (options.compat is not None and size < 1)
    if everything:
        chosen = GreedySelection(np.arange(len(pool)), np.full(len(pool), np.nan))
    else:
        method = _NAMES.get(options.method, options.method)
        if options.coverage or (options.compat is None and method in _BY_VECTORS):
            vectors = vectors_of(pool, options)
        chosen = _select(pool, options, size, vectors, summary)
    outcome = OpResult(
        columns=_columns(pool, chosen),
        dropped=_dropped(pool, chosen),
        summary={**summary, "kept": len(chosen.rows)},
        lines=[f"{len(chosen.rows):,} of {len(pool):,} trajectories kept by {options.method}"],
    )
    if options.compat == "sage" and options.method in sage.BY_LOSS and not everything:
        column = _loss_column(pool, options)
        outcome.summary["loss"] = column or "words"
        outcome.lines.append(
            f"the loss is the column {column}"
            if column
            else "a number made of the words stands in for the loss: there is no column loss; for "
            "that of a model put `- score: {model: ...}` before"
        )
    if everything:
        outcome.lines[0] += ": there are not more than that"
    if vectors is not None:
        outcome.summary["vectors"] = {"from": vectors.origin, "zeros": vectors.zeros}
        if vectors.zeros:
            outcome.lines.append(
                f"{vectors.zeros:,} have no words or a vector of zeros: they are like each other "
                "and unlike all others"
            )
    if vectors is not None and options.coverage:
        _measure(pool, chosen, vectors, outcome)
    return outcome


def _size(count: int, options: Coreset) -> int:
    if options.share is not None:
        return max(1, int(options.share * count + 0.5))
    return options.size if options.size is not None else count


def _select(
    pool: Pool, options: Coreset, size: int, vectors: Vectors | None, summary: dict[str, Any]
) -> GreedySelection:
    if options.compat == "sage":
        by = _loss_column(pool, options)
        return sage.select(pool, options.method, size, by, options.random_seed)
    random = np.random.default_rng(pool.seed).permutation(len(pool))
    method = _NAMES.get(options.method, options.method)
    if method == "random":
        rows = np.argsort(random)[:size]
        return GreedySelection(rows, np.full(size, np.nan))
    if method == "stratified":
        return _stratified(pool, options, size, random, summary)
    scores = _scores(pool, options) if options.score is not None else np.zeros(0)
    if method == "top":
        return _top(scores, size, options.descending)
    assert vectors is not None
    matrix = vectors.matrix
    if method == "k_center":
        return k_center(matrix, size)
    if method == "facility_location":
        return facility_location(matrix, size)
    if method == "mmr":
        return mmr(matrix, size, _relevance(scores, options.descending), options.lambda_)
    first = _top(scores, int(options.loss_ratio * size), options.descending)
    rest = k_center(matrix, size - len(first.rows), first.rows)
    return GreedySelection(np.append(first.rows, rest.rows), np.append(first.gains, rest.gains))


def _loss_column(pool: Pool, options: Coreset) -> str | None:
    """The column that compat sage takes the loss from; None makes it of the texts."""
    if options.score is None and "loss" in pool.members.columns:
        return "loss"
    return options.score


# ---- scores -------------------------------------------------------------------------------------


def _scores(pool: Pool, options: Coreset) -> Array:
    """The scores; NaN where there is none."""
    assert options.score is not None
    column = pool.members[options.score]
    if not (column.dtype.is_numeric() or column.dtype == pl.Boolean):
        raise RecipeError(
            f"coreset cannot rank by the column {options.score}, which holds {column.dtype}; "
            "name one of numbers"
        )
    return column.cast(pl.Float64).fill_null(float("nan")).to_numpy()


def _top(scores: Array, size: int, descending: bool) -> GreedySelection:
    """The best scores; those without one come last."""
    order = np.lexsort((-scores if descending else scores, np.isnan(scores)))
    return GreedySelection(order[:size], scores[order[:size]])


def _relevance(scores: Array, descending: bool) -> Array:
    """Scores from 0 to 1, 1 for the best; 0 where there is none."""
    known = scores[np.isfinite(scores)]
    if not len(known):
        return np.zeros(len(scores))
    low, high = float(known.min()), float(known.max())
    scale = high - low
    result = (np.clip(scores, low, high) - low) / scale if scale else np.ones(len(scores))
    return np.where(np.isnan(scores), 0.0, result if descending else 1 - result)


def _stratified(
    pool: Pool, options: Coreset, size: int, random: Array, summary: dict[str, Any]
) -> GreedySelection:
    """Select within each stratum; the summary says how many of which."""
    try:
        result = pool.query(_STRATA.format(options.strata), of_user=True)
    except QueryError as error:
        raise RecipeError(f"coreset cannot use the strata {options.strata!r}: {error}") from None
    if result.height != len(pool):
        raise RecipeError("the expression of strata gives not one value a trajectory; change it")
    stratum = result["stratum"].rank("dense").fill_null(0).to_numpy()
    groups = [np.flatnonzero(stratum == value) for value in np.unique(stratum)]
    sizes = [len(rows) for rows in groups]
    equal = options.allocation == "equal"
    shares = allocate(size, [Fraction(1 if equal else native) for native in sizes], sizes)
    names = result["stratum"].gather([int(rows[0]) for rows in groups]).to_list()
    summary["strata"] = [
        {"stratum": name, "of": len(rows), "kept": share}
        for name, rows, share in zip(names, groups, shares, strict=True)
    ][:_SHOWN]
    scores = _scores(pool, options) if options.inner == "top" else None
    rows, gains = [], []
    for group, share in zip(groups, shares, strict=True):
        if scores is None:
            greedy_selection = GreedySelection(
                np.argsort(random[group])[:share], np.full(share, np.nan)
            )
        else:
            greedy_selection = _top(scores[group], share, options.descending)
        rows.append(group[greedy_selection.rows])
        gains.append(greedy_selection.gains)
    return GreedySelection(np.concatenate(rows), np.concatenate(gains))


# ---- what is said -------------------------------------------------------------------------------


def _columns(pool: Pool, chosen: GreedySelection) -> pl.DataFrame:
    return pl.DataFrame(
        {
            "seq": pool.members["seq"].gather(chosen.rows),
            "coreset_rank": pl.Series(np.arange(1, len(chosen.rows) + 1), dtype=pl.Int64),
            "coreset_gain": pl.Series(chosen.gains, dtype=pl.Float64, nan_to_null=True),
        }
    ).sort("seq")


def _dropped(pool: Pool, chosen: GreedySelection) -> pl.DataFrame:
    out = np.ones(len(pool), bool)
    out[chosen.rows] = False
    return pool.members.filter(pl.Series(out)).select(
        "seq", pl.lit(REASON).alias("reason"), pl.lit(None, pl.String).alias("evidence")
    )


def _measure(pool: Pool, chosen: GreedySelection, vectors: Vectors, outcome: OpResult) -> None:
    """Say how well the selection covers all, beside the baselines; add the evidence."""
    count, size = len(pool), len(chosen.rows)
    random = np.random.default_rng([pool.seed, 1])
    rows = None
    if count * size > PAIRS:
        rows = np.sort(random.permutation(count)[: max(PAIRS // size, 1000)])
        outcome.summary["measured_on"] = len(rows)
    length = pool.members["size"].to_numpy()
    others = {
        "random": random.permutation(count)[:size],
        "longest": np.argsort(-length, kind="stable")[:size],
    }
    coverage_of_rows = coverage(vectors.matrix, chosen.rows, rows)
    figures = {"coreset": coverage_of_rows.figures()}
    for name, other in others.items():
        figures[name] = coverage(vectors.matrix, other, rows).figures()
    outcome.summary["coverage"] = figures
    outcome.lines += _compared(figures)
    if rows is None:
        outcome.dropped = _evidence(pool, chosen, coverage_of_rows, outcome.dropped)


def _compared(figures: dict[str, dict[str, float]]) -> list[str]:
    texts = []
    for key, name in (
        ("radius", "radius"),
        ("mean_distance", "mean distance"),
        ("facility_location", "facility location"),
    ):
        covered, chance, longest = (figures[item][key] for item in ("coreset", "random", "longest"))
        texts.append(f"{name} {covered:,.4g} (random {chance:,.4g}, longest {longest:,.4g})")
    return ["coverage: " + "; ".join(texts)]


def _evidence(
    pool: Pool, chosen: GreedySelection, covered: Coverage, dropped: pl.DataFrame | None
) -> pl.DataFrame | None:
    """The nearest trajectory that was kept, for each that was not."""
    assert dropped is not None
    places = np.searchsorted(pool.members["seq"].to_numpy(), dropped["seq"].to_numpy())
    names = pool.members["trajectory_id"].gather(chosen.rows[covered.nearest[places]]).to_list()
    texts = [
        json.dumps({"distance": round(distance, 4), "nearest": name}, ensure_ascii=False)
        for name, distance in zip(names, covered.distance[places].tolist(), strict=True)
    ]
    return dropped.with_columns(pl.Series("evidence", texts, dtype=pl.String))


def _described(options: Coreset) -> Mapping[str, str]:
    return {
        "coreset_rank": "Place in the order of selection, from 1; null when it was not selected.",
        "coreset_gain": "What it was selected for: its score (top), its distance from all before "
        "(k_center), what it added to the objective (facility_location, mmr).",
    }


OP = Op(
    name="coreset",
    title="Keep a part that stands for the whole.",
    options=Coreset,
    run=run,
    cost="k_center: 50,000 trajectories of 384 dimensions to 1,000 in a second; vectors take 4 "
    "bytes a dimension. facility_location: all pairs, 4 bytes each up to 10,000 trajectories; "
    "above that time for all pairs, memory for 64 neighbours each.",
    source="See the papers named above; compat sage follows SAGE's CoresetSelector.",
    needs=lambda options: options.needs(),
    columns=_described,
)
