"""Processes that work for us: they are spawned, and end with the process that started them.

They are one executor of stages (`adp.stores.stage`).
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from concurrent.futures import ProcessPoolExecutor

Given = TypeVar("Given")
Made = TypeVar("Made")

_kept: list[ProcessPoolExecutor | None] = []
"""Pools of the `shared` blocks that are open; None until the first work comes."""


@contextmanager
def shared() -> Iterator[None]:
    """Keep the processes of one stage for the next ones, until the block ends.

    Starting them costs half a second each. Within a block the number of workers must not change.
    """
    _kept.append(None)
    try:
        yield
    finally:
        pool = _kept.pop()
        if pool is not None:
            _end(pool)


class Processes:
    """The executor of stages that spawns processes of this machine."""

    kept = staticmethod(shared)

    def run(
        self, work: Callable[[Given], Made], parts: Sequence[Given], workers: int | None
    ) -> Iterator[tuple[Given, Made]]:
        """Do parts in this process, or in spawned ones; what is done first comes first.

        Args:
            work: does a part; a function of a module.
            parts: its arguments.
            workers: number of processes; None takes one a core.
        """
        most = workers or os.cpu_count() or 1
        if min(most, len(parts)) <= 1:
            for part in parts:
                yield part, work(part)
            return
        from concurrent.futures import as_completed

        keep = bool(_kept)
        pool = _kept[-1] if keep else None
        if pool is None:
            pool = _pool(most if keep else min(most, len(parts)))
            if keep:
                _kept[-1] = pool
        try:
            with _uninterrupted():
                futures = {pool.submit(work, part): part for part in parts}
            for future in as_completed(futures):
                yield futures[future], future.result()
        except BaseException:
            _end(pool)
            if keep:
                _kept[-1] = None
            raise
        if not keep:
            pool.shutdown()


def _pool(count: int) -> ProcessPoolExecutor:
    import multiprocessing
    from concurrent.futures import ProcessPoolExecutor

    context = multiprocessing.get_context("spawn")
    return ProcessPoolExecutor(count, mp_context=context, initializer=_begin_worker)


@contextmanager
def _uninterrupted() -> Iterator[None]:
    """Let the processes that are started never see Ctrl-C, which a terminal sends to all of them.

    They would show a traceback each, and the one that started them ends them anyway.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _end(pool: ProcessPoolExecutor) -> None:
    """End the processes of a pool in the middle of their work, and wait until they are gone.

    Who lets go of the lock of an output must have no worker left that writes to it.
    """
    workers = list((pool._processes or {}).values())
    pool.shutdown(wait=False, cancel_futures=True)
    for worker in workers:
        worker.kill()
    for worker in workers:
        worker.join()


def _begin_worker() -> None:
    """Prepare a worker. When its run is killed it ends too, or it would wait for ever."""
    from adp_schema.verification import hash_nothing

    hash_nothing()  # the process that it works for did
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    import multiprocessing

    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
