"""Group-wise Pareto sampling: the tasks whose rollouts differ most.

The rollouts of one task are a group. Its scores are the population variance of the number of tool
calls and that of the correctness (0 where nothing is known). Groups are sorted into non-dominated
fronts, both scores to be large, and taken front by front up to `count`; of the first front that
does not fit, those with the largest crowding distance. Then groups without contrast are left out,
so fewer than `count` remain. All rollouts of a group stay or go together. With `within`, groups
compete only with those of the same source, and `counts` limits single sources.

Ties: equal scores are on one front; of equal crowding distances the group with the smaller last
objective comes first, then that whose first rollout comes first.

With two objectives the fronts take O(n log n); with more, up to O(n^2).
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from adp.curation.grouping import group_names
from adp.curation.op import Op, OpResult
from adp.curation.ops.pareto.fronts import Floats, Places, choose
from adp.curation.ops.pareto.options import CALLS, CORRECTNESS, Objective, Pareto
from adp.curation.ops.pareto.statistics import group_codes, group_statistic, pass_at
from adp.curation.pool import COLUMNS, Pool
from adp_schema.errors import RecipeError

__all__ = ["OP", "Objective", "Pareto", "run"]

Flags = np.ndarray[Any, np.dtype[np.bool_]]

NOT_CHOSEN = "group not on a chosen front"
NO_CONTRAST = "no contrast in the group"

_CALLS_SQL = (
    "SELECT seq, count(*) AS calls FROM tool_calls JOIN members USING (seq) "
    "WHERE coalesce(requestor, 'agent') <> 'user' GROUP BY seq"
)


@dataclass
class _Groups:
    """The groups and what became of them.

    Attributes:
        codes: number of the group of each member.
        names: its name, null where it has none.
        first: first member of each group.
        table: column -> a value a group.
        on_front: whether a group is on a chosen front.
        contrast: whether it has rollouts on both sides.
    """

    codes: Places
    names: pl.Series
    first: Places
    table: dict[str, Any]
    on_front: Flags
    contrast: Flags

    @property
    def kept(self) -> Flags:
        """Whether a group stays."""
        return self.on_front & self.contrast


def run(pool: Pool, options: Pareto) -> OpResult:
    """Choose groups of rollouts."""
    if not len(pool):
        return OpResult(summary={"groups": 0}, lines=["there is no trajectory to choose from"])
    names = group_names(pool, options.by, "pareto")
    codes, first = group_codes(_keys(names))
    count = len(first)
    values = {column: _values(pool, options, column) for column in _read(options)}
    if options.contrast != "none" and np.isnan(values[CORRECTNESS]).all():
        raise RecipeError(
            "pareto knows of no trajectory whether it is right: there is neither a reward nor a "
            "success; give a column as correctness, or set contrast: none"
        )
    table = _statistics(options, values, _solved(pool, options, values[CORRECTNESS]), codes, count)
    scores = np.stack(
        [table[objective.column_name] * objective.sign for objective in options.objectives], axis=1
    )
    chosen, numbers, distances = _chosen(pool, options, scores, first)
    table |= {"pareto_front": numbers, "pareto_distance": distances}
    on_front = np.zeros(count, dtype=np.bool_)
    on_front[chosen] = True
    contrast = _contrast(pool, options, values[CORRECTNESS], codes, count)
    groups = _Groups(codes, names, first, table, on_front, contrast)
    return OpResult(
        columns=_columns_frame(pool, groups),
        dropped=_dropped(pool, options, groups),
        summary=_summary(options, groups),
        lines=_lines(options, groups),
    )


def _chosen(
    pool: Pool, options: Pareto, scores: Floats, first: Places
) -> tuple[Places, Places, Floats]:
    """The chosen groups, and the front and distance of each; all at once, or within parts."""
    most = len(first) if options.count is None else options.count
    if options.within is None:
        return choose(scores, most)
    parts = group_names(pool, options.within, "pareto").gather(first)
    if unknown := sorted(set(options.counts) - set(parts.drop_nulls())):
        known = ", ".join(map(str, sorted(set(parts.drop_nulls()))[:10]))
        raise RecipeError(
            f"pareto has a count for '{unknown[0]}', and no group has that as {options.within}; "
            f"there are {known or 'none'}"
        )
    numbers, distances = np.zeros(len(first), dtype=np.int64), np.full(len(first), np.nan)
    chosen: list[Places] = []
    for part in parts.unique(maintain_order=True):
        there = np.flatnonzero(parts.eq_missing(part).to_numpy())
        taken, numbers[there], distances[there] = choose(
            scores[there], options.counts.get(part, most)
        )
        chosen.append(there[taken])
    return np.sort(np.concatenate(chosen)), numbers, distances


def _keys(names: pl.Series) -> Places:
    """A number for each name; a row without a name is a group of its own."""
    ranks = names.rank("dense").cast(int)
    alone = np.arange(1, len(names) + 1) * -1
    return np.where(names.is_null().to_numpy(), alone, ranks.fill_null(0).to_numpy())


def _read(options: Pareto) -> list[str]:
    """Names of what is read of each trajectory."""
    return list(
        dict.fromkeys([CALLS, CORRECTNESS, *(objective.column for objective in options.objectives)])
    )


def _values(pool: Pool, options: Pareto, name: str) -> Floats:
    """A number for each member, NaN where it is not known."""
    members = pool.members
    if name == CALLS:
        if options.tool_calls is None:
            counted = pool.query(_CALLS_SQL)
            joined = members.select("seq").join(
                counted, on="seq", how="left", maintain_order="left"
            )
            return joined["calls"].fill_null(0).cast(pl.Float64).to_numpy()
        column = pl.col(options.tool_calls)
    elif name == CORRECTNESS and options.correctness is None:
        column = pl.coalesce("reward", pl.col("success").cast(pl.Float64))
    else:
        column = pl.col(options.correctness or name if name == CORRECTNESS else name)
    try:
        values = members.select(column.cast(pl.Float64)).to_series()
    except pl.exceptions.PolarsError:
        raise RecipeError(
            f"pareto needs numbers, and {column.meta.output_name()} is none"
        ) from None
    numbers = values.fill_null(math.nan).to_numpy()
    return np.where(np.isfinite(numbers), numbers, math.nan)


def _solved(pool: Pool, options: Pareto, correctness: Floats) -> Floats:
    """1 where the task was solved, 0 where not, NaN where nobody knows."""
    judged = np.where(np.isnan(correctness), math.nan, correctness >= options.threshold)
    if options.correctness is not None:
        return judged
    success = pool.members["success"].cast(pl.Float64).fill_null(math.nan).to_numpy()
    return np.where(np.isnan(success), judged, success)


def _statistics(
    options: Pareto, values: Mapping[str, Floats], solved: Floats, codes: Places, count: int
) -> dict[str, Any]:
    """Column -> a value a group."""
    known = ~np.isnan(solved)
    scored = np.bincount(codes, known, count).astype(np.int64)
    wins = np.bincount(codes, solved == 1, count).astype(np.int64)
    table: dict[str, Any] = {
        "group_size": np.bincount(codes, minlength=count),
        "group_scored": scored,
        "group_solved": wins,
        "group_success_variance": group_statistic(solved, codes, count, "variance"),
        "group_mean_tool_calls": group_statistic(values[CALLS], codes, count, "mean"),
        "group_mean_correctness": np.where(
            np.bincount(codes, ~np.isnan(values[CORRECTNESS]), count) > 0,
            group_statistic(values[CORRECTNESS], codes, count, "mean"),
            math.nan,
        ),
    }
    for k in options.k:
        table[f"group_pass_at_{k}"] = pass_at(k, scored, wins)
    for objective in options.objectives:
        table[objective.column_name] = group_statistic(
            values[objective.column], codes, count, objective.of
        )
    return table


def _contrast(
    pool: Pool, options: Pareto, correctness: Floats, codes: Places, count: int
) -> Flags:  # fmt: skip
    """Whether a group has rollouts on both sides."""

    def some(condition: Flags) -> Flags:
        flags: Flags = np.bincount(codes, condition, count) > 0
        return flags

    if options.contrast == "none":
        return np.ones(count, dtype=np.bool_)
    ends = some(correctness == 0) & some(correctness == 1)
    sides = some(correctness >= options.threshold) & some(correctness < options.threshold)
    if options.math_where is not None:
        seqs = pool.where(options.math_where)["seq"]
        of_math = pool.members["seq"].is_in(seqs.implode()).to_numpy()
        return np.where(some(of_math), ends, sides)
    return ends if options.contrast == "math" else sides


def _columns_frame(pool: Pool, groups: _Groups) -> pl.DataFrame:
    """The values of its group for each member."""
    columns = {name: pl.Series(values[groups.codes]) for name, values in groups.table.items()}
    return pl.DataFrame({"seq": pool.members["seq"], **columns}).with_columns(
        pl.col(pl.Float64).fill_nan(None)
    )


def _dropped(pool: Pool, options: Pareto, groups: _Groups) -> pl.DataFrame:
    """The members of the groups that are out; the evidence is the same for a whole group."""
    out = np.flatnonzero(~groups.kept)
    evidence = np.full(len(groups.first), None, dtype=object)
    names = groups.names.gather(groups.first[out]).to_list()
    column_names = [objective.column_name for objective in options.objectives]
    columns = [groups.table[name][out].tolist() for name in (*column_names, "pareto_front")]
    distances = groups.table["pareto_distance"][out].tolist()
    for place, name, distance, *values in zip(out, names, distances, *columns, strict=True):
        facts = dict(zip((*column_names, "front"), values, strict=True)) | {"group": name}
        if not math.isnan(distance):
            facts["distance"] = distance if math.isfinite(distance) else "infinite"
        evidence[place] = json.dumps(facts, ensure_ascii=False, sort_keys=True)
    gone = np.flatnonzero(~groups.kept[groups.codes])
    codes = groups.codes[gone]
    return pl.DataFrame(
        {
            "seq": pool.members["seq"].gather(gone),
            "reason": np.where(groups.on_front[codes], NO_CONTRAST, NOT_CHOSEN).tolist(),
            "evidence": evidence[codes].tolist(),
        },
        schema={"seq": pl.Int64, "reason": pl.String, "evidence": pl.String},
    )


def _summary(options: Pareto, groups: _Groups) -> dict[str, Any]:
    table, kept = groups.table, groups.kept
    return {
        "groups": len(kept),
        "fronts": int(table["pareto_front"].max()) + 1,
        "on_chosen_fronts": int(groups.on_front.sum()),
        "without_contrast": int((groups.on_front & ~groups.contrast).sum()),
        "kept": int(kept.sum()),
        "single": int((table["group_size"] == 1).sum()),
        "rollouts": int(table["group_size"].sum()),
        "kept_rollouts": int(table["group_size"][kept].sum()),
        "objectives": {
            objective.column_name: {
                "mean": float(table[objective.column_name].mean()),
                "mean_of_kept": float(table[objective.column_name][kept].mean())
                if kept.any()
                else None,
            }
            for objective in options.objectives
        },
    }


def _lines(options: Pareto, groups: _Groups) -> list[str]:
    facts = _summary(options, groups)
    lines = [
        f"{facts['kept']:,} of {facts['groups']:,} groups stay, with {facts['kept_rollouts']:,} of "
        f"{facts['rollouts']:,} rollouts",
        f"{facts['on_chosen_fronts']:,} groups are on the chosen fronts, of {facts['fronts']:,}; "
        f"{facts['without_contrast']:,} of them have no contrast",
    ]
    for name, means in facts["objectives"].items():
        if means["mean_of_kept"] is not None:
            lines.append(
                f"{name}: {means['mean_of_kept']:.4g} on average where a group stays, "
                f"{means['mean']:.4g} over all"
            )
    if facts["single"]:
        lines.append(
            f"{facts['single']:,} groups have one rollout only, so nothing in them differs"
        )
    return lines


def _needs(options: Pareto) -> Iterable[str]:
    columns = [
        objective.column
        for objective in options.objectives
        if objective.column not in (CALLS, CORRECTNESS)
    ]
    wanted = [options.tool_calls, options.correctness, *columns]
    return [name for name in wanted if name is not None and name not in COLUMNS]


def _columns(options: Pareto) -> Mapping[str, str]:
    results = {
        "group_size": "Rollouts of the group.",
        "group_scored": "Rollouts of the group of which it is known whether they solved the task.",
        "group_solved": "Rollouts of the group that solved the task.",
        "group_success_variance": "Population variance of solved (1) or not (0) in the group.",
        "group_mean_tool_calls": "Mean number of calls of a rollout of the group.",
        "group_mean_correctness": "Mean correctness in the group.",
    }
    for k in options.k:
        results[f"group_pass_at_{k}"] = (
            f"Unbiased estimate of pass@{k}: 1 - C(n - c, k) / C(n, k) with n = group_scored and "
            f"c = group_solved; null where n < {k}."
        )
    for objective in options.objectives:
        results[objective.column_name] = (
            f"Objective: {objective.of} of {objective.column} in the group."
        )
    return results | {
        "pareto_front": "Number of the group's front, from 0: no group dominates those.",
        "pareto_distance": "Crowding distance of the group in the front that was cut; else null.",
    }


OP = Op(
    name="pareto",
    title="Choose the tasks whose rollouts differ most, by Pareto fronts of group statistics.",
    options=Pareto,
    run=run,
    cost="One query that counts calls; O(n log n) in the groups for two objectives.",
    source="ET-Agent (arXiv 2601.06860), group-wise Pareto sampling; NSGA-II (Deb et al. 2002, "
    "IEEE Transactions on Evolutionary Computation 6(2)); pass@k of Chen et al. 2021.",
    needs=_needs,
    columns=_columns,
)
