"""The environment ``candidate_tools``: tools that a task names, and that nobody carries out.

It is for benchmarks of choosing, such as SAGE's ``agent_benchmark``: a task lists the tools on
offer (``candidate_tools`` or ``available_tools``: names, or objects with name, description and
parameters), and is about which of them are called, in what order, and whether at all. A call is
noted and answered with ``Called NAME.``; a tool that is not on offer is an error, as everywhere.

An episode is a success by the kind of its task: one of the first five tools that were called
fits, the tools called are the plan, or a tool was called just when one is needed. Any other task is
judged by its answers. The scorer ``planning`` says more.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from adp.rollouts.answer_match import judged
from adp.rollouts.benchmark_tasks import extra_of, tool_truth
from adp.rollouts.environment import EnvironmentKind, Settings, Start, Verdict
from adp.rollouts.tool_environment import ToolEnvironment, by_name
from adp.rollouts.tools import FunctionTool
from adp.rollouts.trajectory_reading import agent_calls
from adp_schema.errors import UsageError
from adp_schema.model import Task, Trajectory

_FIRST = 5
_KEYS = ("candidate_tools", "available_tools")


class CandidateToolsSettings(Settings):
    """Settings of the environment ``candidate_tools``."""


class CandidateTools(ToolEnvironment):
    """Tools that a task names.

    Args:
        settings: none.
    """

    def __init__(self, settings: CandidateToolsSettings | None = None) -> None:
        super().__init__()

    def reset(self, task: Task | None = None, *, seed: int | None = None) -> Start:
        """Begin an episode with the tools of the task.

        Raises:
            UsageError: there is no task, or it names no tools.
        """
        start = super().reset(task, seed=seed)
        extra = extra_of(task)
        listed = next((extra[key] for key in _KEYS if isinstance(extra.get(key), list)), None)
        if listed is None:
            raise UsageError(
                f"the task names no tools; give it a list under {' or '.join(_KEYS)}, or choose "
                "another environment"
            )
        self.functions = by_name([_tool(item) for item in listed])
        return start

    def score(self, trajectory: Trajectory) -> Verdict:
        """Judge the calls by the kind of the task, and other tasks by their answers."""
        truth = tool_truth(self.task)
        called = [call.name for call in agent_calls(trajectory)]
        if truth.kind is None:
            return judged(self.task, trajectory.final_answer)
        success = None
        if truth.tools is not None:
            success = not set(truth.tools).isdisjoint(list(dict.fromkeys(called))[:_FIRST])
        elif truth.plan is not None:
            success = called == list(truth.plan)
        elif truth.call_due is not None:
            success = bool(called) == truth.call_due
        return Verdict(success, None if success is None else float(success))


def _tool(item: Any) -> FunctionTool:
    """A tool of a name, or of an object as catalogues and APIs write it.

    Raises:
        UsageError: it has no name.
    """
    given = item if isinstance(item, Mapping) else {"name": item}
    given = given["function"] if isinstance(given.get("function"), Mapping) else given
    name = given.get("name") or given.get("tool_id")
    if not isinstance(name, str) or not name:
        raise UsageError("a tool of the task has no name; list names, or objects with a name")
    parameters, description = given.get("parameters"), given.get("description")
    return FunctionTool(
        name,
        description if isinstance(description, str) else "",
        parameters if isinstance(parameters, Mapping) else {"type": "object"},
        _noted(name),
        read_only=True,
    )


def _noted(name: str) -> Callable[..., str]:
    return lambda **_: f"Called {name}."


KIND = EnvironmentKind(
    name="candidate_tools",
    about="Tools that a task names, for benchmarks of choosing; calls are noted, not carried out.",
    settings=CandidateToolsSettings,
    make=CandidateTools,
)
