"""What kind of difference there is between the trained texts of two sides."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from itertools import combinations

SAME = "the same"
END = "the newline after the end of a turn"
OPENING = "the words that open a turn"
EMPTY = "an empty thought before a step without reasoning"
THOUGHT = "reasoning"
SPACES = "white space"
OTHER = "other"

_OPENING = re.compile(r"^<\|im_start\|>assistant\n")
_THOUGHT = re.compile(r"<think>.*?</think>\s*", re.DOTALL)

_WITHOUT: dict[str, Callable[[str], str]] = {
    END: lambda text: text.removesuffix("\n"),
    OPENING: lambda text: _OPENING.sub("", text),
    EMPTY: lambda text: text.replace("<think>\n\n</think>\n\n", ""),
    THOUGHT: lambda text: _THOUGHT.sub("", text),
    SPACES: lambda text: " ".join(text.split()),
}


def kind_of(ours: Sequence[str], theirs: Sequence[str]) -> str:
    """The fewest kinds of differences without which both sides are the same, in words.

    Args:
        ours: trained texts of a row, in order.
        theirs: those of the other side.
    """
    if list(ours) == list(theirs):
        return SAME
    for count in range(1, len(_WITHOUT) + 1):
        for names in combinations(_WITHOUT, count):
            if _without(ours, names) == _without(theirs, names):
                return "; ".join(names)
    return OTHER


def _without(texts: Sequence[str], names: Sequence[str]) -> list[str]:
    found = list(texts)
    for name in names:
        found = [_WITHOUT[name](text) for text in found]
    return found
