"""ReAct: lines that begin with ``Thought:``, ``Action:``, ``Action Input:`` and ``Observation:``.

What stands behind ``Action:`` is a call when it is

- a name with ``Action Input:`` in the next line, or with ``with Action Input:`` in the same one;
- ``name[words]``: the words are the argument ``keywords`` of a search, ``element`` of a click,
  ``answer`` of a finish, and ``input`` of any other;
- ``name(a=1)`` with literals, or ``name(words, words)`` without quotes: ``arg0``, ``arg1``;
- JSON with ``action`` and ``action_input``, or ``name`` and ``arguments``, perhaps in a fence;
- a name alone, which is called without arguments: that of a tool on offer or, in an action of a
  game as below, a word with an underscore, a dot, a digit or a capital in it (``get_time``);
- an action of a household game (``take mug 1 from shelf 2``), with the names of the Agent Data
  Protocol: ``take(item, source)``;
- any other line in plain words of a game (``focus on thermometer``): ``perform_action(action)``. It
  begins with a small letter or a digit and ends without a full stop, the turn begins with
  ``Action:`` or holds ``Thought:``, and no tools are known, or one of this name.

Words behind the name of a tool (``search the web``, ``web_search red shoes``) may be its arguments,
or a remark. They are left in the text, with the reason, as are plain words where other tools are
known.

``API Name:`` with ``API Input:`` says the same as ``Action:`` with ``Action Input:``. Labels in
code fences are none. A call of ``Finish`` stays a call; ``Final Answer:`` is an answer.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from adp.converters.text_calls.dialect import (
    Dialect,
    Marked,
    ParsedCall,
    ParsedResult,
    ParsedTurn,
    Piece,
    Span,
)
from adp.converters.text_calls.frames import FramedCall, framed, written_frame
from adp.converters.text_calls.household import household_action, household_words
from adp.converters.text_calls.labels import (
    Labelled,
    label_pattern,
    object_text,
    run_pieces,
    same_values,
    sections,
    string_members,
    structured,
    thought,
)
from adp.converters.text_calls.notations import bracketed, call_words, json_call, written_call

_ACTIONS = ("action", "api name")
_INPUTS = ("action input", "api input")
_RESULTS = ("observation", "api result")
_LABELS = (
    "Thought", "Action Input", "Action", "Observation", "Final Answer", "API Name", "API Input",
    "API Result", "Question",
)  # fmt: skip
_PATTERN = label_pattern(_LABELS)
_RESULT = re.compile(
    r"\s*+(?:Observation ?\d{0,3}|OBSERVATION|observation|Response|API Result ?\d{0,3}):\s?"
)
_NAME = re.compile(r"[`'\"]?([\w$@][\w .$@/:\-]{0,119}?)[`'\"]?")
_WITH_INPUT = re.compile(r"([\w$@][\w.$@/:\-]{0,119}+) with Action Input:[ \t]*+")
_PLAIN = re.compile(r"[a-z0-9#][^\n]{0,199}(?<![.!?:])")
_CODE_NAME = re.compile(r"(?=[^\W\d]+[\d._A-Z]|_)[^\W\d][\w$@/:.\-]{0,118}[\w$]")
"""A word that is the name of a tool and none of plain English."""
_NOTHING = ("", "None", "none", "N/A", "null")
PERFORM = "perform_action"
_UNKNOWN = "no notation of an action is known for it"
_AMBIGUOUS = "it is not sure whether the words behind the name of a tool are its arguments"
_NOT_OFFERED = "it is in plain words, and none of the tools on offer"


class ReAct(Dialect):
    """The dialect ``react``."""

    name = "react"
    title = "ReAct (`Thought:`, `Action:`, `Action Input:`)"
    example = 'Thought: I look it up.\nAction: search\nAction Input: {"q": "adp"}'
    marks = (
        "Action:",
        *(f"Action{space}{digit}" for space in ("", " ") for digit in range(10)),
        "Final Answer",
        "API Name",
    )
    prompts = ("Action Input", "Thought:\nAction")
    results = ("Observation", "OBSERVATION:", "observation:", "Response:", "API Result")

    def parse(self, text: str, tools: Sequence[str] = ()) -> ParsedTurn:
        """Take a turn of an agent apart."""
        parts = sections(text, _PATTERN)
        actions = _Actions(text, parts, tools)
        calls: list[ParsedCall] = []
        thoughts: list[Marked] = []
        answer: Marked | None = None
        left = None
        for index, part in enumerate(parts):
            following = parts[index + 1] if index + 1 < len(parts) else None
            if part.label == "thought":
                end = following.span[0] if following is not None else part.span[1]
                thoughts.append(thought(part, end))
            elif part.label == "final answer":
                answer = Marked(part.span, part.words)
            elif part.label in _ACTIONS and text[slice(*part.words)] not in _NOTHING:
                call = actions.call(part, following)
                if isinstance(call, str):
                    left = call
                else:
                    calls.append(call)
        if not calls and answer is None:
            return ParsedTurn(left=left)
        return ParsedTurn(tuple(calls), tuple(thoughts), answer, left)

    def results_in(self, text: str, calls: Sequence[ParsedCall]) -> tuple[ParsedResult, ...]:
        """The result in the turn after a call."""
        match = _RESULT.match(text)
        start = match.end() if match else 0
        return (ParsedResult(Marked((0, len(text)), (start, len(text)))),)

    def pieces(self, text: str) -> Sequence[Piece]:
        """The turns of a text with observations in it."""
        return run_pieces(text, sections(text, _PATTERN), _RESULTS, _ACTIONS)

    def write(self, call: ParsedCall) -> str | None:
        """The lines of a call; its labels stay as they are."""
        for lines in _written(call):
            written = same_values(self, lines, call)
            if written is not None and isinstance(call, FramedCall):
                words = written.removeprefix("Action: ")
                return written_frame(call, None if call.name_place[1] else words) or written
            if written is not None:
                return written
        return None


def _written(call: ParsedCall) -> list[str | None]:
    """Ways to write a call, the likeliest first."""
    members = string_members(call.arguments)
    if call.name == PERFORM and members is not None and set(members) == {"action"}:
        return [f"Action: {members['action']}"]
    words = call.raw if call.arguments is None else call.arguments
    lines = f"Action: {call.name}\nAction Input: {words}".rstrip()
    if call.written_as != "dsl":
        return [lines]
    phrase = household_words(call.name, call.arguments)
    short = written_call(call.name, call.arguments)
    return [*(f"Action: {it}" for it in (phrase, *short) if it is not None), lines]


class _Actions:
    """Reads the actions of a turn."""

    def __init__(self, text: str, parts: Sequence[Labelled], tools: Sequence[str]) -> None:
        self._text = text
        self._tools = tools
        self._is_game = any(part.label == "thought" for part in parts) or (
            bool(parts) and not text[: parts[0].span[0]].strip() and parts[0].label == "action"
        )

    def call(self, part: Labelled, following: Labelled | None) -> ParsedCall | str:
        """The call of a label with what follows it; the reason when it is none."""
        words = self._text[slice(*part.words)]
        if following is None or following.label not in _INPUTS:
            return self._action(words, part)
        name = _NAME.fullmatch(words)
        if name is None:
            return _UNKNOWN
        span = (part.span[0], following.span[1])
        call = _with_input(span, name[1], self._text[slice(*following.words)])
        place = (part.words[0] + name.start(1), part.words[0] + name.end(1))
        return framed(self._text, span, following.words, call, name=place)

    def _action(self, words: str, part: Labelled) -> ParsedCall | str:
        """The call that words behind ``Action:`` are; the reason when they are none."""
        span = part.span
        match = _WITH_INPUT.match(words)
        if match is not None:
            call = _with_input(span, match[1], words[match.end() :])
            name = (part.words[0] + match.start(1), part.words[0] + match.end(1))
            return framed(self._text, span, (part.words[0] + match.end(), span[1]), call, name=name)
        listed = json_call(words)
        if listed is not None:
            return ParsedCall(span, listed[0], listed[1], written_as="object")
        first = words.partition("\n")[0].rstrip()
        for candidate in (words, first) if first != words else (words,):
            result = bracketed(candidate) or call_words(candidate) or self._named(candidate)
            if result is not None:
                return self._line(part, candidate, ParsedCall(span, *result))
        reason = self._reason(first, part)
        if reason is not None:
            return reason
        return self._line(part, first, ParsedCall(span, PERFORM, object_text(action=first)))

    def _line(self, part: Labelled, words: str, call: ParsedCall) -> ParsedCall:
        """A call of the words behind a label."""
        place = (part.words[0], part.words[0] + len(words))
        span = (part.span[0], place[1])
        return framed(self._text, span, place, replace(call, span=span))

    def _named(self, words: str) -> tuple[str, str] | None:
        """A name alone, or an action of a household."""
        if words in self._tools:
            return words, "{}"
        action = household_action(words) if self._is_game else None
        if action is None and self._is_game and _CODE_NAME.fullmatch(words):
            return words, "{}"
        return action

    def _reason(self, line: str, part: Labelled) -> str | None:
        """Why a line is no action of a game in plain words; None when it is one."""
        if PERFORM not in self._tools:
            name = line.partition(" ")[0]
            if name != line and (name in self._tools or _CODE_NAME.fullmatch(name)):
                return _AMBIGUOUS
            if self._tools and _PLAIN.fullmatch(line):
                return _NOT_OFFERED
        is_plain = self._is_game and _PLAIN.fullmatch(line) and part.label == "action"
        return None if is_plain else _UNKNOWN


def _with_input(span: Span, name: str, words: str) -> ParsedCall:
    if not words:
        return ParsedCall(span, name, "{}")
    value = structured(words)
    return ParsedCall(span, name, value.arguments, value.raw, value.written_as)


DIALECT = ReAct()
