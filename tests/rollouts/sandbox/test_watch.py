"""What the processes of a sandbox use together, looked at while they change."""

from __future__ import annotations

import os
import sys
from itertools import count
from pathlib import Path

import pytest

from adp.rollouts.sandbox import watch


def in_use(folder):
    state = os.statvfs(folder)
    return state.f_files - state.f_ffree


def look(moment, act):
    """What a look finds when something is done before one of its calls to the system.

    Args:
        moment: number of the call, from 1, among all calls of built-in functions.
        act: what is done then.

    Returns:
        The bytes, and whether the moment came.
    """
    seen = 0

    def note(frame, event, argument):
        nonlocal seen
        if event == "c_call":
            seen += 1
            if seen == moment:
                act()

    sys.setprofile(note)
    try:
        memory = watch.memory_of(7)
    finally:
        sys.setprofile(None)
    return memory, seen >= moment


@pytest.mark.parametrize("inside_first", [True, False])
def test_files_of_the_machine_never_count_while_the_sandbox_is_being_built(
    tmp_path, monkeypatch, inside_first
):
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
    monkeypatch.setattr(watch, "_PROC", tmp_path / "proc")
    places = [tmp_path / "inside", Path("/")] if inside_first else [Path("/"), tmp_path / "inside"]

    def turn_to(place):
        (process / "next").symlink_to(place)
        (process / "next").replace(process / "root")

    results = []
    for moment in count(1):
        turn_to(places[0])
        bytes_held, came = look(moment, lambda: turn_to(places[1]))
        results.append(bytes_held)
        if not came:
            break
    assert any(results), "the place inside was never seen"
    assert max(results) < 1024 * in_use("/tmp") / 2  # others make and remove files meanwhile
