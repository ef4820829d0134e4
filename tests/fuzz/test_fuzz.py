"""A few hundred mutations of every format, and the records that once got through."""

from __future__ import annotations

import json
from base64 import b64decode
from pathlib import Path
from types import SimpleNamespace

import pytest

from adp.converters import inputs
from adp.converters.kit.source_object import SourceObject
from adp.converters.readers import READERS
from adp.converters.registry import BUILTIN, formats
from adp_schema import media
from adp_schema.model import Media
from adp_schema.parts import Parts
from tests.effort import examples
from tests.fuzz.cases import make, run_case
from tests.fuzz.check import check
from tests.fuzz.containers import CONTAINERS, check_container
from tests.fuzz.leaves import lost
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


@pytest.mark.parametrize("name", sorted(CONTAINERS))
def test_mutations_of_containers(name):
    outcomes = [run_case(name, 7, number)[1] for number in range(examples(18))]
    assert [outcome.wrong for outcome in outcomes if outcome.wrong] == []


def test_a_container_that_loses_a_trajectory_is_found(monkeypatch):
    """The check can fail: members that are passed over in silence are noticed."""
    data = CONTAINERS["sessions.zip"]()
    assert check_container("sessions.zip", data).wrong is None
    monkeypatch.setattr(inputs, "is_hidden", lambda name: "codex" in name)
    assert "no word of it" in (check_container("sessions.zip", data).wrong or "")


def test_a_format_that_raises_when_it_is_asked_is_found(monkeypatch):
    monkeypatch.setattr(type(formats.get("codex")), "sniff", lambda *_: 1 / 0)
    assert "ZeroDivisionError" in (check_reader("pi", LOG).wrong or "")


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


LOG = (
    b'[{"type": "session", "version": 3, "id": "s1", "cwd": "/x"}, {"type": "message", "id": "m1", '
    b'"message": {"role": "user", "content": [{"type": "text", "text": "Look."}, {"type": "image", '
    b'"data": "UE9TVA==", "mimeType": "image/png"}], "weight": 1e5, "note": {"deep": [7.25]}}}]'
)


def _rest(source):
    return {key: value for key, value in source.values.items() if key != "weight"}


DROPPED = {
    "what goes to extra": (SourceObject, "rest", lambda *_: {}),
    "a number": (SourceObject, "rest", _rest),
    "a text": (Parts, "text", lambda *_: None),
    "bytes": (media, "media_of_bytes", lambda *_: Media(media_id="0" * 32, data=b"0")),
}


@pytest.mark.parametrize("what", sorted(DROPPED))
def test_a_value_that_a_reader_drops_is_found(what, monkeypatch):
    assert check_reader("pi", LOG).wrong is None
    place, name, instead = DROPPED[what]
    monkeypatch.setattr(place, name, instead)
    assert "lost: " in (check_reader("pi", LOG).wrong or "")


RECORD = {
    "base64": "UE9TVA==",
    "uri": "see data:image/png;base64,UE9TVA== there",
    "number": 1234.5678901234567890123,
    "huge": 1e400,
    "word": "POST",
    "json": '{"a": [41]}',
    "packed": b'{"b": 42}'.hex(),
    "time": "2026-01-02T03:04:05.0Z",
}


@pytest.mark.parametrize("key", sorted(RECORD))
def test_each_kind_of_value_is_looked_for(key):
    """A value counts as kept in each form that cells have, and is missed where there is none."""
    data = json.dumps({key: RECORD[key]}).encode()
    assert lost(data, SimpleNamespace(rows={}, losses=[])) != []
    assert lost(data, SimpleNamespace(rows=ROWS, losses=[])) == []
    assert lost(data, SimpleNamespace(rows={}, losses=[{"path": f"$.{key}"}])) == []
    assert lost(data, SimpleNamespace(rows={}, losses=[{"path": f"$.{key[:2]}"}])) != []


ROWS = {
    "media": [
        {"media_id": "ab" * 16, "data": b"POST", "mime": "image/png"},
        {"media_id": "cd" * 16, "data": b64decode("POST"), "mime": None},
    ],
    "steps": [
        {"text": f"see adp-media:image/png;{'ab' * 16} there"},
        {"timestamp_text": "1234.5678901234568"},
        {"extra": '{"huge": "1e400", "list": ["41", 42], "time": "2026-01-02T03:04:05.0Z"}'},
    ],
}

ADP = (
    b'{"id": "r", "content": [{"class_": "api_action", "function": "f", "kwargs": {"a": 1}, '
    b'"description": null}], "details": {}}'
)
