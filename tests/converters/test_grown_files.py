"""Logs that have grown since they were converted: only what is new is taken, once."""

from __future__ import annotations

import json
import os
import random
import time

import pytest

import adp
from adp.converters import since
from adp.converters.file_pieces import line_ranges
from adp.converters.fingerprint_cache import FingerprintCache
from adp.stores.merge_latest import merge_latest, superseded
from adp_schema.errors import NothingNewError
from tests.converters.containers import chat, lines


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def session(name, turns):
    header = {"type": "session", "version": 3, "id": name, "cwd": "/x"}
    rows = [header]
    for number in range(turns):
        message = {"role": "user", "content": f"{name} turn {number}"}
        rows.append({"type": "message", "id": f"{name}{number}", "message": message})
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


def texts(store):
    return store.query("SELECT text FROM steps ORDER BY seq, step").column("text").to_pylist()


def settle(folder):
    """Set times of change back, so that the cache trusts them."""
    for path in folder.rglob("*"):
        os.utime(path, ns=(time.time_ns() - 10**10,) * 2)


def test_of_a_file_of_lines_only_the_new_lines_are_read(tmp_path):
    folder = tmp_path / "in"
    folder.mkdir()
    (folder / "a.jsonl").write_bytes(lines([chat(1), chat(2)]))
    adp.convert(folder, tmp_path / "one")
    names, previous = ["one"], "one"
    for number, new in enumerate(([3], [4, 5]), 2):
        with (folder / "a.jsonl").open("ab") as file:
            file.write(lines([chat(n) for n in new]))
        name = f"day{number}"
        store = adp.convert(folder, tmp_path / name, since=tmp_path / previous)
        assert store.manifest.counts.records == len(new)
        first = store.query("SELECT min(source_records[1]) AS n FROM trajectories").to_pylist()
        assert first == [{"n": new[0]}]
        previous = f"all{number}"
        adp.merge([tmp_path / names[-1], tmp_path / name], tmp_path / previous)
        names.append(previous)
    whole = adp.convert(folder, tmp_path / "whole")
    merged = adp.open(tmp_path / previous)
    assert texts(merged) == texts(whole)
    assert set(merged.query("SELECT source_file FROM sources")["source_file"].to_pylist()) == {
        "a.jsonl"
    }
    with pytest.raises(NothingNewError):
        adp.convert(folder, tmp_path / "none", since=tmp_path / previous)


def test_a_file_whose_beginning_changed_is_read_whole(tmp_path):
    folder = tmp_path / "in"
    folder.mkdir()
    (folder / "a.jsonl").write_bytes(lines([chat(1), chat(2)]))
    adp.convert(folder, tmp_path / "one")
    (folder / "a.jsonl").write_bytes(lines([chat(9), chat(2), chat(3)]))
    assert (
        adp.convert(folder, tmp_path / "two", since=tmp_path / "one").manifest.counts.records == 3
    )


def test_a_session_that_has_grown_supersedes_its_earlier_version(tmp_path):
    folder = tmp_path / "in"
    folder.mkdir()
    for name in "ab":
        (folder / f"{name}.jsonl").write_bytes(session(name, 2))
    adp.convert(folder, tmp_path / "one")
    (folder / "b.jsonl").write_bytes(session("b", 5))
    (folder / "c.jsonl").write_bytes(session("c", 1))
    two = adp.convert(folder, tmp_path / "two", since=tmp_path / "one")
    assert two.manifest.counts.trajectories == 2
    stores = [str(tmp_path / "one"), str(tmp_path / "two")]
    assert superseded(stores) == [["b.jsonl"], []]
    merge_latest(stores, str(tmp_path / "all"))
    merged = adp.open(tmp_path / "all")
    whole = adp.convert(folder, tmp_path / "whole")
    assert sorted(texts(merged)) == sorted(texts(whole))
    ids = merged.query("SELECT trajectory_id FROM trajectories ORDER BY 1").column(0).to_pylist()
    assert ids == ["a/a", "b/b", "c/c"]
    with pytest.raises(NothingNewError):
        adp.convert(folder, tmp_path / "none", since=tmp_path / "all")


def test_untouched_files_are_not_opened_again(tmp_path, monkeypatch):
    folder = tmp_path / "in"
    for name in "abc":
        (folder / name).mkdir(parents=True)
        (folder / name / "run.jsonl").write_bytes(session(name, 2))
    settle(folder)
    adp.convert(folder, tmp_path / "one")
    with pytest.raises(NothingNewError):  # fills the cache
        adp.convert(folder, tmp_path / "none", since=tmp_path / "one")
    (folder / "c" / "new.jsonl").write_bytes(session("d", 1))
    opened = []
    original = since.fingerprint_of
    monkeypatch.setattr(
        since, "fingerprint_of", lambda file, limits: opened.append(file) or original(file, limits)
    )
    two = adp.convert(folder, tmp_path / "two", since=tmp_path / "one")
    assert texts(two) == ["d turn 0"]
    assert opened == []
    assert two.manifest.lineage[0].options["unchanged"] == 3


def test_the_cache_trusts_only_what_is_as_it_was(tmp_path):
    from adp.converters.files.streams import InputPlace

    path = tmp_path / "x"
    path.write_text("1")
    settle(tmp_path)
    state = path.stat()
    place = InputPlace(str(path), state.st_size, state.st_mtime_ns)
    store = FingerprintCache("a,b", tmp_path / "c.sqlite")
    assert store.known([place]) == {}
    store.note([(place, "pi", "ff")])
    assert store.known([place])[str(path)].fingerprint == "ff"
    assert FingerprintCache("a,b,c", tmp_path / "c.sqlite").known([place]) == {}
    assert store.known([InputPlace(str(path), state.st_size, state.st_mtime_ns + 1)]) == {}
    fresh = InputPlace(str(path), 1, time.time_ns())
    store.note([(fresh, "pi", "00")])
    assert store.known([fresh]) == {}
    (tmp_path / "c.sqlite").write_bytes(b"no database")
    assert store.known([place]) == {}
    store.note([(place, "pi", "ff")])


def test_ranges_of_lines_can_begin_anywhere(tmp_path, monkeypatch):
    monkeypatch.setattr("adp.converters.file_pieces.RANGE_BYTES", 50)
    chance = random.Random(5)
    rows = [b"x" * chance.randrange(1, 40) + b"\n" for _ in range(40)]
    path = tmp_path / "lines"
    path.write_bytes(b"".join(rows))
    start = sum(map(len, rows[:7]))
    ranges = line_ranges(str(path), path.stat().st_size, start)
    assert ranges[0][0] == start
    assert ranges[-1][1] == path.stat().st_size
    for begin, end in ranges:
        assert path.read_bytes()[begin - 1 : begin] == b"\n"
        assert path.read_bytes()[end - 1 : end] == b"\n"
