"""Calls that stand in a text as objects of JSON or Python, for the dialects that write them so."""

from __future__ import annotations

import ast
import json
import re
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal

from adp.converters.text_calls.dialect import Dialect, ParsedCall, Span
from adp.converters.text_calls.edit import json_string
from adp.converters.text_calls.find import Object
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


@dataclass(frozen=True, slots=True)
class ObjectCall(ParsedCall):
    """A call that is written as an object, with what an edit keeps of its characters.

    Attributes:
        source: all of its characters.
        name_place: those of its name, in ``source``.
        arguments_place: those of its arguments; those of the closing bracket when it has none.
        is_string: whether its arguments are written as a string.
        is_python: whether it is a literal of Python.
    """

    source: str = ""
    name_place: Span = (0, 0)
    arguments_place: Span = (0, 0)
    is_string: bool = False
    is_python: bool = False


def object_call(
    text: str,
    span: Span,
    value: Object,
    *,
    names: Sequence[str] = ("name",),
    arguments: Sequence[str] = ARGUMENTS,
) -> ObjectCall | None:
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
    place = (value.end - 1 - span[0], value.end - 1 - span[0])
    if given is not None:
        token = text[given.start : given.end]
        written = arguments_of(token, given.text, python=value.python)
        place = (given.start - span[0], given.end - span[0])
    call_id = members.get("id")
    return ObjectCall(
        span,
        name.text,
        *written,
        call_id=call_id.text if call_id is not None else None,
        source=text[slice(*span)],
        name_place=(name.start - span[0], name.end - span[0]),
        arguments_place=place,
        is_string=given is not None and given.text is not None,
        is_python=value.python,
    )


def written_object(call: ParsedCall) -> str | None:
    """The characters of a call that was read from an object, as it shall be; None: it was not.

    Args:
        call: the call.
    """
    if not isinstance(call, ObjectCall):
        return None
    token = _token(call)
    if token is None:
        return None
    first, last = call.arguments_place
    if first == last:
        token = f", {'arguments'!r}: {token}" if call.is_python else f', "arguments": {token}'
        if call.arguments == "{}":
            token = ""
    name = repr(call.name) if call.is_python else json_string(call.name)
    pieces, position = [], 0
    for place, new in sorted([(call.name_place, name), ((first, last), token)]):
        pieces += [call.source[position : place[0]], new]
        position = place[1]
    return "".join([*pieces, call.source[position:]])


def _token(call: ObjectCall) -> str | None:
    """The arguments of a call in the notation of its object."""
    if call.arguments is None:
        words = call.raw or ""
        if call.is_string:
            return repr(words) if call.is_python else json_string(words)
        return words if call.written_as == "invalid" else None
    if call.is_string:
        return repr(call.arguments) if call.is_python else json_string(call.arguments)
    if not call.is_python:
        return call.arguments
    try:
        return repr(json.loads(call.arguments))
    except (ValueError, RecursionError):
        return None


def object_calls(text: str, span: Span, objects: Sequence[Object]) -> list[ParsedCall]:
    """Objects that stand together as calls; none when one of them names no tool.

    Args:
        text: the text that they are in.
        span: all of them, with their tags.
        objects: the objects, in order.
    """
    pairs = zip(objects, spread(objects, span), strict=True)
    calls: list[ParsedCall] = []
    for value, place in pairs:
        call = object_call(text, place, value)
        if call is None:
            return []
        calls.append(call)
    return calls


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
