"""ALFWorld: own texts, and real ones against a plain walk and the standard actions."""

from __future__ import annotations

import re
from typing import Any

import pytest

from adp.converters.text_calls.dialect import ParsedCall
from adp.converters.text_calls.dialects.alfworld import DIALECT
from tests.converters.text_calls.dialects import checks, upstream

RAW = [
    "adp_v1/agenttuning_alfworld/sample_raw.json",
    "datasets/agentinstruct_alfworld/sample_raw.agenttuning_alfworld.head2.json",
    "datasets_new/adp_agenttuning_alfworld_336/sample_raw.rows40+60.json",
]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("THOUGHT: a.\n ACTION: go to sinkbasin 1", [("go", {"location": "sinkbasin 1"})]),
        ("ACTION: take mug 1 from desk 2\n", [("take", {"item": "mug 1", "source": "desk 2"})]),
        ("ACTION: put mug 1 in/on desk 2", [("put", {"item": "mug 1", "target": "desk 2"})]),
        ("THOUGHT: a. ACTION: open drawer 3", [("open", {"obj": "drawer 3"})]),
        ("ACTION: heat egg 1 with pan 1", [("heat", {"item": "egg 1", "appliance": "pan 1"})]),
        ("ACTION: look at book 1 under desklamp 1",
         [("look_at_under", {"item": "book 1", "reference": "desklamp 1"})]),
        ("ACTION: inventory", [("inventory", {})]),
        ("ACTION: use desklamp 1\nThis gives light.", [("use", {"obj": "desklamp 1"})]),
        ("> go to cabinet 2", [("go", {"location": "cabinet 2"})]),
        ("> look", [("look", {})]),
    ],
)  # fmt: skip
def test_calls(text: str, expected: list[tuple[str, Any]]) -> None:
    assert checks.calls(DIALECT, text) == expected
    assert checks.rewritten(DIALECT, text)


@pytest.mark.parametrize(
    "text",
    [
        "ACTION: task failed",
        "ACTION: your next action",
        "Print ACTION: and a verb.",
        "```\nACTION: go to desk 1\n```",
        "> open the door, he said",
        "> use it",
        "REACTION: go to desk 1",
        "FACTION:look",
        "You can go to desk 1.",
        "ACTION:",
    ],
)
def test_what_is_no_call(text: str) -> None:
    assert not checks.checked(DIALECT, text)


def test_thoughts_and_what_is_left() -> None:
    text = "THOUGHT: one\ntwo\n ACTION: go to desk 1"
    assert checks.thoughts(DIALECT, text) == ["one\ntwo"]
    assert checks.prose(DIALECT, text) == ""
    turn = checks.checked(DIALECT, "THOUGHT: a\nACTION: task failed")
    assert turn.left is not None
    assert len(turn.thoughts) == 1


def test_a_prompt_that_holds_a_run() -> None:
    parts = [
        "Your task is to: put a mug on desk.\n> think: I need a mug.\n", "OK.\n",
        "> go to desk 1\n", "On the desk 1, you see a mug 1.\n> a quotation\n",
        "> take mug 1 from desk 1\n", "You pick up the mug 1.\n",
    ]  # fmt: skip
    text = "".join(parts)
    pieces = DIALECT.pieces(text)
    assert [text[slice(*piece.span)] for piece in pieces] == parts
    assert [piece.source for piece in pieces] == ["agent", "result"] * 3
    assert checks.thoughts(DIALECT, parts[0]) == ["I need a mug."]
    assert checks.calls(DIALECT, parts[4])[0][0] == "take"
    assert DIALECT.pieces("> go to desk 1") == []


def test_edits() -> None:
    text = "THOUGHT: a\nACTION: take mug 1 from desk 2"
    arguments = '{"item": "cup 3", "source": "bed 1"}'
    assert checks.edited(DIALECT, text, arguments=arguments)[0][1]["item"] == "cup 3"
    assert DIALECT.write(ParsedCall((0, 1), "fly", "{}")) is None


@pytest.mark.parametrize("path", RAW)
def test_real_turns(path: str) -> None:
    turns = upstream.agent_turns(path)
    expected = [match[1].strip() for text in turns for match in re.finditer(r"ACTION: ?(.*)", text)]
    expected = [words for words in expected if words not in ("Task succeeded.", "Task failed.")]
    assert len(expected) > 30
    calls = [(text, call) for text in turns for call in DIALECT.parse(text).calls]
    assert [text[slice(*call.span)].split(":")[1].strip() for text, call in calls] == expected
    for text in turns:
        checks.rewritten(DIALECT, text)


def test_the_standard_actions() -> None:
    turns = upstream.agent_turns(RAW[0])
    ours = [call for text in turns for call in checks.calls(DIALECT, text)]
    assert ours == upstream.standard_actions("adp_v1/agenttuning_alfworld/sample_std.json")


def test_real_prompts() -> None:
    prompts = upstream.sample("datasets_new/react_prompts/alfworld_3prompts.json")
    for name, text in prompts.items():
        commands = re.findall(r"^> (?!think)(.*)", text, re.MULTILINE)
        spans = [piece.span for piece in DIALECT.pieces(text) if piece.source == "agent"]
        calls = [call for span in spans for call in checks.calls(DIALECT, text[slice(*span)])]
        assert len(calls) == len(commands), name
