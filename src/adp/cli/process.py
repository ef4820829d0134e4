"""The process of the command ``adp``, from its first import to its end: what Ctrl-C does in it.

Only the command line changes what a process does; the library leaves signals and hooks alone.
"""

from __future__ import annotations

import atexit
import os
import signal
import sys
import threading
from contextlib import suppress
from typing import NoReturn

STOPPED = 130

_RETRY_SECONDS = 0.05

_arrived: list[int] = []
"""Handle from which the numbers of the signals that came can be read, once they are kept."""


def ignore_interrupts() -> None:
    """Let nothing interrupt this process any more: it is about to end."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def keep_interrupts() -> None:
    """Note each interrupt, and repeat one that would be lost.

    Python raises it wherever it is: in a finalizer, or in a function that a library calls back.
    Nothing can be raised from there, so that Python only prints a traceback, and goes on.
    The handler stays Python's own: asyncio replaces no other.
    """
    arrived, notes = os.pipe()
    for handle in (arrived, notes):
        os.set_blocking(handle, False)
    signal.set_wakeup_fd(notes, warn_on_full_buffer=False)
    _arrived.append(arrived)
    before = sys.unraisablehook

    def answer(lost: sys.UnraisableHookArgs) -> None:
        if not issubclass(lost.exc_type, KeyboardInterrupt):
            before(lost)
            return
        # Later: an interrupt inside of this function would be lost as well.
        later = threading.Timer(_RETRY_SECONDS, os.kill, (os.getpid(), signal.SIGINT))
        later.daemon = True
        later.start()

    sys.unraisablehook = answer


def was_interrupted() -> bool:
    """Whether Ctrl-C came since the last call: a library may have made any error of it."""
    with suppress(BlockingIOError):
        return any(signal.SIGINT in os.read(handle, 1 << 16) for handle in _arrived)
    return False


def leave(code: int) -> NoReturn:
    """End the process after an interrupt, without the end of Python itself.

    Threads of libraries may still be at work, which Python's end would crash or wait for. What is
    registered for the end of the process runs.

    Args:
        code: the exit code.
    """
    if "multiprocessing" in sys.modules:
        from multiprocessing import active_children

        for child in active_children():
            child.kill()  # or it would be waited for
    with suppress(Exception):
        atexit._run_exitfuncs()
    leave_at_once(code)


def leave_at_once(code: int) -> NoReturn:
    """End the process, without what is registered for its end."""
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            stream.flush()
    os._exit(code)
