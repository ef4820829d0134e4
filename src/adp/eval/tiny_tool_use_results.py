"""``evaluation_results.json``: figures and cases as the evaluation of Tiny Tool Use writes them.

A case is one run; its response is the first turn of the agent. Calls that were read out of it are
written back between ``[TOOL_CALL]`` tags, so that what is judged is a text:

- ``predicted_tool``: the name in the first ``[TOOL_CALL]``; without one, or where that is no JSON,
  the first tool on offer whose name the text holds, in any case;
- ``format_correct``: both tags are there, and the first block is an object with ``name``, which is
  a tool on offer, and ``parameters``;
- ``execution_success``: the format is correct, and the first call was carried out and its result is
  no error. Tiny Tool Use carries the call out when it evaluates; here the run has done it.

``tool_accuracy``, ``format_accuracy`` and ``execution_accuracy`` are the shares of these; the names
of its other function, ``format_correctness``, ``execution_success`` and ``response_quality`` (the
mean of tool accuracy and format correctness), stand beside them. Source: bagel-RL, "Tiny Tool Use",
``src/utils/evaluation.py`` at 2ae8449.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from adp.core.output_files import whole_file
from adp.eval.scoring.rows import broke
from adp.rendering.arguments import object_of, tools_of
from adp.rollouts.collecting.attempts import superseded, tries_of
from adp.rollouts.trajectory_reading import AgentStep, agent_steps
from adp.stores.tasks import TaskIndex
from adp_schema.errors import EmptyResultError
from adp_schema.model import Task, Trajectory
from adp_schema.store import Store

STYLE = "tiny_tool_use"
_OPEN, _CLOSE = "[TOOL_CALL]", "[/TOOL_CALL]"
_BLOCK = re.compile(r"\[TOOL_CALL\](.*?)\[/TOOL_CALL\]", re.DOTALL)


def write_results(store: Store, path: str | Path) -> dict[str, Any]:
    """Write the results of a store of runs.

    Args:
        store: runs whose tasks say which tool is expected. Runs that something else than the agent
            broke are left out, and counted as ``broken``.
        path: the file.

    Returns:
        What was written.

    Raises:
        EmptyResultError: no run has a task that expects a tool.
        OSError: the file cannot be written.
    """
    value = results(store)
    with whole_file(Path(path)) as staged:
        staged.write_text(json.dumps(value, indent=2) + "\n", encoding="utf-8")
    return value


def results(store: Store) -> dict[str, Any]:
    """The same as a value.

    Raises:
        EmptyResultError: no run has a task that expects a tool.
    """
    tasks = TaskIndex(store)
    again = superseded(tries_of(store))
    cases, broken = [], 0
    for trajectory in store.trajectories():
        task = tasks.of(trajectory)
        tool = _expected(task)
        if trajectory.parent_id is not None or trajectory.trajectory_id in again or tool is None:
            continue
        if broke(trajectory) is not None:
            broken += 1
            continue
        cases.append(_case(trajectory, task, tool))
    if not cases:
        raise EmptyResultError(
            f"{store.root} holds no run whose task expects a tool; collect with tasks that have "
            "expected_tool or expected_calls"
        )
    return {"total_cases": len(cases), **_figures(cases), "broken": broken, "details": cases}


def _figures(cases: Sequence[dict[str, Any]]) -> dict[str, float]:
    tool, correct, executed = (
        sum(case[name] for case in cases) / len(cases)
        for name in ("tool_correct", "format_correct", "execution_success")
    )
    return {
        "tool_accuracy": tool,
        "format_accuracy": correct,
        "execution_accuracy": executed,
        "format_correctness": correct,
        "execution_success": executed,
        "response_quality": (tool + correct) / 2,
    }


def _case(trajectory: Trajectory, task: Task | None, expected: str) -> dict[str, Any]:
    first = next(iter(agent_steps(trajectory)), None)
    tools = [tool["function"]["name"] for tool in tools_of(trajectory.tools, Counter())]
    response = "" if first is None else response_text(first)
    predicted = predicted_tool(response, tools)
    correct = _format_correct(response, tools)
    return {
        "prompt": (task and task.instruction) or "",
        "response": response,
        "expected_tool": expected,
        "predicted_tool": predicted,
        "tool_correct": predicted == expected,
        "format_correct": correct,
        "execution_success": correct and first is not None and _executed(first),
    }


def response_text(step: AgentStep) -> str:
    """The text of a turn, its calls between tags where they do not stand in it."""
    text = step.row.text or ""
    if _OPEN in text:
        return text
    parts = [text] if text else []
    for call in step.calls:
        parameters = call.text if call.arguments is None else json.dumps(call.arguments)
        parts.append(
            f'{_OPEN}{{"name": {json.dumps(call.name)}, "parameters": {parameters}}}{_CLOSE}'
        )
    return "\n".join(parts)


def predicted_tool(response: str, tools: Sequence[str]) -> str:
    """The tool that a text calls, or speaks of; empty when there is none."""
    call = _first_call(response)
    if call is not None:
        name = call.get("name", "")
        return name if isinstance(name, str) else ""
    low = response.lower()
    return next((tool for tool in tools if tool.lower() in low), "")


def _first_call(response: str) -> dict[str, Any] | None:
    match = _BLOCK.search(response)
    if match is None:
        return None
    value, is_object = object_of(match[1].strip())
    return dict(value) if is_object else None


def _format_correct(response: str, tools: Sequence[str]) -> bool:
    call = _first_call(response)
    return call is not None and "parameters" in call and call.get("name") in tools


def _executed(step: AgentStep) -> bool:
    if not step.calls or not step.calls[0].results:
        return False
    return not any(result.is_error or result.error_type for result in step.calls[0].results)


def _expected(task: Task | None) -> str | None:
    """The first tool that a task expects; None when it says none."""
    try:
        calls = json.loads((task and task.expected_calls) or "null")
        name = calls[0]["name"]
    except (ValueError, TypeError, KeyError, IndexError, RecursionError):
        return None
    return name if isinstance(name, str) else None
