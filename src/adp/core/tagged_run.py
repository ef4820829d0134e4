r"""ET-Agent's text form of a trajectory: its two validators, and the repair of its tags.

    <think>...</think> <search>query</search> <result>...</result> <think>...</think>
    <python>code</python> <result>...</result> ... <answer> ... \boxed{...} </answer>

**v1**, of the flywheel and of the reward: as many ``<think>`` as ``</think>``, at least one; one
``<answer>`` and one ``</answer>``, in this order; each ``<search>`` and ``<python>`` is followed by
its end tag, then by a result with both tags; ``\boxed{`` and ``}`` stand in the answer.

**v2**, of the Pareto sampling, asks besides: the text begins with ``<think>`` and ends with
``</answer>``; the answer holds exactly one ``\boxed{``, and no tag of thoughts or tools.

The **repair** inserts missing tags: ``</answer>`` at the end; ``<answer>`` before the line of the
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

TOOLS = ("search", "python")
TAGS = re.compile(r"</?(?:think|search|python|result|answer)>")

_NEXT = re.compile(r"<(?:search|python|answer)>")
_EMPTY = re.compile(r"<think>[\n ]*</think>")
_BLANK = "\n "
_END = "</result>"


def invalid_v1(text: str) -> str | None:
    """What is wrong with a text by the first validator; None when it is valid."""
    text = text.strip()
    thoughts = text.count("<think>")
    if thoughts != text.count("</think>") or not thoughts:
        return "think tags are missing or do not match"
    if text.count("<answer>") != 1 or text.count("</answer>") != 1:
        return "there is not exactly one answer"
    if any(_is_broken(text, tool) for tool in TOOLS):
        return "a tool call without its result"
    start, end = text.find("<answer>"), text.find("</answer>")
    if start > end:
        return "the answer ends before it begins"
    inside = text[start:end]
    if "\\boxed{" not in inside or "}" not in inside:
        return "the answer has no box"
    return None


def invalid_v2(text: str) -> str | None:
    """What is wrong with a text by the second validator; None when it is valid."""
    text = text.strip()
    if wrong := invalid_v1(text):
        return wrong
    if not text.startswith("<think>"):
        return "the text does not begin with a thought"
    if not text.endswith("</answer>"):
        return "the text does not end with the answer"
    inside = text[text.find("<answer>") + len("<answer>") : text.find("</answer>")]
    if inside.count("\\boxed{") != 1:
        return "the answer has more than one box"
    if any(f"<{end}{tag}>" in inside for tag in ("think", *TOOLS) for end in ("", "/")):
        return "the answer holds tags"
    return None


def _is_broken(text: str, tool: str) -> bool:
    """Whether a call of a tool lacks its end tag or its result, or has them in another order."""
    place = 0
    while (start := text.find(f"<{tool}>", place)) >= 0:
        end = text.find(f"</{tool}>", start)
        # ET-Agent looks for the result of a search from the call on, of Python from its end on.
        result = text.find("<result>", start if tool == "search" else max(end, 0))
        place = text.find(_END, max(result, 0))
        if min(end, result, place) < 0 or not start < end < result < place:
            return True
    return False


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
