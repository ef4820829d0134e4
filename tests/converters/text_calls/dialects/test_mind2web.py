"""Mind2Web: choices and action strings."""

from __future__ import annotations

import re
from typing import Any

import pytest

from adp.converters.text_calls.dialects.mind2web import DIALECT
from tests.converters.text_calls.dialects import checks, upstream

CHOICE = "Thought: I enter the city.\nAnswer: C.\nAction: TYPE\nValue: New York"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (CHOICE, [("TYPE", {"element": "C", "value": "New York"})]),
        ("Answer: B.\nAction: CLICK", [("CLICK", {"element": "B"})]),
        ("[button]  Search -> CLICK", [("CLICK", {"element": "[button]  Search"})]),
        ("[textbox]  City -> TYPE: Rome\n[option] 2 -> SELECT: 2",
         [("TYPE", {"element": "[textbox]  City", "value": "Rome"}),
          ("SELECT", {"element": "[option] 2", "value": "2"})]),
    ],
)  # fmt: skip
def test_calls(text: str, expected: list[tuple[str, Any]]) -> None:
    assert checks.calls(DIALECT, text) == expected
    assert checks.rewritten(DIALECT, text)


@pytest.mark.parametrize(
    "text",
    [
        "Answer: C.",
        "Answer: The city.\nAction: CLICK",
        "Answer: C.\nAction: wait for it",
        "The button -> CLICK",
        "[link] is -> CLICK it",
        "```\nAnswer: C.\nAction: CLICK\n```",
        "Answer: 4",
    ],
)
def test_what_is_no_call(text: str) -> None:
    assert not checks.checked(DIALECT, text)


def test_thoughts_and_answers() -> None:
    assert checks.thoughts(DIALECT, CHOICE) == ["I enter the city."]
    assert checks.prose(DIALECT, CHOICE) == ""
    text = "Thought: Nothing fits.\nAnswer: A."
    assert checks.answer(DIALECT, text) == "A."
    assert checks.calls(DIALECT, text) == []
    assert checks.answer(DIALECT, "Thought: a\nAnswer: A. None of these.") == "A. None of these."


def test_edits() -> None:
    new = checks.edited(DIALECT, CHOICE, arguments='{"element": "D", "value": "Rome"}')
    assert new == [("TYPE", {"element": "D", "value": "Rome"})]
    new = checks.edited(DIALECT, "[a] b -> CLICK", name="HOVER")
    assert new == [("HOVER", {"element": "[a] b"})]


def test_real_choices() -> None:
    path = "adp_atif/agenttuning_mind2web/sample_raw.derived.json"
    turns = upstream.agent_turns(path)
    operations = [it for text in turns for it in re.findall(r"^Action: (\w+)", text, re.MULTILINE)]
    calls = [call for text in turns for call in checks.calls(DIALECT, text)]
    assert [name for name, _ in calls] == operations
    assert len([text for text in turns if checks.answer(DIALECT, text)]) + len(calls) == len(turns)
    values = [it for text in turns for it in re.findall(r"^Value: (.+)", text, re.MULTILINE)]
    assert [given["value"] for _, given in calls if "value" in given] == values
