"""Cutting a sequence into runs of neighbours: shards, partitions, row groups, commits."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from typing import Any, TypeVar

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
