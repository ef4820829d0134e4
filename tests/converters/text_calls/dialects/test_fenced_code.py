"""Code in fences: each block with a language, and results that say that they are some."""

from __future__ import annotations

import re

import pytest

from adp.converters.text_calls.dialects.fenced_code import DIALECT
from tests.converters.text_calls.dialects.common import (
    calls,
    check_example,
    check_work,
    check_write,
    results,
)
from tests.converters.text_calls.dialects.standard_sets import actions, turns
from tests.samples import ROOT

FOLDER = ROOT / "adp_v1" / "code_feedback"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a\n```python\nprint(1)\n```\nb\n```sql\nSELECT 1\n```",
         [("python", "print(1)"), ("sql", "SELECT 1")]),
        ("~~~Bash\nls\n~~~", [("bash", "ls")]),
        ("```c++\nint a;\n```", [("c++", "int a;")]),
        ("```python title='a'\n  x\n```", [("python", "  x")]),
        ("````md\n```python\nx\n```\n````", []),
        ("```\nno language\n```\n```text\nwords\n```\n```output\n1\n```", []),
        ("```python\nnever closed", []),
        ("<think>\n```python\na\n```\n</think>\n```python\nb\n```", [("python", "b")]),
        ("1. x\n   ```js\n   a()\n   ```", [("js", "   a()")]),
    ],
)  # fmt: skip
def test_calls_are_found(text: str, expected: list[object]) -> None:
    assert calls(DIALECT, text) == expected


def test_only_marked_turns_are_results() -> None:
    assert results(DIALECT, "Execution result: \n1\n") == ["1\n"]
    assert results(DIALECT, "Please use a list.") == []


def test_result_answers_the_last_block() -> None:
    waiting = DIALECT.parse("```python\na\n```\n```python\nb\n```").calls
    for count in (1, 2):
        [result] = DIALECT.results_in("Execution result:\n1", waiting[:count])
        assert result.call == count - 1
    assert [it.call for it in DIALECT.results_in("Execution result:\n1", ())] == [None]


def test_edited_calls_are_written() -> None:
    check_example(DIALECT)
    check_write(DIALECT, "a\n~~~~sql\n\n SELECT 1\n~~~~\nb")


def test_it_is_never_chosen_by_itself() -> None:
    assert not DIALECT.automatic


def test_work_is_linear() -> None:
    check_work(
        DIALECT, ["```python\n", "\n````a\n", "```", "\n~~~~a\n~~~\n", "```python\nx\n```\n"]
    )


@pytest.mark.skipif(not FOLDER.is_dir(), reason="../shared/data is not there")
@pytest.mark.parametrize("folder", ["adp_v1/code_feedback", "datasets_new/adp_code_feedback_older"])
def test_real_runs_have_the_calls_of_a_plain_walk(folder: str) -> None:
    number = 0
    for run in turns(folder):
        for role, text in run:
            if role == "assistant":
                blocks = re.findall(
                    r"^ *```(\w+) *\n(.*?)^ *``` *$", text, re.DOTALL | re.MULTILINE
                )
                expected = [(lang.lower(), code.strip("\n").rstrip()) for lang, code in blocks]
                expected = [it for it in expected if it[0] not in ("text", "plaintext", "markdown")]
                assert calls(DIALECT, text) == expected
                number += len(expected)
    assert number >= 20


@pytest.mark.skipif(not FOLDER.is_dir(), reason="../shared/data is not there")
def test_actions_of_upstream_are_among_ours() -> None:
    """Upstream takes the first block of a turn; we take all of them."""
    for run, theirs in zip(
        turns("adp_v1/code_feedback"), actions("adp_v1/code_feedback"), strict=True
    ):
        ours = [call for role, text in run if role == "assistant" for call in calls(DIALECT, text)]
        assert len(ours) >= len(theirs)
        rest = iter(ours)
        for language, code in theirs:
            assert any((lang, it.strip()) == (language, code.strip()) for lang, it in rest), code
