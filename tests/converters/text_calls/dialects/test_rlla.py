"""ToolRL: an object a line, responses, observations."""

from __future__ import annotations

import json
import re

import pytest

from adp.converters.text_calls.dialects.rlla import DIALECT
from tests.converters.text_calls.dialects.common import (
    calls,
    check_example,
    check_prose,
    check_work,
    check_write,
    results,
)
from tests.samples import ROOT

FOLDER = ROOT / "datasets_new" / "toolrl_rlla_sft"


def answer(text: str) -> str | None:
    marked = DIALECT.parse(text).answer
    return None if marked is None else text[slice(*marked.words)]


def test_calls_and_answers_are_found() -> None:
    call = '<tool_call>\n{"name": "A b", "parameters": {"x": 1}}\n</tool_call>'
    text = f"<think> Use <tool_call>. </think>\n{call}\n<response> Wait. </response>"
    assert calls(DIALECT, text) == [("A b", {"x": 1})]
    assert answer(text) == "Wait."
    assert calls(DIALECT, "<think> a </think>\n<response> Hi. </response>") == []
    assert answer("<think> <response> no </response> </think>") is None


def test_results_are_cut() -> None:
    assert results(DIALECT, '<obs> [{"name": "f"}] </obs>') == ['[{"name": "f"}]']


def test_edited_calls_are_written() -> None:
    check_example(DIALECT)
    check_write(DIALECT, f"{DIALECT.example}\n<response> a </response>")


def test_texts_about_tools_have_no_calls() -> None:
    check_prose(DIALECT)


def test_work_is_linear() -> None:
    check_work(DIALECT, ["<tool_call>\n{", "<response>", "<response></response>", "<obs>"])


@pytest.mark.skipif(not FOLDER.is_dir(), reason="../shared/data is not there")
def test_real_rows_have_the_calls_of_a_plain_walk() -> None:
    number = 0
    for row in json.loads(next(FOLDER.glob("rlla_sft.rows*")).read_text(encoding="utf-8")):
        text = row["output"]
        rest = text.rsplit("</think>", 1)[1]
        lines = re.findall(r'^\{"name".*$', rest, re.MULTILINE)
        expected = [(it["name"], it["parameters"]) for it in map(json.loads, lines)]
        assert calls(DIALECT, text) == expected
        response = re.search(r"<response>(.*?)</response>", rest, re.DOTALL)
        assert answer(text) == (response[1].strip() if response else None)
        number += len(expected)
    assert number >= 50
