"""Rows that a format reads, with what the recipe of their data set adds.

They stay rows of that format, so that they are written back as they were: what was added is noted
in ``extra`` and taken away again.
"""

from __future__ import annotations

from typing import Any

from adp.converters.datasets.drop import dropped
from adp.converters.datasets.families import tasks
from adp.converters.datasets.recipe import DatasetRecipe
from adp.converters.datasets.tools import find_tools
from adp.converters.datasets.turns import DatasetRow
from adp.converters.datasets.values import set_fields
from adp.converters.kit.drafts import TrajectoryDraft
from adp.converters.kit.source_object import SourceObject
from adp.converters.reading import BRACE
from adp_schema import jsontext
from adp_schema.builder import RowBuilder
from adp_schema.extra_column import with_changed_columns
from adp_schema.losses import Losses
from adp_schema.model import Columns, Trajectory
from adp_schema.protocols import RawRecord, SkipRecordError


def read_overlaid(
    recipe: DatasetRecipe, record: RawRecord, builder: RowBuilder, losses: Losses
) -> None:
    """Read a record by the format of a recipe, and add what the recipe says.

    Raises:
        SkipRecordError: the recipe drops it.
    """
    from adp.converters.registry import formats

    data = record.data if jsontext.first_byte(record.data) == BRACE else None
    row = DatasetRow(SourceObject(data, "$", Losses()), [], recipe, builder, Losses(),
                     TrajectoryDraft(), record.source_file, "", record.number)  # fmt: skip
    reason = dropped(recipe.drop, row.source)
    if reason is not None:
        raise SkipRecordError(reason)
    formats.get(recipe.overlaid or "").read(record, builder, losses)
    for trajectory in builder.made("trajectories"):
        if trajectory.get("parent_id") is None:
            _add(recipe, trajectory, row, builder)


def _add(recipe: DatasetRecipe, trajectory: Columns, row: DatasetRow, builder: RowBuilder) -> None:
    copy = row.source.copy()
    more: Columns = {}
    set_fields(recipe.fields, more, row, Trajectory, late=False)
    row.source = copy
    before: dict[str, Any] = {}
    if recipe.tools is not None and (tools := find_tools(recipe.tools, row)) is not None:
        made, origin = tools
        if trajectory.get("tools") != made:
            before["tools"] = trajectory.get("tools")
            before["tools_origin"] = trajectory.get("tools_origin")
            trajectory["tools"], trajectory["tools_origin"] = made, origin
    for name, value in {**more, **recipe.shared_columns()}.items():
        if trajectory.get(name) is None and name not in ("source_id", "trajectory_id"):
            before[name] = None
            trajectory[name] = value
    if recipe.tasks:
        task = tasks.task_columns(row)
        task_id = task.get("task_id") or trajectory.get("task_id")
        if task_id is not None:
            before["task"] = None  # so that its own format does not miss a place for it
            if trajectory.get("task_id") is None:
                before["task_id"], trajectory["task_id"] = None, task_id
            builder.task({**task, "task_id": trajectory["task_id"]})
            for made_task in builder.made("tasks"):  # the run that they belong to is written
                made_task.setdefault("seq", trajectory["seq"])
                made_task.setdefault("trajectory_id", trajectory["trajectory_id"])
    if before:
        trajectory["extra"] = with_changed_columns(trajectory.get("extra"), before)
