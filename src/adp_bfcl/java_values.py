"""Values in Java's syntax, read the way BFCL reads them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

JAVA_TYPES: Mapping[str, type] = {
    "byte": int,
    "short": int,
    "integer": int,
    "float": float,
    "double": float,
    "long": int,
    "boolean": bool,
    "char": str,
    "Array": list,
    "ArrayList": list,
    "Set": set,
    "HashMap": dict,
    "Hashtable": dict,
    "Queue": list,
    "Stack": list,
    "String": str,
    "any": str,
}
"""The type that a value must have after it is read, by the type in the documentation."""

LONGEST_COLLECTION = 4000
"""Characters. A longer collection stays a text: the patterns below take too long for it."""

_DECIMAL = r"^-?\d+(\.\d+)?([eE][+-]?\d+)?"
_INTEGER, _LONG = re.compile(r"^-?\d+$"), re.compile(r"^-?\d+[lL]$")
_DOUBLE, _FLOAT = re.compile(_DECIMAL + "$"), re.compile(_DECIMAL + "[fF]$")
_ARRAY = re.compile(r"new\s+\w+\[\]\s*\{(.*?)\}")
_LIST_OF = re.compile(r"new\s+ArrayList<\w*>\(Arrays\.asList\((.+?)\)\)")
_LIST_ADDS = re.compile(r"new\s+ArrayList<\w*>\(\)\s*\{\{")
_LIST_EMPTY = re.compile(r"new\s+ArrayList<\w*>\(\)")
_MAP_PUTS = re.compile(r"new\s+HashMap<.*?>\s*\(\)\s*\{\s*\{?\s*", re.DOTALL)
_MAP_EMPTY = re.compile(r"new\s+HashMap<.*?>\s*\(\)")
_PUT = re.compile(r"put\(\"(.*?)\",\s*(.*?)\)")


def java_value(text: str, declared: str, items: str | None = None) -> Any:
    """Read a value. What is not of the declared type stays a text.

    Args:
        text: the value as the model wrote it.
        declared: type in the documentation of the function.
        items: type of what is in an array or a list.

    Raises:
        NotImplementedError: the official checker cannot read values of the type.
        ValueError: there is no such type.
    """
    if declared in ("byte", "short", "integer"):
        return int(text) if _INTEGER.match(text) else text
    if declared == "long":
        return int(text.rstrip("\n")[:-1]) if _LONG.match(text) else text
    if declared == "float":
        return float(text.rstrip("\n")[:-1]) if _FLOAT.match(text) else text
    if declared == "double":
        return float(text) if _DOUBLE.match(text) else text
    if declared == "boolean":
        return text == "true" if text in ("true", "false") else text
    if declared in ("char", "String", "any"):
        return text
    if declared in ("Set", "Hashtable", "Queue", "Stack"):
        raise NotImplementedError(f"values of the type {declared} cannot be read")
    if len(text) > LONGEST_COLLECTION and declared in JAVA_TYPES:
        return text
    if declared == "ArrayList":
        return _array_list(text, items)
    if declared == "Array":
        return _array(text, items)
    if declared == "HashMap":
        return _hash_map(text)
    raise ValueError(f"there is no type {declared}")


def _array(text: str, items: str | None) -> Any:
    match = _ARRAY.search(text)
    if match is None:
        return text
    parts = [part.strip() for part in match[1].split(",")]
    return [java_value(part, items) if items else _untyped(part) for part in parts if part]


def _array_list(text: str, items: str | None) -> Any:
    match = _LIST_OF.search(text)
    if match is not None:
        return [_item(part.strip(), items) for part in match[1].split(",")]
    adds = _adds(text)
    if adds is not None:
        return [_item(part.strip(), items) for part in re.findall(r"add\((.+?)\)", adds)]
    return [] if _LIST_EMPTY.search(text) else text


def _adds(text: str) -> str | None:
    """What stands between double braces, at least one character of it."""
    for head in _LIST_ADDS.finditer(text):
        if "}}" in text[head.end() :]:
            match = re.compile(r"\s*(.+?)\s*\}\}", re.DOTALL).match(text, head.end())
            if match is not None:
                return match[1]
    return None


def _item(text: str, items: str | None) -> Any:
    if items in ("char", "String"):
        return text[1:-1]
    return java_value(text, items) if items else _untyped(text)


def _hash_map(text: str) -> Any:
    head = _MAP_PUTS.search(text)
    end = text.find("}", head.end()) if head else -1
    if head and end >= 0:
        puts = _PUT.findall(text[head.end() : end].rstrip())
        return {key: _untyped(value.strip()) for key, value in puts}
    return {} if _MAP_EMPTY.search(text) else text


def _untyped(text: str) -> Any:
    """A value whose type is not known."""
    if text in ("true", "false"):
        return text == "true"
    if text.startswith('"') and text.endswith('"'):
        return text[1:-1]
    if _LONG.match(text):
        return int(text[:-1])
    if _FLOAT.match(text):
        return float(text.rstrip("\n")[:-1])
    for read in (int, float):
        try:
            return read(text)
        except ValueError:
            continue
    return text
