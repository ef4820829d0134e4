"""A conversion that is killed at any moment ends as if nothing had happened."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import kill


def convert(*sources: Path):
    """The command that converts these files."""
    return lambda out: kill.command("convert", *sources, "-o", out, "--workers", "2")


def test_a_killed_conversion_ends_the_same(tmp_path):
    sources = [kill.write_chats(tmp_path / f"{name}.jsonl", 5, name) for name in range(3)]
    series = kill.check(convert(*sources), tmp_path, kills=5)
    assert series.killed


@pytest.mark.slow
def test_a_killed_conversion_of_several_shards_ends_the_same(tmp_path):
    generate = pytest.importorskip("benchmarks.generate")
    generate.chat_jsonl(tmp_path / "x.jsonl", 200)
    series = kill.check(convert(tmp_path / "x.jsonl"), tmp_path)
    assert series.killed
