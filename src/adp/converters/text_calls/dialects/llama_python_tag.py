"""Llama 3: ``<|python_tag|>`` before JSON, a built-in call or code, and ``<function=f>{...}``."""

from __future__ import annotations

import re
from collections.abc import Sequence

from adp.converters.text_calls.dialect import Dialect, ParsedCall, ParsedResult, ParsedTurn, Span
from adp.converters.text_calls.find import objects_from
from adp.converters.text_calls.frames import (
    FramedCall,
    code_call,
    framed,
    json_arguments,
    scanned,
    tagged_results,
    written_frame,
)
from adp.converters.text_calls.literals import call_at
from adp.converters.text_calls.objects import object_calls, skip_space, written_object
from adp.converters.text_calls.result_names import with_names
from adp.converters.text_calls.write_literals import write_arguments

_TAG = "<|python_tag|>"
_OPEN = rf"{re.escape(_TAG)}|<function=(?P<name>[^>\n]{{1,200}})>\s*(?=\{{)"
_END = re.compile(r"\s*(?:<\|eom_id\|>|<\|eot_id\|>)")
_CODE_END = re.compile(r"<\|(?:eom_id|eot_id|python_tag)\|>")
_NEXT = re.compile(r"\s*;\s*(?=\{)")
_CLOSE = "</function>"


class LlamaPythonTag(Dialect):
    """The dialect ``llama_python_tag``."""

    name = "llama_python_tag"
    title = "Llama 3 (`<|python_tag|>{...}`, `<function=f>{...}</function>`)"
    example = '<|python_tag|>{"name": "f", "parameters": {"a": 1}}<|eom_id|>'
    marks = (_TAG, "<function=")
    prompts = ("Environment: ipython", "<function=example_function_name>{")
    results = ("<|start_header_id|>ipython", "<tool_response>", "Observation:")

    def parse(self, text: str, tools: Sequence[str] = ()) -> ParsedTurn:
        """Take a turn of an agent apart."""
        return scanned(text, _OPEN, lambda match: _calls(text, match), "the tag has no call")

    def results_in(self, text: str, calls: Sequence[ParsedCall]) -> tuple[ParsedResult, ...]:
        """The results in a turn that follows calls."""
        if text.lstrip().startswith("<tool_response>"):
            results = tagged_results(text, "<tool_response>", "</tool_response>")
            return with_names(text, results, calls)
        return super().results_in(text, calls)

    def write(self, call: ParsedCall) -> str | None:
        """The characters of a call."""
        written = written_object(call)
        if written is not None:
            return written
        if isinstance(call, FramedCall) and call.source.startswith(".call(", call.name_place[1]):
            words = write_arguments(call.arguments or "")
            return None if words is None else written_frame(call, words)
        return written_frame(call)


def _calls(text: str, match: re.Match[str]) -> list[ParsedCall]:
    """The calls behind a tag."""
    if match["name"]:
        return _function(text, match)
    start = skip_space(text, match.end())
    if text.startswith(("{", "["), start):
        return _objects(text, match.start(), start)
    builtin = call_at(text, start)
    if builtin is not None and builtin.name.endswith(".call"):
        span = (match.start(), _end(text, builtin.span[1]))
        name = (start, start + len(builtin.name) - len(".call"))
        call = ParsedCall(span, text[slice(*name)], builtin.json(), None, "dsl")
        value = (start + len(builtin.name) + 1, builtin.span[1] - 1)
        return [framed(text, span, value, call, name=name)]
    return _code(text, match)


def _objects(text: str, first: int, start: int) -> list[ParsedCall]:
    """Objects with semicolons between them."""
    calls: list[ParsedCall] = []
    while True:
        matches = objects_from(text, start)
        if matches is None:
            return []
        following = _NEXT.match(text, matches[2])
        end = following.end() if following else _end(text, matches[2])
        more = object_calls(text, (first, end), matches[0])
        if not more:
            return []
        calls += more
        if following is None:
            return calls
        first = start = end


def _function(text: str, match: re.Match[str]) -> list[ParsedCall]:
    """A call whose name stands in its tag."""
    matches = objects_from(text, match.end())
    if matches is None or matches[1] or len(matches[0]) != 1:
        return []
    value: Span = (matches[0][0].start, matches[0][0].end)
    end = skip_space(text, value[1])
    if text.startswith(_CLOSE, end):
        end += len(_CLOSE)
    elif end != len(text) and not text.startswith("<|e", end):
        return []
    given = json_arguments(text[slice(*value)])
    span = (match.start(), _end(text, end))
    call = ParsedCall(span, match["name"].strip(), given.arguments, given.raw, given.written_as)
    return [framed(text, span, value, call, name=match.span("name"), closing=_CLOSE)]


def _code(text: str, match: re.Match[str]) -> list[ParsedCall]:
    """Code of Python up to the end of the turn."""
    end = _CODE_END.search(text, match.end())
    stop = len(text) if end is None else end.start()
    span = (match.start(), _end(text, stop))
    call = code_call(text, span, (match.end(), stop), "python", closing="<|e")
    return [call] if call is not None else []


def _end(text: str, position: int) -> int:
    """The end of a call, with the mark of the end of the turn."""
    match = _END.match(text, position)
    return match.end() if match else position


DIALECT = LlamaPythonTag()
