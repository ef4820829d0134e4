"""Scoring several trajectories at once, for scorers that wait for an endpoint."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future

from adp.eval.scorer import Item
from adp.eval.scoring.choose import ChosenScorer
from adp.eval.scoring.rows import Given, score_one
from adp.rollouts.collecting.threads import DaemonThreads

Result = tuple[Item, Sequence[Given]]
"""A trajectory, and what each scorer gave for it."""


def scored_in_order(
    items: Iterable[Item], chosen: Sequence[ChosenScorer], concurrency: int
) -> Iterator[Result]:
    """Score trajectories, in their order whatever the concurrency.

    Scorers without an attribute ``asks`` that is true score one trajectory after the other.

    Args:
        items: the trajectories.
        chosen: the scorers.
        concurrency: trajectories that are waited for at once, and requests of one scorer at once.
    """
    asking = {result.key for result in chosen if getattr(result.scorer, "asks", False)}
    if not asking:
        for item in items:
            yield item, [score_one(result, item) for result in chosen]
        return
    for entry in chosen:
        if entry.key in asking:
            getattr(entry.scorer, "limit", _nothing)(concurrency)
    # Nobody waits for these threads when the run is stopped: a request may take minutes.
    threads = DaemonThreads("adp-scorer")
    begun: deque[tuple[Item, list[Given | Future[Given]]]] = deque()
    try:
        for item in items:
            begun.append(
                (item, [threads.submit(score_one, result, item) if result.key in asking
                        else score_one(result, item) for result in chosen])
            )  # fmt: skip
            if len(begun) >= concurrency:
                yield _ended(*begun.popleft())
        while begun:
            yield _ended(*begun.popleft())
        for entry in chosen:
            if entry.key in asking:
                getattr(entry.scorer, "close", _nothing)()
    finally:
        threads.shutdown(cancel_futures=True)


def _nothing(*_: object) -> None:
    """Stands in for a method that a scorer does not have."""


def _ended(item: Item, given: Sequence[Given | Future[Given]]) -> Result:
    return item, [entry.result() if isinstance(entry, Future) else entry for entry in given]
