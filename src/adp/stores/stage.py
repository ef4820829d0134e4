"""A stage: work on each part of a store (a shard or a partition), its results put in order.

    results = run_stage(parts, work, workers, report)

This page is all that the rest knows of how work is shared out:

- *Parts* follow from the inputs alone, never from who does them. Each has a number and a size. They
  may be a list, or come one after another: the next is asked for when there is room for it.
- *Work* is a function of a module. It depends on nothing but its part, and returns what can be
  sent between processes, or a note of a file that it wrote under the part's number.
- *Combining* is in order: the results of `run_stage` stand in the order of the parts, whatever came
  first. So the bytes that come out do not depend on the executor or on the number of its workers.
- *Resuming*: who calls notes what is done (`done`), and gives it to the next call (`known`).

An `Executor` does the work. The one that comes with the package spawns processes of this machine;
another one takes its place by `use_executor`, such as one that sends parts to a cluster.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from types import MappingProxyType
from typing import Protocol, TypeVar

from adp.core.progress import Progress
from adp.stores.workers import Processes

SMALL = 16 << 20
"""Stages with less to read than this, in bytes, are done here: to share out would take longer."""


class StagePart(Protocol):
    """A shard or a partition to work on."""

    @property
    def index(self) -> int:
        """Its number; results are put in this order."""
        ...

    @property
    def size(self) -> int:
        """Bytes to read."""
        ...


AnyPart = TypeVar("AnyPart", bound=StagePart)
Made = TypeVar("Made")


class Executor(Protocol):
    """Does the work of stages."""

    def run(
        self, work: Callable[[AnyPart], Made], parts: Iterable[AnyPart], workers: int | None
    ) -> Iterator[tuple[AnyPart, Made]]:
        """Do the work on each part; what is done first comes first.

        What the work raises is raised as it is, and ends the other parts that are at work.

        Args:
            work: a function of a module.
            parts: what it is called with. They are asked for in the thread of the caller, and
                only a few more than there are workers.
            workers: how many may work at the same time; 1 does all in this process, None leaves
                it to the executor.
        """
        ...

    def kept(self) -> AbstractContextManager[None]:
        """Keep what was started for the next stages, until the block ends."""
        ...


_PROCESSES = Processes()
_executor: ContextVar[Executor | None] = ContextVar("executor", default=None)


@contextmanager
def use_executor(executor: Executor) -> Iterator[None]:
    """Let another executor do the stages of this block."""
    token = _executor.set(executor)
    try:
        yield
    finally:
        _executor.reset(token)


def keep_workers() -> AbstractContextManager[None]:
    """Keep the workers of one stage for the next ones, until the block ends."""
    return (_executor.get() or _PROCESSES).kept()


def run_stage(
    parts: Iterable[AnyPart],
    work: Callable[[AnyPart], Made],
    workers: int | None,
    report: Progress,
    *,
    total: int | None = None,
    known: Mapping[int, Made] = MappingProxyType({}),
    done: Callable[[AnyPart, Made], None] | None = None,
) -> list[Made]:
    """Do a stage.

    Args:
        parts: what is to be done; when it is no list, it is gone through once, as work ends.
        work: does one part.
        workers: how many may work at the same time; None takes one a core.
        report: told how far it is, in bytes.
        total: bytes of all parts; None adds them up, and does not know it of parts in no list.
        known: results of the parts that were done before, by their numbers.
        done: called here after each part, in the order in which they come.

    Returns:
        The results, in the order of the parts.
    """
    if total is None and isinstance(parts, Sequence):
        total = sum(part.size for part in parts)
    if total is not None:
        report.total(total)
        workers = workers if total > SMALL else 1
    results, order = dict(known), list[int]()

    def todo() -> Iterator[AnyPart]:
        for part in parts:
            order.append(part.index)
            if part.index in known:
                report.advance(part.size)
            else:
                yield part

    executor = _executor.get() or _PROCESSES
    for part, made in executor.run(work, todo(), workers):
        if done is not None:
            done(part, made)
        results[part.index] = made
        report.advance(part.size)
    return [results[index] for index in order]
