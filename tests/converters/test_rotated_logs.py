"""Logs that are written, cut and rotated, also while they are read: each turn is taken once."""

from __future__ import annotations

import json
import random

import pytest

import adp
from adp.converters import run
from adp.stores.merge_latest import merge_latest
from adp_schema.errors import NothingNewError
from tests.converters.containers import chat, lines, zst
from tests.effort import examples


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def session(name, turns):
    rows = [{"type": "session", "version": 3, "id": name, "cwd": "/x"}]
    for number in range(turns):
        message = {"role": "user", "content": f"{name} turn {number} é"}
        rows.append({"type": "message", "id": f"{name}{number}", "message": message})
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows).encode()


def chats(name, turns):
    return lines([chat(number, f"{name} turn {number} é") for number in range(turns)])


KINDS = pytest.mark.parametrize("log", [session, chats])


def texts(store):
    sql = "SELECT text FROM steps WHERE kind = 'message' AND source = 'user'"
    return sorted(store.query(sql).column("text").to_pylist())


class Nights:
    """Converts a folder night after night, and merges what is new."""

    def __init__(self, folder, place):
        self.folder, self.place, self.number, self.all = folder, place, 0, None

    def convert(self):
        """The store of a night; None when there was nothing new."""
        self.number += 1
        name = str(self.place / f"night{self.number}")
        try:
            store = adp.convert(self.folder, name, since=self.all, workers=1)
        except NothingNewError:
            return None
        assert store.manifest.counts.balanced()
        if self.all is None:
            self.all = name
        else:
            merged = str(self.place / f"all{self.number}")
            merge_latest([self.all, name], merged, workers=1)
            self.all = merged
        return store

    def check(self):
        """The merged store has what a conversion of everything has, and nothing is new."""
        assert self.convert() is None
        whole = adp.convert(self.folder, self.place / f"whole{self.number}", workers=1)
        assert texts(adp.open(self.all)) == texts(whole)


@pytest.fixture
def nights(tmp_path):
    (tmp_path / "in").mkdir()
    return Nights(tmp_path / "in", tmp_path)


@KINDS
def test_a_log_that_was_rotated_is_taken_under_its_new_name(nights, log):
    folder = nights.folder
    (folder / "log.jsonl").write_bytes(log("a", 3))
    nights.convert()
    for name in "bc":
        if (folder / "log.1.jsonl").exists():
            (folder / "log.1.jsonl").rename(folder / "log.2.jsonl")
        (folder / "log.jsonl").rename(folder / "log.1.jsonl")
        (folder / "log.jsonl").write_bytes(log(name, 2))
        nights.convert()
    nights.check()
    assert len(texts(adp.open(nights.all))) == 7


@KINDS
def test_a_log_that_was_copied_and_cut_to_nothing(nights, log):
    folder = nights.folder
    (folder / "log.jsonl").write_bytes(log("a", 3))
    nights.convert()
    (folder / "log.1.jsonl").write_bytes((folder / "log.jsonl").read_bytes())
    (folder / "log.jsonl").write_bytes(b"")
    nights.convert()
    (folder / "log.jsonl").write_bytes(log("b", 1))
    nights.convert()
    nights.check()
    assert len(texts(adp.open(nights.all))) == 4


def test_a_file_that_only_has_another_name_is_not_read_again(nights):
    (nights.folder / "log.jsonl").write_bytes(session("a", 3))
    nights.convert()
    (nights.folder / "log.jsonl").rename(nights.folder / "old.jsonl")
    assert nights.convert() is None


@KINDS
@pytest.mark.parametrize("seed", range(examples(3)))
def test_a_log_that_grows_while_it_is_read(nights, log, seed, monkeypatch):
    """Its writer is anywhere: between two lines or inside one, before or while a night reads it."""
    chance = random.Random(seed)
    path, left = nights.folder / "log.jsonl", bytearray(log("a", 12))
    (nights.folder / "still.jsonl").write_bytes(log("still", 1))
    plan = run.make_plan

    def write():
        some = chance.randrange(1, 400)
        with path.open("ab") as file:
            file.write(left[:some])
        del left[:some]

    def planned(*arguments):
        result = plan(*arguments)
        write()
        return result

    monkeypatch.setattr(run, "make_plan", planned)
    path.write_bytes(b"")
    while left:
        write()
        nights.convert()
    monkeypatch.undo()
    nights.convert()
    nights.check()
    assert len(texts(adp.open(nights.all))) == 13


@KINDS
def test_a_log_that_is_cut_while_it_is_read(nights, log, monkeypatch):
    path, plan = nights.folder / "log.jsonl", run.make_plan
    path.write_bytes(log("a", 9))
    (nights.folder / "still.jsonl").write_bytes(log("still", 1))

    def planned(*arguments):
        result = plan(*arguments)
        path.write_bytes(path.read_bytes()[:200])
        return result

    monkeypatch.setattr(run, "make_plan", planned)
    counts = nights.convert().manifest.counts
    assert (counts.records, counts.used, counts.rejected) == (2, 1, 1)
    monkeypatch.undo()
    path.write_bytes(log("a", 9))
    nights.convert()
    nights.check()


def test_a_compressed_log_that_breaks_off_is_rejected_until_it_is_whole(nights):
    data = zst(session("a", 300))
    (nights.folder / "b.jsonl").write_bytes(session("b", 1))
    path = nights.folder / "a.jsonl.zst"
    path.write_bytes(data[: len(data) // 2])
    counts = nights.convert().manifest.counts
    assert (counts.records, counts.used, counts.rejected) == (2, 1, 1)
    path.write_bytes(data)
    nights.convert()
    nights.check()
    assert len(texts(adp.open(nights.all))) == 301


def test_lines_of_a_compressed_log_before_the_place_where_it_breaks_off_are_read(nights):
    chance = random.Random(1)
    rows = [chat(number, chance.randbytes(200).hex()) for number in range(2000)]
    data = zst(lines(rows))
    (nights.folder / "a.jsonl.zst").write_bytes(data[: len(data) // 2])
    counts = nights.convert().manifest.counts
    assert counts.rejected == 1
    assert counts.used > 200


def test_a_new_file_that_no_format_reads_is_no_reason_to_stop(nights):
    (nights.folder / "a").mkdir()
    (nights.folder / "a" / "log.jsonl").write_bytes(session("a", 1))
    nights.convert()
    (nights.folder / "b").mkdir()
    (nights.folder / "b" / "odd.json").write_text('{"what": 1}')
    store = nights.convert()
    assert store is None or store.manifest.counts.rejected == 1
    assert nights.convert() is None
    (nights.folder / "b" / "log.jsonl").write_bytes(session("b", 1))
    nights.convert()
    nights.check()
