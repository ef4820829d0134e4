"""ToolACE: a list of calls in brackets, ``[Market Trends API(country="us"), f(a=1)]``.

Names hold spaces, dots, slashes and brackets of their own: the longest name on offer that stands
there is taken first, and else the words before the first bracket whose arguments can be read.
"""

from __future__ import annotations

from collections.abc import Sequence

from adp.converters.text_calls.dialect import (
    Dialect,
    Marked,
    ParsedCall,
    ParsedResult,
    ParsedTurn,
    Span,
)
from adp.converters.text_calls.find import objects_from, python_objects_in
from adp.converters.text_calls.frames import framed, written_frame
from adp.converters.text_calls.literals import Argument, LiteralCall, arguments_at
from adp.converters.text_calls.objects import skip_space, spread
from adp.converters.text_calls.thoughts import Openings
from adp.converters.text_calls.write_literals import write_arguments

_LONGEST_NAME = 200
_MOST_BRACKETS = 6
_MOST_FAILED = 50
_NO_NAME = frozenset("\n[]{}\"'=,")


class ToolAce(Dialect):
    """The dialect ``toolace``."""

    name = "toolace"
    title = 'ToolACE (`[Market Trends API(country="us"), f(a=1)]`)'
    example = '[Market Trends API(trend_type="X", country="us"), f(a=[1, true])]'
    marks = (")]", ") ]")
    prompts = ("[func1(params_name=params_value", "[func_name1(params_name1=params_value1")
    results = ('[{"name"', "[{'name'")

    def parse(self, text: str, tools: Sequence[str] = ()) -> ParsedTurn:
        """Take a turn of an agent apart."""
        calls: list[ParsedCall] = []
        position, failed = 0, 0
        walk = Openings(text, r"(?:^|(?<=>))[ \t]*\[")
        while failed < _MOST_FAILED and (match := walk.after(position)) is not None:
            more = _list_at(text, match.end() - 1, tools)
            failed += not more
            position = more[-1].span[1] if more else match.end()
            calls += more
        return ParsedTurn(tuple(calls))

    def results_in(self, text: str, calls: Sequence[ParsedCall]) -> tuple[ParsedResult, ...]:
        """The results in a turn that follows calls: an item of a list for each call."""
        start = skip_space(text, 0)
        matches = objects_from(text, start) or python_objects_in(text, start, len(text.rstrip()))
        if matches is None or not matches[1] or skip_space(text, matches[2]) != len(text):
            return super().results_in(text, calls)
        objects = matches[0]
        if not all("name" in it.members and "results" in it.members for it in objects):
            return super().results_in(text, calls)
        return tuple(
            ParsedResult(
                Marked(span, (it.members["results"].start, it.members["results"].end)),
                name=it.members["name"].text,
            )
            for it, span in zip(objects, spread(objects, (0, len(text))), strict=True)
        )

    def write(self, call: ParsedCall) -> str | None:
        """The characters of a call."""
        words = None if call.arguments is None else write_arguments(call.arguments)
        if words is None or _NO_NAME & set(call.name) or not call.name.strip():
            return None
        return written_frame(call, words)


def _list_at(text: str, start: int, tools: Sequence[str]) -> list[ParsedCall]:
    """The calls of the list that begins at a position; none when it is another list."""
    places: list[tuple[Span, tuple[Argument, ...], Span]] = []
    after = skip_space(text, start + 1)
    while True:
        call = _call_at(text, after, tools)
        if call is None:
            return []
        places.append(call)
        end = call[2][1]
        end += text.startswith(" ", end)
        if text.startswith("]", end):
            break
        end = skip_space(text, end)
        if not text.startswith(",", end):
            return []
        after = skip_space(text, end + 1)
    line_end = text[end + 1 : end + 20].lstrip(" \t.")
    if line_end and not line_end.startswith(("\n", "\r", "<")):
        return []
    borders = [start, *(place[0][0] for place in places[1:]), end + 1]
    return [
        _framed(text, (borders[index], borders[index + 1]), *place)
        for index, place in enumerate(places)
    ]


def _call_at(
    text: str, position: int, tools: Sequence[str]
) -> tuple[Span, tuple[Argument, ...], Span] | None:
    """Name, arguments and bracket of the call at a position."""
    for tool in tools:
        end = position + len(tool)
        if tool and text.startswith(tool, position):
            bracket = skip_space(text, end)
            read = arguments_at(text, bracket) if text.startswith("(", bracket) else None
            if read is not None:
                return (position, end), read[0], (bracket, read[1])
    limit = min(len(text), position + _LONGEST_NAME)
    bracket = text.find("(", position, limit)
    for _ in range(_MOST_BRACKETS):
        name = text[position : max(bracket, position)]
        if not (name[:1].isalnum() or name[:1] in ("_", "$", "@")) or _NO_NAME & set(name):
            return None
        read = arguments_at(text, bracket)
        if read is not None and all(argument.name for argument in read[0]):
            return (position, position + len(name.rstrip())), read[0], (bracket, read[1])
        bracket = text.find("(", bracket + 1, limit)
    return None


def _framed(
    text: str, span: Span, name: Span, arguments: tuple[Argument, ...], bracket: Span
) -> ParsedCall:
    """A call with its places."""
    words = text[slice(*name)]
    call = ParsedCall(span, words, LiteralCall(span, words, arguments).json(), None, "dsl")
    return framed(text, span, (bracket[0] + 1, bracket[1] - 1), call, name=name)


DIALECT = ToolAce()
