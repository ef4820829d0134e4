"""How the query gate waits for its engine: with an end to time, to memory, and by Ctrl-C.

The engine counts most of its memory and heeds most interrupts, but not all: a function that works
on one huge value does neither. So a query runs in a thread of its own, and who waits for it looks
at the clock and at the memory of the process. What does not stop when it is told to is left behind:
the caller gets its error all the same, and a program should then end without waiting
(`unfinished`).
"""

from __future__ import annotations

import os
import queue
import re
import threading
import time
import weakref
from collections.abc import Callable
from concurrent.futures import Future, wait
from concurrent.futures import TimeoutError as FutureTimeoutError
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from adp_schema.errors import QueryError, QueryTimeoutError, UsageError

if TYPE_CHECKING:
    import duckdb

GRACE = 2.0
"""Seconds that the engine has for stopping once it is interrupted."""

USER_SECONDS = 600.0
"""How long a query or condition of a user may work, unless ``ADP_QUERY_SECONDS`` says otherwise."""

SECONDS_VARIABLE = "ADP_QUERY_SECONDS"

_LOOK = 0.05
"""Seconds between two looks at the memory."""
_OVERHEAD = 256 << 20
"""Bytes that a process may use besides the memory of the engine: for batches and for threads."""
_UNITS = {"bytes": 0, "KiB": 10, "MiB": 20, "GiB": 30, "TiB": 40}
_Job = tuple[Future[Any], Callable[[], Any]]

_LEFT: list[Future[Any]] = []
"""What did not stop when it was interrupted."""


class QueryLimits(NamedTuple):
    """What one query may use up.

    Attributes:
        seconds: how long the engine may work, over all batches, and the caller compute between
            them; None sets no limit.
        memory: bytes that the process may grow by; None: the engine's own count is all there is.
        named: the limit of memory as the user wrote it.
        advice: what to say behind "took longer than ... and was stopped".
    """

    seconds: float | None = None
    memory: int | None = None
    named: str = ""
    advice: str = ""


def user_seconds() -> float | None:
    """How long SQL of a user may work; None: without limit.

    Raises:
        UsageError: the environment variable ``ADP_QUERY_SECONDS`` is no number of seconds.
    """
    given = os.environ.get(SECONDS_VARIABLE, "").strip()
    if not given:
        return USER_SECONDS
    with suppress(ValueError):
        seconds = float(given)
        if 0 <= seconds < threading.TIMEOUT_MAX:
            return seconds or None
    raise UsageError(
        f"{SECONDS_VARIABLE} is {given!r}; give a number of seconds, such as 600, or 0 for no limit"
    )


def unfinished() -> bool:
    """Whether a query of this process goes on although it was stopped."""
    return any(not coming.done() for coming in _LEFT)


def memory_bytes(cursor: duckdb.DuckDBPyConnection) -> int:
    """The limit of memory of an engine, in bytes."""
    row = cursor.execute("SELECT current_setting('memory_limit')").fetchone()
    number, unit = re.fullmatch(r"([\d.]+) ?(\w+)", str(row and row[0])).groups()  # type: ignore[union-attr]
    return int(float(number) * (1 << _UNITS[unit]))


def resident() -> int:
    """Bytes of memory that this process holds; 0 where the system does not say."""
    try:
        pages = int(Path("/proc/self/statm").read_bytes().split()[1])
    except (OSError, ValueError, IndexError):
        return 0
    return pages * os.sysconf("SC_PAGE_SIZE")


def machine_memory() -> int:
    """Bytes of memory that this machine or its container has; 0 where the system does not say."""
    results = []
    with suppress(OSError, ValueError):
        results.append(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    for name in ("memory.max", "memory/memory.limit_in_bytes"):  # of a container, version 2 and 1
        with suppress(OSError, ValueError):
            results.append(int(Path("/sys/fs/cgroup", name).read_text(encoding="ascii")))
    return min(results, default=0)


def _serve(jobs: queue.SimpleQueue[_Job | None]) -> None:
    """Do what comes until there is no more; keep nothing of it while waiting."""
    while (job := jobs.get()) is not None:
        coming, work = job
        try:
            coming.set_result(work())
        except BaseException as error:
            coming.set_exception(error)
        del job, coming, work


class Engine:
    """Lets a cursor work in a thread of its own, so that Ctrl-C stops it at once.

    The engine does not look for signals while it works; a thread that only waits does.

    Args:
        cursor: what works.
        limits: what it may use up, from now on.

    Attributes:
        stuck: whether it goes on although it was stopped.
    """

    def __init__(self, cursor: duckdb.DuckDBPyConnection, limits: QueryLimits) -> None:
        self._cursor = cursor
        self._limits = limits
        self._left = limits.seconds
        memory = limits.memory
        self._most = resident() + memory + memory // 4 + _OVERHEAD if memory is not None else None
        self._jobs: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self.stuck = False
        self._paused = time.thread_time()
        # A daemon, which holds nothing: nothing waits for it when the program ends.
        threading.Thread(target=_serve, args=(self._jobs,), name="adp-query", daemon=True).start()
        weakref.finalize(self, self._jobs.put, None)

    def call(self, function: Callable[..., Any], *arguments: object) -> Any:
        """Call a function in the thread and return what it returns.

        Raises:
            QueryTimeoutError: the time is up.
            QueryError: the process needs more memory than it may have.
        """
        coming: Future[Any] = Future()
        # What the caller computes between two calls counts; what it waits for does not, such as
        # the reader of a pipe.
        started = time.monotonic() - max(time.thread_time() - self._paused, 0.0)
        self._jobs.put((coming, lambda: function(*arguments)))
        try:
            return self._result(coming, started)
        except KeyboardInterrupt:
            self._stop(coming)
            self.close()
            raise
        finally:
            if self._left is not None:
                self._left = max(self._left - (time.monotonic() - started), 0.0)
            self._paused = time.thread_time()

    def close(self) -> None:
        """End the thread and the cursor."""
        self._jobs.put(None)
        if not self.stuck:
            self._cursor.close()

    def _result(self, coming: Future[Any], started: float) -> Any:
        while True:
            self._look_at_memory(coming)
            left = None if self._left is None else self._left - (time.monotonic() - started)
            if left is not None and left <= 0 and not coming.done():
                self._stop(coming)
                raise QueryTimeoutError(
                    f"the query took longer than {self._limits.seconds:g} s and was stopped"
                    f"{self._limits.advice}"
                )
            look = None if self._most is None else _LOOK
            pauses = [pause for pause in (left, look) if pause is not None]
            try:
                return coming.result(min(pauses) if pauses else None)
            except FutureTimeoutError:
                if coming.done():  # at the last moment, or this error is the function's own
                    return coming.result()

    def _look_at_memory(self, coming: Future[Any]) -> None:
        if self._most is None or resident() <= self._most:
            return
        self._stop(coming)
        raise QueryError(
            f"the query and its rows need more memory than {self._limits.named}; select fewer rows "
            "or columns, or raise the memory limit"
        )

    def _stop(self, coming: Future[Any]) -> None:
        """Interrupt the engine until it has stopped; what does not stop is left behind."""
        until = time.monotonic() + GRACE
        try:
            # It forgets an interrupt that comes before it begins, as on a busy machine.
            while not coming.done() and time.monotonic() < until:
                self._cursor.interrupt()
                wait([coming], 0.05)
        finally:
            if not coming.done():
                self.stuck = True
                _LEFT.append(coming)
