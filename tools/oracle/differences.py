"""What kind of difference there is between the trained texts of two sides."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from itertools import combinations

SAME = "the same"
END = "the newline after the end of a turn"
OPENING = "the words that open a turn"
EMPTY = "an empty thought before a step without reasoning"
TAG = "the tag that opens reasoning"
THOUGHT = "reasoning"
CALLS = "the newline before a call"
LAST = "the end of a last turn that is masked"
SPACES = "white space"
STOP = "the token that ends a turn"
TURNS = "turns in a row made one"
NUMBERS = "numbers rounded to ten digits"
REFUSED = "refused"
OTHER = "other"

_OPENING = re.compile(r"^<\|im_start\|>assistant\n")
_THOUGHT = re.compile(r"(?:^|<think>).*?</think>\s*", re.DOTALL)

_STOP = re.compile(r"<\|[a-z_]+\|>$")
_STOPS = re.compile(r"<\|[a-z_]+\|>\n?$")
_NUMBER = re.compile(r"-?\d+\.\d+")
_END = re.compile(r"^<\|[a-z_]+\|>\n?$")

_WITHOUT: dict[str, Callable[[str], str]] = {
    END: lambda text: text.removesuffix("\n"),
    OPENING: lambda text: _OPENING.sub("", text),
    EMPTY: lambda text: text.replace("<think>\n\n</think>\n\n", ""),
    TAG: lambda text: text.removeprefix("<think>\n"),
    THOUGHT: lambda text: _THOUGHT.sub("", text),
    CALLS: lambda text: text.replace("\n<tool_call>", "<tool_call>"),
    SPACES: lambda text: " ".join(text.split()),
    NUMBERS: lambda text: _NUMBER.sub(lambda item: f"{float(item[0]):.8f}", text),
}


def kind_of(ours: Sequence[str], theirs: Sequence[str]) -> str:
    """The fewest kinds of differences without which both sides are the same, in words.

    Args:
        ours: trained texts of a row, in order.
        theirs: those of the other side.
    """
    if list(ours) == list(theirs):
        return SAME
    if len(theirs) == 1 and theirs[0].startswith("refused: "):
        return REFUSED
    kinds = (*_WITHOUT, LAST, STOP)
    for joined in ((), (TURNS,)) if len(theirs) < len(ours) else ((),):
        for count in range(len(kinds) + 1):
            for names in combinations(kinds, count):
                if _ours(ours, (*names, *joined)) == _theirs(theirs, (*names, *joined)):
                    return "; ".join((*names, *joined))
    return OTHER


def _ours(texts: Sequence[str], names: Sequence[str]) -> list[str]:
    """Our texts without what the other side may lack."""
    without = _without(texts, names)
    return [_STOP.sub("", text) for text in without] if STOP in names else without


def _theirs(texts: Sequence[str], names: Sequence[str]) -> list[str]:
    """The other side's texts without what it may train beside ours."""
    without = _without(texts, names)
    return without[:-1] if LAST in names and without and _END.match(without[-1]) else without


def _without(texts: Sequence[str], names: Sequence[str]) -> list[str]:
    results = list(texts)
    for name in names:
        if name in _WITHOUT:
            results = [_WITHOUT[name](text) for text in results]
    return ["".join(_STOPS.sub("", text) for text in results)] if TURNS in names else results
