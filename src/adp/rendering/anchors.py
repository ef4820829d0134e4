"""Where the words of messages begin in a render: found by rendering it again with marks."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

from adp.rendering.probe import Plain, TemplateRefusalError

_PRIVATE = range(0xE000, 0xF900)
"""Characters of private use; Unicode gives them no meaning."""

_TAKEN = re.compile(r"[\ue000-\uf8ff]")
_LEADING = re.compile(r"\s*(?:<[^<>\s]{1,40}>\s*)*")
_TAG = re.compile(r"<[^<>\s]{1,40}>")

_END = sys.maxsize

VARIANTS = 32
"""Texts that are remembered for one form."""


@dataclass(frozen=True, slots=True)
class Marks:
    """Three characters that stand nowhere in a chat.

    A mark with a number is the first or second of them, the number, and the third.

    Attributes:
        first: where the words of a message begin.
        last: where they end.
        close: ends a mark with a number.
    """

    first: str
    last: str
    close: str

    def pattern(self) -> re.Pattern[str]:
        """Finds marks with a number."""
        return re.compile(f"([{self.first}{self.last}])([0-9]+){self.close}")

    def within(self, text: str) -> bool:
        """Whether one of the characters stands in a text."""
        return self.first in text or self.last in text or self.close in text


def free_marks(*values: Any) -> Marks:
    """Characters of private use that stand nowhere in some values.

    Args:
        values: texts, and lists and objects of texts.

    Raises:
        TemplateRefusalError: there are none.
    """
    taken: set[str] = set()
    for text in _texts(values):
        if not text.isascii():
            taken.update(_TAKEN.findall(text))
    free = (chr(code) for code in _PRIVATE if chr(code) not in taken)
    chars = [char for char, _ in zip(free, range(3), strict=False)]
    if len(chars) < 3:
        raise TemplateRefusalError("the chat uses all characters of private use (U+E000 to U+F8FF)")
    return Marks(*chars)


def _texts(value: Any) -> Iterable[str]:
    """All texts in a value, with the keys of objects."""
    left = [value]
    while left:
        result = left.pop()
        if isinstance(result, str):
            yield result
        elif isinstance(result, dict):
            left += result
            left += result.values()
        elif isinstance(result, (list, tuple)):
            left += result


def with_marks(messages: Sequence[Plain], marks: Marks) -> list[Plain]:
    """Messages with marks around the words of each. Where there are no words, there is no mark."""
    return [_marked(message, str(index), marks) for index, message in enumerate(messages)]


def _marked(message: Plain, number: str, marks: Marks) -> Plain:
    first, last = marks.first + number + marks.close, marks.last + number + marks.close
    marked = {**message}
    for key in ("content", "reasoning_content", "thinking"):
        text = message.get(key)
        if not isinstance(text, str) or not text:
            continue
        start, end = _words(text)
        if start < end:
            marked[key] = text[:start] + first + text[start:end] + last + text[end:]
    if message.get("tool_calls"):
        marked["tool_calls"] = [
            {**call, "function": {**call["function"], "name": first + call["function"]["name"]}}
            for call in message["tool_calls"]
        ]
    return marked


def without_marks(text: str, marks: Marks) -> str:
    """A text from which all marks are taken out."""
    return marks.pattern().sub("", text)


def _words(text: str) -> tuple[int, int]:
    """Where the words of a text begin and end: without white space and tags around them."""
    match = _LEADING.match(text)
    start = match.end() if match else 0
    end = len(text.rstrip())
    while end > start and text[end - 1] == ">":
        tag = text.rfind("<", start, end)
        if tag < 0 or not _TAG.fullmatch(text, tag, end):
            break
        end = len(text[:tag].rstrip())
    return start, end


class Anchors:
    """Where the words of messages begin in a render.

    Args:
        text: the render.
        marked: the render with marks.
        marks: the marks.

    Attributes:
        sound: whether both are equal but for the marks.
    """

    def __init__(self, text: str, marked: str, marks: Marks) -> None:
        self.sound = not marks.within(text)
        self._at: dict[int, int] = {}
        self._next: dict[int, tuple[int, int]] = {}
        self._before: dict[int, tuple[int, bool]] = {}
        self._marks: list[tuple[int, int]] = []
        if self.sound:
            self._read(text, marked, marks)

    def _read(self, text: str, marked: str, marks: Marks) -> None:
        pieces = []
        done = size = 0
        before = (0, True)
        newest = -1
        for match in marks.pattern().finditer(marked):
            piece = marked[done : match.start()]
            pieces.append(piece)
            done, size = match.end(), size + len(piece)
            kind, number = match.group(1), int(match.group(2))
            self._marks.append((number, size))
            if kind == marks.first and number not in self._at:
                self._at[number] = size
                self._before[number] = before
                if newest >= 0:
                    self._next[newest] = (number, size)
                newest = number
            before = (size, kind == marks.last)
        pieces.append(marked[done:])
        self.sound = "".join(pieces) == text

    def hold(self, places: Sequence[tuple[int, int]], owners: Sequence[int]) -> bool:
        """Whether parts of the render lie where their messages do.

        No mark of an earlier message may come after the begin of a part, and none of a later
        one before its end.

        Args:
            places: first and last character of each part, in order.
            owners: index of the message of each part, in order.
        """
        last: dict[int, int] = {}
        first: dict[int, int] = {}
        for number, place in self._marks:
            last[number] = max(place, last.get(number, 0))
            first[number] = min(place, first.get(number, place))
        size = max(last, default=-1) + 1
        # Where all messages before one end, and where those after it begin.
        ends = [0, *accumulate((last.get(number, 0) for number in range(size)), max)]
        behind = (first.get(number, _END) for number in reversed(range(size)))
        begins = [*accumulate(behind, min)][::-1]
        begins += [_END] * (max(owners, default=0) + 2 - size)
        return all(
            ends[min(owner, size)] <= start and end <= begins[owner + 1]
            for (start, end), owner in zip(places, owners, strict=True)
        )

    def at(self, index: int) -> int | None:
        """Where the words of a message begin."""
        return self._at.get(index)

    def next(self, index: int) -> tuple[int, int] | None:
        """The message whose words come next, and where; None unless it is a later message."""
        value = self._next.get(index)
        return value if value is not None and value[0] > index else None

    def before(self, index: int) -> tuple[int, bool]:
        """The last mark before a message, and whether only the template's words follow it."""
        return self._before[index]


def keep(known: dict[str, int], tail: str, back: int) -> None:
    """Remember a text; one that was found with another distance is not relied on."""
    if tail in known:
        known[tail] = back if known[tail] == back else -1
    elif len(known) < VARIANTS:
        known[tail] = back


def recall(known: dict[str, int] | None, text: str, at: int) -> int | None:
    """Where a span begins or ends before the words at a place; None when it is not known.

    Args:
        known: texts that end at such a place, and how many characters lie between.
        text: the render.
        at: where the words begin.
    """
    backs = {back for tail, back in (known or {}).items() if text.endswith(tail, 0, at)}
    if len(backs) != 1 or min(backs) < 0:
        return None
    return at - backs.pop()
