"""How much memory the processes of a sandbox use together."""

from __future__ import annotations

import os
from pathlib import Path

_PROC = Path("/proc")
_PAGE = os.sysconf("SC_PAGE_SIZE")


def memory_of(root: int) -> int:
    """Bytes in memory of a process and all below it; 0 when it is gone.

    A limit on addresses holds for each process alone, so several could use several times as much.

    Args:
        root: process id of the topmost one.
    """
    parents: dict[int, int] = {}
    pages: dict[int, int] = {}
    for entry in _PROC.iterdir():
        if entry.name.isdigit():
            try:
                # The name in brackets may hold anything, so fields are counted from its end.
                fields = (entry / "stat").read_bytes().rpartition(b")")[2].split()
            except OSError:
                continue
            parents[int(entry.name)] = int(fields[1])
            pages[int(entry.name)] = int(fields[21])
    children: dict[int, list[int]] = {}
    for process, parent in parents.items():
        children.setdefault(parent, []).append(process)
    found, waiting = 0, [root]
    while waiting:
        process = waiting.pop()
        found += pages.get(process, 0) * _PAGE
        waiting += children.get(process, [])
    return found
