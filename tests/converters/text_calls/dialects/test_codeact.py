"""CodeAct: code and answers in tags."""

from __future__ import annotations

import re

import pytest

from adp.converters.text_calls.dialects.codeact import DIALECT
from tests.converters.text_calls.dialects.common import (
    calls,
    check_example,
    check_prose,
    check_work,
    check_write,
    results,
)
from tests.converters.text_calls.dialects.standard_sets import actions, turns
from tests.samples import ROOT

FOLDER = ROOT / "adp_v1" / "codeactinstruct"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("I run it.\n<execute>\nprint(1)\n</execute>", [("python", "print(1)")]),
        ("<execute> print(1) </execute>", [("python", "print(1)")]),
        ("<execute_bash>\nls\n</execute_bash>\n<execute_ipython>\n  x\n  y\n</execute_ipython>",
         [("bash", "ls"), ("python", "  x\n  y")]),
        ("<execute>\n```python\nprint(1)\n```\n</execute>", [("python", "print(1)")]),
        ("<execute_bash>\nls -l", [("bash", "ls -l")]),
        ("<execute_browse>\ngoto('a')\n</execute_browse>", [("browse", "goto('a')")]),
        ("<think><execute>a</execute></think><execute>b</execute>", [("python", "b")]),
    ],
)  # fmt: skip
def test_calls_are_found(text: str, expected: list[object]) -> None:
    assert calls(DIALECT, text) == expected


@pytest.mark.parametrize(
    "text",
    ["<execute></execute>", "Write <execute>code</execute> to run it.", "`<execute>a</execute>`"],
)
def test_what_is_no_call_stays_text(text: str) -> None:
    assert calls(DIALECT, text) == []


def test_answer_is_marked() -> None:
    text = "The answer is <solution> 15/2 </solution>"
    answer = DIALECT.parse(text).answer
    assert answer is not None
    assert text[slice(*answer.words)] == "15/2"
    assert DIALECT.parse("Give `<solution> A </solution>`.").answer is None


def test_results_lose_their_mark() -> None:
    assert results(DIALECT, "Observation:\n  a\n") == ["  a\n"]


def test_edited_calls_are_written() -> None:
    check_example(DIALECT)
    check_write(DIALECT, "<execute_bash>\n  ls\n</execute_bash>\n<execute> a </execute>")


def test_texts_about_tools_have_no_calls() -> None:
    check_prose(DIALECT)


def test_work_is_linear() -> None:
    check_work(DIALECT, ["<execute>", "\n<execute_bash>\n", "<execute>\n```\n", "<solution>"])


@pytest.mark.skipif(not FOLDER.is_dir(), reason="../shared/data is not there")
@pytest.mark.parametrize(
    "folder", ["adp_v1/codeactinstruct", "datasets_new/adp_codeactinstruct_older"]
)
def test_real_runs_have_the_calls_of_a_plain_walk(folder: str) -> None:
    number = 0
    for run in turns(folder):
        for role, text in run:
            if role == "assistant":
                blocks = re.findall(r"<execute>(.*?)</execute>", text, re.DOTALL)
                expected = [("python", block.strip()) for block in blocks]
                assert calls(DIALECT, text) == expected
                solved = re.search(r"<solution>(.*?)</solution>", text, re.DOTALL)
                answer = DIALECT.parse(text).answer
                if solved and not blocks:
                    assert answer is not None
                    assert text[slice(*answer.words)] == solved[1].strip()
                number += len(expected)
    assert number >= 10


@pytest.mark.skipif(not FOLDER.is_dir(), reason="../shared/data is not there")
def test_upstream_has_the_same_calls() -> None:
    ours = [
        [call for role, text in run if role == "assistant" for call in calls(DIALECT, text)]
        for run in turns("adp_v1/codeactinstruct")
    ]
    assert ours == actions("adp_v1/codeactinstruct")
