r"""Search and Python in tags: runs in one text, answers in `\boxed{}`."""

from __future__ import annotations

import re

import pytest

from adp.converters.text_calls.dialects.search_tags import DIALECT
from tests.converters.text_calls.dialects.common import (
    calls,
    check_example,
    check_prose,
    check_work,
    check_write,
    results,
)

RUN = (
    "<think>I look.</think> <search>height of Etna</search> <result>3,357 m (<b>2021</b>)</result> "
    "<think>Now half.</think> <python>\nprint(3357 / 2)\n</python> <result>\n1678.5\n</result>\n"
    "<think>Done.</think> <answer> It is \\[ \\boxed{1678.5 \\text{ m}} \\] </answer>"
)


def answer(text: str) -> str | None:
    marked = DIALECT.parse(text).answer
    return None if marked is None else text[slice(*marked.words)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("<think>a</think><search> q </search>", [("search", {"query": "q"})]),
        ("<python>\n```python\nx\n```\n</python>", [("python", "x")]),
        ("<think> no end <search>q</search>", [("search", {"query": "q"})]),
        ("<think><search>q</search></think>", []),
        ("<search><form></form></search>", []),
        ("Use <search>query</search> to look.", []),
        ("<search></search>", []),
    ],
)
def test_calls_are_found(text: str, expected: list[object]) -> None:
    assert calls(DIALECT, text) == expected


def test_run_in_a_text_is_cut() -> None:
    pieces = DIALECT.pieces(RUN)
    assert "".join(RUN[slice(*it.span)] for it in pieces) == RUN
    assert [it.source for it in pieces] == ["agent", "result", "agent", "result", "agent"]
    texts = [RUN[slice(*it.span)] for it in pieces]
    assert [calls(DIALECT, text) for text in texts[::2]] == [
        [("search", {"query": "height of Etna"})],
        [("python", "print(3357 / 2)")],
        [],
    ]
    assert [results(DIALECT, text) for text in texts[1::2]] == [
        ["3,357 m (<b>2021</b>)"],
        ["1678.5"],
    ]
    walk = re.findall(r"<(search|python)>(.*?)</\1> <result>(.*?)</result>", RUN, re.DOTALL)
    assert len(walk) == 2


def test_answer_is_in_the_box() -> None:
    assert answer(RUN) is not None
    assert answer(RUN.rsplit("</result>", 1)[1]) == "1678.5 \\text{ m}"
    assert answer("<answer> Bonn </answer>") == "Bonn"
    assert answer("<answer>\\boxed{a</answer>") == "\\boxed{a"


def test_reasoning_without_an_end_stops_at_the_action() -> None:
    text = "<think> why <search>q</search>"
    (thought,) = DIALECT.parse(text).thoughts
    assert text[slice(*thought.words)] == "why"


def test_search_r1_is_read() -> None:
    text = (
        "<think>a</think><search>q</search>\n\n<information>Doc 1</information>\n<answer>b</answer>"
    )
    assert [it.source for it in DIALECT.pieces(text)] == ["agent", "result", "agent"]
    assert results(DIALECT, "<information>Doc 1</information>") == ["Doc 1"]


def test_edited_calls_are_written() -> None:
    check_example(DIALECT)
    check_write(DIALECT, "<search> q </search> <python>\n  x\n</python>")


def test_texts_about_tools_have_no_calls() -> None:
    check_prose(DIALECT)


def test_work_is_linear() -> None:
    check_work(
        DIALECT,
        [
            *("<search>", "<search>q</search>", "<result>", "<answer>\\boxed{", "<think>"),
            *("<answer></answer>", "<python>\n```\n", "<search></search><result>"),
        ],
    )
