"""Finding calls in text, with the span of each and of its name and arguments."""

from __future__ import annotations

import ast
import json
import re
import warnings
from dataclasses import dataclass, field
from typing import NamedTuple

from adp_schema import jsontext

OPEN, CLOSE = "<tool_call>", "</tool_call>"

_THOUGHTS = (("<think>", "</think>"), ("<scratch_pad>", "</scratch_pad>"))
_SPACE = " \t\r\n"
_MOST_STARTS = 20
_MOST_PYTHON = 200_000
_MOST_FAILED = 200
"""Tags without a call in them: after so many a text is taken to be no text of calls any more.

Each failure of the JSON decoder costs a walk over the text before it.
"""
_spaces = re.compile(r"[ \t\r\n]*")

# Strings may hold raw line breaks, as models write them; numbers need no value here.
_decoder = json.JSONDecoder(strict=False, parse_int=str, parse_float=str, parse_constant=str)


class Values(NamedTuple):
    """What a call says, as the columns of `adp_schema.model.ToolCall`."""

    call_id: str | None
    name: str | None
    arguments: str | None
    raw: str | None


@dataclass(slots=True)
class Member:
    """The value of one key of an object: where it is, and its text when it is a string."""

    start: int
    end: int
    text: str | None


@dataclass(slots=True)
class Object:
    """An object in a text: its span, its members by key, and whether it is a Python literal."""

    start: int
    end: int
    members: dict[str, Member]
    python: bool


@dataclass(slots=True)
class TextCall:
    """A call in a text.

    Attributes:
        span: its characters, with the tags around it and what separates it from the next one.
        object: the object that it is written as.
        values: what it says.
        kind: how the arguments are written, as the column ``arguments_kind`` names it.
        places: member of `Values` -> the span of its value.
        others: further keys and their source text.
    """

    span: tuple[int, int]
    object: Object
    values: Values
    kind: str | None
    places: dict[str, tuple[int, int]]
    others: dict[str, str]


@dataclass(slots=True)
class CallGroup:
    """Calls that stand together, inside one pair of tags or in one list.

    Attributes:
        start: first character of the group.
        end: character after it.
        listed: whether brackets are around the calls.
        calls: the calls in order.
    """

    start: int
    end: int
    listed: bool
    calls: list[TextCall] = field(default_factory=list)


def find_tagged(text: str) -> list[CallGroup]:
    """Find the calls inside ``<tool_call>`` tags, in order; those in a thought are left out."""
    groups: list[CallGroup] = []
    failed = 0
    position = _after_lone_close(text)
    while failed < _MOST_FAILED and (start := text.find(OPEN, position)) >= 0:
        thought = _thought_before(text, position, start)
        if thought is not None:
            position = thought
            continue
        group = tagged_group(text, start)
        if group is None:
            failed += 1
        else:
            groups.append(group)
        position = start + len(OPEN) if group is None else group.end
    return groups


def find_bare(text: str) -> list[CallGroup]:
    """Find the calls in a text that is nothing but calls, perhaps after a thought or other words.

    Tags are looked for first, unless all of it is JSON: then they are in the strings of a call.
    """
    if OPEN in text:
        start = _skip(text, 0)
        json_objects = objects_from(text, start) if text[start : start + 1] in ("{", "[") else None
        full = json_objects is not None and _skip(text, json_objects[2]) == len(text)
        if not full and (groups := find_tagged(text)):
            return groups
    for start in _starts(text):
        json_objects = objects_from(text, start)
        if json_objects is not None and _skip(text, json_objects[2]) == len(text):
            break
    else:
        start = next(iter(_starts(text)), len(text))
        json_objects = python_objects_in(text, start, len(text.rstrip(_SPACE)))
    if json_objects is None:
        return []
    objects, listed, end = json_objects
    group = _group(text, (start, end), objects, listed)
    return [] if group is None else [group]


def prose(text: str, groups: list[CallGroup]) -> str:
    """The text without its calls, and without white space around what is left."""
    pieces, position = [], 0
    for group in groups:
        pieces.append(text[position : group.start])
        position = group.end
    return "".join([*pieces, text[position:]]).strip()


