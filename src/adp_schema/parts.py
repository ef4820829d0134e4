"""Content parts: the order of text, reasoning, media and calls inside a step or an observation.

``text`` and ``reasoning`` hold all the words, joined by a blank line, so SQL finds them and an
edit has one place. ``content`` holds the order and refers to them by character spans. It is
filled exactly when there is more to say than [reasoning?, text?, calls*].

A part is an object with ``type`` text (``span``), reasoning (``span``, ``signature``), media
(``media_id``), tool_call (``call``) or opaque (``value``: what no other type can hold, as the
source wrote it); ``extra`` keeps further keys of the source's part.
"""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import Raw

from adp_schema import jsontext
from adp_schema.jsontext import text_of

JOINT = "\n\n"
_ORDER = {"reasoning": 0, "text": 1}
"""The order of plain parts; all others follow."""


class Parts:
    """Collects the parts of one step or observation in order."""

    __slots__ = ("_ends", "_last", "_parts", "_plain", "_words")

    def __init__(self) -> None:
        self._words: dict[str, list[str]] = {}
        self._ends: dict[str, int] = {}
        self._parts: list[dict[str, Any]] = []
        self._plain = True
        self._last = 0

    def text(self, text: str, extra: dict[str, Any] | None = None) -> None:
        """Add a text."""
        self._spanned("text", text, extra)

    def reasoning(self, text: str, extra: dict[str, Any] | None = None) -> None:
        """Add a piece of reasoning; a signature goes into extra."""
        self._spanned("reasoning", text, extra)

    def media(self, media_id: str, extra: dict[str, Any] | None = None) -> None:
        """Add a blob by its id."""
        self._add({"type": "media", "media_id": media_id}, extra, plain=False)

    def call(self, index: int) -> None:
        """Add the call with this index of the step."""
        self._add({"type": "tool_call", "call": index}, None, plain=True)

    def opaque(self, value: Raw | Any) -> None:
        """Add a part that no other type can hold, as the source wrote it."""
        self._add({"type": "opaque", "value": value}, None, plain=False)

    def _spanned(self, column: str, text: str, extra: dict[str, Any] | None) -> None:
        words = self._words.get(column)
        start = 0
        if words is None:
            self._words[column] = [text]
        else:
            start = self._ends[column] + len(JOINT)
            words.append(text)
        end = self._ends[column] = start + len(text)
        self._add({"type": column, "span": [start, end]}, extra, plain=words is None)

    def _add(self, part: dict[str, Any], extra: dict[str, Any] | None, *, plain: bool) -> None:
        if extra:
            part["extra"] = extra
        place = _ORDER.get(part["type"], 2)
        self._plain = self._plain and plain and not extra and place >= self._last
        self._last = place
        self._parts.append(part)

    def words(self, column: str) -> str:
        """The column text or reasoning; empty when there is none."""
        return JOINT.join(self._words.get(column, ()))

    def columns(self) -> dict[str, str]:
        """The columns text, reasoning and content, as far as they are filled."""
        words = self._words
        out: dict[str, str] = {
            name: JOINT.join(words[name]) for name in ("text", "reasoning") if name in words
        }
        if not self._plain:
            out["content"] = text_of(self._parts)
        return out


class Part(msgspec.Struct, omit_defaults=True):
    """One part of a step or an observation, with its words."""

    type: str
    text: str = ""
    span: tuple[int, int] | None = None
    media_id: str | None = None
    call: int | None = None
    value: Raw = Raw()
    extra: dict[str, Raw] = msgspec.field(default_factory=dict)


_decoder = msgspec.json.Decoder(list[Part])


def _decode(content: str) -> list[Part]:
    """The parts as written, also when they hold lone surrogates or NaN."""
    data = content.encode("utf-8")
    if jsontext.is_valid(data):
        return _decoder.decode(data)
    parts = _decoder.decode(jsontext.sanitise(data))
    for part in parts:
        part.value = _unmark(part.value)
        part.extra = {key: _unmark(value) for key, value in part.extra.items()}
    return parts


def _unmark(value: Raw) -> Raw:
    return jsontext.raw(jsontext.unmark_json(bytes(value).decode("utf-8")))


def resolve(content: str | None, text: str | None, reasoning: str | None = None) -> list[Part]:
    """Return the parts with their words filled in; an empty list without ``content``.

    When the words were edited so that the spans no longer fit, each of the two becomes one
    part in the place of its first one, and the edit shows.
    """
    if content is None:
        return []
    parts = _decode(content)
    for kind, words in (("text", text or ""), ("reasoning", reasoning or "")):
        same_kind = [part for part in parts if part.type == kind]
        if not same_kind:
            continue
        if same_kind[-1].span is None or same_kind[-1].span[1] != len(words):
            same_kind[0].span = (0, len(words))
            parts = [part for part in parts if part.type != kind or part is same_kind[0]]
        for part in same_kind:
            start, end = part.span or (0, 0)
            part.text = words[start:end]
    return parts
