"""Chain-of-agents: a tag for each agent and tool, observations with HTML."""

from __future__ import annotations

import pytest

from adp.converters.text_calls.dialects.afm_tags import DIALECT
from tests.converters.text_calls.dialects.common import (
    PROSE,
    calls,
    check_example,
    check_prose,
    check_work,
    check_write,
    results,
)

RUN = (
    "<think>a</think><plan>b</plan><wiki_search>Etna</wiki_search>"
    "<observation><p>x</observation> <i>y</i></p></observation><reflection>c</reflection>"
    "<suggested_answer>d</suggested_answer><double_check>3</double_check><answer>e</answer>"
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("<crawl_page>a.org | b.org</crawl_page>", [("crawl_page", {"url": "a.org | b.org"})]),
        ("<code>\n```py\nprint(1)\n```\n</code>", [("code", "print(1)")]),
        ("<code>\n```py\ninput()\n```\n```sh\n5\n```\n</code>",
         [("code", {"code": "input()", "stdin": "5"})]),
        ('<visual_inspector>\n```json\n{"file_path": "a", "question": "b"}\n```\n'
         "</visual_inspector>",
         [("visual_inspector", {"file_path": "a", "question": "b"})]),
        ("Call <code>f(x)</code>\n", []),
        ("<web_search></web_search>", []),
    ],
)  # fmt: skip
def test_calls_are_found(text: str, expected: list[object]) -> None:
    assert calls(DIALECT, text) == expected


def test_run_in_a_text_is_cut() -> None:
    texts = [(it.source, RUN[slice(*it.span)]) for it in DIALECT.pieces(RUN)]
    assert "".join(text for _, text in texts) == RUN
    assert [source for source, _ in texts] == ["agent", "result", "agent"]
    assert calls(DIALECT, texts[0][1]) == [("wiki_search", {"query": "Etna"})]
    assert results(DIALECT, texts[1][1]) == ["<p>x</observation> <i>y</i></p>"]
    turn = DIALECT.parse(texts[2][1])
    assert [texts[2][1][slice(*it.words)] for it in turn.thoughts] == ["c", "d", "3"]
    assert turn.answer is not None
    assert texts[2][1][slice(*turn.answer.words)] == "e"


def test_edited_calls_are_written() -> None:
    check_example(DIALECT)
    check_write(DIALECT, "<code>\n```py\nprint(1)\n```\n</code>")
    check_write(DIALECT, '<visual_inspector>\n{"file_path": "a"}\n</visual_inspector>')


def test_texts_about_tools_have_no_calls() -> None:
    check_prose(DIALECT, [*PROSE, "Use <code>x</code>.\n<code>\ny\n</code>\n"])


def test_work_is_linear() -> None:
    check_work(
        DIALECT,
        ["<code>", "<code>```", "<observation>", "</observation>x", "<plan>", "<plan></plan>"],
    )
