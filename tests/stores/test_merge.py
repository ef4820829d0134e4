"""Merging: nothing lost, nothing twice, every reference still right."""

from __future__ import annotations

import shutil
from collections import Counter
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings

from adp.converters.export import export
from adp.converters.run import ConvertOptions, convert
from adp.stores import staged
from adp.stores.merge import REFERENCES, merge, merge_shard
from adp_schema.errors import OutputExistsError, StoreError, UsageError
from adp_schema.growing import GrowingStore
from adp_schema.ids import digest
from adp_schema.manifest import MANIFEST
from adp_schema.model import Trajectory
from adp_schema.store import Store
from adp_schema.tables import SHARDED_TABLES, TABLES
from tests.converters.test_run import chat, hashes, write_lines
from tests.effort import examples
from tests.store_builders import describe_again
from tests.stores import any_store

EXAMPLES = Path(__file__).parents[2] / "examples"


def rows_of(store: Store, table: str) -> list[dict]:
    """All rows of a table, in order, as they lie on the disk."""
    return [row for path in store.files(table) for row in pq.read_table(path).to_pylist()]


def plain(trajectory: Trajectory) -> dict:
    """A trajectory with its rows and blobs, but for what merging may change."""
    out = trajectory.model_dump(exclude={"seq", "trajectory_id", "parent_id", "source_file"})
    out["steps"] = [
        {
            **step.model_dump(exclude={"made_from_trajectory"}),
            "calls": [call.model_dump() for call in step.calls],
            "observations": [observation.model_dump() for observation in step.observations],
        }
        for step in trajectory.steps
    ]
    out["links"] = [link.model_dump(exclude={"target_id"}) for link in trajectory.links]
    out["raw"] = [row.model_dump(exclude={"source_file"}) for row in trajectory.raw]
    out["media"] = {name: blob.model_dump() for name, blob in trajectory.media.items()}
    out["task"] = trajectory.task and trajectory.task.model_dump()
    return out


@settings(max_examples=examples(20))
@given(first=any_store.shards, second=any_store.shards, third=any_store.shards)
def test_all_rows_are_there_and_references_lead_to_the_same_runs(
    tmp_path_factory, first, second, third
):
    root = tmp_path_factory.mktemp("merge")
    stores = [
        any_store.write(root / "a", first, "A", "x"),
        any_store.write(root / "b", second, "B", "x"),
        any_store.write(root / "c", third, "C", "y"),
    ]
    merge([store.root for store in stores], str(root / "all"), workers=1)
    merged = Store.open(str(root / "all"))
    for table in TABLES:
        assert merged.manifest.rows(table) == sum(s.manifest.rows(table) for s in stores), table
    assert merged.manifest.counts.balanced()
    for name in ("records", "used", "rejected", "trajectories"):
        parts = [getattr(store.manifest.counts, name) for store in stores]
        assert getattr(merged.manifest.counts, name) == sum(parts)
    for name in ("datasets", "reasons", "losses"):
        total = sum((Counter(getattr(store.manifest, name)) for store in stores), Counter())
        assert getattr(merged.manifest, name) == dict(total)
    before = [trajectory for store in stores for trajectory in store.trajectories()]
    after = list(merged.trajectories())
    assert [plain(item) for item in after] == [plain(item) for item in before]
    check_ids(stores, merged)
    check_files(stores, merged)


def check_ids(stores: list[Store], merged: Store) -> None:
    ids = [row["trajectory_id"] for row in rows_of(merged, "trajectories")]
    assert len(set(ids)) == len(ids)
    for table in SHARDED_TABLES:
        rows = rows_of(merged, table)
        if "seq" in TABLES[table].schema.names and table != "rejects":
            assert [row["seq"] for row in rows] == sorted(row["seq"] for row in rows)
    # The words of a run name it: what referred to these words before must do so now.
    words = {row["trajectory_id"]: row["notes"] for row in rows_of(merged, "trajectories")}
    seqs = {row["seq"]: row["trajectory_id"] for row in rows_of(merged, "trajectories")}
    old = [{r["trajectory_id"]: r["notes"] for r in rows_of(s, "trajectories")} for s in stores]
    for table in SHARDED_TABLES:
        ours = [(number, row) for number, s in enumerate(stores) for row in rows_of(s, table)]
        columns = [*REFERENCES.get(table, ())]
        columns += ["trajectory_id"] if "trajectory_id" in TABLES[table].schema.names else []
        for (number, was), row in zip(ours, rows_of(merged, table), strict=True):
            for column in columns:
                if was[column] in old[number]:
                    assert words[row[column]] == old[number][was[column]], (table, column)
                else:
                    assert row[column] == was[column]
            if "trajectory_id" in columns:
                assert seqs[row["seq"]] == row["trajectory_id"]


