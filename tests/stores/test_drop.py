"""Dropping: what goes goes whole, what stays stays as it was, and the counts still add up."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings

from adp.converters.run import ConvertOptions, convert
from adp.stores.drop import DropOptions, drop, select
from adp.stores.drop_shard import drop_shard
from adp.stores.merge import REFERENCES
from adp_schema.errors import OutputExistsError, StoreError
from adp_schema.growing import GrowingStore, seal
from adp_schema.ids import digest
from adp_schema.manifest import MANIFEST
from adp_schema.media import media_of_bytes, reference_of_media
from adp_schema.model import Step, Trajectory
from adp_schema.store import Store
from adp_schema.tables import TABLES
from tests.converters.test_run import chat, hashes, write_lines
from tests.curation.recipes import curate
from tests.effort import examples
from tests.stores import any_store
from tests.stores.test_merge import rows_of

EXAMPLES = Path(__file__).parents[2] / "examples"
GO = "extra LIKE '%\"go\":_true%' OR extra LIKE '%\"go\":true%'"


def everything(store: Store) -> bytes:
    """All that a store's files say: the files themselves, and every value in them."""
    root = Path(store.root)
    paths = [path.read_bytes() for path in sorted(root.rglob("*")) if path.is_file()]
    for path in sorted(root.rglob("*.parquet")):
        for row in pq.read_table(path).to_pylist():
            for value in row.values():
                paths.append(value if isinstance(value, bytes) else str(value).encode())
    return b"\n".join(paths)


def gone_of(store: Store) -> set[str]:
    """Ids of what has to go: what is marked, and the branches of what goes."""
    rows = rows_of(store, "trajectories")
    gone = {row["trajectory_id"] for row in rows if json.loads(row["extra"])["go"]}
    while more := {r["trajectory_id"] for r in rows if r["parent_id"] in gone} - gone:
        gone |= more
    return gone


@settings(max_examples=examples(24))
@given(described=any_store.shards)
def test_what_goes_goes_whole_and_the_rest_stays_as_it_was(tmp_path_factory, described):
    root = tmp_path_factory.mktemp("drop")
    old = any_store.write(root / "old", described, "W")
    gone = gone_of(old)
    selection = select(old.root, GO)
    assert set(selection.ids) == gone
    drop(selection, str(root / "new"), options=DropOptions(workers=1))
    new = Store.open(str(root / "new"))
    check_rows(old, new, gone)
    check_bytes(old, new, gone)
    check_media_and_tasks(old, new, gone)
    check_counts(old, new, gone)


def check_rows(old: Store, new: Store, gone: set[str]) -> None:
    """Rows are as they were, but for ids of what is gone, and records shared with it."""
    records = {
        (row["source_file"], number)
        for row in rows_of(old, "trajectories")
        if row["trajectory_id"] in gone
        for number in row["source_records"]
    }
    for table in TABLES:
        expected = []
        for row in rows_of(old, table):
            if table in ("sources", "media", "tasks"):
                continue
            if row.get("trajectory_id") in gone:
                continue
            if table == "raw" and (row["source_file"], row["record"]) in records:
                continue
            if table == "pairs" and {row[name] for name in REFERENCES["pairs"]} & gone:
                continue
            for name in ("target_id", "made_from_trajectory"):
                row = {**row, name: None} if row.get(name) in gone else row
            expected.append(row)
        if table not in ("sources", "media", "tasks"):
            assert rows_of(new, table) == expected, table
    constructed = new.manifest.lineage[-1].options.get("constructed_steps", 0)
    assert constructed == sum(
        row["trajectory_id"] not in gone and row["made_from_trajectory"] in gone
        for row in rows_of(old, "steps")
    )


def check_bytes(old: Store, new: Store, gone: set[str]) -> None:
    """No word of what is gone is anywhere; every word of what stays is still there."""
    output = everything(new)
    for row in rows_of(old, "trajectories"):
        secret = row["notes"].removesuffix("notes").encode()
        assert (secret in output) == (row["trajectory_id"] not in gone)
    for number in range(3):
        owners = [
            row["trajectory_id"]
            for row in rows_of(old, "steps")
            if digest(any_store.image_bytes(number)) in f"{row['content']}{row['text']}"
        ]
        image = any_store.image_bytes(number)
        assert (image in output) == bool(set(owners) - gone)
    for name in gone - {row["trajectory_id"] for row in rows_of(new, "trajectories")}:
        for table, columns in {**REFERENCES, "media": ("trajectory_id",)}.items():
            assert name not in [row[column] for row in rows_of(new, table) for column in columns]


