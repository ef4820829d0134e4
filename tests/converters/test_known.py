"""Known formats: each is recognised as itself, by nothing else, and nothing read is claimed."""

from __future__ import annotations

import gzip
import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adp.converters.known import KNOWN, kinds_of, looks_like, outranks, recognise_known
from adp.converters.known.head import HEAD_BYTES, closed, read_head, text_head
from adp.converters.registry import BUILTIN, formats
from adp_schema import jsontext
from adp_schema.protocols import Match
from tests.converters.known_examples import DOCUMENTS, LINES, SUPPORTED, write_example

NAMES = [kind.name for kind in KNOWN]
DATA = Path(__file__).parents[2].parent / "shared" / "data"
EXPECTED = Path(__file__).parents[1] / "formats_expected.json"


def named(name: str) -> Any:
    return next(kind for kind in KNOWN if kind.name == name)


def test_names_are_unique():
    assert len(set(NAMES)) == len(NAMES)


BOTH_WAYS = [formats.get(name) for name in sorted(BUILTIN)]


@pytest.mark.parametrize("name", NAMES)
def test_recognised_as_itself_and_nothing_else(name, tmp_path):
    path = write_example(name, tmp_path)
    assert [kind.name for kind in kinds_of(read_head(path))] == [name]
    assert recognise_known(path) is named(name)


@pytest.mark.parametrize("name", sorted({*LINES, *DOCUMENTS}))
def test_values_of_another_type_are_no_error(name):
    value = LINES.get(name) or DOCUMENTS[name]
    records = value if isinstance(value, list) else [value]
    for record in filter(lambda record: isinstance(record, dict), records):
        for key in record:
            for odd in ([], {}, [[]], [{}], {"type": []}, 1, None):
                data = json.dumps({**record, key: odd}).encode()
                kinds_of(text_head("odd.jsonl", data, cut=False))


@pytest.mark.parametrize("name", sorted(LINES))
def test_compressed(name, tmp_path):
    path = write_example(name, tmp_path)
    packed = tmp_path / f"{path.name}.gz"
    packed.write_bytes(gzip.compress(path.read_bytes()))
    assert recognise_known(packed) is named(name)


@pytest.mark.parametrize("name", sorted(LINES))
def test_no_format_has_a_stamp_on_it(name):
    for record in LINES[name]:
        level = jsontext.decode_object(json.dumps(record).encode())
        assert not [item.name for item in BOTH_WAYS if item.sniff(level) == Match.STAMP]


@pytest.mark.parametrize("name", sorted(DOCUMENTS))
def test_no_format_has_a_stamp_on_a_document(name):
    value = DOCUMENTS[name]
    for record in value if isinstance(value, list) else [value]:
        if isinstance(record, dict):
            level = jsontext.decode_object(json.dumps(record).encode())
            assert not [item.name for item in BOTH_WAYS if item.sniff(level) == Match.STAMP]


@pytest.mark.parametrize("name", sorted(SUPPORTED))
@pytest.mark.parametrize("layout", ["document", "lines"])
def test_what_is_read_is_not_claimed(name, layout, tmp_path):
    value = SUPPORTED[name]
    path = tmp_path / ("file.json" if layout == "document" else "file.jsonl")
    records = value if isinstance(value, list) else [value]
    lines = "".join(json.dumps(record) + "\n" for record in records)
    path.write_text(json.dumps(value) if layout == "document" else lines, "utf-8")
    assert recognise_known(path) is None


@pytest.mark.parametrize(
    "name",
    [
        *("hermes_agent", "amp", "openhands_llm_log"),
        "anthropic_messages",
    ],
)
def test_outranks_the_chat_format_that_sees_its_shape(name):
    record = LINES.get(name, [DOCUMENTS.get(name)])[0]
    level = jsontext.decode_object(json.dumps(record).encode())
    names = [item.name for item in BOTH_WAYS if item.sniff(level) == Match.SHAPE]
    assert names == ["openai_chat"]
    assert outranks(named(name), names)


def test_outranks_only_what_it_names():
    assert not outranks(named("weave"), ["openai_chat"])
    assert not outranks(named("openhands_llm_log"), ["adp_v1"])
    assert not outranks(named("openhands_llm_log"), ["adp_v1", "openai_chat"])
    assert not outranks(named("openhands_llm_log"), [])
    assert not outranks(None, ["openai_chat"])


def test_sentences():
    assert looks_like(named("crush_db")) == (
        "it looks like the database of Crush or an early opencode, but the reader crush does not "
        "recognise it"
    )
    assert (
        looks_like(named("yaml")) == "it looks like a YAML document, and holds no run of an agent"
    )


def test_junk_before_the_first_record(tmp_path):
    path = tmp_path / "session.jsonl"
    good = json.dumps(LINES["weave"][0])
    path.write_text(f"\n\nnull\n7\n{{broken\n{good}\n{good[:20]}", "utf-8")
    assert recognise_known(path) is named("weave")


