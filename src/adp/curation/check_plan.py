"""Looking at a recipe before anything is read: columns that are missing, or there twice."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from adp.curation.op import Op
from adp.curation.op_columns import RESERVED, taken
from adp.curation.pool import COLUMNS
from adp.curation.recipe import Recipe, Stage
from adp.curation.registry import OPS
from adp.stores.condition import condition_columns
from adp_schema.errors import AdpError, QueryError, RecipeError
from adp_schema.tables import TABLES

_OPEN = ("annotate", "python")
"""Ops whose columns show only when they run."""


def check_plan(recipe: Recipe, *, allow_python: bool) -> None:
    """Check what shows without data.

    Raises:
        RecipeError: a column is missing or there twice, or Python functions are not allowed.
        QueryError: SQL is not valid. Either one names all faults.
    """
    faults = plan_faults(recipe.ops, allow_python=allow_python)
    known = dict.fromkeys([*COLUMNS, *TABLES["trajectories"].schema.names])
    sure = all(not _is_open(stage) for stage in recipe.ops)
    for stage in recipe.ops if sure else ():
        known.update(dict.fromkeys(_new_columns(stage)))
    for name, output in recipe.outputs.items():
        if output.where is not None:
            place = f"output {name}" if name else "outputs"
            faults += condition_faults(f"{place}: where", output.where, known if sure else None)
    raise_faults("the recipe", faults)


def plan_faults(stages: Sequence[Stage | None], *, allow_python: bool) -> list[AdpError]:
    """The faults of stages that show without data.

    Args:
        stages: the stages; None stands for one that cannot be read, after which columns are not
            known.
        allow_python: whether Python functions may be called.
    """
    columns = dict.fromkeys(COLUMNS)
    sure = True
    faults: list[AdpError] = []
    for stage in stages:
        if stage is None:
            sure = False
            continue
        op = OPS.get(stage.op)
        if stage.op == "python" and not allow_python:
            faults.append(
                RecipeError(
                    f"stage {stage.name} calls a Python function; allow that with --allow-python, "
                    "if you trust the recipe"
                )
            )
        known = [*columns, *TABLES["trajectories"].schema.names] if sure else None
        for place, condition in _conditions(stage):
            faults += condition_faults(place, condition, known)
        if sure:
            faults += column_faults(stage, op.needs(stage.options), list(columns))
        for new in _new_columns(stage):
            if new in columns or new in RESERVED:
                faults.append(taken(stage, new))
            columns[new] = None
        sure = sure and not _is_open(stage)
    return faults


def raise_faults(what: str, faults: Sequence[AdpError]) -> None:
    """Raise an error that names all faults.

    Args:
        what: what has them.
        faults: an error for each.

    Raises:
        QueryError: there are some, and all are faults of SQL.
        RecipeError: there are others.
    """
    if len(faults) == 1:
        raise faults[0]
    if faults:
        kind = QueryError if all(isinstance(fault, QueryError) for fault in faults) else RecipeError
        raise kind("\n- ".join([f"{what} has {len(faults)} faults:", *map(str, faults)]))


def _is_open(stage: Stage) -> bool:
    """Whether the columns of a stage show only when it runs."""
    return stage.op in _OPEN and not OPS.get(stage.op).columns(stage.options)


def _new_columns(stage: Stage) -> list[str]:
    return [stage.column(name) for name in OPS.get(stage.op).columns(stage.options)]


def _conditions(stage: Stage) -> Iterator[tuple[str, str]]:
    """Conditions over the view ``pool``, and where they stand."""
    if stage.where is not None:
        yield f"stage {stage.name}: where", stage.where
    if stage.op == "filter" and getattr(stage.options, "sql", None) is not None:
        yield f"stage {stage.name}", stage.options.sql  # type: ignore[attr-defined]


def condition_faults(place: str, condition: str, known: Iterable[str] | None) -> list[AdpError]:
    """What is wrong with a condition over the view ``pool``.

    Args:
        place: where it stands.
        condition: the SQL.
        known: the columns of the view; None where they show only when the recipe runs.
    """
    try:
        named = condition_columns(condition)
    except QueryError as error:
        return [QueryError(f"{place}: {error}")]
    there = {name.lower() for name in known or named}
    missing = [name for name in named if name.lower() not in there]
    return [
        QueryError(f"{place}: unknown column '{name}'; {_hint(name, list(there))}")
        for name in missing
    ]


def column_faults(stage: Stage, needed: Iterable[str], there: Sequence[str]) -> list[AdpError]:
    """An error for each column that a stage needs and that is not there."""
    return [
        RecipeError(f"stage {stage.name} needs the column {name}; {_hint(name, there)}")
        for name in needed
        if name not in there
    ]


def _hint(name: str, there: Sequence[str]) -> str:
    """What to do about a column that is not there."""
    made = {column: op.name for op in OPS.all() for column in _made_by(op)}
    if name in made:
        return f"add `{_entry(made[name])}` before it"
    near = difflib.get_close_matches(name, {*there, *made}, n=3, cutoff=0.6)
    if not near:
        return "add it before with the op annotate, from a file or from SQL"
    adding = made[near[0]] if not set(near) & set(there) else None
    hint = f" Then add `{_entry(adding)}` before it" if adding else ""
    return f"did you mean {' or '.join(near)}?{hint}"


def _made_by(op: Op) -> Iterable[str]:
    """Columns that an op makes when no option is given."""
    try:
        return op.columns(op.options.model_construct())
    except (ValueError, AttributeError):  # they depend on an option that must be given
        return ()


def _entry(name: str) -> str:
    """An op as it stands in a recipe, with the options that must be given."""
    fields = OPS.get(name).options.model_fields.items()
    needed = [f"{key}: ..." for key, spec in fields if spec.is_required()]
    return f"- {name}: {{{', '.join(needed)}}}"


def explain(recipe: Recipe, *, every: bool = False) -> list[dict[str, Any]]:
    """What each stage would do: for ``--explain``; nothing is read.

    Args:
        recipe: the recipe.
        every: show every option, not only those that differ from their defaults.

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
                "options": stage.options.model_dump(
                    mode="json", include=None if every else set(stage.options.given())
                ),
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
