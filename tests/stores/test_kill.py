"""A merge or a drop that is killed at any moment ends as if nothing had happened."""

from __future__ import annotations

from pathlib import Path

import pytest

from adp.converters.run import convert
from adp.stores.merge import merge as merge_stores
from adp_schema.store import Store
from tests import kill

CONDITION = "source_id LIKE '%7%' OR source_id LIKE 'run-%3'"


def merge(*stores: Path):
    """The command that merges these stores."""
    return lambda out: kill.command("merge", *stores, "-o", out, "--workers", "2")


def drop(store: Path):
    """The command that drops some trajectories of a store."""
    return lambda out: kill.command(
        "drop", store, "--where", CONDITION, "-o", out, "--workers", "2"
    )


@pytest.fixture(scope="module")
def stores(tmp_path_factory) -> list[Path]:
    """Three stores, big enough for two workers, with the same file name and the same ids."""
    root = tmp_path_factory.mktemp("stores")
    made = []
    for number in range(3):
        folder = root / f"in{number}"
        folder.mkdir()
        source = kill.write_chats(folder / "x.jsonl", 16, number)
        made.append(root / f"s{number}")
        convert([str(source)], str(made[-1]))
    return made


@pytest.mark.slow
def test_a_killed_merge_ends_the_same(stores, tmp_path):
    series = kill.check(merge(*stores), tmp_path, kills=1)
    assert series.killed
    merged = Store.open(str(tmp_path / "whole"))
    assert merged.manifest.lineage[-1].options["renumbered"]
    assert sum(shard.size for shards in merged.manifest.tables.values() for shard in shards) > 2**24


@pytest.mark.slow
def test_a_killed_drop_ends_the_same(stores, tmp_path):
    merge_stores([str(store) for store in stores[:2]], str(tmp_path / "all"), workers=1)
    series = kill.check(drop(tmp_path / "all"), tmp_path, kills=1)
    assert series.killed
    left = Store.open(str(tmp_path / "whole")).manifest.counts
    assert 0 < left.trajectories < Store.open(str(tmp_path / "all")).manifest.counts.trajectories


@pytest.mark.slow
def test_a_killed_merge_and_drop_of_several_shards_end_the_same(tmp_path):
    generate = pytest.importorskip("benchmarks.generate")
    made = []
    for number in range(2):
        generate.chat_jsonl(tmp_path / f"{number}.jsonl", 200, seed=number + 1)
        made.append(tmp_path / f"s{number}")
        source = tmp_path / f"{number}.jsonl"
        kill.run(kill.command("convert", source, "-o", made[-1], "--dataset", "d"))
    for name, make in {"merge": merge(*made), "drop": drop(tmp_path / "merge" / "whole")}.items():
        (tmp_path / name).mkdir()
        assert kill.check(make, tmp_path / name).killed


def redact(store: Path, rules: Path):
    """The command that redacts a store."""
    return lambda out: kill.command("redact", store, "-o", out, "--rules", rules, "--workers", "2")


@pytest.mark.slow
def test_a_killed_redaction_ends_the_same(tmp_path):
    # A file is a shard here, so both workers have something to do.
    sources = [kill.write_chats(tmp_path / f"{name}.jsonl", 5, name) for name in range(2)]
    convert([str(source) for source in sources], str(tmp_path / "all"))
    rules = tmp_path / "rules.json"
    rules.write_text(
        '[{"name": "word", "regex": "\\\\b[a-c]{5,}\\\\b"}, {"name": "id", "regex": "r7[0-9]"}]'
    )
    series = kill.check(redact(tmp_path / "all", rules), tmp_path, kills=1)
    assert series.killed
    (act,) = Store.open(str(tmp_path / "whole")).manifest.lineage[-1:]
    assert act.act == "redact"
    assert act.options["found"]["id"] > 10