def object_at(text: str) -> Object | None:
    """The object that a text is, in JSON or as a Python literal; None when it is no object."""
    start = _skip(text, 0)
    if text[start : start + 1] != "{":
        return None
    json_objects = objects_from(text, start)
    if json_objects is None or _skip(text, json_objects[2]) != len(text):
        json_objects = python_objects_in(text, start, len(text.rstrip(_SPACE)))
    return json_objects[0][0] if json_objects is not None and len(json_objects[0]) == 1 else None


def is_json_like(text: str) -> bool:
    """Whether a text is JSON; NaN, line breaks in strings and lone surrogates are let pass."""
    try:
        end = _decoder.raw_decode(text, _skip(text, 0))[1]
    except (ValueError, RecursionError):
        return False
    return _skip(text, end) == len(text)


# ---- where calls may begin -----------------------------------------------------------------


def _skip(text: str, position: int) -> int:
    """Position of the next character that is no white space."""
    match = _spaces.match(text, position)
    return match.end() if match else position


def _after_lone_close(text: str) -> int:
    """End of a thought that has no opening tag, because a template wrote it before the text."""
    opening, closing = _THOUGHTS[0]
    end = text.find(closing)
    first = text.find(opening)
    return end + len(closing) if end >= 0 and not 0 <= first < end else 0


def _thought_before(text: str, position: int, limit: int) -> int | None:
    """End of the thought that begins between two positions; None when none begins."""
    for opening, closing in _THOUGHTS:
        start = text.find(opening, position, limit)
        if start >= 0:
            end = text.find(closing, start)
            return len(text) if end < 0 else end + len(closing)
    return None


def _starts(text: str) -> list[int]:
    """Where the calls of a text of calls may begin, the likeliest place first."""
    opening, closing = _THOUGHTS[0]
    position = 0
    if closing in text:
        position = text.rfind(closing) + len(closing)
    elif text.lstrip(_SPACE).startswith(opening):
        return []
    starts = [_skip(text, position)]
    while len(starts) < _MOST_STARTS:
        position = text.find("\n", position) + 1
        if not position:
            break
        if text[position : position + 1] in ("{", "[") and position != starts[0]:
            starts.append(position)
    return starts


# ---- objects -------------------------------------------------------------------------------

_Matches = tuple[list[Object], bool, int]


def objects_from(text: str, position: int) -> _Matches | None:
    """Objects of JSON from a position on: one, several with space between, or a list.

    Returns:
        The objects, whether brackets are around them, and the position after them.
    """
    objects: list[Object] = []
    listed = text[position : position + 1] == "["
    try:
        after = _skip(text, position + 1) if listed else position
        while True:
            objects.append(_json_object(text, after))
            end = objects[-1].end
            after = _skip(text, end)
            following = text[after : after + 1]
            if listed and following == ",":
                after = _skip(text, after + 1)
            elif listed and following == "]":
                return objects, True, after + 1
            elif listed or following != "{":
                return None if listed else (objects, False, end)
    except (ValueError, RecursionError):
        return None


def _json_object(text: str, start: int) -> Object:
    if text[start : start + 1] != "{":
        raise ValueError("no object")
    members: dict[str, Member] = {}
    position = _skip(text, start + 1)
    while text[position : position + 1] != "}":
        if members:
            if text[position : position + 1] != ",":
                raise ValueError("no comma")
            position = _skip(text, position + 1)
        key, position = _decoder.raw_decode(text, position)
        position = _skip(text, position)
        if not isinstance(key, str) or text[position : position + 1] != ":":
            raise ValueError("no key")
        first = _skip(text, position + 1)
        value, end = _decoder.raw_decode(text, first)
        members[key] = Member(first, end, value if text[first] == '"' else None)
        position = _skip(text, end)
    return Object(start, position + 1, members, python=False)


def python_objects_in(text: str, start: int, end: int) -> _Matches | None:
    """A dict of Python, or a list of them, that fills a piece of the text; as `objects_from`."""
    piece = text[start:end]
    if piece[:1] not in ("{", "[") or len(piece) > _MOST_PYTHON or "\r" in piece or "\f" in piece:
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(piece, mode="eval")
            ast.literal_eval(tree)
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return None
    listed = isinstance(tree.body, ast.List)
    nodes = tree.body.elts if isinstance(tree.body, ast.List) else [tree.body]
    places = _Places(piece, start)
    objects = [_python_object(node, places) for node in nodes if isinstance(node, ast.Dict)]
    if not objects or len(objects) != len(nodes):
        return None
    return objects, listed, end


