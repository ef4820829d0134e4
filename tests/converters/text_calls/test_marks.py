"""The marks that are kept as data are those of the dialects."""

from __future__ import annotations

import json

import pytest

from adp.converters.text_calls import marks
from adp.converters.text_calls.choose import _needles
from adp.converters.text_calls.registry import DIALECTS, dialect


@pytest.mark.parametrize("name", DIALECTS)
def test_marks_are_those_of_the_dialect(name: str) -> None:
    grammar = dialect(name)
    expected = grammar.marks if grammar.automatic else ()
    assert marks._MARKS.get(name) == expected, "run: python tools/dialect_marks.py"


@pytest.mark.parametrize("name", [name for name in DIALECTS if dialect(name).automatic])
def test_the_example_is_seen_in_bytes(name: str) -> None:
    """However a writer of JSON escapes it, and not in a chat without marks."""
    grammar = dialect(name)
    plain = json.dumps({"messages": [{"role": "assistant", "content": grammar.example}]})
    other = plain.replace("<", "\\u003c").replace(">", "\\u003e").replace("/", "\\/")
    for text in (plain, other):
        assert any(needle in text.encode() for needle in _needles()[name])
    assert all(len(needle) > 1 for needle in _needles()[name])
