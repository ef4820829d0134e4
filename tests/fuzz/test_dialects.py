"""A few mutations of every dialect, and the chats that once got through."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

from adp.converters.text_calls import restore as restoring
from adp.converters.text_calls.registry import DIALECTS, dialect
from tests.effort import examples
from tests.fuzz import dialects as fuzz

RECORDS = sorted((Path(__file__).parent / "found_texts").glob("*/*.json"))
EVERY = pytest.mark.parametrize("name", DIALECTS)


@pytest.mark.parametrize("path", RECORDS, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_a_chat_that_was_found(path: Path) -> None:
    record = json.loads(path.read_text(encoding="utf-8"))
    name = path.parent.name
    for text in fuzz.texts_of(record):
        assert fuzz.text_fault(dialect(name), text) is None
    assert fuzz.chunk_faults(name, [record], "openai_chat") == {}
    if "\\ud" not in json.dumps(record):
        for seed in range(5):
            assert fuzz.edit_fault(dialect(name), record, random.Random(seed)) is None


@EVERY
def test_mutations(name: str) -> None:
    count = examples(240)
    for chunk in range(len(fuzz.FORMATS)):
        first = chunk * fuzz.CHUNK
        result = fuzz.run_chunk((name, 7, first, first + count))
        assert result["faults"] == []
        assert result["counts"]["texts"] > count


def test_a_text_that_is_not_given_back_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """The check can fail: a restorer that forgets marks of results is noticed."""
    turns = [("user", "go"), ("assistant", dialect("react").example), ("user", "Observation: 1")]
    record: dict[str, Any] = {"messages": [{"role": it[0], "content": it[1]} for it in turns]}
    assert fuzz.chunk_faults("react", [record], "openai_chat") == {}
    monkeypatch.setattr(restoring, "_step_of", lambda row, _, columns: _without_marks(row, columns))
    assert "comes back as" in fuzz.chunk_faults("react", [record], "openai_chat")[0]


_STEP_OF = restoring._step_of


def _without_marks(row: Any, columns: dict[str, Any]) -> Any:
    return _STEP_OF(row, row.text or "", columns)
