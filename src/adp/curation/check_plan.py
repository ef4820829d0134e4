"""Looking at a recipe before anything is read: columns that are missing, or there twice."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from adp.curation.op import Op
from adp.curation.pool import COLUMNS
from adp.curation.recipe import Recipe, Stage
from adp.curation.registry import OPS
from adp_schema.errors import RecipeError, unknown_name

_OPEN = ("annotate", "python")
"""Ops whose columns show only when they run."""


def check_plan(recipe: Recipe, *, allow_python: bool) -> None:
    """Check what shows without data.

    Raises:
        RecipeError: a column is missing or there twice, or Python functions are not allowed.
    """
    columns = dict.fromkeys(COLUMNS)
    certain = True
    for stage in recipe.ops:
        op = OPS.get(stage.op)
        if stage.op == "python" and not allow_python:
            raise RecipeError(
                f"stage {stage.name} calls a Python function; allow that with --allow-python, if "
                "you trust the recipe"
            )
        if certain:
            check_columns(stage, op.needs(stage.options), list(columns))
        for name in op.columns(stage.options):
            new = stage.column(name)
            if new in columns:
                raise RecipeError(
                    f"stage {stage.name}: the column {new} is there already; give the stage "
                    "another name with as: NAME"
                )
            columns[new] = None
        certain = certain and stage.op not in _OPEN


def check_columns(stage: Stage, needed: Iterable[str], there: Sequence[str]) -> None:
    """Check that the columns that a stage needs are there.

    Raises:
        RecipeError: one is missing; the message says which op makes it.
    """
    for name in needed:
        if name in there:
            continue
        makers = [op.name for op in OPS.all() if _makes(op, name)]
        hint = f"put the op {makers[0]} before it" if makers else _hint(name, there)
        raise RecipeError(f"stage {stage.name} needs the column {name}; {hint}")


def _makes(op: Op, column: str) -> bool:
    try:
        return column in op.columns(op.options())
    except ValueError:  # it has options that must be given
        return False


def _hint(name: str, there: Sequence[str]) -> str:
    nearest = unknown_name("column", name, there)
    if "did you mean" in nearest:
        return nearest.partition("; ")[2]
    return "add it before with the op annotate, from a file or from SQL"


def explain(recipe: Recipe) -> list[dict[str, Any]]:
    """What each stage would do: for ``--explain``; nothing is read.

    Returns:
        One entry a stage: number, name, op, title, options, where, needs, columns, step_columns,
        cost, source.
    """
    results = []
    for number, stage in enumerate(recipe.ops):
        op = OPS.get(stage.op)
        results.append(
            {
                "stage": number,
                "name": stage.name,
                "op": op.name,
                "title": op.title,
                "options": stage.options.model_dump(mode="json"),
                "where": stage.where,
                "needs": list(op.needs(stage.options)),
                "columns": {
                    stage.column(name): text for name, text in op.columns(stage.options).items()
                },
                "step_columns": {
                    stage.column(name): text
                    for name, text in op.step_columns(stage.options).items()
                },
                "cost": op.cost,
                "source": op.source,
            }
        )
    return results
