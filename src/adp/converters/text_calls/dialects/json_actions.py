"""A turn that is one object that names an action, bare or in a code fence at its end.

The name stands under ``action``, ``tool``, ``tool_name``, ``function`` or ``name``; the arguments
under ``action_input``, ``tool_input``, ``parameters``, ``arguments``, ``args``, ``kwargs`` or
``input``. An object may stand in the place of the name and hold both. Answers in JSON look like
this, so it is never chosen by itself.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from adp.converters.text_calls.dialect import Dialect, Marked, ParsedCall, ParsedTurn, Span
from adp.converters.text_calls.find import Object, objects_from, python_objects_in
from adp.converters.text_calls.objects import ObjectCall, object_call, skip_space, written_object
from adp.converters.text_calls.thoughts import Openings

_NAMES = ("action", "tool", "tool_name", "function", "function_name", "name")
_ARGUMENTS = (
    *("action_input", "tool_input", "action_args", "parameters", "arguments", "args", "kwargs"),
    *("input", "params", "action_parameters"),
)
_FINAL = ("final answer", "final_answer", "finalanswer", "finish")
_OPEN = r"^[ \t]*```(?:json|python|tool_call|action)?[ \t]*\r?\n\s*(?=[{\[])|\A\s*(?=[{\[])"
_BEHIND_THOUGHT = r"|(?<=>)\s*(?=[{\[])"
_FENCE = re.compile(r"\s*```[ \t]*", re.MULTILINE)
_MOST_FAILED = 20


class JsonActions(Dialect):
    """The dialect ``json_actions``."""

    name = "json_actions"
    title = 'One object (`{"action": ..., "action_input": ...}`), bare or fenced'
    example = '{"action": "f", "action_input": {"a": 1}}'
    marks = tuple(f"{quote}{name}{quote}" for name in _NAMES for quote in ('"', "'"))
    automatic = False
    results = ("Observation:", "OBSERVATION:", "observation:", "Tool result:", "Result:")

    def parse(self, text: str, tools: Sequence[str] = ()) -> ParsedTurn:
        """Take a turn of an agent apart."""
        walk = Openings(text, _OPEN + _BEHIND_THOUGHT)
        failed, position = 0, 0
        while failed < _MOST_FAILED and (match := walk.after(position)) is not None:
            turn = _turn(text, match)
            if turn is not None:
                return turn
            failed += 1
            position = match.end() + 1
        return ParsedTurn()

    def write(self, call: ParsedCall) -> str | None:
        """The characters of a call."""
        return written_object(call)


def _turn(text: str, match: re.Match[str]) -> ParsedTurn | None:
    """What the object behind a place says; None when it is no action at the end of the turn."""
    fenced = "```" in match.group()
    matches = objects_from(text, match.end())
    if matches is None:
        end = text.find("```", match.end()) if fenced else len(text)
        last = match.end() + len(text[match.end() : max(end, match.end())].rstrip())
        matches = python_objects_in(text, match.end(), last)
    if matches is None:
        return None
    objects, _, end = matches
    if fenced:
        fence = _FENCE.match(text, end)
        if fence is None:
            return None
        end = fence.end()
    if skip_space(text, end) != len(text):
        return None
    start = match.start() if fenced or not match.start() else match.end()
    borders = [start, *(it.start for it in objects[1:]), end]
    calls: list[ParsedCall] = []
    for index, value in enumerate(objects):
        call = _call(text, (borders[index], borders[index + 1]), value)
        if call is None:
            return None
        calls.append(call)
    if len(calls) == 1 and calls[0].name.lower() in _FINAL and calls[0].raw is not None:
        return _final(calls[0])
    return ParsedTurn(tuple(calls))


def _call(text: str, span: Span, value: Object) -> ObjectCall | None:
    """An object as a call: with both keys, or with an object that holds both."""
    for name in _NAMES:
        member = value.members.get(name)
        if member is None or member.text is not None:
            continue
        nested = objects_from(text, member.start) if text[member.start] == "{" else None
        if nested is not None and len(nested[0]) == 1:
            return _call(text, span, nested[0][0])
    if not any(key in value.members for key in _ARGUMENTS):
        return None
    return object_call(text, span, value, names=_NAMES, arguments=_ARGUMENTS)


def _final(call: ParsedCall) -> ParsedTurn | None:
    """An action that is the answer."""
    if not isinstance(call, ObjectCall) or not call.is_string:
        return ParsedTurn((call,))
    start = call.span[0]
    first, last = call.arguments_place
    words = (start + first + 1, start + last - 1)
    if "\\" in call.source[first:last]:
        return ParsedTurn((replace(call),))
    return ParsedTurn(answer=Marked(call.span, words))


DIALECT = JsonActions()