class _Places:
    """Turns lines and byte columns of the Python parser into positions in a text."""

    def __init__(self, piece: str, start: int) -> None:
        self._lines = piece.split("\n")
        self._starts = [start]
        for line in self._lines:
            self._starts.append(self._starts[-1] + len(line) + 1)

    def _position(self, line: int, column: int) -> int:
        before = self._lines[line - 1].encode("utf-8")[:column].decode("utf-8")
        return self._starts[line - 1] + len(before)

    def span(self, node: ast.expr) -> tuple[int, int]:
        """First character of a node and the character after it."""
        end = self._position(node.end_lineno or 1, node.end_col_offset or 0)
        return self._position(node.lineno, node.col_offset), end


def _python_object(node: ast.Dict, places: _Places) -> Object:
    members: dict[str, Member] = {}
    for key, value in zip(node.keys, node.values, strict=True):
        if isinstance(key, ast.Constant) and isinstance(key.value, str):
            text = value.value if isinstance(value, ast.Constant) else None
            span = places.span(value)
            members[key.value] = Member(*span, text if isinstance(text, str) else None)
    return Object(*places.span(node), members, python=True)


# ---- calls ---------------------------------------------------------------------------------


def tagged_group(text: str, start: int) -> CallGroup | None:
    """The calls of one pair of tags; the closing one may be missing at the end of the text."""
    inside = _skip(text, start + len(OPEN))
    json_objects = objects_from(text, inside)
    end = -1
    if json_objects is not None:
        stop = _skip(text, json_objects[2])
        if text.startswith(CLOSE, stop):
            end = stop + len(CLOSE)
        elif stop == len(text):
            end = stop
    if end < 0:
        following = text.find(OPEN, inside)
        stop = text.find(CLOSE, inside, following if following >= 0 else len(text))
        if stop < 0:
            return None
        json_objects = python_objects_in(
            text, inside, inside + len(text[inside:stop].rstrip(_SPACE))
        )
        end = stop + len(CLOSE)
    return (
        None
        if json_objects is None
        else _group(text, (start, end), json_objects[0], json_objects[1])
    )


def _group(
    text: str, span: tuple[int, int], objects: list[Object], listed: bool
) -> CallGroup | None:
    """The objects as calls; None when one of them is none."""
    group = CallGroup(*span, listed)
    for index, result in enumerate(objects):
        name = result.members.get("name")
        if name is None or name.text is None:
            return None
        first = span[0] if index == 0 else result.start
        last = objects[index + 1].start if index + 1 < len(objects) else span[1]
        group.calls.append(_call(text, (first, last), result, name.text))
    return group


def _call(text: str, span: tuple[int, int], value: Object, name: str) -> TextCall:
    members = dict(value.members)
    places = {"name": _place(members.pop("name"))}
    call_id = members.get("id")
    if call_id is not None and call_id.text is not None:
        places["call_id"] = _place(members.pop("id"))
    given = members.pop("arguments" if "arguments" in members else "parameters", None)
    arguments = raw = kind = None
    if given is not None:
        places["arguments"] = _place(given)
        arguments, raw, kind = _arguments(text[given.start : given.end], given, value.python)
    others = {key: text[member.start : member.end] for key, member in members.items()}
    values = Values(call_id.text if call_id else None, name, arguments, raw)
    return TextCall(span, value, values, kind, places, others)


def _place(member: Member) -> tuple[int, int]:
    return member.start, member.end


def _arguments(
    token: str, member: Member, python: bool
) -> tuple[str | None, str | None, str | None]:
    """The columns arguments, arguments_raw and arguments_kind."""
    if member.text is not None:
        valid = jsontext.is_valid(member.text)
        return (member.text, None, "json_string") if valid else (None, member.text, "invalid")
    if token == ("None" if python else "null"):
        return None, None, None
    if jsontext.is_valid(token):
        return token, None, "object"
    return None, token, "python_literal" if python else "object"
