"""ALFWorld in the words of AgentInstruct (``THOUGHT:``, ``ACTION:``) and of prompts (``> go to``).

An action names what the Agent Data Protocol names it: ``take mug 1 from desk 2`` is
``take(item, source)``. Words behind ``ACTION:`` that are no action of the game, such as ``task
failed``, stay text. A line ``> think: words`` is reasoning; other lines that begin with ``> `` are
actions when they name a thing with its number, or are all of the text.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from adp.converters.text_calls.dialect import Dialect, Marked, ParsedCall, ParsedTurn, Piece, Span
from adp.converters.text_calls.household import household_action, household_words
from adp.converters.text_calls.labels import fences, trim

_LABEL = re.compile(r"(?<!\S)(THOUGHT|ACTION):[ \t]*+")
_COMMAND = re.compile(r"^> (think: ?)?([^\n]*+)\n?", re.MULTILINE)
_VERBS = (
    "go to", "take", "put", "move", "open", "close", "heat", "cool", "clean", "slice", "examine",
    "use", "toggle", "look", "inventory", "think:",
)  # fmt: skip


class AlfWorld(Dialect):
    """The dialect ``alfworld``."""

    name = "alfworld"
    title = "ALFWorld (`THOUGHT:`, `ACTION: go to desk 1`, `> go to desk 1`)"
    example = "THOUGHT: I look for a mug.\n ACTION: take mug 1 from desk 2"
    marks = ("ACTION:", *(f"> {verb}" for verb in _VERBS))

    def parse(self, text: str, tools: Sequence[str] = ()) -> ParsedTurn:
        """Take a turn of an agent apart."""
        labels = list(_LABEL.finditer(text)) if "ACTION:" in text else []
        if not labels or fences(text):
            return _commands(text)
        calls: list[ParsedCall] = []
        thoughts: list[Marked] = []
        left = None
        for index, match in enumerate(labels):
            end = labels[index + 1].start() if index + 1 < len(labels) else len(text)
            if match[1] == "THOUGHT":
                thoughts.append(Marked((match.start(), end), trim(text, (match.end(), end))))
                continue
            words = _first_line(text, trim(text, (match.end(), end)))
            action = household_action(text[slice(*words)])
            if action is None:
                left = "it is no action of the game"
            else:
                calls.append(ParsedCall((match.start(), words[1]), *action))
        return ParsedTurn(tuple(calls), tuple(thoughts), left=left)

    def pieces(self, text: str) -> Sequence[Piece]:
        """The turns of a text of commands with what they gave."""
        matches = [match for match in _COMMAND.finditer(text) if _is_command(match, text)]
        pieces: list[Piece] = []
        position = 0
        for index, match in enumerate(matches):
            end = matches[index + 1].start() if index + 1 < len(matches) else len(text)
            pieces.append(Piece("agent", (position, match.end())))
            if text[match.end() : end].strip():
                pieces.append(Piece("result", (match.end(), end)))
                position = end
            else:
                position = match.end()
        if len(pieces) < 2:
            return []
        if position < len(text):
            pieces[-1] = Piece(pieces[-1].source, (pieces[-1].span[0], len(text)))
        return pieces

    def write(self, call: ParsedCall) -> str | None:
        """The line of a call."""
        words = household_words(call.name, call.arguments)
        return None if words is None else f"ACTION: {words}"


def _first_line(text: str, span: Span) -> Span:
    end = text.find("\n", *span)
    return span if end < 0 else trim(text, (span[0], end))


def _commands(text: str) -> ParsedTurn:
    """Lines that begin with ``> ``."""
    calls: list[ParsedCall] = []
    thoughts: list[Marked] = []
    for match in _COMMAND.finditer(text):
        if not _is_command(match, text):
            continue
        words = trim(text, match.span(2))
        if match[1] is not None:
            thoughts.append(Marked(match.span(), words))
        elif (action := household_action(match[2].strip())) is not None:
            calls.append(ParsedCall((match.start(), words[1]), *action))
    return ParsedTurn(tuple(calls), tuple(thoughts))


def _is_command(match: re.Match[str], text: str) -> bool:
    """Whether a line is a command of the game, and not a quotation."""
    if match[1] is not None:
        return True
    words = match[2].strip()
    is_sure = any(char.isdigit() for char in words) or words in ("look", "inventory")
    return is_sure and household_action(words) is not None


DIALECT = AlfWorld()
