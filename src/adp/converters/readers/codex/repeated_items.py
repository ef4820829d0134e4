"""Items of the conversation that events of a Codex log repeat."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec
from msgspec import UNSET, Raw, UnsetType

from adp.converters.kit.drafts import StepDraft, merge_extra
from adp.converters.kit.source_object import SourceObject
from adp.converters.kit.usual_blocks import usual_texts
from adp.converters.reading import BRACE, BRACKET, QUOTE
from adp_schema import jsontext

_NEAR = 8
"""Lines around an event where an item may hold its text among other words."""

_ENOUGH = 8
"""Characters that a text must have for that."""


class RepeatedItems:
    """Finds the item that an event repeats, before or after it, each item for one event.

    An item is known by its place: the number of its line. A text of an item may be that of one of
    its blocks. The model's markup is cut from some events, so a text that only stands in the text
    of an item nearby is repeated, too.
    """

    def __init__(self) -> None:
        self._by_text: dict[tuple[str, str], list[int]] = defaultdict(list)
        self._used: Counter[tuple[str, str, str]] = Counter()
        self._answered: set[tuple[str, int]] = set()
        self._by_id: dict[tuple[str, str], int] = {}
        self._texts: dict[int, tuple[str, list[str]]] = {}
        self._steps: dict[int, StepDraft] = {}
        self._more: list[tuple[int, str, dict[str, Any]]] = []

    def add(self, place: int, item: SourceObject) -> None:
        """Note an item of the conversation."""
        kind = item.word("type") or ("message" if "role" in item else "")
        if kind == "message":
            kind = item.word("role")
            texts = block_texts(item.values.get("content"))
        elif kind == "reasoning":
            texts = [*block_texts(item.values.get("summary")),
                     *block_texts(item.values.get("content"))]  # fmt: skip
        else:
            return
        self._texts[place] = kind, texts
        if name := item.word("id"):
            self._by_id[kind, name] = place
        for text in texts:
            self._by_text[kind, text].append(place)

    def find(self, event: str, kind: str, texts: list[str], name: str, at: int) -> int | None:
        """Place of the item that an event repeats; None when only the event says it.

        Args:
            event: kind of the event; an item has one of each kind.
            kind: user, assistant or reasoning.
            texts: what the event says.
            name: id of the item, as the event has it.
            at: place of the event.
        """
        if name and (place := self._by_id.get((kind, name))) is not None:
            return place
        for text in texts:
            places = self._by_text.get((kind, text), [])
            number = self._used[event, kind, text]
            if number < len(places):
                self._used[event, kind, text] += 1
                return places[number]
        for place in range(at - _NEAR, at + _NEAR):
            known, others = self._texts.get(place, ("", []))
            if known != kind or (event, place) in self._answered:
                continue
            words = [text.strip() for text in texts if len(text.strip()) >= _ENOUGH]
            if any(text in other for text in words for other in others):
                return place
        return None

    def has_texts(self, place: int, texts: Iterable[str]) -> bool:
        """Whether the item at a place holds these texts word for word."""
        known = self._texts.get(place, ("", []))[1]
        return all(text in known for text in texts)

    def put(self, place: int, step: StepDraft) -> None:
        """Note the step that an item has become."""
        self._steps[place] = step

    def keep(self, place: int, name: str, more: dict[str, Any]) -> None:
        """Keep the values of an event that its item does not have."""
        self._answered.add((name, place))
        self._more.append((place, name, more))

    def finish(self) -> None:
        """Add the values of the events to the steps of their items."""
        for place, name, more in self._more:
            step = self._steps.get(place)
            if step is not None and more:
                merge_extra(step.extra, {name: more})


class BlockText(msgspec.Struct):
    """The text of a block."""

    text: str | UnsetType = UNSET


_decode_texts = msgspec.json.Decoder(list[BlockText]).decode


def block_texts(raw: Raw | None) -> list[str]:
    """The texts of a content: a string, a list of strings, or a list of blocks."""
    first = 0 if raw is None else jsontext.first_byte(raw)
    if raw is None or first not in (QUOTE, BRACKET):
        return []
    if first == QUOTE:
        return [jsontext.decode_value(raw)]
    try:
        texts = [block.text for block in _decode_texts(raw) if block.text is not UNSET]
        if not any(map(jsontext.has_mark, texts)):
            return texts
    except msgspec.ValidationError:  # no object among them, or a text that is none
        pass
    texts = []
    for item in jsontext.decode_array(raw):
        if jsontext.first_byte(item) == QUOTE:
            texts.append(jsontext.decode_value(item))
        elif jsontext.first_byte(item) == BRACE:
            values: Mapping[str, Raw] = jsontext.decode_object(item)
            text = values.get("text")
            if text is not None and jsontext.first_byte(text) == QUOTE:
                texts.append(jsontext.decode_value(text))
    return texts


def reasoning_texts(item: SourceObject, key: str) -> list[str]:
    """Take the texts of a list of blocks or strings that has nothing else in it."""
    if item.first(key) == QUOTE:
        text = item.text(key)
        return [] if text is None else [text]
    if item.first(key) != BRACKET:
        return []
    texts = usual_texts(item.values[key])
    if texts:
        item.drop(key)
        return texts
    for raw in jsontext.decode_array(item.values[key]):
        if jsontext.first_byte(raw) == QUOTE:
            texts.append(jsontext.decode_value(raw))
            continue
        block = SourceObject(raw, item.path, item.losses)
        text = block.text("text")
        if text is None or set(block.values) - {"type"}:
            return []
        if block.word("type") not in ("summary_text", "reasoning_text", "text"):
            return []
        texts.append(text)
    if texts:
        item.drop(key)
    return texts
