r"""Reading through backslashes: a text as its reader sees it, and the way back to its characters.

A key in JSON text may be spelt ``hf\u005f...``, and JSON text may lie inside JSON text. So a text
with such escapes is searched decoded too, once for each layer, and what is found there is mapped
back to the characters that stand for it.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass

LAYERS = 4
"""How often JSON text inside JSON text is decoded."""

_DEEP = r"\\{3}\"|\\{4}[0-9A-Za-z]"
"""A quote or a backslash in JSON inside JSON inside JSON. Rules know of fewer layers."""

_ESCAPED = re.compile(rf"\\[u/]|{_DEEP}")
"""Escapes that hide a letter or a slash. Others do not: rules know of ``\\n`` before a key."""

HIDES = rf"\\u00[2-7][0-9a-fA-F]|\\/|{_DEEP}"
"""What hides a character that keys are made of; no look-around, for prefilters."""

_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|(.))", re.DOTALL)
_PLAIN = {"n": "\n", "r": "\r", "t": "\t", "b": "\b", "f": "\f"}


@dataclass(frozen=True)
class DecodedText:
    """A text with one layer of escapes decoded.

    Attributes:
        text: the decoded text.
        inner: view that it was decoded from; None for the text itself.
        places: where each escape is in the decoded text.
        starts: where it starts in the text below.
        ends: where it ends there.
    """

    text: str
    inner: DecodedText | None = None
    places: tuple[int, ...] = ()
    starts: tuple[int, ...] = ()
    ends: tuple[int, ...] = ()

    def span(self, start: int, end: int) -> tuple[int, int]:
        """The characters of the text itself that stand for some of the view, ``end > start``."""
        if self.inner is None:
            return start, end
        return self.inner.span(self._start(start), self._end(end - 1))

    def _start(self, place: int) -> int:
        index = bisect_right(self.places, place) - 1
        if index < 0:
            return place
        if self.places[index] == place:
            return self.starts[index]
        return self.ends[index] + place - self.places[index] - 1

    def _end(self, place: int) -> int:
        """End of the character at a place."""
        index = bisect_right(self.places, place) - 1
        if index >= 0 and self.places[index] == place:
            return self.ends[index]
        return self._start(place) + 1


def is_escaped(text: str) -> bool:
    """Whether a text has escapes that may hide something."""
    return _ESCAPED.search(text) is not None


def decoded(view: DecodedText) -> DecodedText:
    """The view with one layer of escapes decoded."""
    return rewritten(view, _ESCAPE, _character)


def rewritten(
    view: DecodedText, pattern: re.Pattern[str], character: Callable[[re.Match[str]], str]
) -> DecodedText:
    """A view with one character, or none, for each match of a pattern.

    Args:
        view: the view.
        pattern: what is replaced.
        character: what stands for a match; where that is nothing, the character behind it knows
            its place.
    """
    pieces: list[str] = []
    places: list[int] = []
    starts: list[int] = []
    ends: list[int] = []
    done = size = 0
    for match in pattern.finditer(view.text):
        new = character(match)
        pieces += [view.text[done : match.start()], new]
        size += match.start() - done
        done = match.end()
        if new or done < len(view.text):
            places.append(size)
            starts.append(match.start() if new else done)
            ends.append(done if new else done + 1)
        size += len(new)
    pieces.append(view.text[done:])
    return DecodedText("".join(pieces), view, tuple(places), tuple(starts), tuple(ends))


def _character(match: re.Match[str]) -> str:
    """One character; half of one that JSON writes as two is not told from the other half."""
    code, plain = match.groups()
    if not code:
        return _PLAIN.get(plain, str(plain))
    number = int(code, 16)
    return "\ufffd" if 0xD800 <= number < 0xE000 else chr(number)
