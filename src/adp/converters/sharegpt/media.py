"""Columns of media: their items stand in the texts as ``<image>``, ``<video>`` and ``<audio>``."""

from __future__ import annotations

from collections import Counter
from typing import Any

from msgspec import Raw

from adp.converters.sharegpt import keys as k
from adp.converters.text_calls import OPEN
from adp_schema import jsontext, media
from adp_schema.builder import RowBuilder
from adp_schema.model import Columns
from adp_schema.parts import Parts

_QUOTE, _BRACKET = 0x22, 0x5B


class MediaColumns:
    """Puts the items of the columns of media where the texts name them.

    When a column has as many items as the texts have places, the items become parts of the texts.
    Otherwise the column stays in ``extra`` as it is.
    """

    def __init__(self, builder: RowBuilder) -> None:
        self._builder = builder
        self._waiting: dict[str, list[tuple[str, dict[str, Any]]]] = {}

    def take(self, fields: dict[str, Raw], form: dict[str, Any], turns: list[Raw]) -> None:
        """Take the columns that fit out of a record."""
        names = {**k.MEDIA, **k.SINGLE_MEDIA}
        results = {name: names[name] for name in fields if name in names}
        if not results:
            return
        places = _places(turns)
        for name, word in results.items():
            items, way = _references(fields[name])
            if items is None or word in self._waiting or len(items) != places[word]:
                continue
            parts = [self._part(item, word) for item in items]
            if None in parts:
                continue
            self._waiting[word] = [part for part in parts if part is not None]
            form.setdefault("media", {})[name] = way
            del fields[name]

    def _part(self, reference: str, word: str) -> tuple[str, dict[str, Any]] | None:
        """Id and ``extra`` of the part for an item; None when it could not be written again."""
        blob = media.media_of_reference(reference)
        media_id = self._builder.media(blob)
        stored = self._builder.stored_mime(media_id)
        extra: dict[str, Any] = {} if word == "image" else {"kind": word}
        if stored != blob.mime:
            if stored is None or blob.mime is None:
                return None
            extra["$mime"] = blob.mime
        return media_id, extra

    def content(self, text: str, columns: Columns) -> None:
        """Fill text, and content when the text names media."""
        if "<" not in text or not any(self._waiting.values()):
            columns["text"] = self._builder.text(text)
            return
        parts = Parts()
        position = 0
        for match in k.TOKEN.finditer(text):
            waiting = self._waiting.get(match.group(1))
            if not waiting:
                continue
            if match.start() > position:
                parts.text(self._builder.text(text[position : match.start()]))
            parts.media(*waiting.pop(0))
            position = match.end()
        if position < len(text) or not position:
            parts.text(self._builder.text(text[position:]))
        columns.update(parts.columns())


def _references(raw: Raw) -> tuple[list[str] | None, str]:
    """The items of a column, when all are strings, and whether it is a list or one string."""
    first = jsontext.first_byte(raw)
    values = [raw] if first == _QUOTE else []
    if first == _BRACKET:
        values = jsontext.decode_array(raw)
    elif first != _QUOTE:
        return None, ""
    if any(jsontext.first_byte(value) != _QUOTE for value in values):
        return None, ""
    items: list[str] = [jsontext.decode_value(value) for value in values]
    if any(jsontext.has_mark(item) for item in items):
        return None, ""
    return items, "list" if first == _BRACKET else "string"


def _places(turns: list[Raw]) -> Counter[str]:
    """How often the texts name media of each kind; -1 where a text of calls does."""
    counts: Counter[str] = Counter()
    calling: set[str] = set()
    for raw in turns:
        role, text = turn_words(raw)
        words = k.TOKEN.findall(text or "")
        counts.update(words)
        if role in k.CALL_ROLES or OPEN in (text or ""):
            calling.update(words)
    counts.update({word: -counts[word] - 1 for word in calling})
    return counts


def turn_words(raw: Raw) -> tuple[str, str | None]:
    """Role in small letters and text of a turn; empty where it has none."""
    if jsontext.first_byte(raw) != 0x7B:
        return "", None
    turn = jsontext.decode_object(raw)
    role, value = role_key(turn), value_key(turn)
    if role is None or value is None or jsontext.first_byte(turn[value]) != _QUOTE:
        return "", None
    return jsontext.decode_value(turn[role]).lower(), jsontext.decode_value(turn[value])


def role_key(turn: dict[str, Raw]) -> str | None:
    """The key of the role: the first one that holds a string."""
    for name in k.ROLE_KEYS:
        if name in turn and jsontext.first_byte(turn[name]) == _QUOTE:
            return name
    return None


def value_key(turn: dict[str, Raw]) -> str | None:
    """The key of what is said: the first one that is not null, or else one that is."""
    names = [name for name in k.VALUE_KEYS if name in turn]
    filled = [name for name in names if bytes(turn[name]) != b"null"]
    return next(iter(filled or names), None)
