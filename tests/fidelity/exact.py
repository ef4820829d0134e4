"""JSON that keeps everything: numbers as they are spelled, the order of keys, JSON inside texts.

It is made of the standard library alone. What is compared here must not have gone through the
product's own reading and writing of JSON.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

Keys = tuple[Any, ...]
"""Where a value is: object keys, list indexes, and `INSIDE` for a text that is JSON itself."""

INSIDE = "(json)"


class Number(str):
    """A number, as it is spelled."""


@dataclass
class JsonText:
    """A text whose characters are a JSON object or array."""

    value: Any


def parse(text: str) -> Any:
    """A JSON document as a tree.

    Raises:
        ValueError: it is no JSON, or a key stands twice in an object.
    """
    return _open(_load(text))


def _load(text: str) -> Any:
    return json.loads(
        text,
        parse_int=Number,
        parse_float=Number,
        parse_constant=Number,
        object_pairs_hook=_object,
    )


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) != len(pairs):
        raise ValueError("a key occurs twice")
    return made


def _open(value: Any) -> Any:
    """Texts that are JSON become trees too."""
    if isinstance(value, dict):
        return {key: _open(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_open(item) for item in value]
    if isinstance(value, str) and not isinstance(value, Number) and value[:1] in ("{", "["):
        try:
            inner = _load(value)
        except (ValueError, RecursionError):
            return value
        return JsonText(_open(inner)) if isinstance(inner, dict | list) else value
    return value


def dump(tree: Any, separators: tuple[str, str] = (", ", ": ")) -> str:
    """The text of a tree."""
    comma, colon = separators
    if isinstance(tree, JsonText):
        return json.dumps(dump(tree.value, separators), ensure_ascii=False)
    if isinstance(tree, Number):
        return str(tree)
    if isinstance(tree, dict):
        items = [f"{text(key)}{colon}{dump(item, separators)}" for key, item in tree.items()]
        return "{" + comma.join(items) + "}"
    if isinstance(tree, list):
        return "[" + comma.join(dump(item, separators) for item in tree) + "]"
    return text(tree) if isinstance(tree, str) else json.dumps(tree)


def text(value: str) -> str:
    """A string as JSON text; escapes only where they are needed."""
    try:
        value.encode("utf-8")
    except UnicodeEncodeError:
        return json.dumps(value)
    return json.dumps(value, ensure_ascii=False)


def leaves(tree: Any, keys: Keys = ()) -> Iterator[tuple[Keys, Any]]:
    """Every value that is no object and no list, with its place; JSON inside texts is opened."""
    if isinstance(tree, JsonText):
        yield from leaves(tree.value, (*keys, INSIDE))
    elif isinstance(tree, dict):
        for key, item in tree.items():
            yield from leaves(item, (*keys, key))
    elif isinstance(tree, list):
        for index, item in enumerate(tree):
            yield from leaves(item, (*keys, index))
    else:
        yield keys, tree


def containers(tree: Any, keys: Keys = ()) -> Iterator[tuple[Keys, Any]]:
    """Every object and list, with its place."""
    if isinstance(tree, JsonText):
        yield from containers(tree.value, (*keys, INSIDE))
    elif isinstance(tree, dict | list):
        yield keys, tree
        for key, item in tree.items() if isinstance(tree, dict) else enumerate(tree):
            yield from containers(item, (*keys, key))


def at(tree: Any, keys: Keys) -> Any:
    """The value at a place."""
    for key in keys:
        tree = tree.value if key == INSIDE and isinstance(tree, JsonText) else tree[key]
    return tree


def replaced(tree: Any, changes: dict[Keys, Any], keys: Keys = ()) -> Any:
    """A copy with other values at some places; `DELETE` takes the place away."""
    if keys in changes:
        return changes[keys]
    if isinstance(tree, JsonText):
        inner = replaced(tree.value, changes, (*keys, INSIDE))
        return inner if inner is DELETE else JsonText(inner)
    if isinstance(tree, dict):
        made = {key: replaced(item, changes, (*keys, key)) for key, item in tree.items()}
        return {key: item for key, item in made.items() if item is not DELETE}
    if isinstance(tree, list):
        items = [replaced(item, changes, (*keys, index)) for index, item in enumerate(tree)]
        return [item for item in items if item is not DELETE]
    return tree


DELETE = object()


def pattern(keys: Keys) -> str:
    """The kind of a place: list indexes and numbered keys are stars."""
    words = ["*" if isinstance(key, int) or re.fullmatch(r"\d+", key) else key for key in keys]
    return "$" + "".join(f".{word}" for word in words)


def place(keys: Keys) -> str:
    """A place, for reading."""
    return "$" + "".join(f"[{key}]" if isinstance(key, int) else f".{key}" for key in keys)
