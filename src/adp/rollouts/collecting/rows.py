"""From what policies and environments answer to rows of a trajectory."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from adp.rendering.arguments import object_of
from adp.rollouts.environment import Verdict
from adp.rollouts.tools import plain
from adp.rollouts.turns import Outcome, Turn
from adp_schema.model import Observation, Row, Step, ToolCall

_UNWRITABLE = ""
"""Stands for JSON that cannot be written; `storable_values` drops it and says so."""

_SOURCES = {"assistant": "agent", "tool": "environment", "developer": "system"}


_AnyRow = TypeVar("_AnyRow", bound=Row)


def unchecked(kind: type[_AnyRow], /, **columns: Any) -> _AnyRow:
    """A row with columns as they are; `storable_values` drops what does not fit.

    It takes a tenth of the time of pydantic's ``model_construct``.
    """
    row = kind()
    row.__dict__.update(columns)
    row.model_fields_set.update(columns)
    return row


def source_of(role: str) -> str:
    """Who speaks in a message of a role, as the column ``source`` says it."""
    return _SOURCES.get(role, role)


def verdict_columns(verdict: Verdict) -> tuple[dict[str, Any], dict[str, str]]:
    """A verdict as columns of a trajectory, and the rewards that are no numbers."""
    finite: dict[str, float] = {}
    dropped: dict[str, str] = {}
    for name, value in verdict.rewards.items():
        if math.isfinite(value):
            finite[str(name)] = float(value)
        else:
            dropped[f"rewards.{name}"] = f"{value} is no finite number"
    columns = {
        "success": verdict.success,
        "reward": verdict.reward,
        "rewards": json_text(finite) if finite else None,
        "judge": None if verdict.judge is None else json_text(verdict.judge),
    }
    return columns, dropped


def calls_of(step: int, turn: Turn, given: Turn) -> list[ToolCall]:
    """The calls of a turn.

    Args:
        step: number of the step.
        turn: the turn, with ids of calls that are unique.
        given: the turn with the ids that the policy gave its calls.
    """
    calls = []
    for index, (call, before) in enumerate(zip(turn.calls, given.calls, strict=True)):
        valid = object_of(call.arguments)[1]
        native = before.call_id
        calls.append(
            unchecked(
                ToolCall,
                step=step,
                call=index,
                call_id=call.call_id,
                kind="function",
                name=call.name,
                arguments=call.arguments if valid else None,
                arguments_raw=None if valid else call.arguments,
                arguments_kind="json_string" if valid else "invalid",
                origin="structured",
                native_id=native if native and native != call.call_id else None,
            )
        )
    return calls


def observations_of(outcome: Outcome, step: Step, *, timed: bool) -> list[Observation]:
    """The results of a turn.

    Args:
        outcome: what the environment answered.
        step: the step of the turn, with its calls.
        timed: whether to keep how long they took.
    """
    index = {call.call_id: number for number, call in enumerate(step.calls)}
    observations = []
    for order, result in enumerate(outcome.results):
        number = index.get(result.call_id)
        observations.append(
            unchecked(
                Observation,
                step=step.step,
                order=order,
                call_step=None if number is None else step.step,
                call=number,
                call_id=None if number is None else result.call_id,
                source="environment",
                name=result.name,
                text=result.text,
                is_error=result.error is not None,
                error_type=None if result.error is None else str(result.error),
                exit_code=result.exit_code,
                structured=None if result.structured is None else json_text(result.structured),
                duration_ms=result.duration_ms if timed else None,
            )
        )
    return observations


def content_text(content: Any) -> str:
    """The text of a message, whose content may be a list of parts."""
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list | tuple) else []
    return "\n\n".join(str(part.get("text", "")) for part in parts if isinstance(part, Mapping))


def json_text(value: Any) -> str:
    """A value as JSON, whatever it is."""
    try:
        return json.dumps(plain(value), ensure_ascii=True, allow_nan=False)
    except Exception:  # nested beyond all measure, or an object that cannot even be shown
        return _UNWRITABLE


def listed(values: Sequence[Any] | None) -> list[Any] | None:
    """A list of what may be none."""
    return None if values is None else list(values)


def total(values: Any) -> Any:
    """The sum of what is known; None when nothing is."""
    known = [value for value in values if value is not None]
    return sum(known) if known else None
