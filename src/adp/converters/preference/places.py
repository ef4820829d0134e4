"""Places of a row: the values that hold messages, and what they are."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

from msgspec import Raw

from adp.converters.preference import keys as k
from adp_schema import jsontext
from adp_schema.errors import RecordError

_QUOTE, _BRACE, _BRACKET = 0x22, 0x7B, 0x5B
_TURN = re.compile(r"\n\n(Human|Assistant): ?")


@dataclass
class MessagePlace:
    """A value that holds messages.

    Attributes:
        key: its key in the row.
        kind: ``list``, ``object``, ``text`` or ``dialogue``.
        items: the messages as `Raw`; the text; or the turns as (mark, text).
        path: where it is, for errors and losses.
    """

    key: str
    kind: str
    items: list[Any] = field(default_factory=list)
    path: str = ""

    def same(self) -> list[Any]:
        """The items in a form that is equal for equal messages."""
        if self.kind in ("text", "dialogue"):
            return self.items
        return [jsontext.one_line(item) for item in self.items]

    def cut(self, start: int) -> MessagePlace:
        """The place without the items before ``start``."""
        return MessagePlace(self.key, self.kind, self.items[start:], self.path)


def place_of(key: str, raw: Raw, path: str) -> MessagePlace:
    """The messages of a value.

    Raises:
        RecordError: it is neither a text, a message nor a list.
    """
    first = jsontext.first_byte(raw)
    if first == _QUOTE:
        return MessagePlace(key, "text", [jsontext.decode_value(raw)], path)
    if first == _BRACE:
        return MessagePlace(key, "object", [raw], path)
    if first == _BRACKET:
        return MessagePlace(key, "list", jsontext.decode_array(raw), path)
    raise RecordError("expected a text, a message or a list of messages", path)


def first_role(raw: Raw) -> str | None:
    """The role of the first message of a list, or of a message; None when there is none."""
    first = jsontext.first_byte(raw)
    if first == _BRACKET:
        items = jsontext.decode_array(raw)
        return first_role(_decoded(items[0])) if items else None
    if first != _BRACE:
        return None
    role = jsontext.decode_object(raw).get("role", Raw(b""))
    return jsontext.decode_value(role) if jsontext.first_byte(role) == _QUOTE else None


def _decoded(item: Raw) -> Raw:
    """A message; one that is a JSON string is decoded."""
    if jsontext.first_byte(item) != _QUOTE:
        return item
    text = jsontext.decode_value(item)
    return Raw(text.encode()) if jsontext.is_valid(text) else item


def turns_of(text: str) -> list[tuple[str, str]] | None:
    """The turns of a dialogue as (mark, text); None for a text that is none."""
    marks = list(_TURN.finditer(text))
    if not marks or marks[0].start() or marks[0][1] != "Human" or jsontext.has_mark(text):
        return None
    ends = [mark.start() for mark in marks[1:]] + [len(text)]
    return [(mark[0], text[mark.end() : end]) for mark, end in zip(marks, ends, strict=True)]


def as_dialogues(sides: tuple[MessagePlace, MessagePlace]) -> bool:
    """Make both sides dialogues, where both are such texts; whether they were."""
    if any(side.kind != "text" for side in sides):
        return False
    turns = [turns_of(side.items[0]) for side in sides]
    if turns[0] is None or turns[1] is None:
        return False
    for side, turn in zip(sides, turns, strict=True):
        side.kind, side.items = "dialogue", turn or []
    return True


def shared(sides: tuple[MessagePlace, MessagePlace]) -> int:
    """How many messages both sides begin with; at least one of each is its own."""
    first, second = sides[0].same(), sides[1].same()
    limit = min(len(first), len(second)) - 1
    for index in range(limit):
        if first[index] != second[index]:
            return index
    return max(limit, 0)


def source_of_mark(mark: str) -> str:
    """The source of a turn of a dialogue."""
    return "user" if "Human" in mark else "agent"


def default_places(places: list[MessagePlace]) -> bool:
    """Whether a reader would guess the places: those of a conversational TRL pair."""
    return tuple((place.key, place.kind) for place in places) == k.TRL_PAIR
