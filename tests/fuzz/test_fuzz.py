"""A few hundred mutations of every format, and the records that once got through."""

from __future__ import annotations

from pathlib import Path

import pytest

from adp.converters.readers import READERS
from adp.converters.registry import BUILTIN
from tests.effort import examples
from tests.fuzz.cases import make
from tests.fuzz.check import check
from tests.fuzz.readers import check_reader

RECORDS = sorted((Path(__file__).parent / "found").glob("*/*.json"))
WRITTEN = [path for path in RECORDS if path.parent.name not in READERS]
LOGS = [path for path in RECORDS if path.parent.name in READERS]
CASES = examples(360)


@pytest.mark.parametrize("path", WRITTEN, ids=lambda path: f"{path.parent.name}/{path.stem}")
@pytest.mark.parametrize("target", sorted(BUILTIN))
def test_a_record_that_was_found(path, target):
    name = path.parent.name
    if target != name:
        assert check(name, target, path.read_bytes().strip()).wrong is None


@pytest.mark.parametrize("path", LOGS, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_a_log_that_was_found(path):
    outcome = check_reader(path.parent.name, path.read_bytes().strip())
    assert (outcome.read, outcome.wrong) == (True, None)


@pytest.mark.parametrize("name", sorted(BUILTIN))
def test_mutations(name):
    outcomes = [
        check(name, target, data) for data, target in (make(name, 7, n) for n in range(CASES))
    ]
    assert [outcome.wrong for outcome in outcomes if outcome.wrong] == []
    read = sum(outcome.read for outcome in outcomes)
    assert CASES // 10 < read < CASES


def test_a_loss_is_found(monkeypatch):
    """The check can fail: a writer that forgets the arguments is noticed."""
    from adp.converters.openai_chat.write import ChatWriter

    monkeypatch.setattr(ChatWriter, "_arguments", lambda *_: "{}")
    record = (
        b'{"messages": [{"role": "assistant", "content": null, "tool_calls": [{"id": "c", "type": '
    )
    record += b'"function", "function": {"name": "f", "arguments": "{\\"a\\": 1}"}}]}]}'
    assert "comes back as" in (check("openai_chat", "adp_v1", record).wrong or "")
    assert "lost in openai_chat" in (check("adp_v1", "openai_chat", ADP).wrong or "")


ADP = (
    b'{"id": "r", "content": [{"class_": "api_action", "function": "f", "kwargs": {"a": 1}, '
    b'"description": null}], "details": {}}'
)
