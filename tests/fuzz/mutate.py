"""Seeded mutations of records, as JSON text: trees whose tokens keep their spelling, and bytes."""

from __future__ import annotations

import json
import random
from typing import Any

from tests.converters.strategies import PIXEL

SCALARS = [
    *("null", "true", "0", "-0.0", "1e5", "1E+400", "12345678901234567890123", "NaN", "-Infinity"),
    *('""', '" "', '"\\ud83d"', '"a\\u0000b"', '"\\u2028"', '"\\ufeff"', '"\\ufffd"', "[]", "{}"),
    *('"user"', '"assistant"', '"agent"', '"tool"', '"system"', '"function"', '"text"', '"1.0"'),
    *('"NaN"', '"{\\"a\\": 1}"', '"[1, 2"', '"\\n\\n"', '"{}"', '"[]"', '"null"', '"-1"'),
    *('"<tool_call>\\n{\\"name\\": \\"f\\", \\"arguments\\": {}}\\n</tool_call>"',),
    *("\"<tool_call>{'name': 'f'}</tool_call><tool_call>\"", '"</think><think>x"'),
    *('"<tool_response>\\n</tool_response>"', '"adp-media:image/png;0"', '"data:a/b;base64,AA=="'),
    f'"data:image/png;base64,{PIXEL}"',
    f'"see data:image/x;base64,{PIXEL}."',
    json.dumps("long " * 3000),
]
KEYS = [
    *("id", "role", "content", "name", "text", "type", "arguments", "extra", "$shape", "$null"),
    *("", "a.b", "\ud83d", "é", "steps", "source", "observation", "value", "from", "tools"),
]

Node = Any
"""A list; an `Obj`; or a string: the text of a scalar."""


class Obj(list[tuple[str, Node]]):
    """An object: its keys, perhaps repeated, with their values."""


def parse(value: Any) -> Node:
    """A JSON value as a tree."""
    if isinstance(value, dict):
        return Obj((key, parse(item)) for key, item in value.items())
    if isinstance(value, list):
        return [parse(item) for item in value]
    return json.dumps(value, ensure_ascii=False)


_TREES: dict[int, tuple[Any, Node, list[tuple[Any, int]]]] = {}


def _tree(record: Any) -> tuple[Node, list[tuple[Any, int]]]:
    """The tree of a seed and its places, which are made once; not to be changed."""
    if id(record) not in _TREES:
        root = [parse(record)]
        _TREES[id(record)] = (record, root[0], places(root))  # the record keeps its id taken
    return _TREES[id(record)][1:]


def _copy(node: Node) -> Node:
    """A copy, since a part could come to hold itself otherwise."""
    if isinstance(node, Obj):
        return Obj([(key, _copy(item)) for key, item in node])
    if isinstance(node, tuple):  # a key and its value
        return node[0], _copy(node[1])
    return [_copy(item) for item in node] if isinstance(node, list) else node


def text(node: Node) -> str:
    """A tree as JSON text."""
    if isinstance(node, Obj):
        return "{" + ", ".join(f"{json.dumps(key)}: {text(item)}" for key, item in node) + "}"
    if isinstance(node, list):
        return "[" + ", ".join(text(item) for item in node) + "]"
    return str(node)


def places(node: Node) -> list[tuple[Any, int]]:
    """Every (container, index) below a node."""
    results: list[tuple[Any, int]] = []
    stack = [node]
    while stack:
        inner = stack.pop()
        results += [(inner, index) for index in range(len(inner))]
        items = [item[1] for item in inner] if isinstance(inner, Obj) else inner
        stack += [item for item in items if isinstance(item, list)]
    return results


def mutate(record: Any, others: list[Any], chance: random.Random) -> bytes:
    """A record with one to four changes, as bytes; one in eight has its bytes changed too."""
    root = [_copy(_tree(record)[0])]
    for _ in range(chance.choice([1, 1, 1, 2, 2, 3, 4])):
        _change(root, others, chance)
    data = text(root[0]).encode("utf-8", "surrogatepass") if root else b""
    return _change_bytes(data, chance) if chance.random() < 0.125 else data


def _value(spot: tuple[Any, int]) -> Node:
    container, index = spot
    return container[index][1] if isinstance(container, Obj) else container[index]


def _put(spot: tuple[Any, int], value: Node) -> None:
    container, index = spot
    is_object = isinstance(container, Obj)
    container[index] = (container[index][0], value) if is_object else value


def _change(root: list[Node], others: list[Any], chance: random.Random) -> None:
    spots = places(root)
    spot = chance.choice(spots)
    if chance.random() < 0.4:
        _rearrange(root, spot, chance)
        return
    match chance.randrange(6):
        case 0 | 1:
            value = chance.choice(SCALARS)
        case 2:
            value = _value(chance.choice(spots))
        case 3:
            value = _value(chance.choice(_tree(chance.choice(others))[1]))
        case 4:
            value = json.dumps(text(_value(spot)), ensure_ascii=chance.random() < 0.5)
        case _:
            depth = chance.choice([2, 30, 480, 600, 3000])
            value = "[" * depth + "]" * depth
    _put(spot, _copy(value))


def _rearrange(root: list[Node], spot: tuple[Any, int], chance: random.Random) -> None:
    container, index = spot
    match chance.randrange(5):
        case 0:
            if container is not root:
                del container[index]
        case 1:
            if container is not root:
                place = chance.randrange(len(container) + 1)
                container.insert(place, _copy(container[index]))
        case 2:
            chance.shuffle(container)
        case 3:
            if isinstance(container, Obj):
                container[index] = (chance.choice(KEYS), container[index][1])
        case _:
            value = _value(spot)
            if isinstance(value, Obj):
                value.append((chance.choice(KEYS), chance.choice(SCALARS)))
            elif isinstance(value, list):
                value.append(chance.choice(SCALARS))


def _change_bytes(data: bytes, chance: random.Random) -> bytes:
    start = chance.randrange(len(data) + 1)
    end = min(len(data), start + chance.choice([1, 1, 3, 40]))
    match chance.randrange(6):
        case 0:
            return data[:start]
        case 1:
            return data[:start] + data[end:]
        case 2:
            return data[:end] + data[start:]
        case 3:
            return data[:start] + bytes([chance.randrange(256)]) + data[start + 1 :]
        case 4:
            inserted = chance.choice(
                [b"\xff", b"\xed\xa0\xbd", b"\x00", b"\xef\xbb\xbf", b",", b"]"]
            )
            return data[:start] + inserted + data[start:]
        case _:
            return data[:start] + data[start:end] * 200 + data[end:]
