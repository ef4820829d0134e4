"""How much memory the processes of a sandbox use together."""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

_PROC = Path("/proc")
_COUNTED = (b"VmRSS:", b"VmSwap:", b"VmPTE:")
_IN_MEMORY = ("tmp", "dev/shm")
_FILE = 1024
"""Bytes that the kernel keeps of a file in memory, however empty it is."""


def memory_of(root: int) -> int:
    """Bytes that a process and all below it hold; 0 when it is gone.

    A limit on addresses holds for each process alone, so several could use several times as much.
    What was swapped out counts, and so do the names of files that lie in memory: the size of such
    a place limits what the files hold, not how many there are.

    Args:
        root: process id of the topmost one.
    """
    inside = _tree(root)
    return sum(map(_held, inside)) + _FILE * _files(inside)


def _tree(root: int) -> list[int]:
    """A process and all below it."""
    children: dict[int, list[int]] = {}
    for entry in _PROC.iterdir():
        if entry.name.isdigit():
            try:
                # The name in brackets may hold anything, so fields are counted from its end.
                fields = (entry / "stat").read_bytes().rpartition(b")")[2].split()
            except OSError:
                continue
            children.setdefault(int(fields[1]), []).append(int(entry.name))
    result, waiting = [], [root]
    while waiting:
        process = waiting.pop()
        result.append(process)
        waiting += children.get(process, [])
    return result


def _held(process: int) -> int:
    """Bytes of a process; 0 when it is gone."""
    try:
        lines = (_PROC / str(process) / "status").read_bytes().splitlines()
    except OSError:
        return 0
    return sum(int(line.split()[1]) << 10 for line in lines if line.startswith(_COUNTED))


def _files(inside: Iterable[int]) -> int:
    """Files in memory that are the sandbox's own, by the first process that shows them."""
    for process in inside:
        result, is_ours = 0, False
        for name in _IN_MEMORY:
            # The process may be gone, or not yet inside; then another one shows them, or the next
            # look.
            with suppress(OSError):
                used, device = _used(_PROC / str(process) / "root" / name)
                if device != Path("/", name).stat().st_dev:
                    result, is_ours = result + used, True
        if is_ours:
            return result
    return 0


def _used(place: Path) -> tuple[int, int]:
    """Files that the file system of a folder holds, and its device."""
    # Opened once: while the sandbox is built, the same name is another place at the next look.
    folder = os.open(place, os.O_PATH | os.O_DIRECTORY)
    try:
        state = os.fstatvfs(folder)
        return state.f_files - state.f_ffree, os.fstat(folder).st_dev
    finally:
        os.close(folder)
