"""Hermes: JSON in tags, several in a pair of tags, literals of Python, results in tags."""

from __future__ import annotations

import json
import re

import pytest

from adp.converters.text_calls.dialects.hermes import DIALECT
from tests.converters.text_calls.dialects.common import (
    calls,
    check_example,
    check_prose,
    check_work,
    check_write,
    results,
)
from tests.samples import ROOT

WEBDANCER = ROOT / "datasets_new" / "webdancer"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('<tool_call>{"name": "f", "arguments": {"a": 1}}</tool_call>', [("f", {"a": 1})]),
        ('<tool_call>\n{"name": "f", "parameters": {}}\n</tool_call>', [("f", {})]),
        ("Ok.\n<tool_call>\n{'name': 'f', 'arguments': {'a': None}}\n</tool_call>",
         [("f", {"a": None})]),
        ('<tool_call>\n{"name": "f", "arguments": {}}\n{"name": "g", "arguments": {"b": "x"}}\n'
         "</tool_call>", [("f", {}), ("g", {"b": "x"})]),
        ('<tool_call>[{"name": "f", "arguments": {}}, {"name": "g"}]</tool_call>',
         [("f", {}), ("g", {})]),
        ('<think>f?</think>\n<tool_call>\n{"name": "f", "arguments": {"a": "line\nbreak"}}\n'
         "</tool_call>\n<tool_call>\n{\"name\": \"g\", \"arguments\": \"{\\\"b\\\": 2}\"}",
         [("f", {"a": "line\nbreak"}), ("g", {"b": 2})]),
        ('<tool_call>{"name": "f", "arguments": "now"}</tool_call>', [("f", "now")]),
        ('I call it: <tool_call>{"name": "f", "arguments": {}}</tool_call>', [("f", {})]),
        ("<tool_call>get\n<arg_key>city</arg_key>\n<arg_value>Bonn</arg_value>\n</tool_call>",
         [("get", {"city": "Bonn"})]),
    ],
)  # fmt: skip
def test_calls_are_found(text: str, expected: list[object]) -> None:
    assert calls(DIALECT, text) == expected


@pytest.mark.parametrize(
    "text",
    [
        '<think><tool_call>{"name": "f", "arguments": {}}</tool_call></think>',
        "<tool_call>{not json}</tool_call>",
        '<tool_call>{"tool": "f"}</tool_call>',
        'The form <tool_call>{"name": "f", "arguments": {}}</tool_call> is what it reads.',
    ],
)
def test_what_is_no_call_stays_text(text: str) -> None:
    assert calls(DIALECT, text) == []


def test_reason_is_given_for_what_is_left() -> None:
    assert DIALECT.parse("<tool_call>{not json}</tool_call>").left
    assert DIALECT.parse('<tool_call>{"name": "f"}</tool_call>').left is None


def test_answer_is_marked() -> None:
    text = "<think>a</think>\n<answer>\nBonn\n</answer>"
    answer = DIALECT.parse(text).answer
    assert answer is not None
    assert text[slice(*answer.words)] == "Bonn"


def test_results_are_taken_apart() -> None:
    text = "<tool_response>\n1\n</tool_response>\n<tool_response>2</tool_response>"
    assert results(DIALECT, text) == ["1", "2"]
    assert results(DIALECT, "<obs> [1] </obs>") == ["[1]"]
    assert results(DIALECT, "plain") == ["plain"]


def test_run_in_a_text_is_cut() -> None:
    call = '<tool_call>{"name": "f"}</tool_call>'
    text = f"<think>a</think>{call}\n<tool_response>1</tool_response>\n<think>b</think>Done."
    pieces = DIALECT.pieces(text)
    assert [(it.source, text[slice(*it.span)]) for it in pieces] == [
        ("agent", f"<think>a</think>{call}\n"),
        ("result", "<tool_response>1</tool_response>"),
        ("agent", "\n<think>b</think>Done."),
    ]
    assert not DIALECT.pieces(call)


def test_edited_calls_are_written() -> None:
    check_example(DIALECT)
    for many in ('{"name": "f"}\n{"name": "g"}\n{"name": "h"}', "{'name': 'f', 'arguments': {}}"):
        check_write(DIALECT, f"a\n<tool_call>\n{many}\n</tool_call>\nb")


def test_texts_about_tools_have_no_calls() -> None:
    check_prose(DIALECT)


def test_work_is_linear() -> None:
    pieces = [
        "<tool_call>",
        '<tool_call>{"name": "f',
        "<tool_call>[",
        "<tool_call>{'a': ",
        "<think>",
    ]
    check_work(
        DIALECT, [*pieces, "<answer>", "</think><answer>", "<tool_response>", "\n<tool_call>a"]
    )


@pytest.mark.skipif(not WEBDANCER.is_dir(), reason="../shared/data is not there")
def test_real_runs_have_the_calls_of_a_plain_walk() -> None:
    number = 0
    for line in next(WEBDANCER.glob("sample_traj*")).read_text(encoding="utf-8").splitlines():
        for message in json.loads(line)["messages"]:
            if message["role"] != "assistant":
                continue
            blocks = re.findall(r"<tool_call>\n(.*?)\n</tool_call>", message["content"], re.DOTALL)
            expected = [(it["name"], it["arguments"]) for it in map(json.loads, blocks)]
            assert calls(DIALECT, message["content"]) == expected
            number += len(expected)
    assert number >= 24


def test_result_answers_the_call_of_its_name() -> None:
    agent = (
        '<tool_call>{"name": "a", "arguments": {}}</tool_call>\n'
        '<tool_call>{"name": "b", "arguments": {}}</tool_call>'
    )
    waiting = DIALECT.parse(agent).calls
    cases = {
        '<tool_response>{"name": "b", "content": 1}</tool_response>\n'
        '<tool_response>{"name": "a", "content": 2}</tool_response>': ["b", "a"],
        "<tool_response>\n{'name': 'b', 'content': None}\n</tool_response>": ["b"],
        '<obs> [{"name": "b", "results": 1}, {"name": "a", "results": 2}] </obs>': ["b", "a"],
        '<tool_response>{"name": "Ann"}</tool_response>': [None],
        '<tool_response>[{"name": "b"}, {"name": "Ann"}]</tool_response>': [None],
        "<tool_response>b</tool_response>": [None],
    }
    for text, names in cases.items():
        assert [it.name for it in DIALECT.results_in(text, waiting)] == names
        results(DIALECT, text, agent)
        assert [it.name for it in DIALECT.results_in(text, waiting[:1])] == [None] * text.count(
            "</"
        )
    listed = '<obs> [{"name": "b", "results": 1}, {"name": "a", "results": 2}] </obs>'
    assert results(DIALECT, listed, agent) == [
        '{"name": "b", "results": 1}',
        '{"name": "a", "results": 2}',
    ]
