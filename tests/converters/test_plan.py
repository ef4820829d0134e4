"""Files that belong to another one, files that change, and what a plan depends on."""

import gzip
import json
import os

import pytest

from adp.converters import file_pieces, framing, run
from adp.converters.files.limits import ConvertLimits
from adp.converters.first_keys import FIRST_KEYS
from adp.converters.registry import formats
from adp.converters.run import ConvertOptions, convert
from adp.converters.shard import convert_shard
from adp_schema.errors import AmbiguousFormatError, ChangedInputError, OutputExistsError
from adp_schema.store import Store
from tests.converters.containers import chat, converted, lines, reasons, zipped
from tests.converters.test_run import hashes

ANY = ConvertOptions()


@pytest.fixture
def _fake(monkeypatch):
    monkeypatch.setitem(formats._table(), "fake", "tests.converters.fake_format:CONVERTER")


def tree(folder, **more):
    """Two runs with their side files, one in each folder, and a chat."""
    files = {
        "a/run.json": b'{"fake": 1}',
        "a/result.json": b'{"reward": 1}',
        "a/log/notes.txt": b"notes",
        "b/run.jsonl": b'{"fake": 2}\n{"fake": 3}\n',
        "b/result.json": b"not even JSON",
        "c/chat.jsonl": lines([chat(1)]),
        "c/result.json": b'{"reward": 2}',
        "outside.json": b"{}",
        **more,
    }
    for name, data in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)
    return folder


def sides_of(store):
    rows = store.query("SELECT trajectory_id AS id, name FROM observations ORDER BY seq, name")
    return [(row["id"], row["name"]) for row in rows.to_pylist()]


@pytest.mark.usefixtures("_fake")
def test_side_files_go_with_their_owner(tmp_path):
    store = converted(tree(tmp_path / "in"), tmp_path / "s", ANY)
    assert sides_of(store) == [
        ("a/1", "a/log/notes.txt"), ("a/1", "a/result.json"), ("b/2", "b/result.json"),
    ]  # fmt: skip
    rows = store.scan("sources").collect().to_dicts()
    assert [(row["source_file"], row["framing"], row["used"]) for row in rows] == [
        ("a/run.json", "json", 1), ("a/result.json", "side", 1), ("a/log/notes.txt", "side", 1),
        ("b/run.jsonl", "jsonl", 2), ("b/result.json", "side", 1), ("c/chat.jsonl", "jsonl", 1),
        ("c/result.json", "json", 0), ("outside.json", "json", 0),
    ]  # fmt: skip
    assert {row["source_format"] for row in rows if row["framing"] == "side"} == {"fake"}
    assert all(row["trajectories"] == 0 for row in rows if row["framing"] == "side")
    assert len(reasons(store)) == 2


@pytest.mark.usefixtures("_fake")
def test_side_files_in_an_archive(tmp_path):
    tree(tmp_path / "in")
    members = {
        path.relative_to(tmp_path / "in").as_posix(): path.read_bytes()
        for path in sorted((tmp_path / "in").rglob("*.json*"))
    }
    (tmp_path / "x.zip").write_bytes(zipped(members))
    store = converted(tmp_path / "x.zip", tmp_path / "s", ANY)
    assert sides_of(store) == [("x/1", "x.zip/a/result.json"), ("x/2", "x.zip/b/result.json")]


@pytest.mark.usefixtures("_fake")
def test_a_named_file_has_no_side_files(tmp_path):
    tree(tmp_path / "in")
    store = converted(tmp_path / "in" / "a" / "run.json", tmp_path / "s", ANY)
    assert sides_of(store) == []
    assert store.manifest.counts.records == 1


@pytest.mark.usefixtures("_fake")
def test_a_side_file_over_the_limit_is_a_reject(tmp_path):
    tree(tmp_path / "in", **{"a/result.json": b"x" * 2000})
    options = ConvertOptions(limits=ConvertLimits(record_bytes=1000))
    store = converted(tmp_path / "in", tmp_path / "s", options)
    assert ("a/1", "a/result.json") not in sides_of(store)
    assert ("a/1", "a/log/notes.txt") in sides_of(store)
    assert any("larger than the limit" in reason for reason in reasons(store))


@pytest.mark.usefixtures("_fake")
def test_owners_may_share_a_side_file_and_own_each_other(tmp_path):
    both = {"a/run2.json": b'{"fake": 5}', "a/run3.json": b'{"fake": 6}'}
    store = converted(tree(tmp_path / "in", **both), tmp_path / "s", ANY)
    rows = store.scan("sources").collect().to_dicts()
    assert [row["source_file"] for row in rows].count("a/result.json") == 1
    assert [row["framing"] for row in rows if row["source_file"] == "a/run2.json"] == ["side"]
    assert {("a/1", "a/run2.json"), ("a/6", "a/result.json")} <= set(sides_of(store))


@pytest.mark.usefixtures("_fake")
def test_a_side_file_may_be_one_that_two_formats_claim(tmp_path, monkeypatch):
    tree(tmp_path / "in", **{"a/result.json": json.dumps(chat(1)).encode()})
    both = "adp.converters.adp_v1.CONVERTER.__class__.sniff"
    monkeypatch.setattr(both, lambda _, record: 1 if "messages" in record else 0)
    monkeypatch.setitem(FIRST_KEYS, "adp_v1", frozenset({"messages"}))
    with pytest.raises(AmbiguousFormatError):
        convert([str(tmp_path / "in" / "c" / "chat.jsonl")], str(tmp_path / "never"))
    store = converted(tmp_path / "in", tmp_path / "s", ANY)
    assert "adp_v1 and openai_chat claim it equally" in " ".join(store.manifest.reasons)
    assert ("a/1", "a/result.json") in sides_of(store)


