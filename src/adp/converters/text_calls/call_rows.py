"""Rows of what a dialect says: the columns of a call, and observations that are results."""

from __future__ import annotations

from dataclasses import dataclass, field

import msgspec

from adp.converters.text_calls.dialect import ParsedCall, ParsedResult
from adp_schema.model import Columns

_SEEN = ("axtree", "html", "url", "content", "structured", "annotations")
"""Columns of what an observation shows beside a text."""


_ENDING = ("finish", "final_answer")
_ANSWERS = ("answer", "final_answer", "message")


@dataclass(slots=True)
class WaitingCalls:
    """Calls of a step that have no result yet, by their index in the step."""

    step: int = -1
    calls: dict[int, ParsedCall] = field(default_factory=dict)

    def take(self, result: ParsedResult, listed: list[int]) -> int | None:
        """The index of the call that a result answers, which waits no longer.

        Args:
            result: the result.
            listed: the indices of the calls that waited for the turn of the result.
        """
        if result.call is not None:
            place = listed[result.call] if result.call < len(listed) else -1
        else:
            same = (index for index, call in self.calls.items() if call.name == result.name)
            place = next(same, -1) if result.name is not None else -1
            if place < 0:
                place = next(iter(self.calls), -1)
        return None if self.calls.pop(place, None) is None else place


def call_columns(call: ParsedCall) -> Columns:
    """The columns of a call that was read from a text."""
    columns: Columns = {"kind": call.kind, "name": call.name, "origin": "parsed_from_text"}
    columns |= {"span_start": call.span[0], "span_end": call.span[1]}
    if call.arguments is not None:
        columns["arguments"] = call.arguments
    if call.raw is not None:
        columns["arguments_raw"] = call.raw
    columns["arguments_kind"] = call.written_as
    if call.language is not None:
        columns["language"] = call.language
    if call.call_id is not None:
        columns["native_id"] = call.call_id
    return columns


def shows_something(observation: Columns) -> bool:
    """Whether an observation without a text is a page or a picture, as the result of an action."""
    return any(observation.get(name) is not None for name in _SEEN)


def answer_of(call: ParsedCall) -> str | None:
    """The final answer that a call gives which ends the run; None of another call.

    Args:
        call: the call; one named ``finish``, ``Finish`` or ``final_answer`` ends a run.
    """
    if call.name.lower() not in _ENDING or call.arguments is None:
        return None
    try:
        arguments = msgspec.json.decode(call.arguments)
    except (msgspec.DecodeError, RecursionError):
        return None
    values = [arguments.get(name) for name in _ANSWERS] if isinstance(arguments, dict) else []
    return next((value for value in values if isinstance(value, str) and value), None)
