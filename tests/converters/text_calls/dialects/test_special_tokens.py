"""Calls between the special tokens of Llama, Kimi, DeepSeek and gpt-oss."""

from __future__ import annotations

import re

import pytest

from adp.converters.text_calls.dialects import (
    deepseek_tags,
    harmony_text,
    kimi_tags,
    llama_python_tag,
)
from tests.converters.text_calls.dialects.common import (
    PROSE,
    calls,
    check_example,
    check_prose,
    check_work,
    check_write,
    results,
)


def wide(text: str) -> str:
    """A text with the bars and blocks of DeepSeek's tokens."""
    return re.sub(
        r"<\|(tool[ a-z]+)\|>", lambda it: f"<\uff5c{it[1].replace(' ', chr(0x2581))}\uff5c>", text
    )


LLAMA, KIMI = llama_python_tag.DIALECT, kimi_tags.DIALECT
DEEPSEEK, HARMONY = deepseek_tags.DIALECT, harmony_text.DIALECT
ALL = (LLAMA, KIMI, DEEPSEEK, HARMONY)
HARMONY_RUN = (
    "<|channel|>analysis<|message|>a<|end|><|start|>assistant<|channel|>commentary "
    'to=functions.f <|constrain|>json<|message|>{"a": 1}<|call|><|start|>functions.f '
    "to=assistant<|channel|>commentary<|message|>4<|end|><|start|>assistant<|channel|>final"
    "<|message|>It is 4.<|return|>"
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('<|python_tag|>{"type": "function", "name": "f", "parameters": {"a": 1}}<|eom_id|>',
         [("f", {"a": 1})]),
        ('<|python_tag|>{"name": "f", "parameters": {}}; {"name": "g", "parameters": {}}',
         [("f", {}), ("g", {})]),
        ('<|python_tag|>brave_search.call(query="a b")', [("brave_search", {"query": "a b"})]),
        ("<|python_tag|>x = 1\nprint(x)<|eom_id|>", [("python", "x = 1\nprint(x)")]),
        ('<function=f>{"a": 1}</function>', [("f", {"a": 1})]),
        ('a\n<function=f>{"a": 1}</function><|eot_id|>', [("f", {"a": 1})]),
        ("<function=f><parameter=a>1</parameter></function>", []),
        ("<|python_tag|>{\"name\": ", []),
    ],
)  # fmt: skip
def test_llama_is_read(text: str, expected: list[object]) -> None:
    assert calls(LLAMA, text) == expected
    check_write(LLAMA, text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("<|tool_call_begin|>functions.f:0<|tool_call_argument_begin|>{\"a\": 1}<|tool_call_end|>",
         [("f", {"a": 1})]),
        ("a\n<|tool_calls_section_begin|><|tool_call_begin|>g-h:1<|tool_call_argument_begin|>{}"
         "<|tool_call_end|><|tool_call_begin|>functions.f:2<|tool_call_argument_begin|>{not}"
         "<|tool_call_end|><|tool_calls_section_end|>", [("g-h", {}), ("f", "{not}")]),
        ("<|tool_call_begin|>functions.f:0<|tool_call_argument_begin|>{}", []),
    ],
)  # fmt: skip
def test_kimi_is_read(text: str, expected: list[object]) -> None:
    assert calls(KIMI, text) == expected
    check_write(KIMI, text)


def test_ids_of_kimi_are_kept() -> None:
    assert KIMI.parse(KIMI.example).calls[0].call_id == "functions.f:0"
    assert results(KIMI, "## Return of functions.f:0\n4") == ["4"]
    assert results(KIMI, "4") == ["4"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f"Ok.{DEEPSEEK.example}", [("f", {"a": 1})]),
        ('<|tool calls begin|><|tool call begin|>f<|tool sep|>{"a": 1}<|tool call end|>'
         "<|tool call begin|>g<|tool sep|>{}<|tool call end|><|tool calls end|>",
         [("f", {"a": 1}), ("g", {})]),
        ("<|tool call begin|>function<|tool sep|>f", []),
    ],
)  # fmt: skip
def test_deepseek_is_read(text: str, expected: list[object]) -> None:
    assert calls(DEEPSEEK, wide(text)) == expected
    check_write(DEEPSEEK, wide(text))


