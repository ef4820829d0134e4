"""Roles that say more than the source of a step: they are kept, or their loss is reported."""

from __future__ import annotations

import json

import pytest

import adp

CHAT = [
    {"role": "developer", "content": "be kind"},
    {"role": "user", "content": "hi"},
    {"role": "critic", "content": "too short"},
    {"role": "assistant", "content": "hello"},
]
RECORDS = {
    "openai_chat": {"messages": CHAT},
    "sharegpt": {"conversations": [{"from": m["role"], "value": m["content"]} for m in CHAT]},
}


@pytest.fixture(params=RECORDS)
def source(request, tmp_path):
    """A format, a file of one of its records, and its store."""
    path = tmp_path / "chats.jsonl"
    path.write_text(json.dumps(RECORDS[request.param]) + "\n")
    return request.param, path, adp.convert([str(path)], str(tmp_path / "store"))


def written(folder):
    (path,) = (path for path in folder.rglob("*") if path.is_file())
    return path


def test_the_same_format_gives_the_same_bytes(source, tmp_path):
    name, path, store = source
    adp.export(store, name, str(tmp_path / "out"))
    assert written(tmp_path / "out").read_bytes() == path.read_bytes()


def test_they_are_kept_on_a_hop_through_atif(source, tmp_path):
    name, _, store = source
    adp.export(store, "atif", str(tmp_path / "atif"))
    again = adp.convert([str(tmp_path / "atif")], str(tmp_path / "again"))
    adp.export(again, name, str(tmp_path / "out"))
    record = json.loads(written(tmp_path / "out").read_text())
    turns = record["messages"] if name == "openai_chat" else record[0]["conversations"]
    assert [turn.get("role", turn.get("from")) for turn in turns][:3:2] == ["developer", "critic"]


@pytest.mark.parametrize("target", ["adp_v1", "m3", "openai_chat", "sharegpt", "sts"])
def test_a_format_without_them_reports_both(source, tmp_path, target):
    name, _, store = source
    report = adp.export(store, target, str(tmp_path / "out"))
    counts = [count for path, count in report.losses.items() if ".extra.role:" in path]
    assert sum(counts) == (0 if target == name else 2)
