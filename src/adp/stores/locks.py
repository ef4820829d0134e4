"""One run at a time at one output: a second one stops at once and names the first.

Runs that write to one growing store together share its lock, and keep all others out.

The lock is a file beside the output, ``.NAME.lock``, so that an output that is absent or empty
stays so. It says who holds it. The system ends the lock with the process that holds it, whatever
ends that, and workers do not inherit it; the file is removed at the end, and one that a killed run
left is taken over. Where the file cannot be written, or the file system has no locks (some of NFS),
the run goes on without one.
"""

from __future__ import annotations

import fcntl
import functools
import inspect
import json
import os
import platform
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import ParamSpec, TypeVar

from adp_schema.errors import StoreError
from adp_schema.location import check_local

Given = ParamSpec("Given")
Made = TypeVar("Made")

_held: dict[int, Path] = {}
"""Handles of the locks that this process holds, with what they are for."""


def _let_go() -> None:
    """Close the locks in a forked process, or they would outlive the one that holds them."""
    for handle in _held:
        os.close(handle)
    _held.clear()


os.register_at_fork(after_in_child=_let_go)


def alone(function: Callable[Given, Made], *, folders: bool = True) -> Callable[Given, Made]:
    """Let a function run only when no other run writes to its argument ``out``.

    Args:
        function: the function. ``out`` may be None: then it writes to none.
        folders: make the folders above the output; else they must be there.
    """
    signature = inspect.signature(function)

    @functools.wraps(function)
    def run(*arguments: Given.args, **options: Given.kwargs) -> Made:
        out = signature.bind(*arguments, **options).arguments.get("out")
        if out is None:
            return function(*arguments, **options)
        with holding(out, folders=folders):
            return function(*arguments, **options)

    return run


def held(function: Callable[Given, Made]) -> Callable[Given, Made]:
    """A function that runs `alone`, for a caller that holds the lock of its output already."""
    free: Callable[Given, Made] = inspect.unwrap(function)
    return free


alone_at_file = functools.partial(alone, folders=False)
"""The same for a function that writes a file into a folder which must be there."""


@contextmanager
def holding(
    out: str | os.PathLike[str], *, together: bool = False, folders: bool = True
) -> Iterator[None]:
    """Hold the lock of an output, unless this process holds that of a folder around it.

    Args:
        out: file or folder that is to be written.
        together: share it with the runs that say the same.
        folders: make the folders above it; else there is no lock when they are not there.

    Raises:
        StoreError: another run writes there; the message names it.
        UsageError: the output is a URL.
    """
    check_local(out)
    place = Path(out).absolute()
    if not set(place.parents).isdisjoint(_held.values()):
        yield
        return
    path = place.with_name(f".{place.name}.lock")
    made = [folder for folder in path.parents if folders and not folder.exists()]
    with suppress(OSError):
        if made:
            path.parent.mkdir(parents=True, exist_ok=True)
    handle = _acquire(place, path, together)
    if handle is None:
        yield
        return
    _held[handle] = place
    try:
        yield
    finally:
        if _held.pop(handle, None) is not None:  # else this is a fork of the holder
            with suppress(OSError):
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)  # it fails while others share it
                path.unlink()  # before it is let go of: who comes next makes a file of its own
            os.close(handle)
        with suppress(OSError):
            for folder in made:  # if the run has left nothing in it
                folder.rmdir()


def _acquire(out: Path, path: Path, together: bool) -> int | None:
    """Take the lock; None where there can be none."""
    while True:
        try:
            handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError:  # the output itself will say what is wrong, if it cannot be written either
            return None
        try:
            fcntl.flock(handle, (fcntl.LOCK_SH if together else fcntl.LOCK_EX) | fcntl.LOCK_NB)
        except BlockingIOError:
            content = os.pread(handle, 1 << 16, 0)
            os.close(handle)
            raise StoreError(_sentence(out, content)) from None
        except OSError:  # no locks here
            os.close(handle)
            return None
        with suppress(FileNotFoundError):
            if path.stat().st_ino == os.fstat(handle).st_ino:
                if not together:
                    os.ftruncate(handle, 0)
                os.pwrite(handle, _holder(), os.fstat(handle).st_size)
                return handle
        os.close(handle)  # its holder removed it meanwhile


def _holder() -> bytes:
    words = " ".join(["adp", *sys.argv[1:]])[:500]
    began = time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime())
    facts = {"pid": os.getpid(), "host": platform.node(), "command": words, "began": began}
    return json.dumps(facts).encode() + b"\n"


def _sentence(out: Path, content: bytes) -> str:
    who = "it has just begun"
    for line in content.splitlines():
        with suppress(ValueError, KeyError, TypeError):
            facts = json.loads(line)
            if len(content.splitlines()) == 1 or _runs(facts["host"], facts["pid"]):
                who = (
                    f"process {facts['pid']} on {facts['host']}, since {facts['began']}: "
                    f"{facts['command']}"
                )
    return f"another run writes to {out} now ({who}); wait for it, or choose another -o"


def _runs(host: str, pid: int) -> bool:
    """Whether a process may be there still; of several that shared a lock, some may have ended."""
    if host != platform.node():
        return True
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:  # another user's
        return True
    return True
