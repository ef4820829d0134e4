"""Files that belong to others: folders of one file a message, members that samples share."""

import json
import shutil
import zipfile

import pyarrow as pa
import pytest

from adp.converters import side_contents
from adp.converters.files.limits import ConvertLimits
from adp.converters.registry import formats
from adp.converters.run import ConvertOptions, convert
from adp_schema.errors import NothingNewError
from adp_schema.store import Store
from tests.converters.containers import converted, reasons, zipped

ANY = ConvertOptions()


@pytest.fixture(autouse=True)
def _formats(monkeypatch):
    table = formats._table()
    for name in ("conversations", "inspect"):
        target = f"tests.converters.folder_formats:{name.upper()}"
        monkeypatch.setitem(table, name, target)


def put(folder, files):
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


def sides_of(store):
    rows = store.query("SELECT trajectory_id AS id, name FROM observations ORDER BY seq, name")
    return [(row["id"], row["name"]) for row in rows.to_pylist()]


def framings(store):
    rows = store.scan("sources").collect().to_dicts()
    assert all(row["records"] == row["used"] + row["skipped"] + row["rejected"] for row in rows)
    return [(row["source_file"], row["framing"]) for row in rows]


def conversation(number, events=3):
    return {
        f"c/{number}/base_state.json": f'{{"conversation": "{number}"}}',
        **{f"c/{number}/events/{at:03}.json": f'{{"event": {at}}}' for at in range(events)},
    }


def test_a_state_owns_the_folder_of_its_events(tmp_path):
    files = {**conversation(1), **conversation(2, 1), "c/1/deep/a/b/x.json": "{}"}
    files |= {"c/1/deep/y.json": "{}", "c/1/events/more/z.json": '{"z": 1}'}
    store = converted(put(tmp_path / "in", files), tmp_path / "s", ANY)
    assert sides_of(store) == [
        ("c/1", "c/1/deep/a/b/x.json"), ("c/1", "c/1/deep/y.json"),
        ("c/1", "c/1/events/000.json"), ("c/1", "c/1/events/001.json"),
        ("c/1", "c/1/events/002.json"), ("c/2", "c/2/events/000.json"),
    ]  # fmt: skip
    assert reasons(store) == ["no format recognises it (the first record has the keys z)"]
    assert store.manifest.counts.records == len(files)


def test_sides_keep_the_order_of_the_candidates(tmp_path):
    files = {**conversation(1), "c/1/deep/y.json": "{}"}
    store = converted(put(tmp_path / "in", files), tmp_path / "s", ANY)
    assert [name for name, framing in framings(store) if framing == "side"] == [
        "c/1/events/000.json", "c/1/events/001.json", "c/1/events/002.json", "c/1/deep/y.json",
    ]  # fmt: skip


def test_names_with_brackets_match_themselves_only(tmp_path):
    files = {f"[ab]?/{name}": text for name, text in conversation(1).items()}
    files |= {"ax/c/1/events/000.json": '{"stray": 1}'}
    store = converted(put(tmp_path / "in", files), tmp_path / "s", ANY)
    assert len(sides_of(store)) == 3
    assert store.manifest.counts.rejected == 1


def test_the_first_part_owns_the_others(tmp_path):
    files = {f"p/part-{at}.json": f'{{"conversation": {at}}}' for at in range(4)}
    store = converted(put(tmp_path / "in", files), tmp_path / "s", ANY)
    assert sides_of(store) == [("p/0", f"p/part-{at}.json") for at in (1, 2, 3)]
    assert framings(store)[0] == ("p/part-0.json", "json")
    assert store.manifest.counts.trajectories == 1


def test_a_pattern_of_the_user_gives_the_files_too_and_a_named_file_stands_alone(tmp_path):
    put(tmp_path / "in", conversation(1))
    store = converted(f"{tmp_path}/in/**/*.json", tmp_path / "s", ANY)
    assert len(sides_of(store)) == 3
    state = tmp_path / "in" / "c" / "1" / "base_state.json"
    assert sides_of(converted(state, tmp_path / "s2", ANY)) == []


def test_side_files_over_the_limit_together_reject_their_owner(tmp_path):
    files = {**conversation(1), **conversation(2, 1)}
    files |= {f"c/1/events/{at:03}.json": json.dumps("x" * 400) for at in range(3)}
    options = ConvertOptions(limits=ConvertLimits(record_bytes=1000))
    store = converted(put(tmp_path / "in", files), tmp_path / "s", options)
    assert reasons(store) == [
        "the files that belong to it are larger together than the limit of 1,000 bytes"
    ]
    assert store.manifest.counts.used == 5
    assert [t.source_id for t in store.trajectories()] == ["2"]


