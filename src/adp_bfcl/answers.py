"""What a model answered, in the form of BFCL's result files."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from adp.rollouts.turns import Turn
from adp_bfcl.decoding import Mode
from adp_schema.model import Step, Trajectory


def message_answer(turn: Turn, mode: Mode) -> Any:
    """A turn as an answer: a list of ``{name: arguments as JSON}``, or a text."""
    if mode == "fc" and turn.calls:
        return [{call.name: call.arguments or "{}"} for call in turn.calls]
    return turn.text


def given(trajectory: Trajectory, *, multi_turn: bool) -> tuple[Any, Mode | None, bool]:
    """What was answered in a trajectory.

    The environment ``bfcl`` writes it down itself; of any other trajectory it is made from the
    steps of the agent.

    Args:
        trajectory: the trajectory.
        multi_turn: whether the entry has several turns.

    Returns:
        The answer in the form of a result file, its mode where it was written down, and whether
        an answer could not be read as a turn. The answer is None when there is none.
    """
    noted = _noted(trajectory)
    if noted is not None:
        mode = noted.get("mode")
        known: Mode | None = mode if mode in ("fc", "prompt") else None
        return noted["result"], known, bool(noted.get("malformed"))
    steps = [
        step
        for step in trajectory.steps
        if step.source == "agent" and step.kind in (None, "llm_turn") and not step.is_copied_context
    ]
    if not steps:
        return None, None, False
    malformed = any(_malformed(step) for step in steps)
    if not multi_turn:
        return step_answer(steps[0]), None, malformed
    first = min(step.turn or 0 for step in steps)
    turns: list[list[Any]] = [[] for _ in range(max(step.turn or 0 for step in steps) - first + 1)]
    for step in steps:
        turns[(step.turn or 0) - first].append(step_answer(step))
    return turns, None, malformed


def step_answer(step: Step) -> Any:
    """A step as an answer: its calls, or its text."""
    calls = [call for call in step.calls if call.name]
    if not calls:
        return step.text or ""
    return [{call.name: _arguments(call.arguments, call.arguments_raw)} for call in calls]


def _arguments(arguments: Any, raw: str | None) -> str:
    if arguments is None:
        return raw if raw is not None else "{}"
    return arguments if isinstance(arguments, str) else json.dumps(arguments)


def _noted(trajectory: Trajectory) -> Mapping[str, Any] | None:
    try:
        extra = json.loads(trajectory.extra or "null")
    except (ValueError, RecursionError):
        return None
    noted = extra.get("bfcl") if isinstance(extra, Mapping) else None
    if isinstance(noted, Mapping) and noted.get("result") is not None:
        return noted
    return None


def _malformed(step: Step) -> bool:
    try:
        extra = json.loads(step.extra or "null")
    except (ValueError, RecursionError):
        return False
    return isinstance(extra, Mapping) and extra.get("malformed") is not None


def flat(answer: Any) -> Sequence[Any]:
    """The answers of all steps, whether there are several turns or one."""
    if isinstance(answer, list) and all(isinstance(turn, list) for turn in answer):
        return [step for turn in answer for step in turn]
    return [answer]
