"""Columns with a place in ATIF that cannot say them as they are: they stand in ``extra.adp``.

- what a model said of its turn (`AGENT_ONLY`), where the step is not one of the agent;
- a time that is none in ISO 8601;
- a text that is cut otherwise than by blank lines, and an empty one: the message of a step without
  a text is empty.

What is read from ``extra.adp`` must be what is written there; otherwise it is somebody else's key.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from adp.converters.atif.values import is_time
from adp_schema import media
from adp_schema.extra_column import Extra
from adp_schema.jsontext import text_of
from adp_schema.model import Columns, Observation, Step

AGENT_ONLY = frozenset(
    {
        *("model", "reasoning_effort", "tokens_in", "tokens_out", "tokens_cached", "cost_usd"),
        *("prompt_token_ids", "completion_token_ids", "logprobs"),
    }
)
EXTRA_COLUMNS = {
    "steps": AGENT_ONLY | {"timestamp_text", "text"},
    "observations": frozenset({"text"}),
}
"""Table -> columns that may stand in ``extra.adp`` although they have a place."""

FORM = "beside"
"""Key of ``$shape`` for the columns that were read from there."""

BLANK = "blank"
"""Key of ``$shape`` of a step without a text whose message was empty."""


def columns_elsewhere(row: Step | Observation, extra: Extra, blobs: Any) -> frozenset[str]:
    """The columns of a row of another format that go into ``extra.adp``."""
    names: set[str] = set()
    if isinstance(row, Step):
        if row.source != "agent":
            names = {name for name in AGENT_ONLY if getattr(row, name) is not None}
        if row.timestamp is None and not is_time(row.timestamp_text):
            names.add("timestamp_text")
    if row.text is not None and "text" not in extra.escaped and _is_cut(row, blobs):
        names.add("text")
    return frozenset(names)


def _is_cut(row: Step | Observation, blobs: Any) -> bool:
    """Whether reading what is written for the text gives another one, and ``text`` mends it."""
    if row.content is None:
        is_prose = isinstance(row, Step) and row.prose is not None
        return isinstance(row, Step) and row.text == "" and not is_prose
    text = row.text or ""
    spans = [part["span"] for part in json.loads(row.content) if part["type"] == "text"]
    if not spans or _joined(spans) or media.restore(text, blobs) != text:
        return False
    return _spans([text[start:end] for start, end in spans], text) == spans


def _joined(spans: list[list[int]]) -> bool:
    """Whether texts follow each other after two characters: a blank line."""
    starts = [0, *(end + 2 for _, end in spans[:-1])]
    return [start for start, _ in spans] == starts


def _spans(texts: list[str], text: str) -> list[list[int]] | None:
    """Where texts stand in a longer one, each behind the one before it; None when one does not."""
    out, end = [], 0
    for item in texts:
        start = text.find(item, end)
        if start < 0:
            return None
        end = start + len(item)
        out.append([start, end])
    return out


def take_elsewhere(
    value: Columns, columns: Columns, form: dict[str, Any], usual: Mapping[str, Any], table: str
) -> bool:
    """Check what ``extra.adp`` says of columns that have a place, and fit the content to it.

    Args:
        value: what ``extra.adp`` says.
        columns: what the places say; ``content`` is changed.
        form: takes the names.
        usual: the source that the row has.
        table: table of the row.

    Returns:
        False when it is not what `columns_elsewhere` chooses.
    """
    names = sorted(value.keys() & EXTRA_COLUMNS.get(table, frozenset()))
    of_others = [name for name in names if name != "text"]
    if any(columns.get(name) is not None for name in of_others):
        return False
    if usual.get("source") == "agent" and AGENT_ONLY.intersection(names):
        return False
    if "timestamp_text" in names and is_time(value["timestamp_text"]):
        return False
    if "text" in names and not _fit(value["text"], columns, form):
        return False
    if names:
        form[FORM] = names
    return True


def _fit(text: str, columns: Columns, form: dict[str, Any]) -> bool:
    """Cut a text as the parts say; False when they are not cut from it."""
    if columns.get("content") is None:
        return text == "" and bool(form.get(BLANK))
    parts = json.loads(columns["content"])
    old = columns.get("text") or ""
    cut = [part for part in parts if part["type"] == "text"]
    spans = _spans([old[slice(*part["span"])] for part in cut], text)
    if not spans or _joined(spans) or spans[-1][1] != len(text):
        return False
    for part, span in zip(cut, spans, strict=True):
        part["span"] = span
    columns["content"] = text_of(parts)
    return True
