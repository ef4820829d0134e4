"""Processes that work for us: they are spawned, and end with the process that started them.

They are one executor of stages (`adp.stores.stage`).
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, TypeVar

from adp.core.collector import collect_seldom
from adp.core.threads import let_idle_threads_sleep

if TYPE_CHECKING:
    from concurrent.futures import Future, ProcessPoolExecutor

Given = TypeVar("Given")
Made = TypeVar("Made")
Handle = TypeVar("Handle", bound=Hashable)

AHEAD = 2
"""Parts that wait for a worker, so that none is idle while the next part is made."""

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
        self,
        work: Callable[[Given], Made],
        parts: Iterable[Given],
        workers: int | None,
        folder: object = None,
    ) -> Iterator[tuple[Given, Made]]:
        """Do parts in this process, or in spawned ones; what is done first comes first.

        Args:
            work: does a part; a function of a module.
            parts: its arguments; the next ones are asked for when a process will soon be free.
            workers: number of processes; None takes one a core.
            folder: what the work writes to; all processes of a machine see the same.
        """
        most = workers or os.cpu_count() or 1
        coming = iter(parts)
        first = list(islice(coming, 2))
        if most == 1 or len(first) < 2:
            for part in chain(first, coming):
                yield part, work(part)
            return
        keep = bool(_kept)
        pool = _kept[-1] if keep else None
        if pool is None:
            pool = _pool(most)
            if keep:
                _kept[-1] = pool

        def begin(part: Given) -> Future[Made]:
            with _uninterrupted():  # a process is spawned when there are more parts than processes
                return pool.submit(work, part)

        try:
            for part, future in few_at_a_time(chain(first, coming), most + AHEAD, begin, _ended):
                yield part, future.result()
        except BaseException:
            _end(pool)
            if keep:
                _kept[-1] = None
            raise
        if not keep:
            pool.shutdown()


def few_at_a_time(
    parts: Iterable[Given],
    most: int,
    begin: Callable[[Given], Handle],
    ended: Callable[[Sequence[Handle]], Handle],
) -> Iterator[tuple[Given, Handle]]:
    """Begin work on parts while there is room, and give what has ended.

    Args:
        parts: what is to be done; no more of it is asked for than there is room.
        most: how many are at work or wait for a worker.
        begin: begins the work on a part.
        ended: waits until one of some works has ended, and returns it.
    """
    coming = iter(parts)
    at_work = {begin(part): part for part in islice(coming, most)}
    while at_work:
        handle = ended(list(at_work))
        done = at_work.pop(handle)
        at_work.update((begin(part), part) for part in islice(coming, 1))
        yield done, handle


def _ended(futures: Sequence[Future[Any]]) -> Future[Any]:
    from concurrent.futures import FIRST_COMPLETED, wait

    return next(iter(wait(futures, return_when=FIRST_COMPLETED).done))


def _pool(count: int) -> ProcessPoolExecutor:
    import multiprocessing
    from concurrent.futures import ProcessPoolExecutor

    let_idle_threads_sleep()
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

    collect_seldom()
    hash_nothing()  # the process that it works for did
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    import multiprocessing

    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
