"""Turns in ET-Agent's tags."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adp.rollouts.environments.search import library, search_tool
from adp.rollouts.evolving.tagged_turns import turn_of_tags
from adp.rollouts.turns import Call, Turn

TOOLS = [search_tool(library(None, None, 1.2, 0.75), 2).schema]
PIECES = ("<think>", "</think>", "<search>", "</search>", "<python>", "<answer>", "</answer>", "x")


@pytest.mark.parametrize(
    ("text", "reasoning", "answer"),
    [
        ("<think>a</think> <search>river</search>", "a", {"query": "river"}),
        ("<think>a</think> <search>river", "a", {"query": "river"}),
        ("<think>a <search>river</search> made-up", "a", {"query": "river"}),
        ("words <search>river</search>", "words", {"query": "river"}),
        ("<answer>It is \\boxed{7}.</answer>", None, "7"),
        ("<think>a</think><answer>seven", "a", "seven"),
        ("a</think><answer>seven</answer>", "a", "seven"),
    ],
)
def test_tags_are_calls_or_answers(text, reasoning, answer):
    turn = turn_of_tags(Turn(text=text, completion_token_ids=(1,)), TOOLS)
    assert turn.reasoning == reasoning
    assert turn.malformed is None
    assert turn.completion_token_ids is None
    assert turn.extra["tagged_text"] == text
    if isinstance(answer, str):
        assert (turn.text, turn.calls) == (answer, ())
    else:
        assert [(call.name, json.loads(call.arguments)) for call in turn.calls] == [
            ("search", answer)
        ]


def test_what_is_no_turn_is_told_to_the_agent():
    assert "a thought alone" in turn_of_tags(Turn(text="<think>a</think>"), TOOLS).malformed
    assert "no tool for <python>" in turn_of_tags(Turn(text="<python>1</python>"), TOOLS).malformed


def test_other_turns_stay_as_they_are():
    for turn in (Turn(text="7"), Turn(text="<search>x", calls=(Call("search"),)),
                 Turn(text="<search>", malformed="half")):  # fmt: skip
        assert turn_of_tags(turn, TOOLS) is turn


@given(st.lists(st.sampled_from(PIECES), max_size=8).map("".join))
def test_any_text_is_a_turn(text):
    turn = turn_of_tags(Turn(text=text), TOOLS)
    assert turn.malformed is not None or turn.calls or turn.text == text or "<answer>" in text
