"""From a trajectory back to the rows of the tables: the inverse of `adp_schema.reader.attach`.

What a reader would hang elsewhere, or lose, is refused here: a call that names another step than
the one that makes it, steps that are not numbered upwards, a task of another id.
"""

from __future__ import annotations

import functools
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from typing import Any

from adp_schema.errors import SchemaError, UsageError
from adp_schema.ids import digest
from adp_schema.model import Columns, Observation, Row, Step, Trajectory
from adp_schema.reader import ShardMedia
from adp_schema.tables import TABLES

Rows = dict[str, list[Columns]]
"""Table -> the rows that hang from one trajectory; tables without rows are missing."""

_MEDIA_ID = re.compile(r"(?=([0-9a-f]{32}))")


def rows_of(trajectory: Trajectory) -> tuple[Columns, Rows]:
    """Take a trajectory apart.

    Missing numbers of steps, calls and observations are filled in by their order. All blobs of
    ``media`` are kept; of a trajectory that was read from a store, which hands out the blobs of a
    whole shard, those that a text or a column of it names.

    Returns:
        Its columns, without ``seq`` and ``trajectory_id``, and the rows that hang from it.

    Raises:
        SchemaError: it could not be read back as it is.
    """
    if trajectory.pairs:
        raise SchemaError("pairs are no part of a trajectory; leave its list of pairs empty")
    columns = _columns("trajectories", trajectory)
    rows = _numbered(trajectory)
    rows["links"] = [_columns("links", link) for link in trajectory.links]
    rows["raw"] = [_columns("raw", raw) for raw in trajectory.raw]
    task = trajectory.task
    if task is not None:
        if task.task_id != trajectory.task_id:
            raise SchemaError(
                f"the task {task.task_id!r} hangs from a trajectory whose task_id is "
                f"{trajectory.task_id!r}; give both the same"
            )
        rows["tasks"] = [_columns("tasks", task)]
    names = _used(trajectory.media, chain([columns], *rows.values()))
    rows["media"] = [{"media_id": n, **_columns("media", trajectory.media[n])} for n in names]
    return columns, {name: row for name, row in rows.items() if row}


def with_branches(trajectories: Iterable[Trajectory]) -> Iterator[Trajectory]:
    """Trajectories, and after each one its branches and theirs.

    Raises:
        UsageError: they are something else.
    """
    if isinstance(trajectories, Trajectory | Mapping):
        raise UsageError(
            f"extend takes a list of trajectories, not one {type(trajectories).__name__}; "
            "give a single trajectory to append"
        )
    for trajectory in trajectories:
        if not isinstance(trajectory, Trajectory):
            raise UsageError(
                f"a growing store takes objects of adp_schema.Trajectory, not "
                f"{type(trajectory).__name__}; docs/store.md shows how to make one"
            )
        yield trajectory
        yield from with_branches(trajectory.branches)


def media_key(row: Columns) -> str:
    """What tells blobs apart: the same bytes may go by two types."""
    words = (row.get("media_id"), row.get("mime"), row.get("uri"))
    return digest("\0".join(word or "" for word in words).encode("utf-8", "surrogatepass"))


@functools.cache
def _names(table: str) -> tuple[str, ...]:
    items = TABLES[table].row.model_fields.items()
    kept = (name for name, info in items if not info.exclude)
    return tuple(name for name in kept if name not in ("seq", "trajectory_id"))


def _columns(table: str, row: Row) -> Columns:
    """The columns of a row that are not null, in the order of the table."""
    values = row.__dict__
    return {name: value for name in _names(table) if (value := values.get(name)) is not None}


def _numbered(trajectory: Trajectory) -> Rows:
    numbers: list[int] = []
    for step in trajectory.steps:
        before = numbers[-1] if numbers else (trajectory.parent_step or 0) - 1
        number = before + 1 if step.step is None else step.step
        if numbers and number <= before:
            raise SchemaError(f"step {number} comes after step {before}; number steps upwards")
        numbers.append(number)
    ends = [*numbers[1:], sys.maxsize]
    first = numbers[0] if numbers else sys.maxsize
    rows: Rows = {"steps": [], "tool_calls": []}
    rows["observations"] = list(_observations(trajectory.early_observations, None, first))
    for step, number, end in zip(trajectory.steps, numbers, ends, strict=False):
        rows["steps"].append({**_columns("steps", step), "step": number})
        rows["tool_calls"].extend(_calls(step, number))
        rows["observations"].extend(_observations(step.observations, number, end))
    return rows


def _calls(step: Step, number: int) -> Iterator[Columns]:
    for index, call in enumerate(step.calls):
        columns = _columns("tool_calls", call)
        if columns.setdefault("step", number) != number:
            raise SchemaError(f"a call of step {number} says that step {call.step} made it")
        columns.setdefault("call", index)
        yield columns


def _observations(arrived: list[Observation], number: int | None, end: int) -> Iterator[Columns]:
    """The observations that hang from a step, or from none.

    Args:
        arrived: the observations.
        number: number of the step; None when they came before the first one.
        end: number of the next step.
    """
    for order, observation in enumerate(arrived):
        columns = _columns("observations", observation)
        step = columns.setdefault("step", -1 if number is None else number)
        columns.setdefault("order", order)
        if step >= end or (number is not None and step < number):
            where = "before the first step" if number is None else f"from step {number}"
            raise SchemaError(
                f"an observation that hangs {where} says that it arrived after step {step}"
            )
        yield columns


def _used(media: Mapping[str, Any], rows: Iterator[Columns]) -> list[str]:
    if not isinstance(media, ShardMedia) or not len(media):
        return sorted(media)
    result: set[str] = set()
    for columns in rows:
        for value in columns.values():
            if isinstance(value, str) and len(value) >= 32:
                result.update(_MEDIA_ID.findall(value))
    return sorted(name for name in result if name in media)
