"""What a person reads about a mixture: requested against realised."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from adp.curation.ops.mix.options import Mix

MOST = 500
"""Rows of the table in the summary: the groups with the largest budgets."""

READ = 20
"""Groups in the lines."""

UNUSED = 0.01
"""Share of a budget in tokens from which on it is said that it is not used up."""


@dataclass(frozen=True)
class MixReportRow:
    """What became of a group in a stage.

    Attributes:
        stage: number of the stage, from 0.
        group: the group.
        supply: its trajectories.
        share: the share that was asked for.
        requested: its budget, in the unit of the budget, after bounds and shortages.
        trajectories: how many it gave, repeats counted.
        tokens: their tokens.
        distinct: how many different ones it gave.
    """

    stage: int
    group: str
    supply: int
    share: float
    requested: int
    trajectories: int
    tokens: int
    distinct: int


def _realised(options: Mix, rows: Sequence[MixReportRow]) -> list[float]:
    """The share of each row in its stage, in the unit of the budget."""
    amounts = [row.trajectories if options.tokens is None else row.tokens for row in rows]
    wholes: dict[int, int] = {}
    for row, amount in zip(rows, amounts, strict=True):
        wholes[row.stage] = wholes.get(row.stage, 0) + amount
    return [
        amount / wholes[row.stage] if wholes[row.stage] else 0.0
        for row, amount in zip(rows, amounts, strict=True)
    ]


def _largest(rows: Sequence[MixReportRow], count: int) -> list[int]:
    """Places of the rows with the largest budgets, in the order of the rows."""
    order = sorted(range(len(rows)), key=lambda place: (-rows[place].requested, place))
    return sorted(order[:count])


def summary(options: Mix, rows: Sequence[MixReportRow]) -> dict[str, Any]:
    """The table, and its sums."""
    realised = _realised(options, rows)
    table = [
        {
            **asdict(rows[place]),
            "share": round(rows[place].share, 6),
            "realised": round(realised[place], 6),
        }
        for place in _largest(rows, MOST)
    ]
    return {
        "method": options.method,
        "unit": "trajectories" if options.tokens is None else "tokens",
        "trajectories": sum(row.trajectories for row in rows),
        "tokens": sum(row.tokens for row in rows),
        "groups": table,
        "groups_left_out": len(rows) - len(table),
    }


def _taken(row: MixReportRow) -> str:
    of = f"{row.distinct:,} of {row.supply:,} trajectories"
    return of if row.distinct == row.trajectories else f"{of}, {row.trajectories:,} with repeats"


def lines(options: Mix, rows: Sequence[MixReportRow]) -> list[str]:
    """The sums, and a line a group."""
    realised = _realised(options, rows)
    staged = rows[-1].stage > 0
    number, tokens = (sum(row.trajectories for row in rows), sum(row.tokens for row in rows))
    results = [f"{number:,} trajectories, {tokens:,} tokens"]
    if options.total is not None and number < options.total:
        results.append(f"that is less than the {options.total:,} trajectories that were asked for")
    if options.tokens is not None and sum(row.requested for row in rows) < options.tokens:
        results.append(f"that is less than the {options.tokens:,} tokens that were asked for")
    elif options.tokens is not None and tokens < (1 - UNUSED) * options.tokens:
        results.append(
            f"{options.tokens - tokens:,} of the {options.tokens:,} tokens that were asked for are "
            "not used: a trajectory that goes beyond the budget of its group is not taken"
        )
    for place in _largest(rows, READ):
        row = rows[place]
        if not row.share and not row.trajectories:
            continue
        where = f"stage {row.stage}, {row.group}" if staged else row.group
        results.append(
            f"{where}: asked for {row.share:.1%}, got {realised[place]:.1%} "
            f"({_taken(row)}, {row.tokens:,} tokens)"
        )
    if len(rows) > READ:
        results.append(f"and {len(rows) - READ:,} more groups")
    return results
