"""WebShop: ``search[words]`` and ``click[words]`` behind ``Action:``, or as all of a turn.

The arguments are those of the Agent Data Protocol: ``search(keywords)`` and ``click(element)``.
``think[words]`` is reasoning, as prompts of WebShop have it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from adp.converters.text_calls.dialect import Dialect, Marked, ParsedCall, ParsedTurn, Piece, Span
from adp.converters.text_calls.labels import (
    label_pattern,
    object_text,
    run_pieces,
    same_values,
    sections,
    string_members,
    thought,
    trim,
)

_PATTERN = label_pattern(("Thought", "Action", "Observation", "Instruction"))
_ACTION = re.compile(r"(search|click|think)\[([^\n]*+)(?<=\])", re.IGNORECASE)
_ARGUMENTS = {"search": "keywords", "click": "element"}


class WebShop(Dialect):
    """The dialect ``webshop``."""

    name = "webshop"
    title = "WebShop (`Thought:`, `Action:`, `search[words]`, `click[words]`)"
    example = "Thought:\nI look for shoes.\n\nAction:\nsearch[red shoes]"
    marks = ("search[", "click[", "Search[", "Click[", "think[")

    def parse(self, text: str, tools: Sequence[str] = ()) -> ParsedTurn:
        """Take a turn of an agent apart."""
        if not any(mark in text for mark in self.marks):
            return ParsedTurn()
        parts = sections(text, _PATTERN)
        if not any(part.label == "action" for part in parts):
            turn = _turn(text, trim(text, (0, len(text))))
            return ParsedTurn() if turn is None else turn
        calls: list[ParsedCall] = []
        thoughts: list[Marked] = []
        left = None
        for index, part in enumerate(parts):
            end = parts[index + 1].span[0] if index + 1 < len(parts) else part.span[1]
            if part.label == "thought":
                thoughts.append(thought(part, end))
            elif part.label == "action":
                turn = _turn(text, part.words, part.span[0])
                if turn is None:
                    left = "it is neither a search nor a click"
                else:
                    calls += turn.calls
                    thoughts += turn.thoughts
        return ParsedTurn(tuple(calls), tuple(thoughts) if calls else (), left=left)

    def pieces(self, text: str) -> Sequence[Piece]:
        """The turns of a text with observations in it."""
        return run_pieces(text, sections(text, _PATTERN), ("observation",), ("action",))

    def write(self, call: ParsedCall) -> str | None:
        """A call behind its label."""
        members = string_members(call.arguments)
        key = _ARGUMENTS.get(call.name.lower())
        if members is None or key is None or set(members) != {key}:
            return None
        return same_values(self, f"Action: {call.name}[{members[key]}]", call)


def _turn(text: str, words: Span, start: int | None = None) -> ParsedTurn | None:
    """The action that some words are, or begin with in a line of its own; None when they are none.

    Args:
        text: the text.
        words: where the words stand.
        start: where the label of the action begins.
    """
    end = text.find("\n", *words)
    line = trim(text, (words[0], words[1] if end < 0 else end))
    match = _ACTION.fullmatch(text, *line)
    if match is None or (start is None and line != words):
        return None
    begin = words[0] if start is None else start
    inside = (match.start(2), match.end(2) - 1)
    if match[1].lower() == "think":
        return ParsedTurn(thoughts=(Marked((begin, line[1]), inside),))
    arguments = object_text(**{_ARGUMENTS[match[1].lower()]: text[slice(*inside)]})
    return ParsedTurn((ParsedCall((begin, line[1]), match[1], arguments),))


DIALECT = WebShop()
