"""Names of tools in whole trajectories: in the rows of a conversion, or read from a store."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal

from adp.core.tool_names.columns import (
    protocol_call,
    protocol_result,
    protocol_tools,
    source_call,
    source_result,
    source_tools,
)
from adp_schema.model import Columns, Row, Trajectory
from adp_schema.row_changes import TrajectoryRows

ToolNaming = Literal["adp", "source"]
"""The names that are wanted: those of the Agent Data Protocol, or those of the source."""


def rename_rows(run: TrajectoryRows) -> None:
    """Give the tools of a trajectory the names of the Agent Data Protocol; its rows are changed."""
    _put(run.columns, protocol_tools(run.columns))
    names: dict[tuple[Any, Any], tuple[str | None, str | None]] = {}
    for call in run.tool_calls:
        old = call.get("name")
        _put(call, protocol_call(call))
        names[call.get("step"), call.get("call")] = old, call.get("name")
    for result in run.observations:
        old, new = names.get((result.get("call_step"), result.get("call")), (None, None))
        _put(result, protocol_result(result, old, new))


def _put(row: Columns, changed: Columns | None) -> None:
    for name, value in (changed or {}).items():
        if value is None:
            row.pop(name, None)
        else:
            row[name] = value


def rename_tools(run: Trajectory, naming: ToolNaming) -> None:
    """Give the tools of a trajectory and its branches the names that are wanted.

    Args:
        run: the trajectory; it is changed in place.
        naming: the names.
    """
    if naming == "source":
        _change(run, source_tools)
        for step in run.steps:
            for call in step.calls:
                _change(call, source_call)
            for result in step.observations:
                _change(result, source_result)
        for result in run.early_observations:
            _change(result, source_result)
    else:
        _rename(run)
    for branch in run.branches:
        rename_tools(branch, naming)


def _rename(run: Trajectory) -> None:
    _change(run, protocol_tools)
    names: dict[tuple[Any, Any], tuple[str | None, str | None]] = {}
    for position, step in enumerate(run.steps):
        number = position if step.step is None else step.step
        for call in step.calls:
            old = call.name
            _change(call, protocol_call)
            names[number, call.call] = old, call.name
    for result in [
        *run.early_observations,
        *(it for step in run.steps for it in step.observations),
    ]:
        old, new = names.get((result.call_step, result.call), (None, None))
        for name, value in (protocol_result(result.__dict__, old, new) or {}).items():
            setattr(result, name, value)


def _change(row: Row, changes: Callable[[Mapping[str, Any]], Columns | None]) -> None:
    for name, value in (changes(row.__dict__) or {}).items():
        setattr(row, name, value)
