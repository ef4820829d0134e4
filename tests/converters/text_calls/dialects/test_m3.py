"""M3: the forms of its four students, and of the runs that it stores."""

from __future__ import annotations

import json

import pytest

from adp.converters.text_calls.dialects.m3 import DIALECT
from tests.converters.text_calls.dialects.common import (
    calls,
    check_example,
    check_prose,
    check_work,
    check_write,
    results,
)
from tests.samples import ROOT

FOLDER = ROOT / "m3" / "bird-dev-old"
CALL = '{"name": "f", "arguments": {"a": 1}}'


def answer(text: str) -> str | None:
    marked = DIALECT.parse(text).answer
    return None if marked is None else text[slice(*marked.words)]


@pytest.mark.parametrize(
    "text",
    [
        f"<think>a</think><Action>{CALL}</Action>",
        f"<think>a</think>\n<tool_call>\n{CALL}\n</tool_call>",
        f"<think>a</think>[TOOL_CALLS] [{CALL}]",
        f"<think>a</think><|tool_call|> [{CALL}]",
        f"<think>a</think>{CALL}",
        f" <Thought>a</Thought>\n{CALL}",
    ],
)
def test_each_form_is_read_and_written(text: str) -> None:
    assert calls(DIALECT, text) == [("f", {"a": 1})]
    check_write(DIALECT, text)


@pytest.mark.parametrize(
    "text", [CALL, f"<think>{CALL}</think>", f"<think>a</think>{CALL} is it", "<Action>f</Action>"]
)
def test_other_texts_have_no_call(text: str) -> None:
    assert calls(DIALECT, text) == []


def test_answer_is_marked() -> None:
    assert answer("<think>a</think><FINAL> b </FINAL>") == "b"
    assert answer("Write `<FINAL>b</FINAL>`.") is None


def test_results_are_taken_apart() -> None:
    assert results(DIALECT, "<Observation>1</Observation>") == ["1"]
    assert results(DIALECT, "[TOOL_RESULTS] 1[/TOOL_RESULTS]") == ["1"]
    assert results(DIALECT, "ToolCallSuccessful: 1") == ["ToolCallSuccessful: 1"]
    texts = ("ToolCallSuccessful: 1", "ToolDoesNotFoundError: no", "Done!")
    assert [DIALECT.results_in(it, ())[0].is_error for it in texts] == [False, True, None]


def test_edited_calls_are_written() -> None:
    check_example(DIALECT)


def test_texts_about_tools_have_no_calls() -> None:
    check_prose(DIALECT)


def test_work_is_linear() -> None:
    check_work(DIALECT, ["<Action>", "<Action>{", "</think>{", "<FINAL>", "[TOOL_CALLS]["])


@pytest.mark.skipif(not FOLDER.is_dir(), reason="../shared/data is not there")
def test_real_runs_have_the_actions_of_their_metadata() -> None:
    number = 0
    for path in sorted(FOLDER.rglob("trajectory_*.json")):
        for step in json.loads(path.read_text(encoding="utf-8"))["interactions"].values():
            text, given = step["output"]["content"], step["metadata"]
            if given["action"] == "FINAL":
                assert answer(text) == given["action_arguments"].strip()
                assert calls(DIALECT, text) == []
            else:
                action = given["action_arguments"]
                assert calls(DIALECT, text) == [(action["name"], action["arguments"])]
                number += 1
    assert number >= 40


def test_result_answers_the_call_of_its_name() -> None:
    agent = '[TOOL_CALLS][{"name": "a", "arguments": {}}, {"name": "b", "arguments": {}}]'
    waiting = DIALECT.parse(agent).calls
    assert [call.name for call in waiting] == ["a", "b"]
    text = '[TOOL_RESULTS] [{"name": "b", "content": 1}] [/TOOL_RESULTS]'
    assert [it.name for it in DIALECT.results_in(text, waiting)] == ["b"]
