"""Threads that never keep a command from ending."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from queue import SimpleQueue
from typing import Any, TypeVar

_T = TypeVar("_T")


class DaemonThreads(ThreadPoolExecutor):
    """As many threads as calls at once; none is waited for at the end.

    A tool that never returns cannot be stopped. The threads of `ThreadPoolExecutor` are joined when
    the interpreter ends, so with one such tool it never would.

    Args:
        name: how the names of the threads begin.
    """

    def __init__(self, name: str) -> None:
        super().__init__(1, thread_name_prefix=name)  # none of its own threads is ever begun
        self._name = name
        self._calls: SimpleQueue[tuple[Future[Any], Callable[[], Any]] | None] = SimpleQueue()
        self._idle = threading.Semaphore(0)
        self._lock = threading.Lock()
        self._running = 0

    @property
    def running(self) -> int:
        """Number of calls that have not returned."""
        with self._lock:
            return self._running

    def submit(self, fn: Callable[..., _T], /, *args: Any, **kwargs: Any) -> Future[_T]:
        """Call a function in a thread."""
        future: Future[_T] = Future()
        self._calls.put((future, lambda: fn(*args, **kwargs)))
        if not self._idle.acquire(blocking=False):
            threading.Thread(target=self._serve, name=self._name, daemon=True).start()
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Let the threads end that are idle; the others end with their calls or the process."""
        self._calls.put(None)

    def _serve(self) -> None:
        while (item := self._calls.get()) is not None:
            future, call = item
            if future.set_running_or_notify_cancel():
                self._count(1)
                try:
                    result = call()
                except BaseException as error:
                    self._count(-1)
                    future.set_exception(error)
                else:
                    self._count(-1)
                    future.set_result(result)
            del item, future, call
            self._idle.release()
        self._calls.put(None)

    def _count(self, change: int) -> None:
        with self._lock:
            self._running += change
