"""mini-swe-agent: exactly one block of bash, its thought, results with a return code."""

from __future__ import annotations

import re

import pytest

from adp.converters.text_calls.dialects.mini_swe import DIALECT
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

FOLDER = ROOT / "adp_v1" / "mini-coder"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("THOUGHT: I look.\n\n```bash\nls\n```", [("bash", "ls")]),
        ("```mswea_bash_command\ncat <<'E'\na\nE\n```\n", [("bash", "cat <<'E'\na\nE")]),
        ("```bash\na\n```\nor\n```bash\nb\n```", []),
        ("THOUGHT: a\n```python\nx\n```", []),
        ("THOUGHT: Done.\n\n<function=submit>\n</function>", [("submit", {})]),
        ("No block.", []),
        ("Then:\n\nTHOUGHT: I look.\n\n```bash\nls\n```", []),
        ("THOUGHT: I look.\n\n```bash\nls\n```\nand so on.", []),
    ],
)
def test_calls_are_found(text: str, expected: list[object]) -> None:
    assert calls(DIALECT, text) == expected


def test_several_blocks_are_left_with_a_reason() -> None:
    assert DIALECT.parse("```bash\na\n```\n```bash\nb\n```").left


def test_thought_is_marked() -> None:
    text = "THOUGHT: I look.\n\n```bash\nls\n```"
    (thought,) = DIALECT.parse(text).thoughts
    assert text[slice(*thought.words)] == "I look."


def test_results_say_their_exit_status() -> None:
    text = "<returncode>2</returncode>\n<output>\n a\n</output>"
    assert results(DIALECT, text) == [" a\n"]
    (result,) = DIALECT.results_in(text, ())
    assert (result.exit_code, result.is_error) == (2, True)
    assert results(DIALECT, "The last command timed out.") == ["The last command timed out."]


def test_edited_calls_are_written() -> None:
    check_example(DIALECT)
    check_write(DIALECT, "THOUGHT: Done.\n\n<function=submit>\n</function>")


def test_texts_about_tools_have_no_calls() -> None:
    check_prose(DIALECT)


def test_work_is_linear() -> None:
    check_work(DIALECT, ["```bash\n", "\n```bash\na\n```", "<returncode>", "THOUGHT: ", "<output>"])


@pytest.mark.skipif(not FOLDER.is_dir(), reason="../shared/data is not there")
def test_upstream_has_the_same_calls_and_results() -> None:
    for run, theirs in zip(turns("adp_v1/mini-coder"), actions("adp_v1/mini-coder"), strict=True):
        texts = [text for role, text in run if role == "assistant"]
        assert [call for text in texts for call in calls(DIALECT, text)] == theirs
        walk = [it for text in texts for it in re.findall(r"```bash\n(.*?)\n```", text, re.DOTALL)]
        assert walk == [code for name, code in theirs if name == "bash"]
        for role, text in run[2:]:
            if role == "user":
                (result,) = DIALECT.results_in(text, ())
                assert f"<returncode>{result.exit_code}</returncode>" in text
