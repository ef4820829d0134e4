"""The marks that are kept as data are those of the dialects."""

from __future__ import annotations

import json

import pytest

from adp.converters.text_calls import marks
from adp.converters.text_calls.first_look import may_act
from adp.converters.text_calls.registry import DIALECTS, dialect


@pytest.mark.parametrize("name", DIALECTS)
def test_marks_are_those_of_the_dialect(name: str) -> None:
    grammar = dialect(name)
    expected = grammar.marks if grammar.automatic else ()
    assert marks._MARKS.get(name) == expected, "run: python tools/dialect_marks.py"


@pytest.mark.parametrize("name", [name for name in DIALECTS if dialect(name).automatic])
def test_the_example_is_seen_in_bytes(name: str) -> None:
    """However a writer of JSON escapes it; and marks of other dialects are no matter."""
    grammar = dialect(name)
    turns = [{"role": "user", "content": f"Do as here: {grammar.example}"},
             {"role": "assistant", "content": grammar.example}]  # fmt: skip
    plain = json.dumps({"messages": turns})
    raw = json.dumps({"messages": turns}, ensure_ascii=False)
    other = plain.replace("<", "\\u003c").replace(">", "\\u003E").replace("/", "\\/")
    for text in (plain, raw, other):
        assert grammar in may_act([b'{"messages": []}', text.encode()])


def test_chats_without_marks_or_without_evidence_are_passed() -> None:
    code = "Use this:\n```bash\nls (all)\n```"
    chat = [{"role": "user", "content": "how?"}, {"role": "assistant", "content": code}]
    assert may_act([json.dumps({"messages": chat}).encode()]) == []
    assert (
        may_act([b'{"messages": [{"role": "assistant", "content": "hello (there)"}]}', b"{"]) == []
    )