def check_media_and_tasks(old: Store, new: Store, gone: set[str]) -> None:
    """Blobs and tasks are in the shard that needs them, with the first that needs them.

    A task is there once for each data set.
    """
    before = {item.trajectory_id: item for item in old.trajectories()}
    for shard in new.shards():
        ids, blobs, tasks = [], set(), set()
        for trajectory in shard.trajectories():
            ids.append((trajectory.seq, trajectory.trajectory_id))
            known = before[trajectory.trajectory_id]
            for step in trajectory.steps:
                for number in range(3):
                    name = digest(any_store.image_bytes(number))
                    if name in f"{step.content}{step.text}":
                        blobs.add(name)
                        assert trajectory.media[name] == known.media[name]
            if trajectory.task_id is not None:
                tasks.add((trajectory.dataset, trajectory.task_id))
        for table, key, wanted in (
            ("media", "media_id", blobs),
            ("tasks", "task_id", [name for _, name in tasks]),
        ):
            file = shard.file(table)
            rows = file.read().to_pylist() if file else []
            assert Counter(row[key] for row in rows) == Counter(wanted)
            assert [row["seq"] for row in rows] == sorted(row["seq"] for row in rows)
            assert all((row["seq"], row["trajectory_id"]) in ids for row in rows)


def check_counts(old: Store, new: Store, gone: set[str]) -> None:
    """Records whose trajectories are all gone are skipped ones now."""
    left, went = set(), set()
    for row in rows_of(old, "trajectories"):
        places = {(row["source_file"], number) for number in row["source_records"]}
        if row["trajectory_id"] in gone:
            went |= places
        else:
            left |= places
    was, now = old.manifest.counts, new.manifest.counts
    moved = len(went - left)
    assert (now.records, now.rejected) == (was.records, was.rejected)
    assert (now.used, now.skipped) == (was.used - moved, was.skipped + moved)
    assert now.trajectories == new.manifest.rows("trajectories")
    assert sum(new.manifest.reasons.values()) == now.rejected + now.skipped
    assert new.manifest.datasets == dict(
        Counter(row["dataset"] for row in rows_of(new, "trajectories"))
    )
    losses = Counter()
    for row in rows_of(new, "trajectories"):
        for loss in json.loads(row["losses"] or "[]"):
            losses[f"{loss['path'].split('[')[0]}[*]: {loss['reason']}"] += 1
    assert new.manifest.losses == dict(losses)
    for row in rows_of(new, "sources"):
        ours = [place for place in went - left if place[0] == row["source_file"]]
        total = [place for place in left if place[0] == row["source_file"]]
        assert (row["skipped"], row["used"]) == (len(ours), len(total))
        assert row["records"] == row["used"] + row["skipped"] + row["rejected"]
        trajectories = [r["source_file"] for r in rows_of(new, "trajectories")]
        assert row["trajectories"] == trajectories.count(row["source_file"])


def test_dropping_nothing_gives_the_same_bytes(tmp_path):
    convert([str(EXAMPLES)], str(tmp_path / "old"), options=ConvertOptions(keep_raw=True))
    drop(select(str(tmp_path / "old"), "false"), str(tmp_path / "new"))
    was, now = hashes(tmp_path / "old"), hashes(tmp_path / "new")
    assert was.pop(MANIFEST) != now.pop(MANIFEST)
    assert was == now


def test_counts_of_a_curated_store_are_those_of_its_main_lines(tmp_path):
    """A mix takes some runs twice, and branches come with them; neither is a record."""
    runs = [any_store.Run(name="a"), any_store.Run(name="b", branch=True),
            any_store.Run(name="c", go=True), any_store.Run(name="d")]  # fmt: skip
    old = any_store.write(tmp_path / "old", [runs], "W")
    curate({"old": old.root}, tmp_path / "twice", {"mix": {"by": "'all'", "method": "balanced",
           "total": 6, "epochs": 2}})  # fmt: skip
    twice = Store.open(str(tmp_path / "twice"))
    known = twice.manifest.counts
    assert (known.used, known.trajectories) == (3, 7)
    selection = select(twice.root, GO)
    assert len(selection.seqs) == 2
    assert drop(select(twice.root, "false"), str(tmp_path / "same")).counts == known
    new = drop(selection, str(tmp_path / "new")).counts
    assert (new.records, new.used, new.skipped) == (known.records, 2, known.skipped + 1)
    assert new.trajectories == 5


