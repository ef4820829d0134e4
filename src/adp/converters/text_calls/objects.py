"""Calls that stand in a text as objects of JSON or Python, for the dialects that write them so."""

from __future__ import annotations

import ast
import json
import re
import warnings
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, Literal

from adp.converters.text_calls.dialect import Dialect, Marked, ParsedCall, ParsedResult, Span
from adp.converters.text_calls.edit import json_string
from adp.converters.text_calls.find import Object
from adp.converters.text_calls.thoughts import trimmed
from adp_schema import jsontext

Notation = Literal["object", "python_literal", "dsl", "text", "invalid"]

ARGUMENTS = ("arguments", "parameters", "args", "kwargs")
_MOST_PYTHON = 200_000
_SPACE = re.compile(r"[ \t\r\n]*")


def arguments_of(
    token: str, text: str | None, *, python: bool
) -> tuple[str | None, str | None, Notation]:
    """What a value says as the arguments of a call: JSON of an object or raw, and its notation.

    Args:
        token: its characters.
        text: its text, when it is a string.
        python: whether it is a literal of Python.
    """
    if text is not None:
        words = text.strip()
        if words.startswith("{") and jsontext.is_valid(words):
            return words, None, "dsl"
        return None, text, "text"
    if token in ("null", "None"):
        return "{}", None, "dsl"
    if not token.startswith("{"):
        return None, token, "invalid"
    if not python and jsontext.is_valid(token):
        return token, None, "object"
    value = _literal(token) if python else _lenient(token)
    written = None if value is None else json_of(value)
    if written is None:
        return None, token, "invalid"
    return written, None, "python_literal" if python else "dsl"


def json_of(value: Any) -> str | None:
    """JSON text of a value; None when JSON cannot say it."""
    try:
        written = json.dumps(value, ensure_ascii=False, allow_nan=False)
        written.encode("utf-8")
    except UnicodeEncodeError:
        written = json.dumps(value)
    except (ValueError, TypeError, RecursionError):
        return None
    return written if jsontext.is_valid(written) else None


def object_call(
    text: str,
    span: Span,
    value: Object,
    *,
    names: Sequence[str] = ("name",),
    arguments: Sequence[str] = ARGUMENTS,
) -> ParsedCall | None:
    """An object as a call; None when it names no tool.

    Args:
        text: the text that it is in.
        span: all characters of the call.
        value: the object.
        names: keys that may hold the name, the first that is there counts.
        arguments: keys that may hold the arguments.
    """
    members = value.members
    name = next((members[key] for key in names if key in members), None)
    if name is None or not name.text or not name.text.strip():
        return None
    given = next((members[key] for key in arguments if key in members), None)
    written: tuple[str | None, str | None, Notation] = ("{}", None, "dsl")
    if given is not None:
        token = text[given.start : given.end]
        written = arguments_of(token, given.text, python=value.python)
    call_id = members.get("id")
    return ParsedCall(
        span,
        name.text.strip(),
        *written,
        call_id=call_id.text if call_id is not None else None,
    )


def object_calls(text: str, span: Span, objects: Sequence[Object]) -> list[ParsedCall]:
    """Objects that stand together as calls; none when one of them names no tool.

    Args:
        text: the text that they are in.
        span: all of them, with their tags.
        objects: the objects, in order.
    """
    pairs = zip(objects, spread(objects, span), strict=True)
    calls = [object_call(text, place, value) for value, place in pairs]
    kept = [call for call in calls if call is not None]
    return kept if len(kept) == len(calls) else []


def skip_space(text: str, position: int) -> int:
    """Position of the next character that is no white space.

    Args:
        text: the text.
        position: where to begin.
    """
    match = _SPACE.match(text, position)
    return match.end() if match else position


def spread(objects: Sequence[Object], span: Span) -> list[Span]:
    """A span shared among the objects in it: no character is left over.

    Args:
        objects: the objects, in order.
        span: all of them, with what is around them.
    """
    borders = [span[0], *(value.start for value in objects[1:]), span[1]]
    return list(pairwise(borders))


def json_call(call: ParsedCall, arguments: str = "arguments") -> str | None:
    """The JSON of a call; None when its arguments are no JSON.

    Args:
        call: the call.
        arguments: the key of its arguments.
    """
    if call.arguments is None:
        if call.raw is None or call.written_as != "text":
            return None
        return f'{{"name": {json_string(call.name)}, "{arguments}": {json_string(call.raw)}}}'
    given_id = "" if call.call_id is None else f'"id": {json_string(call.call_id)}, '
    return f'{{{given_id}"name": {json_string(call.name)}, "{arguments}": {call.arguments}}}'


def checked(dialect: Dialect, call: ParsedCall, text: str | None) -> str | None:
    """The characters of a call, if the dialect reads the same call in them.

    Args:
        dialect: the dialect.
        call: the call.
        text: its characters.
    """
    if text is None:
        return None
    calls = dialect.parse(text, (call.name,)).calls
    if len(calls) != 1 or not says_same(calls[0], call):
        return None
    return text if calls[0].span == (0, len(text)) else None


def says_same(first: ParsedCall, second: ParsedCall) -> bool:
    """Whether two calls say the same, however they are written."""
    if first.name != second.name or (first.arguments is None) != (second.arguments is None):
        return False
    if first.arguments is None or second.arguments is None:
        return first.raw == second.raw
    try:
        return bool(_values(first.arguments) == _values(second.arguments))
    except (ValueError, RecursionError):
        return False


def tagged_results(
    text: str, opening: str, closing: str, *, first: int = 0
) -> tuple[ParsedResult, ...]:
    """The results in pairs of tags, one for each call in order; the last may not be closed.

    Args:
        text: the words of the turn.
        opening: tag before a result.
        closing: tag after it.
        first: where to begin.
    """
    results = []
    start = text.find(opening, first)
    while start >= 0:
        inside = start + len(opening)
        end = text.find(closing, inside)
        stop = len(text) if end < 0 else end + len(closing)
        words = trimmed(text, (inside, len(text) if end < 0 else end))
        results.append(ParsedResult(Marked((start, stop), words)))
        start = text.find(opening, stop)
    return tuple(results)


def after_mark(text: str, marks: Sequence[str]) -> tuple[ParsedResult, ...]:
    """A turn that begins with a mark, as a result: the mark and the rest of its line break cut off.

    Args:
        text: the words of the turn.
        marks: what results begin with.
    """
    start = len(text) - len(text.lstrip())
    for mark in marks:
        if text.startswith(mark, start):
            begin = start + len(mark)
            while text[begin : begin + 1] in (" ", "\r"):
                begin += 1
            begin += text.startswith("\n", begin)
            return (ParsedResult(Marked((0, len(text)), (begin, len(text)))),)
    return ()


def _values(text: str) -> Any:
    return json.loads(text, parse_int=lambda it: ("number", it), parse_float=lambda it: (1, it))


def _literal(token: str) -> Any:
    """A literal of Python, never run; None when it is none."""
    if len(token) > _MOST_PYTHON:
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.literal_eval(token)
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return None


def _lenient(token: str) -> Any:
    """JSON whose strings hold line breaks as they are; None when it is none."""
    try:
        return json.loads(token, strict=False)
    except (ValueError, RecursionError):
        return None
