r"""The repair of ET-Agent's tags in a text (`adp.core.tagged_run`).

It inserts missing tags: ``</answer>`` at the end; ``<answer>`` before the line of the
last ``\boxed``, else before the last line; and around each thought the ``<think>`` or ``</think>``
that it lacks. A thought reaches from the start or a ``</result>`` to the next tool or the answer.
Empty pairs of both go. ET-Agent's own function inserts ``</think>`` and ``<think>`` at these places
whether they are there or not, and so mends only texts without any; where its outcome is valid for
such a text with whole calls of one tool, ours is the same but for blanks (a property in the
tests).
"""

from __future__ import annotations

import re
from collections.abc import Sequence

_NEXT = re.compile(r"<(?:search|python|answer)>")
_EMPTY = re.compile(r"<think>[\n ]*</think>")
_BLANK = "\n "
_END = "</result>"


class TextPieces:
    """A text that is put together from pieces, and edited as a whole.

    Args:
        pieces: the pieces.

    Attributes:
        text: the whole text.
    """

    def __init__(self, pieces: Sequence[str]) -> None:
        self.text = "".join(pieces)
        self._cuts = [0]
        for piece in pieces:
            self._cuts.append(self._cuts[-1] + len(piece))

    def insert(self, at: int, tag: str) -> None:
        """Insert a tag. Between two pieces an end tag goes to the first, another to the second."""
        to_left = tag.startswith("</")
        self.text = self.text[:at] + tag + self.text[at:]
        cuts = [
            cut + len(tag) if cut > at or (cut == at and to_left and cut > 0) else cut
            for cut in self._cuts[:-1]
        ]
        self._cuts = [*cuts, len(self.text)]

    def delete(self, start: int, end: int) -> None:
        """Delete a span."""
        self.text = self.text[:start] + self.text[end:]
        self._cuts = [
            cut if cut <= start else max(start, cut - (end - start)) for cut in self._cuts
        ]

    def split(self) -> list[str]:
        """The pieces as they are now."""
        ends = zip(self._cuts, self._cuts[1:], strict=False)
        return [self.text[start:end] for start, end in ends]


def repair(pieces: TextPieces) -> bool:
    """Insert missing tags, and delete empty thoughts.

    Returns:
        False when it is not known where an answer or a result belongs.
    """
    if not _mend_answer(pieces):
        return False
    while match := _EMPTY.search(pieces.text):
        pieces.delete(match.start(), match.end())
    thoughts = _thoughts(pieces.text)
    if thoughts is None:
        return False
    for start, end in reversed(thoughts):
        _mend_thought(pieces, start, end)
    return True


def _mend_answer(pieces: TextPieces) -> bool:
    text = pieces.text
    if "</answer>" not in text:
        pieces.insert(len(text.rstrip()), "</answer>")
        text = pieces.text
    if "<answer>" in text:
        return True
    place = text.rfind("\\boxed")
    if place < 0:
        place = len(text[: text.rfind("</answer>")].rstrip(_BLANK))
    line = text.rfind("\n", 0, place)
    if line < 0:
        return False
    pieces.insert(line + 1, "<answer>")
    return True


def _thoughts(text: str) -> list[tuple[int, int]] | None:
    """Where the thoughts are: up to each tool and the answer; None when a result has no end."""
    thoughts = []
    place = 0
    while following := _NEXT.search(text, place):
        thoughts.append((place, following.start()))
        if following.group() == "<answer>":
            return thoughts
        end = text.find(_END, following.end())
        if end < 0:
            return None
        place = end + len(_END)
    return thoughts


def _mend_thought(pieces: TextPieces, start: int, end: int) -> None:
    """Put a thought between its tags, if it is one and lacks one of them."""
    thought = pieces.text[start:end]
    text = thought.strip(_BLANK)
    opened, closed = text.count("<think>"), text.count("</think>")
    if not text:
        return
    if not closed:
        pieces.insert(start + len(thought.rstrip(_BLANK)), "</think>")
    if not opened:
        pieces.insert(start + len(thought) - len(thought.lstrip(_BLANK)), "<think>")
