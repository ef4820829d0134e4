"""One run at a time at one output: a second one stops at once and names the first.

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

Given = ParamSpec("Given")
Made = TypeVar("Made")

_held: dict[Path, int] = {}


def _let_go() -> None:
    """Close the locks in a forked process, or they would outlive the one that holds them."""
    for handle in _held.values():
        os.close(handle)
    _held.clear()


os.register_at_fork(after_in_child=_let_go)


def alone(function: Callable[Given, Made]) -> Callable[Given, Made]:
    """Let a function run only when no other run writes to its argument ``out``."""
    signature = inspect.signature(function)

    @functools.wraps(function)
    def run(*arguments: Given.args, **options: Given.kwargs) -> Made:
        out = signature.bind(*arguments, **options).arguments.get("out")
        if out is None:
            return function(*arguments, **options)
        with holding(out):
            return function(*arguments, **options)

    return run


@contextmanager
def holding(out: str | os.PathLike[str]) -> Iterator[None]:
    """Hold the lock of an output, unless this process holds that of a folder around it.

    Args:
        out: file or folder that is to be written.

    Raises:
        StoreError: another run writes there; the message names it.
    """
    place = Path(out).absolute()
    if any(folder in _held for folder in place.parents):
        yield
        return
    path = place.with_name(f".{place.name}.lock")
    made = [folder for folder in path.parents if not folder.exists()]
    with suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
    handle = _acquire(place, path)
    if handle is None:
        yield
        return
    _held[place] = handle
    try:
        yield
    finally:
        if _held.pop(place, None) is not None:  # else this is a fork of the holder
            with suppress(OSError):
                path.unlink()  # before it is let go of: who comes next makes a file of its own
            os.close(handle)
        with suppress(OSError):
            for folder in made:  # if the run has left nothing in it
                folder.rmdir()


def _acquire(out: Path, path: Path) -> int | None:
    """Take the lock; None where there can be none."""
    while True:
        try:
            handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError:  # the output itself will say what is wrong, if it cannot be written either
            return None
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            said = os.pread(handle, 4096, 0)
            os.close(handle)
            raise StoreError(_sentence(out, said)) from None
        except OSError:  # no locks here
            os.close(handle)
            return None
        with suppress(FileNotFoundError):
            if path.stat().st_ino == os.fstat(handle).st_ino:
                os.ftruncate(handle, 0)
                os.pwrite(handle, _holder(), 0)
                return handle
        os.close(handle)  # its holder removed it meanwhile


def _holder() -> bytes:
    words = " ".join(["adp", *sys.argv[1:]])[:500]
    began = time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime())
    facts = {"pid": os.getpid(), "host": platform.node(), "command": words, "began": began}
    return json.dumps(facts).encode()


def _sentence(out: Path, said: bytes) -> str:
    try:
        facts = json.loads(said)
        who = (
            f"process {facts['pid']} on {facts['host']}, since {facts['began']}: {facts['command']}"
        )
    except (ValueError, KeyError, TypeError):  # it has just begun
        who = "it has just begun"
    return f"another run writes to {out} now ({who}); wait for it, or choose another -o"
