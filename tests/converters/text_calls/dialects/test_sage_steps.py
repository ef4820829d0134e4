"""SAGE's texts: thoughts, calls and observations with blank lines between."""

from __future__ import annotations

import json
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adp.converters.text_calls.dialects.sage_steps import DIALECT
from tests.converters.text_calls.dialects.checks import (
    calls,
    checked,
    edited,
    is_linear,
    results,
    rewritten,
    thoughts,
)

STEPS = [
    ("I look.", "search_001", {"query": "rain in Ghent", "top": 2.5}, "It rains."),
    ("", "mailer_002", {}, "Sent.\n\nTwice, with {\"id\": 3}."),
    ("Two lines.\n\nOf thought.", "finish", {"answer": "Take an \"umbrella\"."}, ""),
]  # fmt: skip


def call_text(name, values, form):
    arguments = json.dumps(values, ensure_ascii=False)
    if form == "function_call":
        function = {"name": name, "arguments": arguments}
        return json.dumps({"function_call": function}, ensure_ascii=False)
    return f'<tool_call>\n{{"name": "{name}", "arguments": {arguments}}}\n</tool_call>'


def whole(steps, form="generic", *, with_thought=True, with_observation=True):
    """The text of a run, by the rules of SAGE's converter."""
    parts = []
    for thought, name, values, observation in steps:
        parts += [f"Thought: {thought}"] if with_thought and thought else []
        parts.append(call_text(name, values, form))
        parts += [f"Observation: {observation}"] if with_observation and observation else []
    return "\n\n".join(parts)


@pytest.mark.parametrize(
    ("form", "with_thought", "with_observation"),
    list(product(["generic", "function_call"], [True, False], [True, False])),
)
def test_a_run_is_cut_into_its_turns(form, with_thought, with_observation):
    text = whole(STEPS, form, with_thought=with_thought, with_observation=with_observation)
    pieces = DIALECT.pieces(text)
    assert "".join(text[slice(*piece.span)] for piece in pieces) == text
    turns = [text[slice(*piece.span)] for piece in pieces if piece.source == "agent"]
    assert [calls(DIALECT, turn) for turn in turns] == [
        [(name, values)] for _, name, values, _ in STEPS
    ]
    if with_thought:
        assert [thoughts(DIALECT, turn) for turn in turns] == [
            [thought] if thought else [] for thought, *_ in STEPS
        ]
    observed = [text[slice(*piece.span)] for piece in pieces if piece.source == "result"]
    expected = [step[3] for step in STEPS if step[3] and with_observation]
    assert [results(DIALECT, piece, turns[0])[0] for piece in observed] == expected


def test_one_turn_has_no_pieces():
    assert DIALECT.pieces(whole(STEPS[:1], with_observation=False)) == ()
    assert DIALECT.pieces("Thought: nothing to do.") == ()


@pytest.mark.parametrize("form", ["generic", "function_call"])
def test_calls_can_be_written_and_edited(form):
    text = whole(STEPS[:1], form)
    assert rewritten(DIALECT, text) == text
    assert edited(DIALECT, text, name="other")[0] == ("other", STEPS[0][2])
    assert edited(DIALECT, text, arguments='{"a": 1}')[0][1] == {"a": 1}


def test_what_is_no_call_stays_text():
    for text in ("Thought: I think.", '{"function_call": 1}', '{"function_call": {"name": "f"}}',
                 "<tool_call>\nno JSON\n</tool_call>", "Thought: {"):  # fmt: skip
        assert calls(DIALECT, text) == []
        assert checked(DIALECT, text).thoughts == ()
    broken = '{"function_call": {"name": "f", "arguments": "{oops"}}'
    assert calls(DIALECT, broken) == [("f", "{oops")]


words = st.text(st.sampled_from('ab \n{}"<>:'), max_size=30).map(str.strip)


one_step = st.tuples(words, st.just("tool_001"), st.dictionaries(words, words), words)


@given(
    steps=st.lists(one_step, min_size=1, max_size=4),
    form=st.sampled_from(["generic", "function_call"]),
)
def test_any_run_is_covered_by_its_pieces(steps, form):
    text = whole(steps, form)
    checked(DIALECT, text)
    pieces = DIALECT.pieces(text)
    assert not pieces or "".join(text[slice(*piece.span)] for piece in pieces) == text


@pytest.mark.parametrize(
    "unit",
    ["Thought: a\n\n", '{"function_call": ', "<tool_call>\n", "Observation: b\n\n",
     '{"function_call": {"name": "f", "arguments": "{}"}}\n\n', "\n\n", '{"function_call": ['],
)  # fmt: skip
def test_time_is_linear(unit):
    is_linear(DIALECT, unit)
