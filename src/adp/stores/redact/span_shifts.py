"""Texts that something refers to by spans of characters: the spans go with the words."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import msgspec
from msgspec import Raw

from adp.stores.redact.finder import Cleaned, FoundValue, ValueFinder
from adp_schema import jsontext

Span = tuple[int, int]


@dataclass
class CleanedText:
    """A text that was cleaned in pieces.

    Attributes:
        text: the new text.
        values: what was found.
        starts: where the pieces began.
        pieces: for each, where it begins now, and what was changed in it.
    """

    text: str
    values: list[FoundValue] = field(default_factory=list)
    starts: list[int] = field(default_factory=list)
    pieces: list[tuple[int, Cleaned | None]] = field(default_factory=list)

    def place(self, old: int, *, end: bool = False) -> int:
        """Where a character of the old text is now; see `Cleaned.place`."""
        index = max(bisect_right(self.starts, old) - 1, 0)
        if end and self.starts[index] == old and index:
            index -= 1
        begin, cleaned = self.pieces[index]
        inside = old - self.starts[index]
        return begin + (cleaned.place(inside, end=end) if cleaned else inside)


def clean_words(
    finder: ValueFinder, texts: Sequence[tuple[str, Sequence[Span] | None]]
) -> list[CleanedText | None]:
    """Clean texts, each part for itself where one has several; None where nothing was found.

    A match over the border of two parts would be none in the source, which keeps them apart.

    Args:
        finder: finds.
        texts: texts and their parts, in order; None for one part.
    """
    borders = [_borders(text, spans) for text, spans in texts]
    pieces = [
        text[start:end]
        for (text, _), spans in zip(texts, borders, strict=True)
        for start, end in pairwise(spans)
    ]
    cleaned = iter(zip(pieces, finder.texts(pieces), strict=True))
    return [_joined(spans, [next(cleaned) for _ in spans[1:]]) for spans in borders]


def _borders(text: str, spans: Sequence[Span] | None) -> list[int]:
    borders = [0, *(place for span in spans or () for place in span), len(text)]
    return borders if sorted(borders) == borders else [0, len(text)]


def _joined(borders: list[int], pieces: list[tuple[str, Cleaned | None]]) -> CleanedText | None:
    out = CleanedText("")
    texts: list[str] = []
    size = 0
    for start, (text, cleaned) in zip(borders, pieces, strict=False):
        out.starts.append(start)
        out.pieces.append((size, cleaned))
        if cleaned is not None:
            text = cleaned.text
            out.values += cleaned.values
            cleaned.text = ""
        texts.append(text)
        size += len(text)
    out.text = "".join(texts)
    return out if out.values else None


class Content:
    """The column ``content`` of a step or an observation.

    Args:
        text: its JSON text.
    """

    def __init__(self, text: str) -> None:
        self._marked = not jsontext.is_valid(text)
        data = text.encode("utf-8")
        array = jsontext.decode_array(jsontext.sanitise(data) if self._marked else data)
        self._parts = [jsontext.decode_object(part) for part in array]

    def spans(self, kind: str) -> list[Span]:
        """The spans of the parts of a kind: text or reasoning."""
        spans = []
        for part in self._parts:
            if self._is(part, kind):
                start, end = msgspec.json.decode(part["span"], type=tuple[int, int])
                spans.append((start, end))
        return spans

    def move(self, kind: str, words: CleanedText) -> None:
        """Move the spans of a kind to where its words are now."""
        for part in self._parts:
            if self._is(part, kind):
                start, end = msgspec.json.decode(part["span"], type=tuple[int, int])
                moved = [words.place(start), words.place(end, end=True)]
                part["span"] = jsontext.raw(jsontext.text_of(moved))

    def _is(self, part: dict[str, Raw], kind: str) -> bool:
        return "span" in part and bytes(part.get("type", b"")) == f'"{kind}"'.encode()

    def text(self) -> str:
        """As JSON text."""
        written = jsontext.text_of(self._parts)
        return jsontext.unmark_json(written) if self._marked else written


def read_content(text: str | None) -> Content | None:
    """Take a content apart; None when there is none, or none that can be read."""
    if text is None:
        return None
    try:
        return Content(text)
    except (msgspec.DecodeError, ValueError, TypeError):
        return None
