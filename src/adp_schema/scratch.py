"""Scratch folders in the machine's folder for temporary files; those of killed processes go.

A process that is killed removes nothing. So each scratch folder has a lock file beside it, which
its owner holds locked as long as it lives: the system unlocks it when the process ends, however it
ends. Whoever makes the next scratch folder removes those whose lock is free. A lock says so also
where process ids do not: between containers that share a folder, and after an id is used again.
"""

from __future__ import annotations

import os
import secrets
import shutil
import tempfile
import weakref
from contextlib import suppress
from pathlib import Path

try:
    import fcntl
except ImportError:  # on Windows nothing is locked, and nothing swept
    fcntl = None  # type: ignore[assignment]

_LOCK = ".adp-lock"


class ScratchFolder:
    """A folder that goes when this object is closed or collected, or when the process ends.

    Args:
        use: what it is for, in its name.

    Attributes:
        path: the folder.

    Raises:
        OSError: it cannot be made.
    """

    def __init__(self, use: str) -> None:
        base = Path(tempfile.gettempdir())
        sweep(base)
        self.path, handle = _make(base, use)
        self._finalizer = weakref.finalize(self, _remove, self.path, handle, os.getpid())

    def close(self) -> None:
        """Remove the folder; once is enough."""
        self._finalizer()

    def __enter__(self) -> Path:
        return self.path

    def __exit__(self, *_: object) -> None:
        self.close()


def sweep(base: Path) -> list[Path]:
    """Remove the scratch folders whose owner lives no more.

    Args:
        base: where they lie.

    Returns:
        Those that were removed.
    """
    removed: list[Path] = []
    if fcntl is None:
        return removed
    for lock in base.glob(f"adp-*{_LOCK}"):
        # Another user's, gone meanwhile, or on a disk that knows no locks: left alone.
        with suppress(OSError):
            handle = os.open(lock, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
            try:
                if os.fstat(handle).st_uid == os.geteuid():
                    fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    folder = lock.with_name(lock.name.removesuffix(_LOCK))
                    shutil.rmtree(folder, ignore_errors=True)
                    lock.unlink()
                    removed.append(folder)
            finally:
                os.close(handle)
    return removed


def _make(base: Path, use: str) -> tuple[Path, int]:
    """Make a folder, and lock the file beside it; returns both."""
    while True:
        folder = base / f"adp-{use}-{secrets.token_hex(6)}"
        lock = folder.with_name(folder.name + _LOCK)
        handle = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        if _held(lock, handle):
            try:
                folder.mkdir(0o700)
            except BaseException:
                lock.unlink(missing_ok=True)
                os.close(handle)
                raise
            return folder, handle
        os.close(handle)


def _held(lock: Path, handle: int) -> bool:
    """Lock a file that was just made; False when a sweep took it for one that was left."""
    if fcntl is None:
        return True
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:  # this disk knows no locks: nobody sweeps it either
        return True
    return lock.exists()


def _remove(folder: Path, handle: int, owner: int) -> None:
    if os.getpid() != owner:  # a forked process has the object too
        return
    shutil.rmtree(folder, ignore_errors=True)
    folder.with_name(folder.name + _LOCK).unlink(missing_ok=True)
    os.close(handle)
