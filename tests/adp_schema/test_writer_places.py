"""Work that is done twice at once: each try writes to a path of its own, and places whole files."""

from __future__ import annotations

import threading

import pyarrow as pa
import pytest

from adp.stores.staged import write_rows
from adp_schema.tables import TABLES
from adp_schema.writer import placing, shard_scratch


def test_two_tries_at_one_file_do_not_meet(tmp_path):
    target = tmp_path / "file"
    with placing(target) as first, placing(target) as second:
        first.write_text("the same")
        second.write_text("the same")
        assert first != second
        assert not target.exists()
    assert target.read_text() == "the same"
    assert list(tmp_path.iterdir()) == [target]


def test_what_fails_places_nothing(tmp_path):
    def fail():
        with placing(tmp_path / "file") as staged:
            staged.write_text("half")
            raise ValueError("broke")

    with pytest.raises(ValueError, match="broke"):
        fail()
    assert list(tmp_path.iterdir()) == []


def test_a_shard_that_is_written_twice_at_once_is_there_once(tmp_path):
    (tmp_path / ".run").mkdir()
    row = {"seq": 7, "trajectory_id": "a"}
    rows = pa.Table.from_pylist([row], schema=TABLES["trajectories"].schema)
    barrier = threading.Barrier(2)

    def groups():
        barrier.wait()
        yield "trajectories", rows
        barrier.wait()

    made = []
    tries = [
        threading.Thread(target=lambda: made.append(write_rows(str(tmp_path), 0, groups())))
        for _ in range(2)
    ]
    for attempt in tries:
        attempt.start()
    for attempt in tries:
        attempt.join()
    assert len(made) == 2
    assert made[0] == made[1]
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert len(files) == len(made[0])


def test_a_worker_whose_run_has_ended_makes_no_folder(tmp_path):
    with pytest.raises(FileNotFoundError):
        shard_scratch(tmp_path, 3)
    assert list(tmp_path.iterdir()) == []
