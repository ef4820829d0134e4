"""Turns with results: one turn may answer several calls."""

from __future__ import annotations

from dataclasses import dataclass

from adp.converters.sharegpt.keys import JOINER
from adp.converters.text_calls import object_at

_OPEN, _CLOSE = "<tool_response>", "</tool_response>"


@dataclass(slots=True)
class ResultPiece:
    """One result: what stands between it and the one before, before its text, and after it."""

    joint: str | None
    before: str
    text: str
    after: str


def split_results(text: str, waiting: int) -> list[ResultPiece]:
    """The results in the text of a turn; several only when as many calls wait for one.

    Args:
        text: the text of the turn.
        waiting: number of calls without a result.
    """
    if _OPEN not in text:
        return [ResultPiece(None, "", text, "")]
    pieces = _tagged(text)
    if pieces and len(pieces) in (1, waiting):
        return pieces
    texts = text.split(JOINER)
    if len(texts) > 1 and len(texts) == waiting:
        return [
            ResultPiece(JOINER if index else None, "", result, "")
            for index, result in enumerate(texts)
        ]
    return [ResultPiece(None, "", text, "")]


def _tagged(text: str) -> list[ResultPiece]:
    """Results that have tags around them; empty when anything else stands there too."""
    pieces: list[ResultPiece] = []
    position = 0
    while position < len(text):
        start = text.find(_OPEN, position)
        end = text.find(_CLOSE, start)
        if start < 0 or end < 0 or text[position:start].strip():
            return []
        inside = text[start + len(_OPEN) : end]
        words = inside.strip()
        lead = inside.index(words) if words else len(inside)
        after = inside[lead + len(words) :] + _CLOSE
        space = text[position:start]
        before = _OPEN + inside[:lead]
        pieces.append(
            ResultPiece(space, before, words, after)
            if pieces
            else ResultPiece(None, space + before, words, after)
        )
        position = end + len(_CLOSE)
        if not text[position:].strip():
            pieces[-1].after += text[position:]
            break
    return pieces


def named_tool(text: str) -> str | None:
    """Name of the tool in a result like ``{"name": ..., "content": ...}``."""
    result = object_at(text)
    if result is None or "content" not in result.members or "name" not in result.members:
        return None
    return result.members["name"].text
