"""Inputs behind URLs, from the file system in memory that fsspec brings."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import fsspec
import pytest

from adp.converters import remote_source
from adp.converters.run import ConvertOptions, convert
from adp_schema.errors import AdpError, InputError, UsageError
from adp_schema.manifest import Manifest
from adp_schema.store import Store

ONE_WORKER = ConvertOptions(workers=1)


def chat(name: str) -> bytes:
    """A line of chat."""
    messages = [
        {"role": "user", "content": f"Where is {name}?"},
        {"role": "assistant", "content": name},
    ]
    return json.dumps({"id": name, "messages": messages}).encode() + b"\n"


@pytest.fixture
def bucket() -> Iterator[Any]:
    """A bucket with logs, and things that are none."""
    system = fsspec.filesystem("memory")
    system.store.clear()
    system.pipe("/bucket/logs/a.jsonl", chat("a"))
    system.pipe("/bucket/logs/deep/b.jsonl", chat("b") + chat("c"))
    system.pipe("/bucket/logs/.hidden/d.jsonl", chat("d"))
    system.pipe("/bucket/logs/old/adp.json", b"{}")
    system.pipe("/bucket/logs/old/steps/part-00000.parquet", b"PAR1")
    yield system
    system.store.clear()


def ids(store: Path) -> list[str]:
    """The ids in a store."""
    return [str(run.source_id) for run in Store.open(str(store)).trajectories()]


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("memory://bucket/logs", ["a", "b", "c"]),
        ("memory://bucket/logs/", ["a", "b", "c"]),
        ("memory://bucket/logs/a.jsonl", ["a"]),
        ("memory://bucket/logs/**/*.jsonl", ["a", "b", "c"]),
        ("memory://bucket/logs/*.jsonl", ["a"]),
        ("memory://bucket/logs/deep", ["b", "c"]),
    ],
)
@pytest.mark.usefixtures("bucket")
def test_a_url_is_read_as_a_folder_is(url: str, expected: list[str], tmp_path: Path) -> None:
    convert([url], str(tmp_path / "store"), options=ONE_WORKER)
    assert ids(tmp_path / "store") == expected
    assert not (tmp_path / "store" / ".run").exists()


def test_the_bytes_are_those_of_a_copy(bucket: Any, tmp_path: Path) -> None:
    copy = tmp_path / "logs"
    for name in bucket.find("/bucket/logs"):
        path = copy / name.removeprefix("/bucket/logs/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(bucket.cat_file(name))
    afar = convert(["memory://bucket/logs"], str(tmp_path / "afar"), options=ONE_WORKER)
    here = convert([str(copy)], str(tmp_path / "here"), options=ONE_WORKER)
    assert afar.tables == here.tables
    assert afar.lineage[0].options["source"] == "memory://bucket/logs"


@pytest.mark.parametrize(
    ("sources", "error", "words"),
    [
        (["memory://bucket/none"], InputError, "there is nothing at memory://bucket/none"),
        (["memory://bucket/logs/*.csv"], InputError, "names no data file"),
        (["memory://bucket/logs/old"], InputError, "is a store already"),
        (["memory://bucket/logs", "memory://bucket/logs"], UsageError, "one URL at a time"),
        (["gopher://bucket/logs"], InputError, "nothing here reads gopher://"),
        (["https://a.b/c.jsonl"], InputError, "bring it here first"),
    ],
)
@pytest.mark.usefixtures("bucket")
def test_what_cannot_be_read_is_one_sentence(
    sources: list[str], error: type[AdpError], words: str, tmp_path: Path
) -> None:
    with pytest.raises(error, match=words):
        convert(sources, str(tmp_path / "store"), options=ONE_WORKER)
    assert not (tmp_path / "store").exists()


def test_a_name_that_leads_elsewhere_is_refused(bucket: Any, tmp_path: Path) -> None:
    bucket.pipe("/bucket/odd/a.jsonl", chat("a"))
    bucket.store["/bucket/odd/../../b.jsonl"] = bucket.store["/bucket/odd/a.jsonl"]
    with pytest.raises(InputError, match="no name of a file in a folder"):
        convert(["memory://bucket/odd"], str(tmp_path / "store"), options=ONE_WORKER)
    assert [path.name for path in tmp_path.iterdir()] == []


def test_a_stopped_run_brings_only_what_is_not_there(
    bucket: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    brought: list[str] = []
    get = type(bucket).get_file

    def get_file(self: Any, address: str, target: str, **more: Any) -> None:
        if len(brought) == 1:
            raise OSError("the line is gone")
        brought.append(address)
        get(self, address, target, **more)

    monkeypatch.setattr(remote_source, "_THREADS", 1)
    out = tmp_path / "store"
    with monkeypatch.context() as patch:
        patch.setattr(type(bucket), "get_file", get_file)
        with pytest.raises(InputError, match="the line is gone"):
            convert(["memory://bucket/logs"], str(out), options=ONE_WORKER)
    assert len(brought) == 1
    later: list[str] = []
    with monkeypatch.context() as patch:
        patch.setattr(
            type(bucket), "get_file",
            lambda self, address, target, **more: (
                later.append(address), get(self, address, target, **more)
            ),
        )  # fmt: skip
        convert(["memory://bucket/logs"], str(out), options=ONE_WORKER)
    assert sorted(brought + later) == ["/bucket/logs/a.jsonl", "/bucket/logs/deep/b.jsonl"]
    assert ids(out) == ["a", "b", "c"]


def test_files_that_changed_since_a_run_was_stopped(bucket: Any, tmp_path: Path) -> None:
    out = tmp_path / "store"
    bucket.pipe("/bucket/logs/c.jsonl", b"no chat\n")
    with pytest.raises(AdpError):
        convert(["memory://bucket/logs/c.jsonl"], str(out), options=ONE_WORKER)
    bucket.pipe("/bucket/logs/c.jsonl", chat("c") + chat("d"))
    with pytest.raises(InputError, match="changed since the run was stopped"):
        convert(["memory://bucket/logs/c.jsonl"], str(out), options=ONE_WORKER)
    shutil.rmtree(out)
    manifest: Manifest = convert(["memory://bucket/logs/c.jsonl"], str(out), options=ONE_WORKER)
    assert manifest.counts.used == 2


def test_a_name_may_look_like_a_pattern(bucket: Any, tmp_path: Path) -> None:
    bucket.pipe("/bucket/odd/[a].jsonl", chat("a"))
    convert(["memory://bucket/odd/[a].jsonl"], str(tmp_path / "store"), options=ONE_WORKER)
    assert ids(tmp_path / "store") == ["a"]
