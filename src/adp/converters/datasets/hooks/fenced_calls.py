"""Hammer: a prompt with the tools in it, and an answer that is a list of calls in a code fence."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from adp.converters.datasets.turns import DatasetRow, DatasetTurn, TurnCall

_FENCED = re.compile(r"```(?:json)?\n?(\[.*\])\n?```\s*", re.DOTALL)


def turns(row: DatasetRow) -> Iterator[DatasetTurn]:
    """The prompt, and the answer with its calls; an empty list is an answer without any."""
    yield DatasetTurn("user", row.take_text("instruction"))
    if more := row.take_text("input"):
        yield DatasetTurn("user", more)
    output = row.take_text("output") or ""
    match = _FENCED.fullmatch(output)
    calls = _calls(match[1]) if match else []
    span = match.span(1) if match else None
    yield DatasetTurn(
        "agent", output, [TurnCall(it["name"], it.get("arguments"), span=span) for it in calls]
    )


def _calls(text: str) -> list[dict[str, Any]]:
    try:
        items = json.loads(text)
    except (ValueError, RecursionError):
        return []
    named = [it for it in items if isinstance(it, dict) and isinstance(it.get("name"), str)]
    return named if len(named) == len(items) else []
