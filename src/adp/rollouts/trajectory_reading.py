"""What scorers read of a trajectory: its calls with their results, and what the agent said.

Every column may be null, numbers of steps may be missing, arguments may be no JSON; nothing here
raises.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from adp.core.tagged_run import ARGUMENTS, TOOLS, first_action, without_result_tags
from adp.rendering.arguments import object_of
from adp.rollouts.collecting.recorder import ENVIRONMENT, INFRASTRUCTURE, POLICY
from adp.rollouts.environment import Settings
from adp.rollouts.experts.history import EXPERT
from adp_schema.model import Observation, Step, ToolCall, Trajectory

Actor = Literal["all", "agent"]
"""Whose calls count: those of the agent and of an expert beside it, or of the agent alone."""

OUTSIDE = frozenset({ENVIRONMENT, INFRASTRUCTURE, POLICY})
"""Values of ``error_type`` that are no fault of the agent's."""

SHOWN = 5
"""Entries of a list that evidence holds."""

CUT = 200
"""Characters of a text that evidence holds."""


class WithActor(Settings):
    """Settings of a scorer that counts calls."""

    actor: Actor = "all"
    """Whose calls count where an expert acted too: all; agent: only the agent's."""


@dataclass(frozen=True, slots=True)
class Made:
    """A call that the agent made.

    Attributes:
        step: position of its step in the trajectory.
        name: name of the tool; empty when the source has none.
        arguments: the arguments; None when they are no JSON object.
        text: the arguments as they were written.
        results: what it brought; empty when nothing is recorded.
        kind: function, code, gui or mcp; None when the source does not say.
        call_id: its id.
    """

    step: int
    name: str
    arguments: Mapping[str, Any] | None
    text: str
    results: tuple[Observation, ...] = ()
    kind: str | None = None
    call_id: str | None = None


@dataclass(frozen=True, slots=True)
class AgentStep:
    """A step of the agent.

    Attributes:
        step: position of the step.
        row: the step.
        calls: its calls.
    """

    step: int
    row: Step
    calls: tuple[Made, ...] = field(default=())


def broken(trajectory: Trajectory) -> str | None:
    """What broke a run without the agent's fault; None when nothing did."""
    if trajectory.error_type not in OUTSIDE:
        return None
    return f"the run broke: {trajectory.error_type}"


def agent_steps(trajectory: Trajectory) -> list[AgentStep]:
    """The steps of the agent, in order, without those that only repeat earlier context."""
    results = []
    steps = trajectory.steps
    for number, step in enumerate(steps):
        if is_agent(step) and not step.is_copied_context:
            after = steps[number + 1] if number + 1 < len(steps) else None
            results.append(AgentStep(number, step, _calls(number, step, after)))
    return results


def agent_calls(trajectory: Trajectory, actor: Actor = "all") -> list[Made]:
    """The calls of the agent, in order; calls of the user and messages as calls are left out.

    Args:
        trajectory: the run.
        actor: ``agent`` leaves out the steps of an expert beside it.
    """
    return [
        call
        for step in agent_steps(trajectory)
        if actor == "all" or step.row.actor != EXPERT
        for call in step.calls
    ]


def is_agent(step: Step) -> bool:
    """Whether the agent made the step. A step of nobody that calls is the agent's."""
    return step.source == "agent" or (step.source is None and bool(step.calls))


def _calls(number: int, step: Step, after: Step | None) -> tuple[Made, ...]:
    calls = [(index, call) for index, call in enumerate(step.calls) if _is_own(call)]
    results: dict[int, list[Observation]] = {index: [] for index, _ in calls}
    for observation in step.observations:
        place = _answered(observation, calls)
        if place is not None:
            results[place].append(observation)
    if calls and not step.observations and after is not None and _is_result(after):
        results[calls[-1][0]].append(Observation(text=after.text, source="environment"))
    if not step.calls:
        return _tagged(number, step)
    return tuple(_made(number, call, results[index]) for index, call in calls)


