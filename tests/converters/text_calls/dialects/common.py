"""What holds for every dialect: spans in order, write and parse again, marks, linear work."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from adp.converters.text_calls.dialect import Dialect, ParsedCall
from tests.converters.text_calls.work import MOST, growth


def value(call: ParsedCall) -> Any:
    """What a call says: its arguments, or its code."""
    return call.raw if call.arguments is None else json.loads(call.arguments)


def calls(dialect: Dialect, text: str, tools: Sequence[str] = ()) -> list[tuple[str, Any]]:
    """Names and arguments of the calls of a text, after looking at what must hold for any text."""
    turn = dialect.parse(text, tools)
    answers = [turn.answer] if turn.answer is not None else []
    spans = sorted(item.span for item in [*turn.calls, *turn.thoughts, *answers])
    assert [call.span for call in turn.calls] == sorted(call.span for call in turn.calls)
    for (start, end), following in zip(spans, [*spans, (len(text), 0)][1:], strict=True):
        assert 0 <= start < end <= following[0]
    for marked in [*turn.thoughts, *answers]:
        assert marked.span[0] <= marked.words[0] <= marked.words[1] <= marked.span[1]
    for call in turn.calls:
        assert (call.arguments is None) or isinstance(json.loads(call.arguments), dict)
    if turn:
        assert any(mark in text for mark in dialect.marks)
    return [(call.name, value(call)) for call in turn.calls]


def results(dialect: Dialect, text: str, agent: str = "") -> list[str]:
    """The words of the results in a turn after the turn of an agent."""
    waiting = dialect.parse(agent).calls
    items = dialect.results_in(text, waiting)
    ends = [0]
    for item in items:
        (start, end), (first, last) = item.marked
        assert ends[-1] <= start <= first <= last <= end <= len(text)
        assert item.call is None or 0 <= item.call < len(waiting)
        ends.append(end)
    return [text[slice(*item.marked.words)] for item in items]


def check_example(dialect: Dialect, tools: Sequence[str] = ()) -> None:
    """The example has a call, and each of its calls is written as text that says the same."""
    assert calls(dialect, dialect.example, tools)
    check_write(dialect, dialect.example, tools)


def check_write(dialect: Dialect, text: str, tools: Sequence[str] = ()) -> None:
    """Each call is written as characters that say the same in their place."""
    before = calls(dialect, text, tools)
    for call in dialect.parse(text, tools).calls:
        written = dialect.write(call)
        assert written is not None, call
        start, end = call.span
        assert calls(dialect, text[:start] + written + text[end:], tools) == before


def check_work(dialect: Dialect, pieces: Sequence[str]) -> None:
    """Twice the hostile text takes no more than twice the time, or so."""
    for piece in pieces:
        assert growth(dialect.parse, piece) < MOST, piece
        assert growth(lambda text: dialect.results_in(text, ()), piece) < MOST, piece
        assert growth(dialect.pieces, piece) < MOST, piece


PROSE = (
    "There is a tool for that; just call it.",
    'Use `<tool_call>` tags, for example `<tool_call>{"name": "f"}</tool_call>`.',
    'Write a block like this:\n\n```xml\n<tool_call>\n{"name": "f", "arguments": {}}\n'
    "</tool_call>\n```\n\nand the harness runs it.",
    "The <tool_call> tag opens a call and </tool_call> closes it.",
    '```json\n{"name": "f", "arguments": {"a": 1}}\n```\nis what it looks like.',
    "```\n<function=bash>\n<parameter=command>ls</parameter>\n</function>\n```\nThat is it.",
    "The form <function=name><parameter=key>value</parameter></function> is what it reads.",
    "Put your code between <execute> and </execute>, and the answer in <solution> tags.",
    "Reply with [TOOL_CALL]...[/TOOL_CALL] as the guide says.",
    "`<search>query</search>` is sent to the engine; `<result>` comes back.",
    "~~~\n<execute_bash>\nls\n</execute_bash>\n~~~\n",
    'An `<invoke name="f">` element has `<parameter name="k">` children.',
    'She said {"name": "Ann", "age": 3} is JSON, and [a(b=1)] is a list.',
    "<p>Hello</p> and <code>f(x)</code> are HTML.\n<search>\n",
    "See [1] and [the docs](https://example.org/a(b)).",
)
"""Texts that talk about tools, with XML and JSON in them: none of them acts."""


def check_prose(dialect: Dialect, texts: Sequence[str] = PROSE) -> None:
    """Texts that talk about tools have no calls."""
    for text in texts:
        assert calls(dialect, text, ("f", "name", "bash")) == [], text
