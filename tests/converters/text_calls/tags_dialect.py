"""A small dialect with everything that a dialect can say, for tests of what is made of it."""

from __future__ import annotations

import re
from collections.abc import Sequence

from adp.converters.text_calls.dialect import (
    Dialect,
    Marked,
    ParsedCall,
    ParsedResult,
    ParsedTurn,
    Piece,
)
from adp_schema import jsontext

_CALL = re.compile(r"<act (\w+)>(.*?)</act>", re.DOTALL)
_THOUGHT = re.compile(r"<why>(.*?)</why>", re.DOTALL)
_ANSWER = re.compile(r"<end>(.*?)</end>", re.DOTALL)
_RESULT = re.compile(r"<res>(.*?)</res>", re.DOTALL)


class Tags(Dialect):
    """Calls as ``<act name>{...}</act>``, results as ``<res>...</res>``."""

    name = "tags"
    title = "Tags of a test"
    example = "<why>it is late</why><act stop>{}</act>"
    marks = ("<act ", "<end>")
    results = ("<res>",)
    answers_all = False

    def parse(self, text: str, tools: Sequence[str] = ()) -> ParsedTurn:
        """Take a turn apart."""
        calls = tuple(
            ParsedCall(it.span(), it[1], it[2], None, "object")
            if it[2].startswith("{") and jsontext.is_valid(it[2])
            else ParsedCall(it.span(), it[1], None, it[2], "text")
            for it in _CALL.finditer(text)
        )
        taken = [call.span for call in calls]
        thoughts = tuple(
            Marked(it.span(), it.span(1))
            for it in _THOUGHT.finditer(text)
            if all(it.end() <= start or it.start() >= end for start, end in taken)
        )
        taken += [thought.span for thought in thoughts]
        answer = next(
            (
                Marked(it.span(), it.span(1))
                for it in _ANSWER.finditer(text)
                if all(it.end() <= start or it.start() >= end for start, end in taken)
            ),
            None,
        )
        return ParsedTurn(calls, thoughts, answer)

    def results_in(self, text: str, calls: Sequence[ParsedCall]) -> tuple[ParsedResult, ...]:
        """The results of a turn that is nothing else."""
        if _RESULT.sub("", text).strip():
            return ()
        return tuple(
            ParsedResult(Marked(it.span(), it.span(1)), is_error=it[1].startswith("error") or None)
            for it in _RESULT.finditer(text)
        )

    def pieces(self, text: str) -> Sequence[Piece]:
        """A whole run: the results are cut out."""
        pieces, position = [], 0
        for it in _RESULT.finditer(text):
            if it.start() > position:
                pieces.append(Piece("agent", (position, it.start())))
            pieces.append(Piece("result", it.span()))
            position = it.end()
        if pieces and position < len(text):
            pieces.append(Piece("agent", (position, len(text))))
        return pieces if pieces and pieces[0].source == "agent" else ()

    def write(self, call: ParsedCall) -> str | None:
        """A call with other words."""
        words = call.raw if call.arguments is None else call.arguments
        return None if words is None or "</act>" in words else f"<act {call.name}>{words}</act>"
