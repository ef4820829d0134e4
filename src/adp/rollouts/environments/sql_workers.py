"""Processes that answer the queries of agents, each one query at a time.

They are started when they are needed and kept for the next query. One that does not end in time, or
that has run out of memory, is replaced.
"""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from adp.rollouts.tools import ToolError
from adp.rollouts.turns import ErrorType
from adp_schema.errors import InputError

_MODULE = "adp.rollouts.environments.sql_worker"
_MOST = 4
_START = 60.0
"""Seconds that the start of a process may take."""
_LATE = "the query took longer than {seconds:g} s and was stopped"
_BROKEN = "the query needs more memory than {memory}, or breaks the engine; select less"
_LATEST = 10.0
"""Seconds past its time after which a process is stopped that should have stopped itself."""


@dataclass(frozen=True)
class QueryRequest:
    """A query, and how much of its answer is wanted.

    Attributes:
        query: the SQL text.
        rows: rows at most; one more comes when there are more.
        cell: characters of a value at most.
        seconds: how long it may take.
    """

    query: str
    rows: int
    cell: int
    seconds: float


class SqlWorkers:
    """Processes over the same tables. Any number of threads may ask.

    Args:
        views: names of tables and their Parquet files.
        memory: memory that a query may use, such as ``"512MB"``.
    """

    def __init__(self, views: Sequence[tuple[str, str]], memory: str) -> None:
        self._views = list(views)
        self._memory = memory
        self._owner = os.getpid()
        self._idle: list[_Worker] = []
        self._places = threading.BoundedSemaphore(min(_MOST, os.cpu_count() or 1))

    def start(self) -> None:
        """Start the first process, which reads the tables.

        Raises:
            InputError: a table cannot be read, or the memory is no size.
        """
        self._idle.append(_Worker(self._views, self._memory))

    def ask(self, question: QueryRequest) -> dict[str, Any]:
        """The ``columns`` and ``rows`` of an answer.

        Raises:
            ToolError: the query is not allowed, not valid, fails, takes too long, or needs too
                much memory.
        """
        with self._places:
            worker = self._taken()
            answer: dict[str, Any] | None = None
            try:
                answer = worker.ask(question)
            finally:
                if answer is None or answer["last"]:
                    worker.close()
                else:
                    self._idle.append(worker)
        if answer is None:
            late = worker.seconds >= question.seconds
            text = _LATE if late else _BROKEN
            message = text.format(seconds=question.seconds, memory=self._memory)
            raise ToolError(message, ErrorType.TIMEOUT if late else ErrorType.EXECUTION)
        if "fault" in answer:
            raise ToolError(
                answer["fault"], ErrorType.TIMEOUT if answer["late"] else ErrorType.EXECUTION
            )
        return answer

    def _taken(self) -> _Worker:
        if self._owner != os.getpid():
            # A copy of this process must not speak into the pipes of the first one.
            self._owner, self._idle = os.getpid(), []
        while self._idle:
            with suppress(IndexError):
                worker = self._idle.pop()
                if worker.lives():
                    return worker
                worker.close()
        try:
            return _Worker(self._views, self._memory)
        except InputError as error:
            raise ToolError(str(error)) from None

    def close(self) -> None:
        """End the processes that are idle; others end with their query."""
        while self._idle:
            self._idle.pop().close()


class _Worker:
    """One process.

    Attributes:
        seconds: how long the last query took.
    """

    def __init__(self, views: Sequence[tuple[str, str]], memory: str) -> None:
        self.seconds = 0.0
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", _MODULE],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=_environment(),
            start_new_session=True,
        )
        answer = self._exchange({"views": views, "memory": memory}, _START)
        if answer is None or "fault" in answer:
            self.close()
            why = "its process does not start" if answer is None else answer["fault"]
            raise InputError(f"the tables cannot be asked: {why}")

    def lives(self) -> bool:
        """Whether it can be asked."""
        return self._process.poll() is None

    def ask(self, question: QueryRequest) -> dict[str, Any] | None:
        """The answer; None when the process has ended without one."""
        started = time.monotonic()
        answer = self._exchange(vars(question), question.seconds + _LATEST)
        self.seconds = time.monotonic() - started
        return answer

    def _exchange(self, fields: dict[str, Any], seconds: float) -> dict[str, Any] | None:
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None
        assert stdout is not None
        deadline = time.monotonic() + seconds
        data = bytearray()
        try:
            stdin.write(json.dumps(fields).encode("ascii") + b"\n")
            stdin.flush()
        except BrokenPipeError:
            return None
        waiting = select.poll()
        waiting.register(stdout, select.POLLIN)
        while not data.endswith(b"\n"):
            left = deadline - time.monotonic()
            if left <= 0 or not waiting.poll(left * 1000):
                return None
            chunk = os.read(stdout.fileno(), 1 << 20)
            if not chunk:
                return None
            data += chunk
        value: dict[str, Any] = json.loads(data)
        return value

    def close(self) -> None:
        """End it."""
        self._process.kill()
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                with suppress(BrokenPipeError):
                    stream.close()


def _environment() -> dict[str, str]:
    """What a process needs to find this package; nothing else of the environment."""
    kept = ("PATH", "HOME", "LANG", "LD_LIBRARY_PATH", "VIRTUAL_ENV", "TMPDIR")
    return {
        **{name: os.environ[name] for name in kept if name in os.environ},
        "PYTHONPATH": os.pathsep.join(path or str(os.getcwd()) for path in sys.path),  # noqa: PTH109
        "PYTHONDONTWRITEBYTECODE": "1",
        # Addresses are limited, so they are not to be taken in advance.
        "ARROW_DEFAULT_MEMORY_POOL": "system",
        "MALLOC_ARENA_MAX": "2",
    }