@pytest.mark.slow
@pytest.mark.usefixtures("_fake")
def test_side_files_with_workers_and_after_a_stop_give_the_same(tmp_path, monkeypatch):
    monkeypatch.setattr(file_pieces, "SHARD_BYTES", 12)
    tree(tmp_path / "in")
    convert([str(tmp_path / "in")], str(tmp_path / "whole"))
    done = []

    def stop_in_the_third(job):
        if len(done) == 2:
            raise KeyboardInterrupt
        done.append(job)
        return convert_shard(job)

    monkeypatch.setattr(run, "convert_shard", stop_in_the_third)
    with pytest.raises(KeyboardInterrupt):
        convert([str(tmp_path / "in")], str(tmp_path / "s"))
    monkeypatch.setattr(run, "convert_shard", convert_shard)
    convert([str(tmp_path / "in")], str(tmp_path / "s"))
    assert hashes(tmp_path / "s") == hashes(tmp_path / "whole")


@pytest.mark.slow
def test_compressed_inputs_give_the_same_bytes_with_any_number_of_workers(tmp_path, monkeypatch):
    monkeypatch.setattr("adp.stores.stage.SMALL", 0)
    monkeypatch.setattr(file_pieces, "SHARD_BYTES", 1000)
    (tmp_path / "in").mkdir()
    for name in "abc":
        data = lines([chat(n % 30, name * n) for n in range(200)])
        (tmp_path / "in" / f"{name}.jsonl.gz").write_bytes(gzip.compress(data))
    (tmp_path / "in" / "d.zip").write_bytes(zipped({"x.jsonl": lines([chat(3)])}))
    results = []
    for workers in (1, 2):
        out = tmp_path / f"s{workers}"
        convert([str(tmp_path / "in")], str(out), options=ConvertOptions(workers=workers))
        results.append(hashes(out))
    assert results[0] == results[1]
    assert len([name for name in results[0] if name.startswith("steps/")]) == 4


@pytest.mark.parametrize("what", ["longer", "shorter", "touched", "gone"])
@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("is_sole", [False, True])
def test_a_file_that_changes_while_it_is_read(tmp_path, monkeypatch, what, when, is_sole):
    """Of one that grows what was planned is read; another is one rejected record, or the end."""
    source = tmp_path / "in" / "x.jsonl"
    source.parent.mkdir()
    source.write_bytes(lines([chat(n) for n in range(9)]))
    if not is_sole:
        source.with_name("a.jsonl").write_bytes(lines([chat(10)]))
    data = source.read_bytes()

    def change():
        if what == "gone":
            source.unlink()
        elif what == "touched":
            os.utime(source, ns=(1, 1))
        else:
            source.write_bytes(data * 2 if what == "longer" else data[:100])

    def work(job):
        if when == "before":
            change()
        else:
            frames = framing.frames

            def changing(piece, *arguments):
                yield from frames(piece, *arguments)
                if piece.source_file == source.name and source.exists():
                    change()

            monkeypatch.setattr(framing, "frames", changing)
        return convert_shard(job)

    monkeypatch.setattr(run, "convert_shard", work)
    words = {"longer": "", "gone": "it is gone", "shorter": "it changed", "touched": "it changed"}
    if is_sole and what != "longer":
        with pytest.raises(ChangedInputError, match=f"{words[what]}.*convert it again"):
            convert([str(tmp_path / "in")], str(tmp_path / "s"))
        assert not (tmp_path / "s" / "adp.json").exists()
        return
    manifest = convert([str(tmp_path / "in")], str(tmp_path / "s"))
    counts = manifest.counts
    read = (9, 0) if what == "longer" else (0, 1)
    assert (counts.used - (not is_sole), counts.rejected) == read
    assert words[what] in " ".join(manifest.reasons)


def test_a_stopped_run_does_not_go_on_with_a_changed_file(tmp_path, monkeypatch):
    source = tmp_path / "x.jsonl"
    source.write_bytes(lines([chat(1)]))

    def stop(job):
        raise KeyboardInterrupt

    monkeypatch.setattr(run, "convert_shard", stop)
    with pytest.raises(KeyboardInterrupt):
        convert([str(source)], str(tmp_path / "s"))
    os.utime(source, ns=(1, 1))
    with pytest.raises(OutputExistsError, match="other inputs"):
        convert([str(source)], str(tmp_path / "s"))


def test_times_of_files_are_not_in_the_store(tmp_path):
    source = tmp_path / "x.jsonl"
    source.write_bytes(lines([chat(1)]))
    convert([str(source)], str(tmp_path / "one"))
    os.utime(source, ns=(1, 1))
    convert([str(source)], str(tmp_path / "two"))
    assert hashes(tmp_path / "one") == hashes(tmp_path / "two")
    text = b"".join(path.read_bytes() for path in (tmp_path / "one").rglob("*") if path.is_file())
    assert str(tmp_path).encode() not in text
    assert Store.open(str(tmp_path / "one")).manifest.counts.used == 1
