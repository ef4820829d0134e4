"""What holds for each dialect, and short ways to look at what it says."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import pairwise
from typing import Any

from adp.converters.text_calls.dialect import Dialect, ParsedTurn
from adp_schema import jsontext
from tests.converters.text_calls.work import MOST, growth


def calls(grammar: Dialect, text: str, *tools: str) -> list[tuple[str, Any]]:
    """Name and arguments (or code, or free text) of the calls of a text."""
    return values(checked(grammar, text, *tools))


def values(turn: ParsedTurn) -> list[tuple[str, Any]]:
    """Name and arguments (or code, or free text) of calls."""
    return [
        (call.name, call.raw if call.arguments is None else json.loads(call.arguments))
        for call in turn.calls
    ]


def checked(grammar: Dialect, text: str, *tools: str) -> ParsedTurn:
    """What a dialect says of a text, after a look at its spans."""
    turn = grammar.parse(text, tools)
    marked = [*turn.thoughts, *([turn.answer] if turn.answer else [])]
    spans = sorted([call.span for call in turn.calls] + [item.span for item in marked])
    assert all(0 <= start <= end <= len(text) for start, end in spans)
    assert all(left[1] <= right[0] for left, right in pairwise(spans))
    assert list(turn.calls) == sorted(turn.calls, key=lambda call: call.span)
    for item in marked:
        assert item.span[0] <= item.words[0] <= item.words[1] <= item.span[1]
    for call in turn.calls:
        assert call.name
        assert (call.arguments is None) != (call.raw is None)
        assert call.arguments is None or jsontext.is_valid(call.arguments)
        assert call.arguments is None or call.arguments.startswith("{")
        assert (call.kind == "code") == (call.language is not None)
    if turn.calls or turn.answer or turn.left:
        assert any(mark in text for mark in grammar.marks)
    pieces = grammar.pieces(text)
    assert not pieces or (pieces[0].span[0] == 0 and pieces[-1].span[1] == len(text))
    assert all(left.span[1] == right.span[0] for left, right in pairwise(pieces))
    return turn


def prose(grammar: Dialect, text: str, *tools: str) -> str:
    """What is left of a text."""
    turn = checked(grammar, text, *tools)
    marked = [*turn.thoughts, *([turn.answer] if turn.answer else [])]
    spans = sorted([call.span for call in turn.calls] + [item.span for item in marked])
    rest, position = [], 0
    for start, end in spans:
        rest.append(text[position:start])
        position = end
    return "".join([*rest, text[position:]]).strip()


def thoughts(grammar: Dialect, text: str) -> list[str]:
    """The reasoning of a text."""
    return [text[slice(*item.words)] for item in checked(grammar, text).thoughts]


def answer(grammar: Dialect, text: str) -> str | None:
    """The final answer of a text."""
    turn = checked(grammar, text)
    return None if turn.answer is None else text[slice(*turn.answer.words)]


def results(grammar: Dialect, text: str, turn: str) -> list[str]:
    """The results in a text that follows a turn."""
    items = grammar.results_in(text, grammar.parse(turn).calls)
    assert all(item.marked.span[1] <= len(text) for item in items)
    return [text[slice(*item.marked.words)] for item in items]


def rewritten(grammar: Dialect, text: str, *tools: str) -> str:
    """The text with its calls written anew; they must say the same."""
    turn = checked(grammar, text, *tools)
    out, position = [], 0
    for call in turn.calls:
        written = grammar.write(call)
        assert written is not None, call
        out += [text[position : call.span[0]], written]
        position = call.span[1]
    new = "".join([*out, text[position:]])
    assert values(checked(grammar, new, *tools)) == values(turn)
    return new


def edited(grammar: Dialect, text: str, **change: Any) -> list[tuple[str, Any]]:
    """The calls of a text after its first call was edited; fails when it cannot be written."""
    turn = checked(grammar, text)
    call = replace(turn.calls[0], **change)
    written = grammar.write(call)
    assert written is not None
    return calls(grammar, text[: call.span[0]] + written + text[call.span[1] :])


def is_linear(grammar: Dialect, piece: str, before: str = "") -> None:
    """Check that twice the hostile text takes about twice the time, and ten times as much ends.

    Args:
        grammar: the dialect.
        piece: what the text repeats.
        before: what it begins with.
    """
    assert growth(lambda text: _read(grammar, before + text), piece) < MOST


def _read(grammar: Dialect, text: str) -> None:
    turn = grammar.parse(text)
    grammar.results_in(text, turn.calls)
    grammar.pieces(text)
