"""Rows of what a dialect says: the columns of a call, and observations that are results."""

from __future__ import annotations

from adp.converters.text_calls.dialect import ParsedCall
from adp_schema.model import Columns

_SEEN = ("axtree", "html", "url", "content", "structured", "annotations")
"""Columns of what an observation shows beside a text."""


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