def test_results_of_deepseek_are_taken_apart() -> None:
    text = (
        "<|tool outputs begin|><|tool output begin|>1<|tool output end|>"
        "<|tool output begin|>2<|tool output end|><|tool outputs end|>"
    )
    assert results(DEEPSEEK, wide(text)) == ["1", "2"]


def test_roles_of_harmony_may_be_empty() -> None:
    text = "<|start|> <|channel|>analysis<|message|>a<|end|>"
    (thought,) = HARMONY.parse(text).thoughts
    assert text[slice(*thought.words)] == "a"
    assert not HARMONY.pieces(text)


def test_harmony_is_read() -> None:
    pieces = HARMONY.pieces(HARMONY_RUN)
    texts = [HARMONY_RUN[slice(*it.span)] for it in pieces]
    assert "".join(texts) == HARMONY_RUN
    assert [it.source for it in pieces] == ["agent", "result", "agent"]
    assert calls(HARMONY, texts[0]) == [("f", {"a": 1})]
    (thought,) = HARMONY.parse(texts[0]).thoughts
    assert texts[0][slice(*thought.words)] == "a"
    assert results(HARMONY, texts[1]) == ["4"]
    assert [it.name for it in HARMONY.results_in(texts[1], ())] == ["f"]
    answer = HARMONY.parse(texts[2]).answer
    assert answer is not None
    assert texts[2][slice(*answer.words)] == "It is 4."
    text = "<|start|>assistant<|channel|>analysis to=python code<|message|>print(1)<|call|>"
    assert calls(HARMONY, text) == [("python", "print(1)")]
    check_write(HARMONY, text)
    text = '<|start|>assistant to=browser.search<|channel|>analysis<|message|>{"q": "a"}<|call|>'
    assert calls(HARMONY, text) == [("browser.search", {"q": "a"})]
    check_write(HARMONY, text)


@pytest.mark.parametrize("dialect", ALL, ids=lambda it: it.name)
def test_edited_calls_are_written(dialect) -> None:
    check_example(dialect)


@pytest.mark.parametrize("dialect", ALL, ids=lambda it: it.name)
def test_texts_about_tools_have_no_calls(dialect) -> None:
    check_prose(
        dialect,
        [
            *PROSE,
            "The token `<|python_tag|>` begins code, and `<|message|>` a message.",
            "The token <|tool_call_begin|> begins a call of Kimi.",
            f"```\n{dialect.example}\n```",
        ][: None if dialect is not HARMONY else -1],
    )


@pytest.mark.parametrize(
    ("dialect", "pieces"),
    [
        (LLAMA, ["<|python_tag|>", "<|python_tag|>{", "<function=f>{", "<|python_tag|>a("]),
        (LLAMA, ["<function=", "<|python_tag|>a.call(b='"]),
        (KIMI, ["<|tool_call_begin|>", "<|tool_call_begin|>f<|tool_call_argument_begin|>"]),
        (DEEPSEEK, [wide("<|tool call begin|>"), wide("<|tool call begin|>f<|tool sep|>")]),
        (DEEPSEEK, [wide("<|tool output begin|>"), wide("<|tool call begin|><|tool sep|>f\n")]),
        (HARMONY, ["<|message|>", "<|channel|>a", "<|start|>a<|message|>"]),
        (HARMONY, ["<|channel|>a to=f<|message|>", "<|start|>"]),
    ],
    ids=lambda it: getattr(it, "name", ""),
)  # fmt: skip
def test_work_is_linear(dialect, pieces) -> None:
    check_work(dialect, pieces)
