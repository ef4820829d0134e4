"""Rows of what a dialect says: the columns of a call, and observations that are results."""

from __future__ import annotations

import msgspec

from adp.converters.text_calls.dialect import ParsedCall
from adp_schema.model import Columns

_SEEN = ("axtree", "html", "url", "content", "structured", "annotations")
"""Columns of what an observation shows beside a text."""


_ENDING = ("finish", "final_answer")
_ANSWERS = ("answer", "final_answer", "message")


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
