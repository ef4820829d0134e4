"""Cutting a sequence into runs of neighbours: shards, partitions, row groups, commits."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from typing import Any, TypeVar

import numpy as np

Item = TypeVar("Item")


def count_one(_: Any) -> int:
    """What an item counts where the number of items has a limit."""
    return 1


def cut_runs(
    items: Iterable[Item],
    limits: Sequence[tuple[Callable[[Item], int], int]],
    kind: Callable[[Item], Hashable] = lambda _: None,
) -> Iterator[list[Item]]:
    """Cut a sequence into runs.

    A run ends before an item of another kind, and before one with which a sum would pass its
    limit. So only a run of one item may be above a limit.

    Args:
        items: the sequence.
        limits: what is summed up over a run, and the most that it may be.
        kind: what all items of a run have in common.
    """
    run: list[Item] = []
    sums = [0] * len(limits)
    for item in items:
        after = [total + size(item) for total, (size, _) in zip(sums, limits, strict=True)]
        full = any(total > most for total, (_, most) in zip(after, limits, strict=True))
        if run and (full or kind(item) != kind(run[-1])):
            yield run
            run, after = [], [size(item) for size, _ in limits]
        run.append(item)
        sums = after
    if run:
        yield run


def cut_places(
    limits: Sequence[tuple[np.ndarray[Any, Any], int]], kinds: Sequence[np.ndarray[Any, Any]] = ()
) -> list[tuple[int, int]]:
    """Cut a sequence that is held in columns into runs, as `cut_runs` does.

    Args:
        limits: what each item counts, and the most that the sum over a run may be.
        kinds: what all items of a run have in common, a column each.

    Returns:
        First place of each run, and the one behind its last.
    """
    count = len(limits[0][0])
    changes = [np.flatnonzero(kind[1:] != kind[:-1]) + 1 for kind in kinds]
    bounds = np.unique(np.concatenate([np.array([count]), *changes]))
    sums = [(np.cumsum(sizes, dtype=np.int64), most) for sizes, most in limits]
    runs = []
    start = 0
    while start < count:
        end = int(bounds[np.searchsorted(bounds, start, "right")])
        for total, most in sums:
            before = int(total[start - 1]) if start else 0
            end = min(end, int(np.searchsorted(total, before + most, "right")))
        end = max(end, start + 1)
        runs.append((start, end))
        start = end
    return runs
