"""How a JSON file is laid out, so that the same layout can be written again."""

from __future__ import annotations

import json
from typing import Any

from adp_schema import jsontext

DEFAULT: dict[str, Any] = {"layout": "spaced", "ascii": False}
"""For files of a format that was not their source's: one record a line, as `json.dumps` writes."""


_OF_A_LINE: tuple[tuple[Any, int], ...] = (("compact", -1), ("spaced", 0))
_OF_LINES: tuple[tuple[Any, int], ...] = ((2, 2), (4, 4), (1, 1))


def detect(record: bytes, framing: str) -> dict[str, Any]:
    """The layout of a file, from its first record.

    Returns:
        ``layout``: compact, spaced, or a number of spaces of indentation; null when it is none
        of these. ``ascii`` is added by the runner when it has seen all records.
    """
    if framing == "parquet":
        return {"layout": "compact"}
    lines = b"\n" in record
    for layout, indent in _OF_LINES if lines else _OF_A_LINE:
        try:
            same = jsontext.relayout(record, indent) == _dedent(record, framing, indent)
        except (ValueError, RecursionError):
            return {"layout": "spaced"}
        if same:
            return {"layout": layout}
    return {"layout": "spaced", "irregular": True}


def _dedent(record: bytes, framing: str, indent: int) -> bytes:
    """An element of an indented array stands one level deeper than a record alone."""
    if framing == "json_array" and indent > 0:
        return record.replace(b"\n" + b" " * indent, b"\n")
    return record


def lay_out(record: Any, style: dict[str, Any], *, in_array: bool) -> bytes:
    """Write a record in a style.

    Args:
        record: tree of dicts, lists, scalars and `Raw`.
        style: from `detect`, with ``ascii``.
        in_array: whether it becomes an element of an indented array.
    """
    data = jsontext.encode(record)
    layout: str | int = style.get("layout") or "spaced"
    indent = layout if isinstance(layout, int) else {"compact": -1, "spaced": 0}[layout]
    if layout != "compact" or b"\n" in data:
        data = jsontext.relayout(data, indent)
    if style.get("ascii"):
        data = jsontext.escape_non_ascii(data.decode("utf-8")).encode("ascii")
    if in_array and indent > 0:
        data = data.replace(b"\n", b"\n" + b" " * indent)
    return data


def exact_layout(text: str) -> list[Any] | None:
    """How a JSON file is laid out and what follows it; None when it cannot be written again."""
    data = text.encode("utf-8")
    body = data.strip()
    if not body or not jsontext.is_valid(body):
        return None
    layout = detect(body, "json")["layout"]
    end = text[len(text.rstrip()) :]
    line = jsontext.raw(jsontext.one_line(body))
    again = lay_out(line, {"layout": layout}, in_array=False)
    return [layout, end] if again + end.encode("ascii", "replace") == data else None


def parse(text: str | None) -> dict[str, Any]:
    """The style of a source file from its column, or the default."""
    return dict(DEFAULT) if text is None else json.loads(text)
