"""A conversion that is killed at any moment ends as if nothing had happened."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest

from tests import kill


def convert(*words: str | Path):
    """The command that converts these files."""
    return lambda out: kill.command("convert", *words, "-o", out, "--workers", "2")


def test_a_killed_conversion_ends_the_same(tmp_path):
    sources = [kill.write_chats(tmp_path / f"{name}.jsonl", 5, name) for name in range(3)]
    series = kill.check(convert(*sources), tmp_path, kills=2)
    assert series.killed


@pytest.mark.slow
@pytest.mark.parametrize("files", [1, 2])
def test_a_killed_conversion_of_several_shards_ends_the_same(tmp_path, files):
    generate = pytest.importorskip("benchmarks.generate")
    sources = [tmp_path / f"{name}.jsonl" for name in range(files)]
    for seed, source in enumerate(sources, start=1):
        generate.chat_jsonl(source, 200 / files, seed=seed)
    # In one data set the ids of a second file repeat those of the first: its shard is
    # numbered anew at the end.
    series = kill.check(convert(*sources, "--dataset", "d"), tmp_path)
    assert series.killed


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["array", "gz"])
def test_a_killed_conversion_of_one_large_file_ends_the_same(tmp_path, monkeypatch, kind):
    pytest.importorskip("benchmarks.generate")
    monkeypatch.syspath_prepend("benchmarks")
    module = importlib.import_module("bench_framing")
    source = module.input_file(tmp_path, kind, 120)
    series = kill.check(convert(source), tmp_path)
    assert series.killed
