"""Messages as typed values, and how their characters stand in the source.

Values do not say in which order the keys were, whether one occurred twice, or what stood between
them. Most messages are written plainly: with their keys in one order and nothing else, so that
writing the values again gives the same characters. Of others each key is decoded to its JSON text,
which tells the order, and by its length that no character stands between them.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain
from operator import attrgetter, methodcaller
from typing import Any

import msgspec
from msgspec import UNSET, Raw, UnsetType

from adp_schema import jsontext

Values = dict[str, list[Any]]
"""Key -> its value in each message, None where there is none. Keys that none has are left out."""


class UsualFunction(msgspec.Struct, gc=False, forbid_unknown_fields=True):
    """The function of a call."""

    name: str
    arguments: Raw


class UsualCall(msgspec.Struct, gc=False, forbid_unknown_fields=True):
    """A call of a usual form."""

    id: str
    type: str
    function: UsualFunction


class UsualMessage(msgspec.Struct, gc=False, forbid_unknown_fields=True):
    """A message of a usual form; its keys in the order in which most are written."""

    role: str
    tool_call_id: str | UnsetType | None = UNSET
    name: str | UnsetType | None = UNSET
    content: str | list[Raw] | UnsetType | None = UNSET
    reasoning_content: str | UnsetType | None = UNSET
    tool_calls: list[UsualCall] | UnsetType | None = UNSET


class _PlainRecord(msgspec.Struct, gc=False):
    """Of a record the messages alone."""

    messages: list[UsualMessage]


@dataclass(slots=True)
class UsualForm:
    """What messages of one form have in common.

    Attributes:
        is_step: whether they are steps, not observations.
        row: their columns source, kind and extra.
        requestor: the column of their calls.
        size: characters beside the values when no white space stands between the tokens.
        spaces: characters that a space behind each comma and colon adds.
        head: how they begin with such spaces.
    """

    is_step: bool
    row: tuple[str, str, str | None]
    requestor: str
    size: int
    spaces: int
    head: bytes


decode_messages = msgspec.json.Decoder(list[UsualMessage]).decode
"""Messages of a usual form. Raises `msgspec.DecodeError` when one has another."""

decode_objects = msgspec.json.Decoder(list[dict[str, Raw]]).decode
_items = msgspec.json.Decoder(list[Raw]).decode
_encode = msgspec.json.Encoder().encode
_decode_record = msgspec.json.Decoder(_PlainRecord).decode
_GETTERS = {name: attrgetter(name) for name in UsualMessage.__struct_fields__}
_LOOKED_AT = 3
_BEFORE = b'"messages":'
_IN_PLACE = Raw(b'"\\u0000\\u0000"')
"""Stands for the messages of a record; one that holds it itself is read in another way."""


def columns_of(messages: list[UsualMessage]) -> tuple[Values, dict[str, list[type]]]:
    """The values of some messages by their keys, and the types of those but the role."""
    values: Values = {"role": [message.role for message in messages]}
    types: dict[str, list[type]] = {}
    for name, get in _GETTERS.items():
        if name == "role":
            continue
        column = list(map(get, messages))
        missing = column.count(UNSET)
        if missing == len(column):
            continue
        types[name] = list(map(type, column))
        values[name] = [None if it is UNSET else it for it in column] if missing else column
    return values, types


def is_plainly_written(messages: list[UsualMessage], raw: Raw) -> bool:
    """Whether the values, written again without white space, are the characters of the source."""
    head = _encode(messages[:_LOOKED_AT])[:-1]
    return bytes(memoryview(raw)[: len(head)]) == head and Raw(_encode(messages)) == raw


def plain_record(data: bytes) -> tuple[bytes, dict[str, Raw], list[UsualMessage]] | None:
    """A record whose messages are plainly written, taken apart in one pass.

    When a text in place of the messages is the value of that key in what is left, they are its
    value in the record.

    Args:
        data: the record.

    Returns:
        The record with `_IN_PLACE` for its messages, its keys with their JSON texts, and the
        messages; None when it is to be read in another way.

    Raises:
        msgspec.DecodeError: the same.
        RecursionError: the same.
    """
    start = data.find(_BEFORE) + len(_BEFORE)
    if start < len(_BEFORE) or data[start : start + 1] != b"[":
        return None
    messages = _decode_record(data).messages
    if not data.startswith(_encode(messages[:_LOOKED_AT])[:-1], start):
        return None
    text = _encode(messages)
    if not data.startswith(text, start):
        return None
    rest = b"".join((data[:start], _IN_PLACE, data[start + len(text) :]))
    fields = jsontext.decode_object(rest)
    if fields.get("messages") != _IN_PLACE or rest.count(_IN_PLACE) > 1:
        return None
    return rest, fields, messages


# ---- other orders --------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class UsualLayout:
    """How the calls of a message are written: what stands before id, name and arguments."""

    first: str
    second: str
    third: str
    joint: str


_COMPACT = UsualLayout('{"id":"', '","type":"function","function":{"name":"', '","arguments":', ",")
_SPACED = UsualLayout(
    '{"id": "', '", "type": "function", "function": {"name": "', '", "arguments": ', ", "
)


def layout_of(
    raw: Raw, objects: list[dict[str, Raw]], forms: list[UsualForm]
) -> UsualLayout | None:
    """The layout of the messages; None for another one, and when a key occurs twice.

    As long as its keys and values say a text is only when nothing else is in it.
    """
    size = sum(map(len, chain.from_iterable(map(_VALUES_OF, objects)))) + len(objects) + 1
    for form in forms:
        size += form.size
    if size == len(raw):
        return _COMPACT
    for text, item, form in zip(_items(raw), objects, forms, strict=True):
        if len(text) != form.size + form.spaces + sum(map(len, item.values())):
            return None
        if memoryview(text)[: len(form.head)] != form.head:
            return None
    return _SPACED


_VALUES_OF = methodcaller("values")


def are_calls_written(values: Values, objects: list[dict[str, Raw]], layout: UsualLayout) -> bool:
    """Whether the calls are written in a layout, with their keys in order and nothing else."""
    if "tool_calls" not in values:
        return True
    first, second, third = layout.first, layout.second, layout.third
    expected: list[str] = []
    written: list[Raw] = []
    for made, item in zip(values["tool_calls"], objects, strict=True):
        if made is None:
            continue
        joint = "["
        for call in made:
            function = call.function
            text = str(function.arguments, "utf-8")
            expected.append(f"{joint}{first}{call.id}{second}{function.name}{third}{text}}}}}")
            joint = layout.joint
        expected.append("]")
        written.append(item["tool_calls"])
    return "".join(expected).encode() == b"".join(written)
