"""A turn that is one object that names an action."""

from __future__ import annotations

import pytest

from adp.converters.text_calls.dialects.json_actions import DIALECT
from tests.converters.text_calls.dialects.common import (
    calls,
    check_example,
    check_work,
    check_write,
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"action": "f", "action_input": {"a": 1}}', [("f", {"a": 1})]),
        ('{"thought": "x", "tool": "f", "args": {}}', [("f", {})]),
        ('<think>a</think>\n{"tool_name": "f", "parameters": {"a": [1]}}', [("f", {"a": [1]})]),
        (
            'I call it:\n```json\n{"name": "f", "arguments": "{\\"a\\": 1}"}\n```\n',
            [("f", {"a": 1})],
        ),
        ("{'function': 'f', 'kwargs': {'a': None}}", [("f", {"a": None})]),
        ('{"action": {"name": "f", "arguments": {"a": 1}}}', [("f", {"a": 1})]),
        ('{"action": "search", "action_input": "words"}', [("search", "words")]),
        (
            '[{"name": "f", "arguments": {}}, {"name": "g", "arguments": {}}]',
            [("f", {}), ("g", {})],
        ),
        ('{"name": "Ann", "age": 3}', []),
        ('{"action": "f", "action_input": {}} is how it looks.', []),
        ('Text first. {"action": "f", "action_input": {}}', []),
        ('```json\n{"action": "f", "args": {}}\n```\nand then more.', []),
    ],
)
def test_calls_are_found(text: str, expected: list[object]) -> None:
    assert calls(DIALECT, text) == expected


def test_final_answer_is_marked() -> None:
    text = '```json\n{"action": "Final Answer", "action_input": "It is 4."}\n```'
    answer = DIALECT.parse(text).answer
    assert answer is not None
    assert text[slice(*answer.words)] == "It is 4."


def test_edited_calls_are_written() -> None:
    check_example(DIALECT)
    for text in (
        'So:\n```json\n{"thought": "x", "tool": "f", "args": {"a": 1}}\n```',
        "{'function': 'f', 'kwargs': {'a': None}}",
        '[{"name": "f", "arguments": {}}, {"name": "g", "arguments": "words"}]',
    ):
        check_write(DIALECT, text)


def test_it_is_never_chosen_by_itself() -> None:
    assert not DIALECT.automatic


def test_work_is_linear() -> None:
    check_work(DIALECT, ["{", '{"action": "f", "args": {', "\n```json\n{", ">{", "[{'action': "])
