"""Which episodes a process is at, so that several processes share the work on one store.

A claim is a lock on one byte of a file that holds nothing; the number of the byte is a hash of the
episode's id. The system frees the locks of a process that is killed.
"""

from __future__ import annotations

import os
from pathlib import Path

from adp_schema.ids import digest
from adp_schema.journal import FOLDER, cannot_write

try:
    import fcntl
except ImportError:  # Windows: two processes may do an episode twice; the store keeps one
    fcntl = None  # type: ignore[assignment]


_WORKING = 1 << 62
"""Number of the byte that all processes share that work on the store."""


class EpisodeLocks:
    """The claims of this process.

    Args:
        root: folder of the growing store.

    Raises:
        StoreError: it cannot be written to.
    """

    def __init__(self, root: Path) -> None:
        path = root / FOLDER / "collect.claims"
        try:
            self._handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        except OSError as error:
            raise cannot_write(root, error) from error

    def join(self) -> bool:
        """Say that this process works on the store, until it closes; whether no other one does.

        Where that cannot be known, others may be there.
        """
        if fcntl is None:
            return False
        try:
            fcntl.lockf(self._handle, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, _WORKING)
            alone = True
        except OSError:
            alone = False
        fcntl.lockf(self._handle, fcntl.LOCK_SH, 1, _WORKING)
        return alone

    def take(self, trajectory_id: str) -> bool:
        """Claim an episode; whether no other process is at it."""
        if fcntl is None:
            return True
        try:
            fcntl.lockf(self._handle, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, _byte(trajectory_id))
        except OSError:
            return False
        return True

    def free(self, trajectory_id: str) -> None:
        """Give a claim up."""
        if fcntl is not None:
            fcntl.lockf(self._handle, fcntl.LOCK_UN, 1, _byte(trajectory_id))

    def close(self) -> None:
        """Give all claims up."""
        os.close(self._handle)


def _byte(trajectory_id: str) -> int:
    """A number below 2**62; two ids share one with a chance of 1 in 10**18."""
    return int(digest(trajectory_id.encode("utf-8", "surrogatepass"))[:16], 16) >> 2