def check_files(stores: list[Store], merged: Store) -> None:
    listed = [row["source_file"] for row in rows_of(merged, "sources")]
    assert len(set(listed)) == len(listed)
    used = {row["source_file"] for row in rows_of(merged, "trajectories")}
    assert used | {row["source_file"] for row in rows_of(merged, "rejects")} <= set(listed)
    assert {name for name in listed if name.startswith("b/")} == {
        f"b/{row['source_file']}" for row in rows_of(stores[1], "sources")
    }
    assert not [name for name in listed if name.startswith(("a/", "c/"))]


def test_export_equals_the_exports_of_the_parts(tmp_path):
    convert([str(EXAMPLES / "chat")], str(tmp_path / "a"))
    convert([str(EXAMPLES)], str(tmp_path / "b"))
    merge([str(tmp_path / "a"), str(tmp_path / "b")], str(tmp_path / "ab"))
    again = [str(tmp_path / "ab"), str(tmp_path / "a")]
    merge(again, str(tmp_path / "aba"))
    for to in ("openai_chat", "adp_v1"):
        wanted = {}
        for name, folders in {"a": ["", "a"], "b": [""]}.items():
            out = tmp_path / f"{to}-{name}"
            export(Store.open(str(tmp_path / name)), to, str(out))
            for folder in folders:
                for path in out.rglob("*"):
                    if path.is_file():
                        wanted[str(Path(folder) / path.relative_to(out))] = path.read_bytes()
        export(Store.open(str(tmp_path / "aba")), to, str(tmp_path / to))
        results = {
            str(path.relative_to(tmp_path / to)): path.read_bytes()
            for path in (tmp_path / to).rglob("*")
            if path.is_file()
        }
        assert sorted(results) == sorted(wanted)
        if to == "openai_chat":
            assert results == wanted
        else:  # runs without an id of their own are written under that of the store
            changed = [name for name in results if results[name] != wanted[name]]
            assert all(name.startswith("a/") for name in changed)


def test_ids_are_numbered_as_one_conversion_of_all_would(tmp_path):
    records = [chat(number % 3) for number in range(7)] + [{**chat(9), "id": "t5#2"}]
    for name in ("a", "b"):
        source = write_lines(tmp_path / f"{name}.jsonl", records)
        options = ConvertOptions(dataset="d")
        convert([source], str(tmp_path / f"{name}-store"), options=options)
    both = [str(tmp_path / "a-store"), str(tmp_path / "b-store")]
    manifest = merge(both, str(tmp_path / "all"))
    merged = Store.open(str(tmp_path / "all"))
    ids = [trajectory.trajectory_id for trajectory in merged.trajectories()]
    assert ids == [
        *("d/t0", "d/t1", "d/t2", "d/t0#2", "d/t1#2", "d/t2#2", "d/t0#3", "d/t5#2"),
        *("d/t0#4", "d/t1#3", "d/t2#3", "d/t0#5", "d/t1#4", "d/t2#4", "d/t0#6", "d/t5#2#2"),
    ]
    assert manifest.lineage[-1].options["renumbered"] == 8


def test_lineage_keeps_what_the_parents_were_made_by(tmp_path):
    for name in ("a", "b", "c"):
        write_lines(tmp_path / f"{name}.jsonl", [chat(1, name)])
        convert([str(tmp_path / f"{name}.jsonl")], str(tmp_path / name))
    ab = merge([str(tmp_path / "a"), str(tmp_path / "b")], str(tmp_path / "ab"))
    bc = merge([str(tmp_path / "b"), str(tmp_path / "c")], str(tmp_path / "bc"))
    both = merge([str(tmp_path / "ab"), str(tmp_path / "bc")], str(tmp_path / "abbc"))
    hashed = {
        name: digest((tmp_path / name / MANIFEST).read_bytes()) for name in ("a", "b", "ab", "bc")
    }
    assert ab.lineage[-1].parents == [hashed["a"], hashed["b"]]
    assert both.lineage[-1].parents == [hashed["ab"], hashed["bc"]]
    made = {name: Store.open(str(tmp_path / name)).manifest.lineage[0] for name in "abc"}
    assert both.lineage[:-1] == [made["a"], made["b"], ab.lineage[-1], made["c"], bc.lineage[-1]]


def test_a_growing_store_and_one_store_twice_are_refused(tmp_path):
    source = write_lines(tmp_path / "x.jsonl", [chat(1)])
    convert([source], str(tmp_path / "a"))
    convert([source], str(tmp_path / "same"))
    with GrowingStore(tmp_path / "grows") as growing:
        growing.append(Trajectory(dataset="d", source_id="1"))
    out = str(tmp_path / "out")
    with pytest.raises(UsageError, match="are the same store"):
        merge([str(tmp_path / "a"), str(tmp_path / "same")], out)
    with pytest.raises(UsageError, match="two stores or more"):
        merge([str(tmp_path / "a")], out)
    with pytest.raises(StoreError, match="seal it first"):
        merge([str(tmp_path / "a"), str(tmp_path / "grows")], out)
    with pytest.raises(StoreError, match="is not a store"):
        merge([str(tmp_path / "a"), str(tmp_path / "none")], out)
    assert not Path(out).exists()


