"""Texts of dialects with random faults: spans stay whole, and written calls say the same."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import pytest

from adp.converters.text_calls.dialect import Dialect, ParsedTurn
from adp.converters.text_calls.registry import dialect
from adp.converters.text_calls.thoughts import with_thoughts
from adp_schema import jsontext

NAMES = (
    *("function_xml", "hermes", "glaive", "toolace", "codeact", "mini_swe", "search_tags"),
    *("afm_tags", "mcp_xml", "terminus", "tool_call_brackets", "rlla", "m3", "harmony_text"),
    *("llama_python_tag", "kimi_tags", "deepseek_tags", "json_actions", "fenced_code"),
)
FAULTS = (
    *("<think>", "</think>", "```", "\n", "```python\n", "<", "{", "}", "'", '"', "\\", "]", "["),
    *(")", "(", "`", "\u2028", "é", "𝄞", " ", "</", "\r\n", "<answer>", "<result>", "</result>"),
    *("Text first. ", "\n\n", "<tool_call>", "</tool_call>", "<execute>", "[TOOL_CALL]", ", "),
)
TIMES = 250


def mutated(text: str, draw: random.Random) -> str:
    """The text, perhaps twice, with some characters in the place of others."""
    if draw.random() < 0.5:
        text += draw.choice(("", "\n", " ")) + text
    for _ in range(draw.randrange(5)):
        start = draw.randrange(len(text) + 1)
        end = min(len(text), start + draw.choice((0, 1, 1, 2, 5, 20)))
        text = text[:start] + draw.choice(FAULTS) + text[end:]
    return text


def spoken(turn: ParsedTurn) -> list[Any]:
    """What the calls of a turn say."""
    return [(it.name, it.arguments and json.loads(it.arguments), it.raw) for it in turn.calls]


def check_spans(turn: ParsedTurn, text: str) -> None:
    """Spans do not overlap, and words stand in them."""
    marked = [*turn.thoughts, *([turn.answer] if turn.answer is not None else [])]
    spans = sorted(item.span for item in [*turn.calls, *marked])
    assert all(0 <= start < end <= len(text) for start, end in spans)
    assert all(left[1] <= right[0] for left, right in pairwise(spans))
    for item in marked:
        assert item.span[0] <= item.words[0] <= item.words[1] <= item.span[1]


def check_calls(grammar: Dialect, text: str, tools: Sequence[str]) -> None:
    """Calls have arguments or a text, and say the same when they are written anew."""
    turn = grammar.parse(text, tools)
    before = spoken(turn)
    for call in turn.calls:
        assert call.name
        assert (call.arguments is None) != (call.raw is None)
        assert call.arguments is None or jsontext.is_valid(call.arguments)
        assert call.arguments is None or call.arguments.startswith("{")
        assert (call.kind == "code") == (call.language is not None)
        written = grammar.write(call)
        if written is not None:
            start, end = call.span
            assert spoken(grammar.parse(text[:start] + written + text[end:], tools)) == before


@pytest.mark.parametrize("name", NAMES)
def test_faults_break_nothing(name: str) -> None:
    grammar = dialect(name)
    draw = random.Random(name)
    for _ in range(TIMES):
        text = mutated(grammar.example, draw)
        tools = draw.choice(((), ("f", "Market Trends API")))
        turn = grammar.parse(text, tools)
        check_spans(turn, text)
        check_spans(with_thoughts(turn, text), text)
        check_calls(grammar, text, tools)
        if turn.calls or turn.answer or turn.left:
            assert any(mark in text for mark in grammar.marks)
        pieces = grammar.pieces(text)
        assert not pieces or (pieces[0].span[0], pieces[-1].span[1]) == (0, len(text))
        assert all(left.span[1] == right.span[0] for left, right in pairwise(pieces))
        results = [item.marked for item in grammar.results_in(text, turn.calls)]
        assert all(left.span[1] <= right.span[0] for left, right in pairwise(results))
        assert all(item.span[1] <= len(text) for item in results)