def test_a_new_event_makes_its_conversation_new(tmp_path):
    folder = put(tmp_path / "in", {**conversation(1), **conversation(2)})
    convert([str(folder)], str(tmp_path / "old"))
    options = ConvertOptions(since=tmp_path / "old")
    with pytest.raises(NothingNewError):
        convert([str(folder)], str(tmp_path / "none"), options=options)
    put(folder, {"c/2/events/009.json": "{}"})
    store = converted(folder, tmp_path / "new", options)
    assert {name.split("/")[1] for name, _ in framings(store)} == {"2"}
    assert len(sides_of(store)) == 4


LOG = {
    "_journal/start.json": '{"eval": 1}',
    "_journal/summaries/1.json": "[]",
    "header.json": '{"status": "success"}',
    "reductions.json": "[]",
    "samples/a_epoch_1.json": '{"epoch": 1}',
    "samples/a_epoch_2.json": '{"epoch": 2}',
    "summaries.json": "[1, 2]",
}


def eval_log(path, members, method=zipfile.ZIP_DEFLATED):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(zipped({name: text.encode() for name, text in members.items()}, method))
    return path


def test_samples_share_the_other_members_of_their_log(tmp_path, monkeypatch):
    eval_log(tmp_path / "in" / "x.eval", LOG)
    eval_log(tmp_path / "in" / "y.eval", LOG)
    opened = []
    read = side_contents.SideContents._read
    monkeypatch.setattr(
        side_contents.SideContents,
        "_read",
        lambda self, side: opened.append(side.source_file) or read(self, side),
    )
    store = converted(tmp_path / "in", tmp_path / "s", ConvertOptions(workers=1))
    shared = ["_journal/start.json", "header.json", "reductions.json", "summaries.json"]
    assert sides_of(store) == [
        (f"{log}/{sample}", f"{log}.eval/{name}")
        for log in "xy" for sample in (1, 2) for name in shared
    ]  # fmt: skip
    assert sorted(opened) == [f"{log}.eval/{name}" for log in "xy" for name in shared]
    counts = store.manifest.counts
    assert (counts.trajectories, counts.used, counts.rejected) == (4, 12, 2)
    assert store.manifest.datasets == {"x": 2, "y": 2}


def test_a_log_without_a_header_has_its_journal(tmp_path):
    members = {name: text for name, text in LOG.items() if name != "header.json"}
    store = converted(eval_log(tmp_path / "x.eval", members), tmp_path / "s", ANY)
    assert ("x/2", "x.eval/_journal/start.json") in sides_of(store)


def test_a_log_packed_with_zstandard(tmp_path):
    """Python writes no such archive before 3.14: the method and the bytes are put in by hand."""
    packed = {name: pa.compress(text.encode(), "zstd", asbytes=True) for name, text in LOG.items()}
    path = eval_log(tmp_path / "x.eval", {}, zipfile.ZIP_STORED)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as archive:
        for name, data in packed.items():
            archive.writestr(zipfile.ZipInfo(name), data)
        for info in archive.infolist():
            info.compress_type, info.file_size = 93, len(LOG[info.filename])
            info.CRC = zipfile.crc32(LOG[info.filename].encode())
    store = converted(path, tmp_path / "s", ANY)
    plain = converted(eval_log(tmp_path / "p" / "x.eval", LOG), tmp_path / "s2", ANY)
    assert sides_of(store) == sides_of(plain)
    assert [t.steps for t in store.trajectories()] == [t.steps for t in plain.trajectories()]


def test_a_member_that_changes_makes_all_samples_new(tmp_path):
    eval_log(tmp_path / "in" / "x.eval", LOG)
    convert([str(tmp_path / "in")], str(tmp_path / "old"))
    shutil.rmtree(tmp_path / "in")
    eval_log(tmp_path / "in" / "x.eval", {**LOG, "header.json": '{"status": "cancelled"}'})
    store = converted(tmp_path / "in", tmp_path / "new", ConvertOptions(since=tmp_path / "old"))
    assert Store.open(str(tmp_path / "new")).manifest.counts.trajectories == 2
    assert len(sides_of(store)) == 8