def _tagged(number: int, step: Step) -> tuple[Made, ...]:
    """The call that a turn of the environment ``et_agent`` wrote between tags.

    A result of a tool that answers no call shows that it was carried out.
    """
    action = first_action(step.text or "")
    if action is None or action[1] not in TOOLS:
        return ()
    results = tuple(
        result.model_copy(update={"text": without_result_tags(result.text or "")})
        for result in step.observations
        if result.name == action[1] and result.call is None and result.call_id is None
    )
    inside = action[2].strip()
    made = Made(number, action[1], {ARGUMENTS[action[1]]: inside}, inside, results, "function")
    return (made,) if results else ()


def _is_result(step: Step) -> bool:
    """Whether a step stands for a result: some sources write it as the environment's message."""
    is_message = step.source == "environment" and step.kind in ("message", None)
    return is_message and step.text is not None and not step.calls


def _is_own(call: ToolCall) -> bool:
    return call.requestor in (None, "agent") and call.kind != "message"


def _answered(observation: Observation, calls: Sequence[tuple[int, ToolCall]]) -> int | None:
    """Index of the call that an observation answers."""
    if observation.call_id is not None:
        for index, call in calls:
            if call.call_id == observation.call_id:
                return index
    if observation.call is not None:
        for index, call in calls:
            if (index if call.call is None else call.call) == observation.call:
                return index
        return None
    return calls[0][0] if len(calls) == 1 and observation.call_id is None else None


def _made(number: int, call: ToolCall, results: Sequence[Observation]) -> Made:
    text = call.arguments if call.arguments is not None else call.arguments_raw
    value, is_object = object_of(text) if text else ({}, call.arguments_kind != "invalid")
    return Made(
        step=number,
        name=call.name or "",
        arguments=value if is_object else None,
        text=text or "",
        results=tuple(results),
        kind=call.kind,
        call_id=call.call_id,
    )


def agent_texts(trajectory: Trajectory) -> Iterator[str]:
    """What the agent wrote: reasoning and text of each of its steps, without calls and results."""
    for step in agent_steps(trajectory):
        for text in (step.row.reasoning, step.row.text):
            if text:
                yield text


def last_text(trajectory: Trajectory) -> str | None:
    """The last text of the agent; None when it said nothing."""
    for step in reversed(agent_steps(trajectory)):
        if step.row.text:
            return step.row.text
    return None


def number_or_none(value: Any) -> float | None:
    """A number that is finite, or a truth as 0 or 1; None for everything else."""
    if not isinstance(value, bool | int | float):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None


def same(value: Any, other: Any) -> bool:
    """Whether two JSON values are equal: 1 and 1.0 are, 1 and true are not."""
    try:
        return _same(value, other)
    except RecursionError:
        return False


def _same(value: Any, other: Any) -> bool:
    if isinstance(value, bool) or isinstance(other, bool):
        return value is other
    if isinstance(value, Mapping) and isinstance(other, Mapping):
        return value.keys() == other.keys() and all(_same(value[key], other[key]) for key in value)
    if isinstance(value, list | tuple) and isinstance(other, list | tuple):
        return len(value) == len(other) and all(map(_same, value, other))
    return bool(value == other)


def key_of(call: Made) -> tuple[str, str]:
    """What makes two calls the same: the tool, and the arguments as JSON with sorted keys."""
    if call.arguments is None:
        return call.name, call.text
    try:
        return call.name, json.dumps(call.arguments, sort_keys=True, ensure_ascii=True)
    except (ValueError, RecursionError):
        return call.name, call.text


def text_of(value: Any) -> str:
    """A value as JSON text; empty when it is none or nested too deeply."""
    try:
        return json.dumps(value, ensure_ascii=True)
    except (TypeError, ValueError, RecursionError):
        return ""


def brief(call: Made) -> dict[str, Any]:
    """A call as evidence shows it."""
    return {"name": cut(call.name), "arguments": cut(call.text), "step": call.step}


def cut(text: str, size: int = CUT) -> str:
    """A text as evidence shows it; half characters (lone surrogates) become question marks."""
    short = text if len(text) <= size else text[: size - 1] + "…"
    return short.encode("utf-8", "replace").decode("utf-8")
