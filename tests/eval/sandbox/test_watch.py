"""What the processes of a sandbox use together, looked at while they change."""

from __future__ import annotations

import os
import threading
from contextlib import suppress
from pathlib import Path

import pytest

from adp.eval.sandbox import watch


def in_use(folder):
    state = os.statvfs(folder)
    return state.f_files - state.f_ffree


def test_files_of_the_machine_never_count_while_the_sandbox_is_being_built(tmp_path, monkeypatch):
    # bubblewrap puts its own root over /tmp and then turns it into /; in between, the names in
    # /proc/PID/root are those of the machine again, whose disk holds millions of files.
    other = Path("/dev/shm")
    if not other.is_dir() or in_use("/tmp") < 10 * in_use(other) + 1000:
        pytest.skip("/dev/shm is missing or holds no fewer files than the file system of /tmp")
    (tmp_path / "inside").mkdir()
    (tmp_path / "inside" / "tmp").symlink_to(other)
    process = tmp_path / "proc" / "7"
    process.mkdir(parents=True)
    (process / "stat").write_text("7 (bwrap) S 1")
    done = threading.Event()

    def swap():
        while not done.is_set():
            for target in (tmp_path / "inside", Path("/")):
                (process / "next").symlink_to(target)
                (process / "next").replace(process / "root")

    monkeypatch.setattr(watch, "_PROC", tmp_path / "proc")
    thread = threading.Thread(target=swap)
    thread.start()
    try:
        seen = [watch.memory_of(7) for _ in range(300)]
        while not any(seen[-100:]) and len(seen) < 100_000:
            seen.append(watch.memory_of(7))
    finally:
        done.set()
        thread.join()
        with suppress(FileNotFoundError):
            (process / "next").unlink()
    assert any(seen), "the place inside was never seen"
    assert max(seen) < 1024 * in_use("/tmp")
