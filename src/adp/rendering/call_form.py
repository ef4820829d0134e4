"""Reading the calls in what a model wrote, in the form that its own chat template writes them.

The form is found by having the template write two calls with known names and arguments. It is
known when the arguments stand there as a JSON object: inside an object that has the name too
(Hermes, Qwen, Llama, Mistral, Granite), or after the name (DeepSeek, gpt-oss).
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from typing import Any

from adp.rendering.chat import Chat, ChatCall, Message
from adp.rendering.probe import TemplateRefusalError
from adp.rendering.render import Renderer

_NAMES = ("probe_first", "probe_second")
_VALUES: tuple[dict[str, Any], ...] = ({"probe_key": "one"}, {"probe_key": "two"})
_THOUGHT_END = "</think>"
_BETWEEN = " \t\r\n,;[]"
_decoder = json.JSONDecoder(strict=False)


@dataclass(frozen=True)
class WrittenCall:
    """A call that a model wrote.

    Attributes:
        name: name of the tool.
        arguments: the object of arguments.
        text: the characters of the arguments, JSON.
        start: first character of the call in the answer, its opening included.
        end: character after the call, its closing included.
    """

    name: str
    arguments: dict[str, Any]
    text: str = field(default="", compare=False)
    start: int = field(default=0, compare=False)
    end: int = field(default=0, compare=False)


@dataclass(frozen=True)
class CallForm:
    """How a template writes calls.

    Attributes:
        opening: what a call begins with; empty when it is bare JSON.
        middle: what stands between name and arguments; None when both are in one JSON object.
        name_key: key of the name in that object.
        arguments_key: key of the arguments in that object.
        closing: what a call ends with; empty when that is not known.
    """

    opening: str
    middle: str | None
    name_key: str = ""
    arguments_key: str = ""
    closing: str = ""

    def read(self, text: str) -> list[WrittenCall] | None:
        """The calls in an answer.

        Args:
            text: what the model wrote, special tokens included.

        Returns:
            The calls in order; empty for an answer without calls; None when a call is malformed.
        """
        position = text.rfind(_THOUGHT_END)
        position = position + len(_THOUGHT_END) if position >= 0 else 0
        if self.middle is not None:
            return self._named(text, position)
        if self.opening:
            return self._opened(text, position)
        while text[position : position + 1].isspace():
            position += 1
        if text[position : position + 1] not in ("{", "["):
            return []
        return self._objects(text, position) or None

    def _opened(self, text: str, position: int) -> list[WrittenCall] | None:
        calls: list[WrittenCall] = []
        start = text.find(self.opening, position)
        while start >= 0:
            objects = self._objects(text, start + len(self.opening))
            if not objects:
                return None
            end = self._closed(text, objects[-1].end)
            if end is None:
                return None
            objects[0] = replace(objects[0], start=start)
            objects[-1] = replace(objects[-1], end=end)
            calls += objects
            start = text.find(self.opening, end)
        return calls

    def _closed(self, text: str, position: int) -> int | None:
        """The end of a call, its closing included; None when that is missing."""
        if not self.closing:
            return position
        end = position
        while text[end : end + 1].isspace():
            end += 1
        return end + len(self.closing) if text.startswith(self.closing, end) else None

    def _objects(self, text: str, position: int) -> list[WrittenCall] | None:
        """Calls that are JSON objects one after the other; None when one is malformed."""
        calls: list[WrittenCall] = []
        while True:
            while position < len(text) and text[position] in _BETWEEN:
                position += 1
            if text[position : position + 1] != "{":
                return calls
            members, end = _members(text, position)
            name, arguments = members.get(self.name_key), members.get(self.arguments_key)
            if name is None or arguments is None:
                return None
            if not isinstance(name.value, str) or not isinstance(arguments.value, dict):
                return None
            written = text[arguments.start : arguments.end]
            calls.append(WrittenCall(name.value, arguments.value, written, position, end))
            position = end

    def _named(self, text: str, position: int) -> list[WrittenCall] | None:
        assert self.middle is not None
        calls: list[WrittenCall] = []
        begin = text.find(self.opening, position)
        while begin >= 0:
            start = begin + len(self.opening)
            end = text.find(self.middle, start)
            if end < 0:
                return None
            first = _skip(text, end + len(self.middle))
            value, after = _json(text, first)
            name = text[start:end].strip()
            if not isinstance(value, dict) or not name:
                return None
            last = self._closed(text, after)
            if last is None:
                return None
            calls.append(WrittenCall(name, value, text[first:after], begin, last))
            begin = text.find(self.opening, last)
        return calls


@dataclass(frozen=True, slots=True)
class _Member:
    """The value of a key, and where it stands."""

    value: Any
    start: int
    end: int


def _members(text: str, start: int) -> tuple[dict[str, _Member], int]:
    """The members of the JSON object at a position, and its end; none when it is malformed."""
    results: dict[str, _Member] = {}
    position = _skip(text, start + 1)
    while text[position : position + 1] != "}":
        if results:
            if text[position : position + 1] != ",":
                return {}, start
            position = _skip(text, position + 1)
        if text[position : position + 1] != '"':
            return {}, start
        key, position = _json(text, position)
        colon = _skip(text, position)
        first = _skip(text, colon + 1)
        value, end = _json(text, first)
        if not isinstance(key, str) or text[colon : colon + 1] != ":" or end == first:
            return {}, start
        results[key] = _Member(value, first, end)
        position = _skip(text, end)
    return results, position + 1


def _skip(text: str, position: int) -> int:
    """The next position without white space."""
    while position < len(text) and text[position].isspace():
        position += 1
    return position


def _json(text: str, position: int) -> tuple[Any, int]:
    """The JSON value at a position, and its end; the position itself when there is none."""
    position = _skip(text, position)
    try:
        return _decoder.raw_decode(text, position)
    except (ValueError, RecursionError):
        return None, position


def call_form(renderer: Renderer) -> CallForm | None:
    """Find out how a template writes calls.

    Args:
        renderer: with the template.

    Returns:
        The form; None when the template writes no calls, or not as JSON.
    """
    forms = renderer.template.forms
    if forms.arguments is None:
        return None
    both = _write(renderer, 2) if forms.parallel else None
    text = both or _write(renderer, 1)
    if text is None:
        return None
    first = _place(text, _NAMES[0], _VALUES[0])
    second = _place(text, _NAMES[1], _VALUES[1]) if both else None
    return _form(text, first, second) if first is not None else None


def written_by_template(renderer: Renderer) -> str | None:
    """What a template writes for a call of ``probe_first(probe_key="one")``."""
    return _write(renderer, 1)


@dataclass(frozen=True)
class _Place:
    """Where a call stands in a text: its name, its arguments, and an object around both."""

    name: int
    arguments: int
    end: int
    outer: int | None
    keys: tuple[str, str]


def _write(renderer: Renderer, count: int) -> str | None:
    """What the template writes for an answer of some calls."""
    ids = ("probe0001", "probe0002")
    calls = tuple(
        ChatCall(_NAMES[i], _VALUES[i], json.dumps(_VALUES[i]), ids[i]) for i in range(count)
    )
    user = Message("user", "probe", 0)
    results = [Message("tool", "probe", 1, call_id=call.call_id, name=call.name) for call in calls]
    chat = Chat("", 0, 0, (user, Message("assistant", "", 1, calls=calls), *results))
    plain = renderer.template.plain(chat)
    try:
        prompt = renderer.template.render(plain[:1], None, prompt=True)
        text = renderer.template.render(plain[:2], None)
    except TemplateRefusalError:
        return None
    shared = next((i for i, (a, b) in enumerate(zip(prompt, text, strict=False)) if a != b), None)
    return text[len(prompt) if shared is None else shared :]


def _place(text: str, name: str, value: dict[str, Any]) -> _Place | None:
    at = text.find(name)
    if at < 0:
        return None
    for start in (i for i in range(at, -1, -1) if text[i] == "{"):
        result, end = _json(text, start)
        keys = _keys(result, name, value)
        if keys is not None:
            return _Place(at, start, end, start, keys)
    start = text.find("{", at)
    while start >= 0:
        result, end = _json(text, start)
        if result == value:
            return _Place(at, start, end, None, ("", ""))
        start = text.find("{", start + 1)
    return None


def _keys(result: Any, name: str, value: dict[str, Any]) -> tuple[str, str] | None:
    if not isinstance(result, dict):
        return None
    names = [key for key, child in result.items() if child == name]
    values = [key for key, child in result.items() if child == value]
    return (names[0], values[0]) if names and values else None


def _form(text: str, first: _Place, second: _Place | None) -> CallForm | None:
    begin = first.outer if first.outer is not None else first.name
    opening = text[:begin]
    closing = ""
    if second is not None:
        next_begin = second.outer if second.outer is not None else second.name
        between = text[first.end : next_begin]
        repeated = _common_end(opening, between).lstrip()
        if repeated.strip(_BETWEEN):
            # What is left of it before the first call opens all of them, not each.
            opening = repeated
            closing = between[: len(between) - len(repeated)].strip()
            if not text[first.end :].lstrip().startswith(closing):
                closing = ""
    if first.outer is not None:
        return CallForm(opening.strip(_BETWEEN), None, *first.keys, closing)
    opening = opening.lstrip()
    middle = text[first.name + len(_NAMES[0]) : first.arguments]
    return CallForm(opening, middle, closing=closing) if opening and middle.strip() else None


def _common_end(text: str, other: str) -> str:
    """The longest text that both end with."""
    length = 0
    while length < min(len(text), len(other)) and text[-length - 1] == other[-length - 1]:
        length += 1
    return text[len(text) - length :]
