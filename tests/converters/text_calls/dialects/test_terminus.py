"""Terminus: batches of keystrokes, one screen for a batch."""

from __future__ import annotations

import json
from itertools import pairwise

import pytest

from adp.converters.text_calls.dialects.terminus import DIALECT
from tests.converters.text_calls.dialects.common import (
    PROSE,
    calls,
    check_example,
    check_prose,
    check_work,
    check_write,
    results,
)
from tests.samples import ROOT

SAMPLE = ROOT / "datasets_new" / "adp_upstream_litecoder" / "excerpt.json"
LIST = {"keystrokes": "ls\n", "duration": 0.1}
BATCH = json.dumps(
    {"analysis": "a b", "plan": "c", "commands": [LIST, LIST], "task_complete": False}
)
XML = (
    "<response>\n<analysis>a</analysis>\n<plan>b</plan>\n<commands>\n"
    '<keystrokes duration="0.1">ls\n</keystrokes>\n<keystrokes>C-c</keystrokes>\n</commands>\n'
    "<task_complete>true</task_complete>\n</response>"
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (BATCH, [("terminal", LIST), ("terminal", LIST)]),
        (f"<think>x</think>{BATCH}", [("terminal", LIST), ("terminal", LIST)]),
        (f"Here it is:\n```json\n{BATCH}\n```\n", [("terminal", LIST), ("terminal", LIST)]),
        ('{"commands": [], "task_complete": true}', [("finish", {"task_complete": True})]),
        ('{"task_complete": true, "commands": [{"keystrokes": "a"}]}',
         [("finish", {"task_complete": True}), ("terminal", {"keystrokes": "a"})]),
        ('{"commands": [{"keystrokes": "a\nb"}]}', [("terminal", {"keystrokes": "a\nb"})]),
        ('{"state_analysis": "a", "explanation": "b", "commands": [{"keystrokes": "a", '
         '"is_blocking": true, "timeout_sec": 5}], "is_task_complete": true}',
         [("terminal", {"keystrokes": "a", "is_blocking": True, "timeout_sec": 5}),
          ("finish", {"task_complete": True})]),
        (XML, [("terminal", LIST), ("terminal", {"keystrokes": "C-c"}),
               ("finish", {"task_complete": True})]),
        ('{"commands": [{"keystrokes": "a"}', []),
        ('{"commands": ["ls"]}', []),
        ('{"commands": [], "task_complete": false}', []),
    ],
)  # fmt: skip
def test_calls_are_found(text: str, expected: list[object]) -> None:
    assert calls(DIALECT, text) == expected


def test_broken_json_is_left_with_a_reason() -> None:
    assert DIALECT.parse('{"commands": [{"keystrokes": "a"}').left


@pytest.mark.parametrize(("text", "words"), [(BATCH, ["a b", "c"]), (XML, ["a", "b"])])
def test_analysis_and_plan_are_reasoning(text: str, words: list[str]) -> None:
    turn = DIALECT.parse(text)
    assert [text[slice(*it.words)] for it in turn.thoughts] == words
    spans = sorted([it.span for it in turn.thoughts] + [it.span for it in turn.calls])
    assert spans[0][0] == 0
    assert spans[-1][1] == len(text)
    assert all(left[1] == right[0] for left, right in pairwise(spans))


def test_reasoning_with_escapes_stays_in_the_call() -> None:
    turn = DIALECT.parse(json.dumps({"analysis": 'a "b"', "plan": "c", "commands": [LIST]}))
    assert not turn.thoughts
    assert turn.calls[0].span[0] == 0


def test_screen_answers_the_last_call() -> None:
    text = "Previous response had warnings:\nWARNINGS: - x\n\nNew Terminal Output:\n\n$ ls\n"
    assert results(DIALECT, text, BATCH) == ["\n$ ls\n"]
    assert [it.call for it in DIALECT.results_in(text, DIALECT.parse(BATCH).calls)] == [1]
    (failed,) = DIALECT.results_in("Previous response had parsing errors:\nERROR: x", ())
    assert failed.is_error


def test_edited_calls_are_written() -> None:
    check_example(DIALECT)
    check_write(DIALECT, f"<think>x</think>\n{BATCH}")
    check_write(DIALECT, XML.replace("true", "false"))


def test_texts_about_tools_have_no_calls() -> None:
    check_prose(DIALECT, [*PROSE, 'The key "commands" holds {"keystrokes": "ls"}.'])


def test_work_is_linear() -> None:
    check_work(
        DIALECT,
        [
            *('{"commands": [', '\n{"commands": [{"keystrokes": "', "<response>", "\n{", "{"),
            *("<response><commands>", "<commands><keystrokes>", "New Terminal Output:\n"),
            '<response><commands><keystrokes a="1" ',
        ],
    )


@pytest.mark.skipif(not SAMPLE.is_file(), reason="../shared/data is not there")
def test_real_runs_have_the_calls_of_a_plain_walk() -> None:
    number = 0
    for record in json.loads(SAMPLE.read_text(encoding="utf-8")):
        for turn in record["conversations"]:
            if turn["from"] != "gpt":
                continue
            expected = [("terminal", it) for it in json.loads(turn["value"])["commands"]]
            assert calls(DIALECT, turn["value"]) == expected
            number += len(expected)
    assert number == 3
