"""Square brackets as tags: ``[TOOL_CALL]{...}[/TOOL_CALL]``, and Mistral's ``[TOOL_CALLS]``.

Tiny Tool Use writes the result behind the call, in ``[RESULT]`` or as bare JSON. Newer templates of
Mistral write ``[TOOL_CALLS]name[ARGS]{...}``.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from adp.converters.text_calls.dialect import Dialect, ParsedCall, ParsedResult, ParsedTurn, Piece
from adp.converters.text_calls.find import objects_from
from adp.converters.text_calls.frames import (
    MOST_FAILED,
    framed,
    json_arguments,
    scanned,
    split_at_results,
    tagged_results,
    written_frame,
)
from adp.converters.text_calls.objects import object_calls, skip_space, written_object
from adp.converters.text_calls.result_names import with_names

_OPEN = r"\[TOOL_CALL\]|\[TOOL_CALLS?\](?=\s*[\[{])|\[TOOL_CALLS\](?P<name>[\w.:/-]{1,200})"
_ID = re.compile(r"\[CALL_ID\]([\w-]{1,100})")
_CLOSE, _ARGUMENTS = "[/TOOL_CALL]", "[ARGS]"
_RESULTS = ("[TOOL_RESULT]", "[TOOL_RESULTS]", "[RESULT]")
_RESULT_OPEN = r"\[TOOL_RESULTS?\]|\[RESULT\]"
_RESULT_CLOSE = r"\[/TOOL_RESULTS?\]|\[/RESULT\]"
_END = re.compile(r"\s*(?:\[/TOOL_CALLS?\]|</s>)")
_AFTER_CALL = re.compile(r"\[/TOOL_CALL\]\s*")


class ToolCallBrackets(Dialect):
    """The dialect ``tool_call_brackets``."""

    name = "tool_call_brackets"
    title = "Brackets (`[TOOL_CALL]{...}[/TOOL_CALL]`, `[TOOL_CALLS] [{...}]`)"
    example = 'I\'ll help. [TOOL_CALL]{"name": "f", "parameters": {"a": 1}}[/TOOL_CALL]'
    marks = ("[TOOL_CALL]", "[TOOL_CALLS]")
    prompts = ("[AVAILABLE_TOOLS]",)
    results = _RESULTS

    def parse(self, text: str, tools: Sequence[str] = ()) -> ParsedTurn:
        """Take a turn of an agent apart."""
        return scanned(text, _OPEN, lambda match: _calls(text, match), "brackets hold no call")

    def results_in(self, text: str, calls: Sequence[ParsedCall]) -> tuple[ParsedResult, ...]:
        """The results in a turn that follows calls."""
        for opening in _RESULTS:
            if text.lstrip().startswith(opening):
                results = tagged_results(text, opening, opening.replace("[", "[/"))
                return with_names(text, results, calls)
        return super().results_in(text, calls)

    def pieces(self, text: str) -> Sequence[Piece]:
        """The turns in a text that goes on behind a result."""
        if any(opening in text for opening in _RESULTS):
            return split_at_results(text, _RESULT_OPEN, _RESULT_CLOSE)
        pieces: list[Piece] = []
        position = failed = 0
        for match in _AFTER_CALL.finditer(text):
            has_object = failed < MOST_FAILED and text.startswith("{", match.end())
            matches = objects_from(text, match.end()) if has_object else None
            if matches is None or len(matches[0]) != 1:
                failed += has_object
                continue
            end = match.start() + len(_CLOSE)
            pieces += [Piece("agent", (position, end)), Piece("result", (end, matches[2]))]
            position = matches[2]
        if pieces and text[position:].strip():
            return [*pieces, Piece("agent", (position, len(text)))]
        return [*pieces[:-1], Piece("result", (pieces[-1].span[0], len(text)))] if pieces else ()

    def write(self, call: ParsedCall) -> str | None:
        """The characters of a call."""
        written = written_object(call)
        return written_frame(call) if written is None else written


def _calls(text: str, match: re.Match[str]) -> list[ParsedCall]:
    """The calls behind an opening tag."""
    if match["name"]:
        return _named(text, match)
    matches = objects_from(text, skip_space(text, match.end()))
    if matches is None:
        return []
    end = _END.match(text, matches[2])
    if end is None and match.group() == "[TOOL_CALL]" and text[matches[2] :].strip():
        return []
    span = (match.start(), end.end() if end else matches[2])
    return object_calls(text, span, matches[0])


def _named(text: str, match: re.Match[str]) -> list[ParsedCall]:
    """A call whose name stands before its arguments."""
    call_id = _ID.match(text, match.end())
    start = call_id.end() if call_id else match.end()
    if text.startswith(_ARGUMENTS, start):
        start += len(_ARGUMENTS)
    matches = objects_from(text, skip_space(text, start))
    if matches is None or len(matches[0]) != 1 or matches[1]:
        return []
    value = matches[0][0]
    place = (value.start, value.end)
    given = json_arguments(text[slice(*place)])
    end = _END.match(text, value.end)
    call = ParsedCall(
        (match.start(), end.end() if end else value.end),
        match["name"],
        *(given.arguments, given.raw, given.written_as),
        call_id=call_id[1] if call_id else None,
    )
    return [framed(text, call.span, place, call, name=match.span("name"))]


DIALECT = ToolCallBrackets()
