"""ReAct: lines that begin with ``Thought:``, ``Action:`` and ``Action Input:``."""

from __future__ import annotations

import re
from collections.abc import Sequence

from adp.converters.text_calls.dialect import Dialect, Marked, ParsedCall, ParsedTurn
from adp_schema import jsontext

_ACTION = re.compile(r"^Action:[ \t]*([^\n]+)\nAction Input:[ \t]*", re.MULTILINE)
_THOUGHT = re.compile(r"^Thought:[ \t]*", re.MULTILINE)


class ReAct(Dialect):
    """The dialect ``react``."""

    name = "react"
    title = "ReAct (`Thought:`, `Action:`, `Action Input:`)"
    example = 'Thought: I look it up.\nAction: search\nAction Input: {"q": "adp"}'
    marks = ("Action:",)

    def parse(self, text: str, tools: Sequence[str] = ()) -> ParsedTurn:
        """Take a turn of an agent apart."""
        match = _ACTION.search(text)
        if match is None:
            return ParsedTurn()
        words = text[match.end() :].strip()
        valid = words.startswith("{") and jsontext.is_valid(words)
        call = ParsedCall(
            (match.start(), len(text)),
            match[1].strip(),
            arguments=words if valid else None,
            raw=None if valid else words,
            written_as="object" if valid else "text",
        )
        thought = _THOUGHT.search(text, 0, match.start())
        thoughts: tuple[Marked, ...] = ()
        if thought is not None:
            span = (thought.start(), match.start())
            thoughts = (Marked(span, (thought.end(), max(thought.end(), match.start() - 1))),)
        return ParsedTurn((call,), thoughts)


DIALECT = ReAct()
