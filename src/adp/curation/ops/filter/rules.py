"""The plain rules: a condition, limits of columns, success, actor, cap."""

from __future__ import annotations

import re

import polars as pl

from adp.curation.ops.filter.options import Filter
from adp.curation.ops.filter.verdicts import Verdicts
from adp.curation.pool import Pool
from adp.stores.condition import check_condition, own_lines
from adp_schema.errors import QueryError, RecipeError
from adp_schema.views import quote_name

SHOWN = 6
"""Columns of a condition whose values are noted."""

_WORD = re.compile(r"[A-Za-z_]\w*")


def sql(pool: Pool, options: Filter, verdicts: Verdicts) -> None:
    """Keep where the condition is true. False and null are different reasons."""
    condition = options.sql or ""
    check_condition(condition)
    words = set(_WORD.findall(condition))
    named = [name for name in pool.members.columns if name in words and name != "seq"][:SHOWN]
    items = "".join(f", {quote_name(name)}" for name in named)
    try:
        rows = pool.query(
            f"SELECT seq, CAST((\n{condition}\n) AS BOOLEAN) AS verdict{items} FROM pool "
            "ORDER BY seq",
            of_user=True,
        )
    except QueryError as error:
        raise QueryError(own_lines(str(error))) from None
    for seq, verdict, *values in rows.iter_rows():
        if not verdict:
            reason = "the condition is not met" if verdict is False else "the condition is null"
            figures = dict(zip(named, values, strict=True))
            verdicts.drop(seq, reason, sql=condition.strip(), **figures)


def limits(pool: Pool, options: Filter, verdicts: Verdicts) -> None:
    """Keep what lies within the limits."""
    for bounds, word in ((options.min, "min"), (options.max, "max")):
        for name, limit in bounds.items():
            column = pool.members[name]
            if not (column.dtype.is_numeric() or str(column.dtype) == "Boolean"):
                raise RecipeError(
                    f"{word} limits numbers, and the column {name} holds none; use sql"
                )
            for seq, value in pool.members.select("seq", name).iter_rows():
                if value is None:
                    if options.unknown == "drop":
                        verdicts.drop(seq, f"{name} is unknown", **{word: limit})
                elif value < limit if word == "min" else value > limit:
                    side = "below" if word == "min" else "above"
                    verdicts.drop(seq, f"{name} is {side} the limit", **{word: limit, name: value})


def success(pool: Pool, options: Filter, verdicts: Verdicts) -> None:
    """Keep what solved its task."""
    for seq, solved in pool.members.select("seq", "success").iter_rows():
        if solved is None:
            if options.unknown == "drop":
                verdicts.drop(seq, "success is unknown")
        elif not solved:
            verdicts.drop(seq, "the task was not solved")


def actor(pool: Pool, options: Filter, verdicts: Verdicts) -> None:
    """Keep trajectories whose steps of the agent, or enough of them, an actor made."""
    rows = pool.query(
        """
        SELECT m.seq, count(s.step) AS steps, count(s.step) FILTER (s.actor = $actor) AS own
        FROM members m LEFT JOIN (
            SELECT seq, step, actor FROM steps
            WHERE source = 'agent' AND coalesce(kind, 'llm_turn') IN ('llm_turn', 'message')
        ) s ON s.seq = m.seq
        GROUP BY m.seq ORDER BY m.seq""",
        {"actor": options.actor},
    )
    for seq, steps, agent_steps in rows.iter_rows():
        wanted = options.min_steps if options.min_steps is not None else max(steps, 1)
        if agent_steps < wanted:
            reason = "too few steps of the actor" if agent_steps else "no step of the actor"
            verdicts.drop(
                seq,
                reason,
                actor=options.actor,
                actor_steps=agent_steps,
                agent_steps=steps,
                wanted=wanted,
            )


def cap(pool: Pool, options: Filter, verdicts: Verdicts) -> None:
    """Keep the first of each task. What earlier rules left out does not count."""
    fewest = "tokens" if "tokens" in pool.members.columns else "rows"
    order = options.order or ("reward desc", f"{fewest} asc")
    names = [text.split()[0] for text in order]
    out = pl.Series(verdicts.out, dtype=pl.Int64)
    left = pool.members.select(*dict.fromkeys(("seq", "task", *names)))
    left = left.filter(~pl.col("seq").is_in(out.implode()))
    alone = left.filter(pl.col("task").is_null()).height
    left = left.filter(pl.col("task").is_not_null()).sort(
        *names, "seq", descending=[text.endswith(" desc") for text in order] + [False],
        nulls_last=True,
    )  # fmt: skip
    left = left.with_columns(
        place=pl.int_range(1, pl.len() + 1).over("task"), of=pl.len().over("task")
    )
    beyond_cap = left.filter(pl.col("place") > options.per_task_cap)
    for row in beyond_cap.sort("seq").iter_rows(named=True):
        figures = {name: row[name] for name in (*names, "place", "of", "task")}
        verdicts.drop(row["seq"], "over the cap of its task", cap=options.per_task_cap, **figures)
    verdicts.summary["tasks"] = left["task"].n_unique()
    verdicts.lines.append(
        f"of {left['task'].n_unique():,} tasks at most {options.per_task_cap:,} trajectories each "
        f"stay, in the order {', '.join(order)}"
    )
    if alone:
        verdicts.lines.append(f"{alone:,} trajectories have no task and are not capped")
