"""Traces of queries, calls in Python and answers, with the functions as texts of Python."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from adp.converters.datasets.families.messages import item_object
from adp.converters.datasets.turns import DatasetRow, DatasetTurn

_SOURCES: dict[str, Literal["user", "agent", "result"]] = {
    "query": "user", "function_call": "agent", "response": "agent", "answer": "agent",
    "function_response": "result", "result": "result",
}  # fmt: skip


def turns(row: DatasetRow) -> Iterator[DatasetTurn]:
    """An item after the other; each has one key, which says what it is."""
    for number, raw in enumerate(row.items("trace")):
        item = item_object(raw, f"$.trace[{number}]", row)
        key = next((key for key in item.values if key in _SOURCES), None)
        text = item.text(key) if key else None
        source = _SOURCES[key] if key and text is not None else "environment"
        yield DatasetTurn(source, text, extra=item.rest())
