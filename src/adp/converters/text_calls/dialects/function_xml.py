"""Calls as elements: ``<function=f><parameter=k>v</parameter></function>``, ``<invoke name="f">``.

The first form is that of OpenHands, SWE-agent, SWE-smith, SWE-Gym and Qwen3-Coder, the second that
of Anthropic and MiniMax. A line break behind the tag that opens a value, and before the tag that
closes it, is layout.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from adp.converters.text_calls.dialect import Dialect, Marked, ParsedCall, ParsedResult, ParsedTurn
from adp.converters.text_calls.frames import MOST_FAILED, after_mark
from adp.converters.text_calls.objects import json_of, says_same, skip_space
from adp.converters.text_calls.thoughts import Openings, stands_alone
from adp_schema import jsontext

_TYPED = {"view_range": "[", "insert_line": ""}
"""Parameters that are no strings, of the editor that all these harnesses share."""

_EXECUTED = re.compile(r"^EXECUTION RESULT of \[([^\]\n]{1,200})\]:[ ]*\r?\n?", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class _Form:
    """The tags of a way to write calls."""

    parameter: re.Pattern[str]
    value_end: re.Pattern[str]
    close: str


_EQUALS = _Form(
    re.compile(r"<parameter=([^>\n]{1,200})>"),
    re.compile(r"</parameter>(?=\s*(?:<parameter=|</function>|\Z))"),
    "</function>",
)
_NAMED = {
    it: _Form(
        re.compile(rf'<{it}parameter name="([^"\n]{{1,200}})"[^>\n]{{0,200}}>'),
        re.compile(rf"</{it}parameter>(?=\s*(?:<{it}parameter name=|</{it}invoke>|\Z))"),
        f"</{it}invoke>",
    )
    for it in ("", "antml:")
}
_NAME = re.compile(r"[^\s<>\"]{1,200}")
_CALL = re.compile(r"<function=[^>\n]{1,200}>|<(?:antml:)?invoke name=")
_GROUP = r"(?:antml:)?function_calls|minimax:tool_call|tool_call"
_OPEN = (
    rf"(?:<(?P<group>{_GROUP})>\s*)?"
    r"(?:<function=(?P<name>[^>\n]{1,200})>"
    r'|<(?P<prefix>antml:)?invoke name="(?P<named>[^"\n]{1,200})"[^>\n]{0,200}>)'
)


@dataclass(frozen=True, slots=True)
class _ElementCall(ParsedCall):
    """A call as an element, with what an edit keeps of its characters.

    Attributes:
        head: its opening tag, with the tag of a group before it.
        tail: its closing tag, with that of a group after it.
        name_place: its name, in ``head``.
        prefix: namespace of an element ``invoke``; None for one called ``function``.
    """

    head: str = ""
    tail: str = ""
    name_place: tuple[int, int] = (0, 0)
    prefix: str | None = None


class FunctionXml(Dialect):
    """The dialect ``function_xml``."""

    name = "function_xml"
    title = 'Elements (`<function=f><parameter=k>`, `<invoke name="f">`): OpenHands, SWE-smith'
    example = "Look:\n\n<function=bash>\n<parameter=command>ls -l</parameter>\n</function>"
    marks = ("<function=", "invoke name=")
    prompts = ("BEGIN FUNCTION #1",)
    results = ("OBSERVATION:", "Observation:")

    def parse(self, text: str, tools: Sequence[str] = ()) -> ParsedTurn:
        """Take a turn of an agent apart."""
        calls: list[ParsedCall] = []
        left, failed, position = None, 0, 0
        walk = Openings(text, _OPEN)
        while failed < MOST_FAILED and (match := walk.after(position)) is not None:
            call = _call_at(text, match)
            if isinstance(call, ParsedCall) and (calls or stands_alone(text, call.span)):
                calls.append(call)
                position = call.span[1]
                continue
            failed += 1
            position = match.end()
            if isinstance(call, str) and stands_alone(text, match.span()):
                left = call
        return ParsedTurn(tuple(calls), left=left)

    def results_in(self, text: str, calls: Sequence[ParsedCall]) -> tuple[ParsedResult, ...]:
        """The results in a turn that follows calls."""
        matches = list(_EXECUTED.finditer(text))
        if matches and not text[: matches[0].start()].strip():
            starts = [0, *(match.start() for match in matches[1:]), len(text)]
            pairs = zip(matches, pairwise(starts), strict=True)
            return tuple(
                ParsedResult(Marked(span, (match.end(), span[1])), name=match[1])
                for match, span in pairs
            )
        return after_mark(text, self.results) or super().results_in(text, calls)

    def write(self, call: ParsedCall) -> str | None:
        """The characters of a call."""
        if not isinstance(call, _ElementCall) or call.arguments is None:
            return None
        if not _NAME.fullmatch(call.name):
            return None
        first, last = call.name_place
        opening = '<{}parameter name="{}">' if call.prefix is not None else "<{}parameter={}>"
        lines = [f"{call.head[:first]}{call.name}{call.head[last:]}"]
        for key, raw in jsontext.decode_object(call.arguments).items():
            value = bytes(raw).decode("utf-8")
            if value.startswith('"'):
                value = jsontext.decode_text(raw)
                value = f"\n{value}\n" if "\n" in value or not value else value
            prefix = call.prefix or ""
            lines.append(f"{opening.format(prefix, key)}{value}</{prefix}parameter>")
        text = "\n".join([*lines, call.tail or "</function>"])
        calls = self.parse(text, (call.name,)).calls
        return text if len(calls) == 1 and says_same(calls[0], call) else None


def _call_at(text: str, match: re.Match[str]) -> ParsedCall | str | None:
    """The call that begins here; a reason, or nothing, when there is none."""
    prefix = None if match["name"] else match["prefix"] or ""
    if not (match["name"] or match["named"]).strip():
        return None
    form = _EQUALS if prefix is None else _NAMED[prefix]
    values: dict[str, str] = {}
    position = skip_space(text, match.end())
    while (parameter := form.parameter.match(text, position)) is not None:
        end = form.value_end.search(text, parameter.end())
        key = parameter[1].strip()
        if key in values:
            return "a parameter stands twice"
        last = end.start() if end is not None else text.find(form.close, parameter.end())
        if end is not None and _holds_call(text, parameter.end(), last, form.close):
            last, end = _unclosed(text, parameter.end(), form.close), None
        if last < 0:
            return "a parameter is not closed"
        values[key] = _value(text, parameter.end(), last)
        position = skip_space(text, end.end() if end is not None else last)
    close = position
    if text.startswith(form.close, position):
        position += len(form.close)
    elif position < len(text) or not values:
        return "a call holds other words" if values else None
    span = (match.start(), _group_end(text, position, match["group"]))
    start, end_of_name = match.span("name" if prefix is None else "named")
    return _ElementCall(
        span,
        text[start:end_of_name].strip(),
        *(_arguments(values), None, "dsl"),
        head=match.group(),
        tail=text[close : span[1]],
        name_place=(start - span[0], end_of_name - span[0]),
        prefix=prefix,
    )


def _holds_call(text: str, start: int, end: int, close: str) -> bool:
    """Whether a value that holds its own closing tag goes on into another call."""
    places = [text.find(tag, start, end) for tag in ("parameter>", close)]
    closed = min((place for place in places if place >= 0), default=-1)
    return closed >= 0 and _CALL.search(text, closed, end) is not None


def _unclosed(text: str, start: int, close: str) -> int:
    """The end of a value whose own closing tag was forgotten; -1 when that is not the fault."""
    end = text.find(close, start)
    return end if end >= 0 and text.find("parameter>", start, end) < 0 else -1


def _value(text: str, start: int, end: int) -> str:
    """A value without its layout."""
    value = text[start:end]
    value = value.removeprefix("\r").removeprefix("\n")
    return value[:-1].removesuffix("\r") if value.endswith("\n") else value


def _arguments(values: dict[str, str]) -> str | None:
    """JSON of the values; of those that the editor's tools give another type, as such."""
    typed: dict[str, object] = dict(values)
    for key, first in _TYPED.items():
        value = values.get(key, "").strip()
        if value and (value.startswith(first) if first else value.isdecimal()):
            typed[key] = jsontext.raw(value) if jsontext.is_valid(value) else values[key]
    if typed == values:
        return json_of(values)
    try:
        return jsontext.text_of(typed)
    except UnicodeEncodeError:  # a lone surrogate, which JSON can only say by an escape
        return json_of(values)


def _group_end(text: str, position: int, group: str | None) -> int:
    """The end of a call, with the tag around several of them when it stands there."""
    after = skip_space(text, position)
    names = (group,) if group else ("function_calls", "antml:function_calls", "minimax:tool_call")
    for name in names:
        if text.startswith(f"</{name}>", after):
            return after + len(f"</{name}>")
    return position


DIALECT = FunctionXml()
