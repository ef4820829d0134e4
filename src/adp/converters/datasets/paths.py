"""Paths into a row: ``a.b[0].c``; ``*`` is the first value there, ``[-1]`` the last item."""

from __future__ import annotations

import re
from functools import cache
from typing import Any

import msgspec
from msgspec import Raw

from adp.converters.kit.source_object import SourceObject
from adp.converters.reading import BRACE, BRACKET, QUOTE
from adp_schema import jsontext
from adp_schema.protocols import LIST_LINE

ANY = "*"
_PART = re.compile(r"(?P<key>[^.\[\]]+)|\[(?P<index>-?\d+)\]|\.(?=[^.\[])")

Keys = tuple[str | int, ...]


@cache
def parse_path(text: str) -> Keys:
    """The keys and numbers of a path; ``$`` is a record that is a list, ``$[0].a`` leads into it.

    Raises:
        ValueError: it is none.
    """
    if text == "$":
        return (LIST_LINE,)
    if text.startswith("$["):
        return (LIST_LINE, *parse_path(text[1:]))
    text = text.removeprefix("$.") if text.startswith("$.") else text
    keys: list[str | int] = [LIST_LINE] if text.startswith("$[") else []
    position = len(keys)
    while position < len(text):
        part = _PART.match(text, position)
        if part is None:
            raise ValueError(f"{text!r} is no path; write a.b[0].c")
        if part["key"] is not None:
            keys.append(part["key"])
        elif part["index"] is not None:
            keys.append(int(part["index"]))
        position = part.end()
    if not keys:
        raise ValueError("a path is empty")
    return tuple(keys)


def dig(raw: Raw | bytes | None, keys: Keys) -> Raw | None:
    """The value at a path inside a JSON value; also inside JSON that stands as a string."""
    value = raw
    for key in keys:
        if value is None:
            return None
        value = _into(opened(value), key)
    return value if value is None or isinstance(value, Raw) else Raw(value)


def _into(value: Raw | bytes, key: str | int) -> Raw | None:
    first = jsontext.first_byte(value)
    if first == BRACE and isinstance(key, str):
        fields = jsontext.decode_object(value)
        return next(iter(fields.values()), None) if key == ANY else fields.get(key)
    if first == BRACKET:
        items: list[Raw] = jsontext.decode_array(value)
        if key == LIST_LINE:
            return Raw(value)
        number = 0 if key == ANY else key
        if isinstance(number, int) and -len(items) <= number < len(items):
            return items[number]
    return None


def opened(raw: Raw | bytes) -> Raw | bytes:
    """The JSON in a string; any other value as it is."""
    if jsontext.first_byte(raw) != QUOTE:
        return raw
    text = jsontext.decode_value(raw)
    if text.lstrip()[:1] not in ("{", "["):
        return raw
    data: bytes = text.strip().encode("utf-8", "surrogatepass")
    try:
        usable = jsontext.is_valid(data) and jsontext.depth(data) <= jsontext.MAX_DEPTH
    except msgspec.DecodeError:
        return raw
    return data if usable else raw


def look(source: SourceObject, path: str) -> Raw | None:
    """The value at a path of an object, which stays there."""
    keys = parse_path(path)
    node = source
    for number, key in enumerate(keys):
        if not isinstance(key, str):
            return None
        if key == ANY and node.values:
            return dig(next(iter(node.values.values())), keys[number + 1 :])
        if key in node.values:
            return dig(node.values[key], keys[number + 1 :])
        node = node.peek(key)
    # An object some of whose values were taken: what is left of it.
    return Raw(jsontext.encode(node.values)) if node is not source and node.values else None


def holder(source: SourceObject, path: str) -> tuple[SourceObject, str] | None:
    """The object that has the last key of a path, and that key; None when it has none.

    What is taken from the object is no longer left over of ``source``.
    """
    *outer, last = parse_path(path)
    node = source
    for key in outer:
        if not isinstance(key, str) or key == ANY:
            return None
        node = node.parsed(key)
    return (node, last) if isinstance(last, str) and last in node else None


def take(source: SourceObject, path: str) -> Raw | None:
    """Take the value at a path, for good; None when there is none, or only a copy can be had."""
    place = holder(source, path)
    return None if place is None else place[0].take(place[1])


def take_object(source: SourceObject, path: str) -> SourceObject:
    """Take the object at a path, or in the JSON text there; what is left of it is the caller's."""
    *outer, last = parse_path(path)
    node = source
    for key in outer:
        node = node.parsed(str(key))
    return node.take_child(str(last))


def plain(raw: Raw | bytes | None) -> Any:
    """A JSON value as Python has it."""
    return None if raw is None else jsontext.decode_value(raw)


def text_at(raw: Raw | None) -> str | None:
    """A value as a text: a string, or the JSON of any other value but null."""
    if raw is None or jsontext.first_byte(raw) == ord("n"):
        return None
    if jsontext.first_byte(raw) == QUOTE:
        text: str = jsontext.decode_value(raw)
        return text
    return jsontext.one_line(raw)
