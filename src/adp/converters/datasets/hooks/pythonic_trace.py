"""Traces of queries, calls in Python and answers, with the functions as texts of Python."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from adp.converters.datasets.turns import DatasetRow, DatasetTurn
from adp.converters.kit.source_object import SourceObject

_SOURCES: dict[str, Literal["user", "agent", "result"]] = {
    "query": "user", "function_call": "agent", "response": "agent", "answer": "agent",
    "function_response": "result", "result": "result",
}  # fmt: skip


def turns(row: DatasetRow) -> Iterator[DatasetTurn]:
    """An item after the other; each has one key, which says what it is."""
    for number, raw in enumerate(row.items("trace")):
        item = SourceObject(raw, f"$.trace[{number}]", row.losses)
        key = next((key for key in item.values if key in _SOURCES), None)
        text = item.text(key) if key else None
        source = _SOURCES[key] if key and text is not None else "environment"
        yield DatasetTurn(source, text, extra=item.rest())
