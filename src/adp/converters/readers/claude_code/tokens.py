"""Tokens and cost of a response of Claude Code."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from adp.converters.kit.source_object import SourceObject
from adp.converters.kit.usage import ANTHROPIC, set_usage
from adp.converters.reading import BRACE
from adp_schema import jsontext
from adp_schema.model import Columns

_KEYS = replace(
    ANTHROPIC,
    reasoning=("output_tokens_details.thinking_tokens", "output_tokens_details.reasoning_tokens"),
)
_COUNTS = (
    *("input_tokens", "output_tokens", "cache_read_input_tokens"),
    "cache_creation_input_tokens",
)


def set_tokens(
    source: SourceObject, message: SourceObject, columns: Columns, *, counted: bool
) -> None:
    """Fill the columns of tokens and cost from what a block of a response says.

    Args:
        source: the record; old ones have its cost.
        message: its message, with the usage record.
        columns: of the step; what an earlier block of the response said is replaced.
        counted: whether it counts; a copy of a turn in another file does not.
    """
    raw = message.values.get("usage")
    text = message.json_object("usage")
    if text is not None:
        known = columns.get("usage")
        columns["usage"] = text
        if counted and text != known:  # most blocks of a response say the same
            record = SourceObject(raw, "usage", message.losses)
            set_usage(_whole(record), columns, _KEYS)
    if counted and source.first("costUSD"):
        cost = source.number("costUSD")
        if cost is not None:
            columns["cost_usd"] = cost


def _whole(record: SourceObject) -> SourceObject:
    """A usage record with the tokens of all iterations, where the sum leaves some out."""
    iterations = record.copy().objects("iterations") if "iterations" in record else None
    if not iterations:
        return record
    whole: dict[str, Any] = {}
    for key in _COUNTS:
        total = sum([item.integer_at(key) or 0 for item in iterations])
        outer = record.integer_at(key)
        if outer is not None or total:
            whole[key] = max(outer or 0, total)
    if record.first("output_tokens_details") == BRACE:
        whole["output_tokens_details"] = jsontext.decode_value(
            record.values["output_tokens_details"]
        )
    return SourceObject(json.dumps(whole).encode(), "usage", record.losses)
