"""Values in JavaScript's syntax, read the way BFCL reads them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

JAVASCRIPT_TYPES: Mapping[str, type] = {
    "String": str,
    "integer": int,
    "float": float,
    "Bigint": int,
    "Boolean": bool,
    "dict": dict,
    "array": list,
    "any": str,
}
"""The type that a value must have after it is read, by the type in the documentation."""

LONGEST_COLLECTION = 10_000
"""Characters. A longer collection stays a text: the patterns below take too long for it."""

_INTEGER, _BIGINT = re.compile(r"^-?\d+$"), re.compile(r"^-?\d+n$")
_FLOAT = re.compile(r"^-?\d+(\.\d+)?$")
_NESTED = re.compile(r"\[\s*\[|\bnew\s+Array\(\s*\[")
_FLAT = re.compile(r"\[(.*?)\]|\bnew\s+Array\((.*?)\)")
_INNER, _OBJECT = re.compile(r"\[(.*?)\]"), re.compile(r"\{(.*?)\}")
_PAIR = re.compile(r"([^:]+):\s*(.*?)(?:,\s*(?=[^,]+:)|$)")


def javascript_value(text: str, declared: str, items: str | None = None) -> Any:
    """Read a value. What is not of the declared type stays a text.

    Args:
        text: the value as the model wrote it.
        declared: type in the documentation of the function.
        items: type of what is in an array.

    Raises:
        ValueError: there is no such type.
    """
    if declared == "String":
        return text[1:-1] if _quoted(text) else text
    if declared == "integer":
        return int(text) if _INTEGER.match(text) else text
    if declared == "float":
        return float(text) if _FLOAT.match(text) else text
    if declared == "Bigint":
        return int(text[:-1]) if _BIGINT.match(text) else text
    if declared == "Boolean":
        return text == "true" if text in ("true", "false") else text
    if declared == "any":
        return text
    if declared not in ("array", "dict"):
        raise ValueError(f"there is no type {declared}")
    text = text.strip()
    if len(text) > LONGEST_COLLECTION:
        return text
    try:
        return _array(text, items) if declared == "array" else _object(text)
    except (ValueError, RecursionError):
        return text


def _quoted(text: str) -> bool:
    return any(text.startswith(mark) and text.endswith(mark) for mark in "\"'")


def _array(text: str, items: str | None) -> Any:
    nested = _nested(text)
    if nested is not None:
        rows = []
        for number, row in enumerate(_INNER.findall(nested)):
            row = row.strip()
            if number == 0 and row.startswith("["):
                row = row[1:]
            rows.append([_untyped(part) for part in row.split(",")])
        return rows
    match = _FLAT.match(text)
    if match is None:
        return text
    child = (match[1] if match[1] is not None else match[2]).strip()
    parts = [part.strip() for part in child.split(",")] if child else []
    return [
        javascript_value(part, items, _hint(part)) if items else _untyped(part) for part in parts
    ]


def _hint(part: str) -> str | None:
    return "String" if part.startswith(("'", '"')) else None


def _nested(text: str) -> str | None:
    """The array of arrays that a text begins with.

    A row ends at the first bracket after which the rest can still be read. What can be read after
    each bracket is found from the right, so that the time grows with the length only.
    """
    head = _NESTED.match(text)
    if head is None:
        return None
    closer = "]" if text.startswith("[") else ")"
    ends: dict[int, int] = {}
    row_end = len(text)
    after: list[int | None] = [None] * (len(text) + 1)
    for index in range(len(text) - 1, -1, -1):
        if text[index] == "]":
            end = _rest(text, index + 1, closer, after, ends)
            if end is not None:
                ends[index] = end
                row_end = index
        if text[index] == "\n":
            row_end = len(text)
        after[index] = row_end if row_end < len(text) else None
    result = after[head.end()] if head.end() < len(text) else None
    return None if result is None else text[: ends[result]]


def _rest(
    text: str, start: int, closer: str, after: list[int | None], ends: Mapping[int, int]
) -> int | None:
    """Where an array of arrays ends when one of its rows ends before ``start``."""
    start = _skip(text, start)
    if text[start : start + 1] == closer:
        return start + 1
    if text[start : start + 1] != ",":
        return None
    start = _skip(text, start + 1)
    if text[start : start + 1] != "[" or start + 1 >= len(text):
        return None
    result = after[start + 1]
    return None if result is None else ends[result]


def _skip(text: str, index: int) -> int:
    while index < len(text) and text[index].isspace():
        index += 1
    return index


def _object(text: str) -> Any:
    if text == "{}":
        return {}
    match = _OBJECT.match(text)
    if match is None:
        return text
    pairs = _PAIR.findall(match[1])
    return {key.strip().strip("'\""): _member(value.strip()) for key, value in pairs}


def _member(text: str) -> Any:
    if text.startswith("[") and text.endswith("]"):
        return javascript_value(text, "array")
    if text.startswith("{") and text.endswith("}"):
        return javascript_value(text, "dict")
    return _untyped(text.strip("'\""))


def _untyped(text: str) -> Any:
    """A value whose type is not known."""
    text = text.strip()
    if text in ("true", "false"):
        return text == "true"
    if _quoted(text):
        return text[1:-1]
    for read in (int, float):
        try:
            return read(text)
        except ValueError:
            continue
    return text