def test_runs_of_a_curated_store_without_ids_of_their_own_are_counted_one_by_one(tmp_path):
    """Nothing but their place tells such runs apart, or two rounds of a loop with the same ids."""
    for name in ("one", "two"):
        with Store.grow(str(tmp_path / name)) as store:
            for number in range(3):
                words = [Step(source="user", kind="message", text=f"{name} {number}")]
                ours = "run" if number == 2 else None
                store.append(Trajectory(dataset="runs", source_id=ours, steps=words))
        seal(str(tmp_path / name))
    curate({name: str(tmp_path / name) for name in ("one", "two")}, tmp_path / "both")
    both = Store.open(str(tmp_path / "both"))
    known = both.manifest.counts
    assert known.used == 6
    assert drop(select(both.root, "false"), str(tmp_path / "same")).counts == known
    less = drop(select(both.root, "source_id IS NULL"), str(tmp_path / "less")).counts
    assert (less.used, less.skipped, less.trajectories) == (2, 4, 2)


def test_null_stays(tmp_path):
    convert([str(EXAMPLES)], str(tmp_path / "old"))
    assert select(str(tmp_path / "old"), "license = 'mit'").seqs == []
    assert select(str(tmp_path / "old"), "NOT (license = 'mit')").seqs == []
    assert len(select(str(tmp_path / "old"), "license IS NULL").seqs) == 10


@pytest.fixture
def pictures(tmp_path, monkeypatch):
    """One shard of many row groups, whose runs share pictures; half of them are private."""
    monkeypatch.setattr("adp_schema.builder.ROW_GROUP_ROWS", 8)
    records = []
    for number in range(40):
        uri = reference_of_media(media_of_bytes(b"%d" % (number % 7) * 400, "image/png"))
        image = {"type": "image_url", "image_url": {"url": uri}}
        text = {"type": "text", "text": f"run {number} " + ("private" if number < 20 else "open")}
        records.append(
            {"id": f"r{number}", "messages": [{"role": "user", "content": [text, image]}]}
        )
    source = write_lines(tmp_path / "x.jsonl", records)
    convert([source], str(tmp_path / "old"))
    return tmp_path / "old"


def test_blobs_move_over_row_groups_to_the_first_run_that_needs_them(pictures, tmp_path):
    where = "seq IN (SELECT seq FROM steps WHERE contains(text, 'private') OR seq % 5 = 0)"
    assert pq.ParquetFile(pictures / "steps" / "part-00000.parquet").num_row_groups > 4
    drop(select(str(pictures), where), str(tmp_path / "new"))
    old, new = Store.open(str(pictures)), Store.open(str(tmp_path / "new"))
    first: dict[str, str] = {}
    kept = {item.trajectory_id: item for item in new.trajectories()}
    for trajectory in old.trajectories():
        if trajectory.trajectory_id in kept:
            (part,) = [p for p in json.loads(trajectory.steps[0].content) if p["type"] == "media"]
            first.setdefault(part["media_id"], trajectory.trajectory_id)
            blob = kept[trajectory.trajectory_id].media[part["media_id"]]
            assert blob == trajectory.media[part["media_id"]]
    rows = rows_of(new, "media")
    assert {row["media_id"]: row["trajectory_id"] for row in rows} == first
    assert [row["seq"] for row in rows] == sorted(row["seq"] for row in rows)
    assert len(rows) == len(first) == 7


def test_the_lineage_does_not_quote_the_condition(pictures, tmp_path):
    where = "seq IN (SELECT seq FROM steps WHERE contains(text, 'private'))"
    drop(select(str(pictures), where), str(tmp_path / "new"), options=DropOptions(note="asked to"))
    new = Store.open(str(tmp_path / "new"))
    assert b"private" not in everything(new)
    act = new.manifest.lineage[-1]
    assert act.options == {"where_hash": digest(where.encode()), "dropped": 20, "note": "asked to"}
    assert act.parents == [digest((pictures / MANIFEST).read_bytes())]
    assert new.manifest.reasons == {"skipped: dropped (asked to)": 20}
    assert new.manifest.lineage[:-1] == Store.open(str(pictures)).manifest.lineage


def test_rejects_go_only_when_that_is_asked_for(tmp_path):
    convert([str(EXAMPLES)], str(tmp_path / "old"))
    old = Store.open(str(tmp_path / "old"))
    for drop_rejects in (False, True):
        out = str(tmp_path / f"new{drop_rejects}")
        options = DropOptions(drop_rejects=drop_rejects)
        manifest = drop(select(old.root, "dataset = 'chat'"), out, options=options)
        assert manifest.counts.rejected == 4
        assert manifest.counts.balanced()
        assert sum(manifest.reasons.values()) == manifest.counts.rejected + manifest.counts.skipped
        assert manifest.rows("rejects") == (0 if drop_rejects else 4)
        assert (b"The line ends" in everything(Store.open(out))) is not drop_rejects