def test_only_the_head_of_a_large_document_is_read(tmp_path):
    more = {str(number): ["x" * 1000] for number in range(HEAD_BYTES // 500)}
    path = tmp_path / "large.json"
    path.write_text(json.dumps({**DOCUMENTS["conversation_state"], **more}), "utf-8")
    assert path.stat().st_size > 2 * HEAD_BYTES
    assert recognise_known(path) is named("conversation_state")


def test_a_first_line_longer_than_the_head(tmp_path):
    record = {**LINES["hermes_agent"][0], "z": "x" * HEAD_BYTES}
    path = tmp_path / "long.jsonl"
    path.write_text(json.dumps(record) + "\n", "utf-8")
    assert recognise_known(path) is named("hermes_agent")


@pytest.mark.parametrize(
    "data",
    [b"\0", b"{", b"PK\x03\x04", b"SQLite format 3\0", b"PAR1", b"\x1f\x8b", b"[" * 99999],
)
def test_damaged_files_are_of_no_kind_and_raise_nothing(data, tmp_path):
    path = tmp_path / "damaged.json"
    path.write_bytes(data)
    result = recognise_known(path)
    assert result is None or result.name == "empty"


def test_a_missing_file_is_of_no_kind(tmp_path):
    assert recognise_known(tmp_path / "nothing.json") is None


def test_sqlite_is_opened_without_a_trace(tmp_path):
    path = write_example("crush_db", tmp_path)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA journal_mode=WAL")
    before = path.read_bytes()
    assert recognise_known(path) is named("crush_db")
    assert [item.name for item in tmp_path.iterdir()] == [path.name]
    assert path.read_bytes() == before


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 999) | st.text('a"\\{[]},:\n', max_size=6),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text("ab,{", max_size=3), inner),
    max_leaves=12,
)


def is_beginning(part: Any, whole: Any) -> bool:
    """Whether a value is what is left of another one when its text is cut."""
    if part is None:
        return True
    if isinstance(part, dict):
        keys = list(whole)[: len(part)] if isinstance(whole, dict) else None
        return keys == list(part) and all(is_beginning(part[key], whole[key]) for key in keys)
    if isinstance(part, list):
        return isinstance(whole, list) and all(
            is_beginning(*pair) for pair in zip(part, whole, strict=False)
        )
    return part == whole


@given(value=VALUES, share=st.floats(0, 1), spaced=st.booleans())
def test_a_cut_document_keeps_its_beginning(value, share, spaced):
    separators = (" , ", " : ") if spaced else (",", ":")
    text = json.dumps({"k": value, "last": [value]}, separators=separators)
    size = int(len(text) * share)
    part = closed(text[:size])
    assert isinstance(part, dict) == (size > 0)
    assert is_beginning(part, json.loads(text))


@given(value=VALUES)
def test_a_whole_document_is_kept_whole(value):
    text = json.dumps({"k": value})
    assert closed(text) == {"k": value}


def test_a_cut_key_is_kept_with_its_name():
    assert closed('{"a": 1, "b": "lo') == {"a": 1, "b": None}
    assert closed('{"a": [1, {"b') == {"a": [1, {}]}


def test_what_is_whole_before_the_cut_is_kept():
    assert closed('["a", "b') == ["a"]
    assert closed('{"a": ["b", "c", "d') == {"a": ["b", "c"]}
    assert closed('{"a": {"b": 1}, "c": "d", "e"') == {"a": {"b": 1}, "c": "d"}
    assert closed('[{"a": 1}, "b", {"c": [], "d": tr') == [{"a": 1}, "b", {"c": [], "d": None}]


@given(data=st.binary(max_size=200), cut=st.booleans())
def test_any_bytes_are_looked_at_without_a_fault(data, cut):
    for name in ("a.json", "a.jsonl", "a"):
        kinds_of(text_head(name, data, cut))


@given(value=VALUES, name=st.sampled_from(["a.json", "a.jsonl"]))
def test_any_json_is_looked_at_without_a_fault(value, name):
    keys = ["messages", "history", "trajectory", "response", "trace", "mapping", "conversations"]
    for key in keys:
        data = json.dumps({key: value, "id": value, "tools": value}).encode()
        assert len(kinds_of(text_head(name, data, cut=False))) <= 1


def test_real_files_are_what_they_are():
    if not DATA.is_dir():
        pytest.skip("the folder of samples is not there")
    expected = json.loads(EXPECTED.read_text("utf-8"))
    wrong = []
    for path, answer in expected.items():
        if not (DATA / path).exists():
            continue  # the samples change
        kinds = kinds_of(read_head((DATA / path).resolve()))
        what, _, name = answer.partition(": ")
        if what in ("known", "no trace"):
            right = [kind.name for kind in kinds] == [name] and kinds[0].is_trace == (
                what == "known"
            )
        else:
            reader = answer.removeprefix("read as ")
            right = not kinds or not outranks(kinds[0], [reader])
        if not right:
            wrong.append((path, answer, [kind.name for kind in kinds]))
    assert wrong == []
