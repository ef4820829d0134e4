"""Square brackets as tags: Tiny Tool Use and Mistral."""

from __future__ import annotations

import pytest

from adp.converters.text_calls.dialects.tool_call_brackets import DIALECT
from tests.converters.text_calls.dialects.common import (
    calls,
    check_example,
    check_prose,
    check_work,
    check_write,
    results,
)

CALL = '[TOOL_CALL]{"name": "f", "parameters": {"a": 1}}[/TOOL_CALL]'


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f"I'll help you. {CALL}", [("f", {"a": 1})]),
        (f"{CALL}\n{CALL}", [("f", {"a": 1})] * 2),
        ('[TOOL_CALLS] [{"name": "f", "arguments": {}}, {"name": "g"}]', [("f", {}), ("g", {})]),
        ('[TOOL_CALLS]f[CALL_ID]abc123[ARGS]{"a": 1}[TOOL_CALLS]g[ARGS]{}',
         [("f", {"a": 1}), ("g", {})]),
        ('[TOOL_CALLS]f{"a": 1}</s>', [("f", {"a": 1})]),
        ("[TOOL_CALL]f(1)[/TOOL_CALL]", []),
        ('[TOOL_CALL]{"name": "f"} and more', []),
        (f"The text {CALL} is a call.", []),
    ],
)  # fmt: skip
def test_calls_are_found(text: str, expected: list[object]) -> None:
    assert calls(DIALECT, text) == expected


def test_id_is_kept() -> None:
    (call,) = DIALECT.parse('[TOOL_CALLS]f[CALL_ID]abc123[ARGS]{"a": 1}').calls
    assert call.call_id == "abc123"


@pytest.mark.parametrize("result", ['{"result": 4}', "[RESULT]4[/RESULT]"])
def test_run_in_a_text_is_cut(result: str) -> None:
    text = f"I'll help. {CALL}\n\n{result}\n\nBased on the result, the answer is 4."
    texts = [text[slice(*it.span)] for it in DIALECT.pieces(text)]
    assert [it.source for it in DIALECT.pieces(text)] == ["agent", "result", "agent"]
    assert "".join(texts) == text
    assert calls(DIALECT, texts[0]) == [("f", {"a": 1})]
    assert result in texts[1]


def test_results_are_taken_apart() -> None:
    assert results(DIALECT, '[TOOL_RESULTS] {"content": 1}[/TOOL_RESULTS]') == ['{"content": 1}']
    assert results(DIALECT, "[TOOL_RESULT]a[/TOOL_RESULT]") == ["a"]


def test_edited_calls_are_written() -> None:
    check_example(DIALECT)
    for text in (f"a {CALL}\nb", '[TOOL_CALLS]f[CALL_ID]x[ARGS]{"a": 1}'):
        check_write(DIALECT, text)


def test_texts_about_tools_have_no_calls() -> None:
    check_prose(DIALECT)


def test_work_is_linear() -> None:
    check_work(
        DIALECT,
        ["[TOOL_CALL]", "[TOOL_CALL]{", "[TOOL_CALLS]f[ARGS]{", "[/TOOL_CALL]\n{", "[RESULT]"],
    )