def test_shards_that_are_empty_are_left_out(tmp_path):
    described = [[any_store.Run("a", go=True)], [any_store.Run("b")], [any_store.Run(go=True)]]
    old = any_store.write(tmp_path / "old", described, "W")
    options = DropOptions(drop_rejects=True)
    manifest = drop(select(old.root, GO), str(tmp_path / "one"), options=options)
    assert [shard.path for shard in manifest.tables["steps"]] == ["steps/part-00000.parquet"]
    assert manifest.rows("trajectories") == 1
    manifest = drop(select(old.root, "true"), str(tmp_path / "none"), options=options)
    assert manifest.counts.trajectories == 0
    empty = Store.open(str(tmp_path / "none"))
    assert list(empty.trajectories()) == []
    assert empty.query("SELECT count(*) AS n FROM steps").to_pylist() == [{"n": 0}]


def test_a_sealed_store_has_one_record_a_run(tmp_path):
    with GrowingStore(tmp_path / "old") as growing:
        for number in range(4):
            steps = [Step(source="user", kind="message", text="x", step=0)]
            growing.append(Trajectory(dataset="d", source_id=f"{number}", steps=steps))
    with pytest.raises(StoreError, match="seal it first"):
        select(str(tmp_path / "old"), "true")
    seal(tmp_path / "old")
    manifest = drop(select(str(tmp_path / "old"), "source_id < '3'"), str(tmp_path / "new"))
    assert manifest.counts.model_dump() == {
        "records": 4, "used": 1, "skipped": 3, "rejected": 0, "trajectories": 1
    }  # fmt: skip


def test_a_blob_that_each_run_brought_along_is_stored_once_and_moves(tmp_path):
    blob = media_of_bytes(b"picture", "image/png")
    content = json.dumps([{"type": "media", "media_id": blob.media_id}])
    with GrowingStore(tmp_path / "old") as growing:
        for number in range(3):
            step = Step(source="user", kind="message", step=0, content=content)
            media = {blob.media_id: blob}
            growing.append(
                Trajectory(dataset="d", source_id=f"{number}", steps=[step], media=media)
            )
    seal(tmp_path / "old")
    old = Store.open(str(tmp_path / "old"))
    assert [row["trajectory_id"] for row in rows_of(old, "media")] == ["d/0"]
    drop(select(str(tmp_path / "old"), "source_id = '0'"), str(tmp_path / "new"))
    new = Store.open(str(tmp_path / "new"))
    assert [row["trajectory_id"] for row in rows_of(new, "media")] == ["d/1"]


@pytest.fixture
def several(tmp_path, monkeypatch):
    """A store of several shards."""
    from adp.converters import file_pieces

    monkeypatch.setattr(file_pieces, "SHARD_BYTES", 20_000)
    monkeypatch.setattr(file_pieces, "LEAST_BYTES", 20_000)
    source = write_lines(tmp_path / "x.jsonl", [chat(n, "y" * 900) for n in range(90)])
    convert([source], str(tmp_path / "old"))
    return str(tmp_path / "old")


@pytest.mark.slow
def test_any_number_of_workers_gives_the_same_bytes(several, tmp_path, monkeypatch):
    monkeypatch.setattr("adp.stores.stage.SMALL", 0)
    selection = select(several, "source_id LIKE '%7%'")
    drop(selection, str(tmp_path / "one"), options=DropOptions(workers=1))
    drop(selection, str(tmp_path / "two"), options=DropOptions(workers=2))
    assert hashes(tmp_path / "one") == hashes(tmp_path / "two")
    assert len(Store.open(str(tmp_path / "one")).files("steps")) > 3


def test_a_stopped_run_goes_on_and_ends_the_same(several, tmp_path, monkeypatch):
    where, out, done = "source_id LIKE '%7%'", tmp_path / "out", []
    drop(select(several, where), str(tmp_path / "whole"))

    def stop_in_the_third(job):
        if len(done) == 2:
            raise KeyboardInterrupt
        done.append(job.index)
        return drop_shard(job)

    monkeypatch.setattr("adp.stores.drop.drop_shard", stop_in_the_third)
    with pytest.raises(KeyboardInterrupt):
        drop(select(several, where), str(out))
    with pytest.raises(OutputExistsError, match="other inputs or options"):
        drop(select(several, "true"), str(out))
    again = []
    monkeypatch.setattr(
        "adp.stores.drop.drop_shard", lambda job: again.append(1) or drop_shard(job)
    )
    drop(select(several, where), str(out))
    assert len(again) == len(Store.open(several).files("steps")) - 2
    assert hashes(out) == hashes(tmp_path / "whole")
    shutil.rmtree(out)
