"""What a recorded trajectory says about its agent: turns, results, tools, and what went wrong."""

from __future__ import annotations

from collections.abc import Sequence

from adp.core.json_values import json_or_none
from adp.rollouts.evolving.operator import ParentRun
from adp.rollouts.evolving.written_steps import DoneStep
from adp.rollouts.policies.replay import recorded_turns
from adp.rollouts.trajectory_reading import agent_calls
from adp.rollouts.turns import Tool
from adp_schema.model import Observation, Step, Task, Trajectory

_FAILED = ("Execution Timeout", "Tool execute failed")


def agent_steps(trajectory: Trajectory) -> list[Step]:
    """The steps of the agent, those that `recorded_turns` makes turns of."""
    return [
        step
        for step in trajectory.steps
        if step.source == "agent"
        and step.kind not in ("context_edit", "event")
        and not step.is_copied_context
    ]


def parent_of(trajectory: Trajectory, task: Task, tools: Sequence[Tool] = ()) -> ParentRun:
    """A recorded trajectory as one that others are made of.

    Args:
        trajectory: the trajectory.
        task: its task.
        tools: the tools on offer, where the trajectory does not say.
    """
    results = [
        tuple(seen.visible_text or seen.text or "" for seen in step.observations)
        for step in agent_steps(trajectory)
    ]
    turns = recorded_turns(trajectory)
    steps = [DoneStep(turn, texts) for turn, texts in zip(turns, results, strict=True)]
    listed = json_or_none(trajectory.tools)
    known = [tool for tool in listed if isinstance(tool, dict)] if isinstance(listed, list) else []
    return ParentRun(trajectory, steps, known or list(tools), task)


def count_calls(trajectory: Trajectory) -> int:
    """Calls of tools that the agent made."""
    return len(agent_calls(trajectory))


def failed_results(trajectory: Trajectory) -> int:
    """Results of tools that are errors.

    Where a result says whether it is one, that counts; else the rule of ET-Agent: it is empty, or
    tells of an error.
    """
    seen = [result for step in agent_steps(trajectory) for result in step.observations]
    return sum(map(_is_failed, seen))


def _is_failed(result: Observation) -> bool:
    if result.is_error is not None or result.error_type is not None:
        return bool(result.is_error or result.error_type)
    text = result.text or ""
    return not text or any(word in text for word in _FAILED) or "error" in text.lower()


def is_well_formed(trajectory: Trajectory) -> bool:
    """Whether all turns can be read, all calls have a result, and there is an answer."""
    steps = agent_steps(trajectory)
    turns = recorded_turns(trajectory)
    if not turns or any(turn.malformed is not None for turn in turns):
        return False
    answered = {
        (seen.call_step, seen.call) for step in trajectory.steps for seen in step.observations
    }
    calls = {(step.step, call.call) for step in steps for call in step.calls}
    ended = bool((trajectory.final_answer or "").strip()) and not trajectory.truncated
    return ended and calls <= answered
