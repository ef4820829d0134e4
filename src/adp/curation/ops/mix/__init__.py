"""Mixing groups of trajectories in given shares, within a budget.

The budget is divided over the groups by their weights, by largest remainder (Hamilton): each
group's quota is budget x weight / sum of weights; it gets the whole part, and what is left goes,
one each, to the largest remainders (ties: the group first by name). A group that has less than its
quota gives all it has, `epochs` times, and the rest goes to the others by their weights.

Shares: weighted w; balanced 1; temperature n^(1/T) (T = 1: as they are); curriculum: weights for
each stage; agenttuning: AgentTuning trains on J = eta E[D_agent] + (1 - eta) E[D_general], so the
agent groups together have the share eta (0.2 in the paper) and the others 1 - eta, each within
its side in proportion to its size.

With a budget in tokens each group gets a budget in tokens, and its trajectories are taken in order
while they fit. What all groups leave goes, one trajectory each, to those with the largest
remainders: what is left of the budget, over the size of the next trajectory. So the mixture never
has more tokens than asked for.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from fractions import Fraction
from typing import Any

import numpy as np
import polars as pl

from adp.core.stable_random import draws
from adp.curation.allocate import allocate
from adp.curation.grouping import group_names
from adp.curation.op import Op, OpResult
from adp.curation.ops.mix.options import CurriculumStage, Mix
from adp.curation.ops.mix.plan import OTHER, PlannedStage, check_groups, named_groups, parts
from adp.curation.ops.mix.report import MixReportRow, lines, summary
from adp.curation.ops.mix.sage import sage_counts
from adp.curation.ops.mix.take import GroupQueue, Numbers, fill
from adp.curation.pool import COLUMNS, Pool
from adp_schema.errors import RecipeError

__all__ = ["OP", "CurriculumStage", "Mix", "run"]

BYTES_A_TOKEN = 4
"""How many bytes of text are taken for a token where nobody counted."""

BEYOND = "beyond the mixture's share of its group"


def run(pool: Pool, options: Mix) -> OpResult:
    """Choose what goes into the mixture, and how often."""
    if not len(pool):
        return OpResult(summary={"groups": []}, lines=["there is no trajectory to mix"])
    rows = _rows(pool, options, _groups(pool, options))
    if options.compat == "sage":
        taken, table = _sage(pool, options, rows)
    else:
        taken, table = _mixed(options, rows)
    copies = pl.concat(
        rows.select("seq", pl.Series("copies", counts), pl.lit(stage).alias("stage"))
        for stage, counts in enumerate(taken)
    ).filter(pl.col("copies") > 0)
    if copies.is_empty():
        raise RecipeError(
            "the mixture is empty: no trajectory fits into the budget of its group; give a larger "
            "budget, or weights for the groups that are there"
        )
    return OpResult(
        columns=rows.select("seq", mix_group=pl.col("group").cast(pl.String)),
        dropped=_dropped(rows, np.sum(taken, axis=0)),
        copies=copies.sort("seq", "stage"),
        summary=summary(options, table),
        lines=lines(options, table),
    )


def _rows(pool: Pool, options: Mix, groups: pl.Series) -> pl.DataFrame:
    """``seq``, ``group`` and ``tokens`` (above 0), by group, in order of taking.

    The groups are an enumeration in the order of their names. For ``compat: sage`` there is
    ``trajectory_id`` too.
    """
    members = pool.members
    tokens = (pl.col("size") / BYTES_A_TOKEN).ceil().cast(pl.Int64)
    if options.token_column in members.columns:
        tokens = pl.coalesce(pl.col(options.token_column).cast(pl.Int64, strict=False), tokens)
    if options.order is None:
        order = pl.lit(pl.Series(draws(pool.seed, members["trajectory_id"], "mix")))
    else:
        order = pl.col(options.order)
        if members.schema[options.order].is_float():
            order = order.fill_nan(None)
    rows = members.select(
        "seq",
        *(["trajectory_id"] if options.compat == "sage" else []),
        groups.cast(pl.Enum(groups.unique().sort())),
        tokens.clip(lower_bound=1).alias("tokens"),
        order.alias("order"),
    )
    down = [False, options.order is not None, False]
    return rows.sort("group", "order", "seq", descending=down, nulls_last=True).drop("order")


def _groups(pool: Pool, options: Mix) -> pl.Series:
    """The name of the group of each member, after a check of the groups that are named."""
    groups = group_names(pool, options.by, "mix").fill_null("null")
    if options.compat == "sage":
        return groups
    check_groups(options, groups.unique().sort().to_list())
    named = named_groups(options)
    if options.unknown == "other" and named is not None:
        names = dict.fromkeys(groups, OTHER) | {name: name for name in named}
        return groups.replace_strict(names, return_dtype=pl.String)
    return groups


def _mixed(options: Mix, rows: pl.DataFrame) -> tuple[list[Numbers], list[MixReportRow]]:
    """How often each row is taken, stage by stage, and the table of groups."""
    in_tokens = options.tokens is not None
    units = rows["tokens"].to_numpy().astype(np.int64) if in_tokens else np.ones(len(rows), "int64")
    if in_tokens and int(units.min()) > (options.tokens or 0):
        raise RecipeError(
            f"the budget of mix, {options.tokens:,} tokens, is smaller than the smallest "
            f"trajectory, {units.min():,} tokens; give more"
        )
    spans = _spans(rows["group"])
    shelves = {
        name: GroupQueue(units[start:end], _epochs(options, name))
        for name, (start, end) in spans.items()
    }
    supply = {name: int(queue.units.sum()) for name, queue in shelves.items()}
    stages = parts(options, supply, {name: queue.left for name, queue in shelves.items()})
    taken, table = [], []
    tokens = rows["tokens"].to_numpy()
    for number, part in enumerate(stages):
        counts = np.zeros(len(rows), dtype=np.int64)
        budgets = _budgets(options, part, shelves)
        given = {name: shelves[name].take(budgets[name]) for name in shelves}
        if in_tokens:
            fill(shelves, budgets, given)
        for name, (start, end) in spans.items():
            counts[start:end] = count = given[name]
            table.append(
                MixReportRow(
                    number, name, end - start, part.share(name), budgets[name],
                    int(count.sum()), int((count * tokens[start:end]).sum()),
                    int((count > 0).sum()),
                )
            )  # fmt: skip
        taken.append(counts)
    return taken, table


def _budgets(options: Mix, part: PlannedStage, shelves: Mapping[str, GroupQueue]) -> dict[str, int]:
    """What each group is to give to a stage, in the unit of the budget."""
    names = sorted(shelves)
    most = [shelves[name].left for name in names]
    weights = [part.weights.get(name, Fraction()) for name in names]
    least = [options.min_per_group] * len(names)
    try:
        result = allocate(part.budget, weights, most, least, options.short)
    except ValueError:
        raise RecipeError(
            f"min_per_group of mix, {options.min_per_group:,} for each group, is more than its "
            f"budget of {part.budget:,}; lower it or raise the budget"
        ) from None
    return dict(zip(names, result, strict=True))


def _epochs(options: Mix, group: str) -> int:
    return options.epochs if isinstance(options.epochs, int) else options.epochs.get(group, 1)


def _spans(groups: pl.Series) -> dict[str, tuple[int, int]]:
    """Group -> its rows, from and to; the groups are sorted."""
    runs = groups.rle().struct
    ends = np.cumsum(runs.field("len").to_numpy())
    names = runs.field("value").to_list()
    starts = [0, *ends[:-1].tolist()]
    return dict(zip(names, zip(starts, ends.tolist(), strict=True), strict=True))


def _sage(
    pool: Pool, options: Mix, rows: pl.DataFrame
) -> tuple[list[Numbers], list[MixReportRow]]:  # fmt: skip
    """The same for ``compat: sage``: each stage is drawn on its own."""
    spans = _spans(rows["group"])
    stages = sage_counts(options, {name: end - start for name, (start, end) in spans.items()})
    tokens = rows["tokens"].to_numpy()
    taken, table = [], []
    for number, wanted in enumerate(stages):
        counts = np.zeros(len(rows), dtype=np.int64)
        draw = draws(pool.seed, rows["trajectory_id"], f"mix {number}")
        full = max(sum(wanted.values()), 1)
        for name, (start, end) in spans.items():
            first = start + np.argsort(draw[start:end], kind="stable")[: wanted[name]]
            counts[first] = 1
            table.append(
                MixReportRow(
                    number, name, end - start, wanted[name] / full, wanted[name],
                    wanted[name], int(tokens[first].sum()), wanted[name],
                )
            )  # fmt: skip
        taken.append(counts)
    return taken, table


def _dropped(rows: pl.DataFrame, counts: Numbers) -> pl.DataFrame:
    """Those that no stage takes; the evidence is the same for a whole group."""
    taken = rows.select("seq", "group", pl.Series("taken", counts > 0))
    groups = taken.group_by("group").agg(pl.col("taken").sum(), pl.len().alias("size"))
    evidence = [
        json.dumps({"group": name, "of": size, "taken": number}, ensure_ascii=False, sort_keys=True)
        for name, number, size in groups.iter_rows()
    ]
    return (
        taken.filter(~pl.col("taken"))
        .join(groups.select("group", pl.Series("evidence", evidence, dtype=pl.String)), on="group")
        .select("seq", pl.lit(BEYOND).alias("reason"), "evidence")
        .sort("seq")
    )


def _needs(options: Mix) -> Iterable[str]:
    wanted = [options.order] if options.order is not None else []
    if "token_column" in options.given():
        wanted.append(options.token_column)
    return [name for name in wanted if name not in COLUMNS]


def _columns(options: Any) -> Mapping[str, str]:
    return {"mix_group": "Group of the mixture that the trajectory belongs to."}


OP = Op(
    name="mix",
    title="Mix groups of trajectories in given shares, within a budget.",
    options=Mix,
    run=run,
    cost="One query when the groups are an expression; a hash a trajectory; memory for the ids.",
    source="Largest remainder (Hamilton); AgentTuning (Zeng et al. 2023, arXiv 2310.12823, "
    "section 2.2); temperature as in mT5 (Xue et al. 2021, section 3.2); SAGE's MultiTaskMixer.",
    needs=_needs,
    columns=_columns,
)
