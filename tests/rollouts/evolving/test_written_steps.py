"""Reading steps that models write: strictly, and never with another error than the one for that."""

from __future__ import annotations

import json
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adp.rollouts.environments.calculator import CALCULATOR
from adp.rollouts.environments.search import library, search_tool
from adp.rollouts.evolving.written_steps import (
    DoneStep,
    corrected_part,
    fitted,
    read_number,
    read_thoughts,
    read_turn,
    tag_call,
    written_steps,
    written_turn,
)
from adp.rollouts.judging.answers import UnreadableError
from adp.rollouts.turns import Call, Turn

SEARCH = search_tool(library(None, None, 1.2, 0.75), 3).schema
CODE = {"type": "object", "properties": {"code": {"type": "string"}}, "required": ["code"]}
PYTHON = {"type": "function", "function": {"name": "python", "parameters": CODE}}
TOOLS = [CALCULATOR.schema, SEARCH, PYTHON]
CALL = '<call>{"name": "calculator", "arguments": {"expression": "1 + 1"}}</call>'
PIECES = st.sampled_from(
    [
        *("<thought>", "</thought>", "<call>", "</call>", "<answer>", "</answer>", "<search>"),
        *("</search>", "<python>", "</python>", "Step:", "step", " 1", "none", "\n", "x", "{", "}"),
        *('"name"', ":", "Corrected step:", '<step n="1">', "</step>", CALL, "99", "²", "**"),
    ]
)
TEXTS = st.lists(PIECES, max_size=12).map("".join)
WORDS = st.text(st.characters(exclude_characters="<>\r", exclude_categories=["Cs"]), min_size=1)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "no step number"),
        ("I do not know.", "no step number"),
        ("Step: five", "no step number"),
        ("Step: ²", "no step number"),
        ("Step:", "no step number"),
        ("Step: 0", "step number out of range"),
        ("Step: 4", "step number out of range"),
        ("Step: 99999999999999999999999", "step number out of range"),
        ("Step: -1", "step number out of range"),
        ("Step: 1\nStep: 2", "several step numbers"),
        ("Step: 1 or 2", "no step number"),
        ("Step: 1.5", "no step number"),
        ("Step: none", "no step number"),
    ],
)
def test_a_number_that_is_none_has_a_reason(text, reason):
    with pytest.raises(UnreadableError) as caught:
        read_number(text, 3)
    assert str(caught.value) == reason


def test_numbers():
    assert read_number("Step: 3", 3) == 3
    assert read_number("**Step: 2**\nAnalysis: logic", 3) == 2
    assert read_number("Step: none", 3, may_be_none=True) is None
    assert read_number("Step: 1\nCorrected step:\nStep: 3", 3) == 1


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "neither calls nor an answer"),
        ("42", "text outside of the tags"),
        ("<thought>a</thought>", "neither calls nor an answer"),
        ("<answer> </answer>", "empty answer"),
        (f"{CALL}<answer>2</answer>", "both calls and an answer"),
        (f"{CALL}<thought>late</thought>", "more than one thought, or not at the beginning"),
        (f"{CALL} done", "text outside of the tags"),
        ("<call>{</call>", "a call is no JSON"),
        ("<call>[]</call>", "a call without name and arguments"),
        ('<call>{"name": "calculator"}</call>', "a call without name and arguments"),
        ('<call>{"name": "shell", "arguments": {}}</call>', "unknown tool"),
        ('<call>{"name": ["a"], "arguments": {}}</call>', "unknown tool"),
        ('<call>{"name": "calculator", "arguments": "1"}</call>', "arguments are no object"),
        ("<search></search>", "empty call"),
        ("<answer>1</answer><answer>2</answer>", "several answers"),
    ],
)
def test_a_turn_that_is_none_has_a_reason(text, reason):
    with pytest.raises(UnreadableError) as caught:
        read_turn(text, TOOLS)
    assert str(caught.value) == reason


def test_turns():
    turn = read_turn(f"<thought>Add them.</thought>\n{CALL}\n{CALL}\n", TOOLS)
    assert turn.reasoning == "Add them."
    assert [call.name for call in turn.calls] == ["calculator"] * 2
    assert json.loads(turn.calls[0].arguments) == {"expression": "1 + 1"}
    answer = read_turn("<answer> Langres </answer>", TOOLS)
    assert (answer.text, answer.calls, answer.reasoning) == ("Langres", (), None)


def test_tags_become_calls_of_the_tools_on_offer():
    turn = read_turn("<search>river Maas</search>\n<python>print(1)</python>", TOOLS)
    assert [(call.name, json.loads(call.arguments)) for call in turn.calls] == [
        ("search", {"query": "river Maas"}),
        ("python", {"code": "print(1)"}),
    ]
    assert tag_call("search", "x", [PYTHON]) is None
    with pytest.raises(UnreadableError, match="no tool for <search>"):
        read_turn("<search>river</search>", [PYTHON])


def test_a_recorded_program_becomes_the_argument_of_the_tool():
    turn = Turn(calls=(Call("python", "print(1)\n", "c1"), Call("calculator", '{"a": 1}', "c2")))
    calls = fitted(turn, TOOLS).calls
    assert json.loads(calls[0].arguments) == {"code": "print(1)\n"}
    assert calls[0].call_id == "c1"
    assert calls[1] == turn.calls[1]


@given(TEXTS)
def test_whatever_is_written_is_read_or_refused(text):
    readers = (
        lambda: read_number(text, 3),
        lambda: read_number(text, 3, may_be_none=True),
        lambda: read_turn(text, TOOLS),
        lambda: read_turn(corrected_part(text), TOOLS),
        lambda: read_thoughts(text, [1]),
    )
    for read in readers:
        with suppress(UnreadableError):
            read()


@given(WORDS, WORDS, st.booleans())
def test_a_turn_that_is_written_is_read_again(thought, words, answers):
    call = Call("search", json.dumps({"query": words}))
    turn = (
        Turn(text=words, reasoning=thought) if answers else Turn(calls=(call,), reasoning=thought)
    )
    if not words.strip() or not thought.strip():
        return
    again = read_turn(written_turn(turn), TOOLS)
    assert again.reasoning == thought.strip()
    if answers:
        assert again.text == words.strip()
    else:
        assert json.loads(again.calls[0].arguments) == {"query": words}


def test_steps_are_numbered_and_long_results_cut():
    steps = [DoneStep(Turn(calls=(Call("search", '{"query": "x"}'),)), ("r" * 2000,)),
             DoneStep(Turn(text="42", reasoning="So."))]  # fmt: skip
    text = written_steps(steps)
    assert [line for line in text.splitlines() if line.startswith("Step")] == ["Step 1", "Step 2"]
    assert "r" * 1000 + "...</result>" in text
    assert text.endswith("<thought>So.</thought>\n<answer>42</answer>")


def test_refined_thoughts_keep_their_letters_and_their_order():
    text = '<step n="1">\n<thought>Ask for PARIS.</thought>\n</step>\n'
    text += '<step n="3"><thought>B</thought></step>'
    assert read_thoughts(text, [1, 3]) == {1: "Ask for PARIS.", 3: "B"}
    for wanted in ([1], [3, 1], [1, 2, 3]):
        with pytest.raises(UnreadableError, match="not the steps"):
            read_thoughts(text, wanted)
    with pytest.raises(UnreadableError, match="tags in a thought"):
        read_thoughts('<step n="1"><thought>a <answer>x</thought></step>', [1])
    with pytest.raises(UnreadableError, match="empty thought"):
        read_thoughts('<step n="1"><thought> </thought></step>', [1])