def test_sealed_stores_have_no_files_of_their_own_and_stay_apart(tmp_path):
    from adp_schema.growing import seal

    for name in ("a", "b"):
        with GrowingStore(tmp_path / name) as growing:
            for number in range(3):
                growing.append(Trajectory(dataset="d", source_id=f"{name}{number}"))
        seal(tmp_path / name)
    merge([str(tmp_path / "a"), str(tmp_path / "b")], str(tmp_path / "ab"))
    merged = Store.open(str(tmp_path / "ab"))
    files = [trajectory.source_file for trajectory in merged.trajectories()]
    assert files == [None] * 3 + ["b/trajectories"] * 3
    assert export(merged, "openai_chat", str(tmp_path / "out")).files == 2


def test_older_stores_are_brought_up_to_date(tmp_path):
    for name in ("a", "b"):
        convert([write_lines(tmp_path / f"{name}.jsonl", [chat(1)])], str(tmp_path / name))
    folder = tmp_path / "b"
    path = folder / "tool_calls" / "part-00000.parquet"
    rows = pq.read_table(path)
    old = rows.rename_columns(["args" if n == "arguments" else n for n in rows.column_names])
    pq.write_table(old.drop_columns(["status"]), path)
    describe_again(folder, schema_version="0.9")
    merge([str(tmp_path / "a"), str(folder)], str(tmp_path / "ab"))
    merged = Store.open(str(tmp_path / "ab"))
    assert not merged.renamed
    calls = [
        call for trajectory in merged.trajectories() for s in trajectory.steps for call in s.calls
    ]
    assert [call.arguments for call in calls] == ["{}", "{}"]


@pytest.fixture
def several(tmp_path, monkeypatch):
    """Two stores of several shards each, with ids that repeat."""
    from adp.converters import file_pieces

    monkeypatch.setattr(file_pieces, "SHARD_BYTES", 20_000)
    monkeypatch.setattr(file_pieces, "LEAST_BYTES", 20_000)
    for name in ("a", "b"):
        records = [chat(number % 9, name * 900) for number in range(60)]
        source = write_lines(tmp_path / f"{name}.jsonl", records)
        convert([source], str(tmp_path / name), options=ConvertOptions(dataset="d"))
    return [str(tmp_path / "a"), str(tmp_path / "b")]


@pytest.mark.slow
def test_any_number_of_workers_gives_the_same_bytes(several, tmp_path, monkeypatch):
    monkeypatch.setattr("adp.stores.stage.SMALL", 0)
    merge(several, str(tmp_path / "one"), workers=1)
    merge(several, str(tmp_path / "two"), workers=2)
    assert hashes(tmp_path / "one") == hashes(tmp_path / "two")
    assert len(Store.open(str(tmp_path / "one")).files("steps")) > 4


def test_a_stopped_run_goes_on_and_ends_the_same(several, tmp_path, monkeypatch):
    merge(several, str(tmp_path / "whole"))
    out, done = tmp_path / "out", []

    def stop_in_the_third(job):
        if len(done) == 2:
            raise KeyboardInterrupt
        done.append(job.index)
        return merge_shard(job)

    monkeypatch.setattr("adp.stores.merge.merge_shard", stop_in_the_third)
    with pytest.raises(KeyboardInterrupt):
        merge(several, str(out))
    assert not (out / MANIFEST).exists()
    with pytest.raises(OutputExistsError, match="other inputs or options"):
        merge(several[::-1], str(out))
    again = []
    monkeypatch.setattr(
        "adp.stores.merge.merge_shard", lambda job: again.append(1) or merge_shard(job)
    )
    merge(several, str(out))
    assert len(again) == len(Store.open(str(out)).files("steps")) - 2
    assert hashes(out) == hashes(tmp_path / "whole")
    with pytest.raises(OutputExistsError, match="holds a store already"):
        merge(several, str(out))


def test_a_run_that_was_stopped_at_its_very_end_is_finished(several, tmp_path, monkeypatch):
    out, rmtree = tmp_path / "out", shutil.rmtree
    merge(several, str(tmp_path / "whole"))

    def stop_at_the_end(path):
        if path.name == ".run":
            raise KeyboardInterrupt
        rmtree(path)

    with monkeypatch.context() as patch:
        patch.setattr(staged.shutil, "rmtree", stop_at_the_end)
        with pytest.raises(KeyboardInterrupt):
            merge(several, str(out), workers=1)
    assert (out / MANIFEST).exists()
    assert [path.name for path in (out / ".run").iterdir()] == ["plan.json"]
    merge(several, str(out))
    assert hashes(out) == hashes(tmp_path / "whole")
    assert not (out / ".run").exists()
