"""Commands whose inputs and outputs lie behind URLs."""

from __future__ import annotations

import json
from pathlib import Path

import fsspec
import pytest

from tests.cli.conftest import Run
from tests.converters.test_remote_source import chat


def test_commands_take_urls(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ADP_STAGING", str(tmp_path / "staging"))
    system = fsspec.filesystem("memory")
    system.store.clear()
    system.pipe("/bucket/logs/a.jsonl", chat("a") + chat("b") + b"no chat\n")
    store = "memory://bucket/store"
    converted = run("convert", "memory://bucket/logs", "-o", store, "--workers", 1)
    assert converted.code == 0
    assert "records 3 = used 2 + skipped 0 + rejected 1" in converted.out
    assert f"next: adp info {store}" in converted.out
    counts = json.loads(run("info", store, "--json").out)
    assert counts["counts"]["used"] == 2
    assert "a.jsonl" in run("rejects", store).out
    dropped = run("drop", store, "--where", "source_id = 'a'", "-o", "memory://bucket/less")
    assert dropped.code == 0
    asked = run("query", "memory://bucket/less", "-c", "SELECT source_id FROM trajectories")
    assert asked.out.split() == ["source_id", "b", "1", "row"]
    again = run("convert", "memory://bucket/logs", "-o", store)
    assert again.code != 0
    assert "holds a store already" in again.err
    system.store.clear()


@pytest.mark.parametrize(
    "words",
    [
        ("export", "STORE", "--to", "openai_chat"),
        ("tokens", "STORE", "--model", "tiny"),
        ("query", "STORE", "-c", "SELECT 1"),
    ],
)
def test_other_outputs_are_no_urls(
    words: tuple[str, ...], run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No folder called ``s3:`` comes of it."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.jsonl").write_bytes(chat("a"))
    assert run("convert", "a.jsonl", "-o", "store").code == 0
    before = sorted(tmp_path.iterdir())
    refused = run(
        *("store" if word == "STORE" else word for word in words), "-o", "s3://team/x.csv"
    )
    assert refused.code == 2
    assert "s3://team/x.csv is a URL" in refused.err
    assert sorted(tmp_path.iterdir()) == before
