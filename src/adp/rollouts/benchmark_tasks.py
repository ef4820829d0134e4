"""What a task says is right about tools: which ones, in what order, and whether at all.

Tasks of SAGE's ``agent_benchmark`` are of three kinds, and each says one of these: which tools fit
(``tool_selection``), which sequence of tools is the plan (``task_planning``), or whether a tool is
needed (``timing_judgment``). Any other task says all three by its expected calls.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from adp.core.json_values import json_or_none
from adp.rollouts.task_references import expected_calls
from adp_schema.model import Task

SELECTION, PLANNING, TIMING = "tool_selection", "task_planning", "timing_judgment"
"""Kinds of tasks of the benchmark, by their key ``task_type``."""

KINDS = (SELECTION, PLANNING, TIMING)


@dataclass(frozen=True)
class ToolTruth:
    """What a task says is right about tools; None where it does not say.

    Attributes:
        kind: its kind in the benchmark; None: it is no task of it.
        tools: tools that fit.
        plan: names of the tools of a right plan, in order.
        call_due: whether a tool is to be called.
    """

    kind: str | None = None
    tools: tuple[str, ...] | None = None
    plan: tuple[str, ...] | None = None
    call_due: bool | None = None


def tool_truth(task: Task | None) -> ToolTruth:
    """What a task says is right about tools. It raises nothing, whatever is in the task."""
    expected = expected_calls(task)
    names = None if expected is None else tuple(call.name for call in expected)
    kind = extra_of(task).get("task_type")
    if kind not in KINDS:
        return ToolTruth(None, names, names, None if names is None else bool(names))
    truth = truth_of(task)
    if kind == SELECTION:
        # A converted row has the list among its answers, and not once more in `extra`.
        listed = texts(truth.get("top_k")) or texts(json_or_none(task.answers if task else None))
        return ToolTruth(kind, listed or names)
    if kind == PLANNING:
        return ToolTruth(kind, plan=names or texts(truth.get("tool_sequence")))
    due = truth.get("should_call_tool")
    return ToolTruth(kind, call_due=due if isinstance(due, bool) else None)


def extra_of(task: Task | None) -> Mapping[str, Any]:
    """The column ``extra`` of a task; empty where it is no JSON object."""
    value = json_or_none(task.extra) if task is not None else None
    return value if isinstance(value, Mapping) else {}


def truth_of(task: Task | None) -> Mapping[str, Any]:
    """The key ``ground_truth`` of a task; empty where it is no object, or JSON of one."""
    value = extra_of(task).get("ground_truth")
    value = json_or_none(value) if isinstance(value, str) else value
    return value if isinstance(value, Mapping) else {}


def texts(value: Any) -> tuple[str, ...] | None:
    """The texts of a list that holds nothing else; None for anything else."""
    whole = isinstance(value, list) and all(isinstance(item, str) and item for item in value)
    return tuple(value) if whole else None


def target_tools(task: Task | None) -> tuple[str, ...]:
    """Tools that a right run uses, as SAGE's tasks name them; empty where the task names none.

    Args:
        task: names them as ``target_tools`` or ``expected_tools`` in its ground truth or beside it,
            else by what `tool_truth` says.
    """
    for place in (truth_of(task), extra_of(task)):
        for key in ("target_tools", "expected_tools"):
            if listed := texts(place.get(key)):
                return listed
    truth = tool_truth(task)
    return truth.tools or truth.plan or ()
