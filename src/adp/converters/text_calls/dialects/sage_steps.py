"""SAGE's texts for fine-tuning: ``Thought:``, a call, ``Observation:``, a blank line between.

Its converter writes a whole run as one text of the model. Calls are JSON in ``<tool_call>``, or an
object ``{"function_call": {"name": ..., "arguments": "..."}}`` by itself. Nothing marks where an
observation ends, so it goes to the next thought or call.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from adp.converters.text_calls.dialect import (
    Dialect,
    Marked,
    ParsedCall,
    ParsedResult,
    ParsedTurn,
    Piece,
)
from adp.converters.text_calls.dialects import hermes

_THOUGHT, _OBSERVATION = "Thought: ", "Observation: "
_FUNCTION = '{"function_call": '
_MARK = re.compile(
    rf"(?:\A|(?<=\n\n))(?:(?P<result>{_OBSERVATION})|(?P<thought>{_THOUGHT})"
    rf"|(?P<call><tool_call>\n|{re.escape(_FUNCTION)}))"
)
_JSON = json.JSONDecoder()
_MOST_FAILED = 50


@dataclass(frozen=True, slots=True)
class FunctionObject(ParsedCall):
    """A call that is an object by itself, with its arguments in a string."""


class SageSteps(Dialect):
    """The dialect ``sage_steps``."""

    name = "sage_steps"
    title = "SAGE's texts (`Thought:`, `<tool_call>` or `function_call`, `Observation:`)"
    example = 'Thought: I look.\n\n<tool_call>\n{"name": "f", "arguments": {"a": 1}}\n</tool_call>'
    marks = ("<tool_call>", _FUNCTION)
    automatic = False
    results = (_OBSERVATION,)

    def parse(self, text: str, tools: Sequence[str] = ()) -> ParsedTurn:
        """Take a turn of an agent apart."""
        turn = hermes.DIALECT.parse(text, tools)
        calls = turn.calls or _function_calls(text)
        thoughts: tuple[Marked, ...] = ()
        if text.startswith(_THOUGHT):
            end = calls[0].span[0] if calls else len(text)
            last = len(text[:end].rstrip())
            thoughts = (Marked((0, end), (len(_THOUGHT), max(last, len(_THOUGHT)))),)
        return ParsedTurn(calls, thoughts if calls else (), None, turn.left)

    def results_in(self, text: str, calls: Sequence[ParsedCall]) -> tuple[ParsedResult, ...]:
        """The result in a turn that follows a call."""
        start = len(text) - len(text.lstrip("\n"))
        if not text.startswith(_OBSERVATION, start):
            return super().results_in(text, calls)
        end = len(text) - 2 if text.endswith("\n\n") else len(text)
        begin = start + len(_OBSERVATION)
        return (ParsedResult(Marked((0, len(text)), (begin, max(begin, end)))),)

    def pieces(self, text: str) -> Sequence[Piece]:
        """The turns in a text that holds a whole run."""
        pieces: list[Piece] = []
        start, is_agent, has_call = 0, True, False
        for match in _MARK.finditer(text):
            place = match.start()
            if match["result"] is not None:
                if is_agent and has_call:
                    pieces.append(Piece("agent", (start, place)))
                    start, is_agent = place, False
                continue
            if not is_agent or has_call:
                pieces.append(Piece("agent" if is_agent else "result", (start, place)))
                start, is_agent, has_call = place, True, False
            has_call = has_call or match["call"] is not None
        if not pieces:
            return ()
        return [*pieces, Piece("agent" if is_agent else "result", (start, len(text)))]

    def write(self, call: ParsedCall) -> str | None:
        """The characters of a call."""
        if not isinstance(call, FunctionObject):
            return hermes.DIALECT.write(call)
        given = call.raw if call.arguments is None else call.arguments
        function = {"name": call.name, "arguments": given}
        return json.dumps({"function_call": function}, ensure_ascii=False)


def _function_calls(text: str) -> tuple[ParsedCall, ...]:
    """The calls that are objects by themselves."""
    calls: list[ParsedCall] = []
    position = failed = 0
    while failed < _MOST_FAILED and (start := text.find(_FUNCTION, position)) >= 0:
        position = start + len(_FUNCTION)
        try:
            value, end = _JSON.raw_decode(text, start)
        except (ValueError, RecursionError):
            failed += 1
            continue
        function = value.get("function_call")
        name = function.get("name") if isinstance(function, dict) else None
        given = function.get("arguments") if isinstance(function, dict) else None
        if len(value) != 1 or not isinstance(name, str) or not isinstance(given, str):
            failed += 1
            continue
        position = end
        arguments = given if _is_object(given) else None
        raw = given if arguments is None else None
        written: Literal["dsl", "invalid"] = "dsl" if raw is None else "invalid"
        calls.append(FunctionObject((start, end), name, arguments, raw, written))
    return tuple(calls)


def _is_object(text: str) -> bool:
    try:
        return isinstance(json.loads(text), dict)
    except (ValueError, RecursionError):
        return False


DIALECT = SageSteps()
