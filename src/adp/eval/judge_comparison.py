"""Two stores of runs at the same tasks, compared run by run by a judge, in both orders."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from adp.core.progress import Progress, Silent
from adp.eval.judge_agreement import drawn_figure, named_figure
from adp.eval.metrics.agreement import spearman
from adp.eval.metrics.intervals import DEFAULT, mean_ends
from adp.eval.scorer import Figure
from adp.rollouts.collecting.attempts import is_attempt, superseded, tries_of
from adp.rollouts.judging.judge import Judge, JudgeCosts, check_called
from adp.rollouts.judging.many import in_order
from adp.rollouts.judging.pairwise import POINTS, RunComparison, compare
from adp.rollouts.judging.transcript import Reads, transcript
from adp.rollouts.trajectory_reading import broken
from adp.stores.tasks import TaskIndex, TaskKey, same_tasks
from adp_schema.errors import UsageError
from adp_schema.model import Trajectory
from adp_schema.store import Store


@dataclass(frozen=True)
class CompareOptions:
    """How runs are compared.

    Attributes:
        criterion: what is asked in the place of the usual words.
        reads: what the judge sees.
        max_per_task: comparisons of one task at most.
        concurrency: comparisons at once.
        out: file for the comparisons, JSON lines; None keeps none.
    """

    criterion: str | None = None
    reads: Reads = "run"
    max_per_task: int = 1
    concurrency: int = 16
    out: Path | None = None


@dataclass(frozen=True)
class CompareReport:
    """What came of it.

    Attributes:
        first: the first store.
        second: the second store.
        counts: comparisons by what came of them: first, second, tie, inconsistent, unscored.
        reasons: why comparisons are unscored.
        figures: win rate of the second store, share of consistent comparisons, share of decided
            judgements that name the run shown first, correlation of points with length.
        left_out: runs without a partner, or that broke without the agent's fault.
        costs: what was asked, by judge.
    """

    first: str
    second: str
    counts: dict[str, int]
    reasons: dict[str, int]
    figures: tuple[Figure, ...]
    left_out: int
    costs: dict[str, JudgeCosts]


@dataclass(frozen=True)
class _Pair:
    task: TaskKey
    names: tuple[str, str]
    texts: tuple[str, str]


def compare_stores(
    first: Store,
    second: Store,
    judge: Judge,
    options: CompareOptions | None = None,
    progress: Progress | None = None,
) -> CompareReport:
    """Compare the runs of two stores at each task that both have.

    The first attempt of one is compared with the first of the other, and so on.

    Args:
        first: a store.
        second: another one.
        judge: the judge.
        options: how runs are compared.
        progress: told how many comparisons are done.

    Raises:
        UsageError: the stores have no task in common, or the judge cannot be called like this.
    """
    options, progress = options or CompareOptions(), progress or Silent()
    pairs, left_out = _pairs(first, second, options)
    if not pairs:
        raise UsageError(
            f"{first.root} and {second.root} have no task in common of which both have a run"
        )
    progress.total(len(pairs))
    judge.limit(options.concurrency)

    async def work(pair: _Pair) -> tuple[_Pair, RunComparison]:
        return pair, await compare(judge, *pair.texts, options.criterion)

    done = []
    try:
        for pair, result in in_order(work, pairs, options.concurrency):
            check_called(judge, result.judgements)
            done.append((pair, result))
            progress.advance(1)
    finally:
        judge.close()
    if options.out is not None:
        lines = [json.dumps(_facts(*item), ensure_ascii=False) + "\n" for item in done]
        options.out.write_text("".join(lines), encoding="utf-8")
    return CompareReport(
        first.root,
        second.root,
        dict(Counter(result.winner or "unscored" for _, result in done)),
        dict(Counter(result.reason for _, result in done if result.reason is not None)),
        tuple(_figures(done)),
        left_out,
        judge.costs,
    )


def _pairs(first: Store, second: Store, options: CompareOptions) -> tuple[list[_Pair], int]:
    sides = [_runs(store, options) for store in (first, second)]
    same = same_tasks(sides[0], sides[1])
    pairs = []
    for other, name in same.items():
        runs_of_both = zip(sides[0].get(name, []), sides[1].get(other, []), strict=False)
        for ours, theirs in islice(runs_of_both, options.max_per_task):
            pairs.append(_Pair(name, (ours[0], theirs[0]), (ours[1], theirs[1])))
    count = sum(len(listed) for side in sides for listed in side.values())
    return pairs, count - 2 * len(pairs)


def _runs(store: Store, options: CompareOptions) -> dict[TaskKey, list[tuple[str, str]]]:
    """Id and text of the runs at each task, in the order of the store."""
    tasks, again = TaskIndex(store), superseded(tries_of(store))
    runs: dict[TaskKey, list[tuple[str, str]]] = {}
    for trajectory in _attempts(store):
        key = tasks.key(trajectory)
        name = str(trajectory.trajectory_id)
        if key is not None and name not in again and broken(trajectory) is None:
            text = transcript(trajectory, tasks.of(trajectory), options.reads)
            runs.setdefault(key, []).append((name, text))
    return runs


def _attempts(store: Store) -> Iterator[Trajectory]:
    for trajectory in store.trajectories():
        if trajectory.parent_id is None:
            yield trajectory
        elif is_attempt(trajectory):
            yield store.resolve(trajectory)


def _facts(pair: _Pair, result: RunComparison) -> dict[str, Any]:
    return {
        "task_id": pair.task.task_id,
        "first": pair.names[0],
        "second": pair.names[1],
        "winner": result.winner,
        "reason": result.reason,
        "first_shown_first": [item.kept() for item in result.forward],
        "second_shown_first": [item.kept() for item in result.backward],
    }


def _figures(done: Sequence[tuple[_Pair, RunComparison]]) -> list[Figure]:
    scored = [(pair, result.winner) for pair, result in done if result.winner is not None]
    tasks = [pair.task for pair, _ in scored]
    points = [1 - POINTS[winner] for _, winner in scored]
    steady = [float(winner != "inconsistent") for _, winner in scored]
    longer = np.array([len(pair.texts[1]) - len(pair.texts[0]) for pair, _ in scored], float)
    values = np.array(points, float)
    places = [
        (pair.task, float(label == "first"))
        for pair, result in done
        for label in result.places.elements()
        if label != "tie"
    ]
    return [
        _share("win_rate", points, tasks, len(done)),
        _share("consistent", steady, tasks, len(done)),
        _share("shown_first_wins", [won for _, won in places], [task for task, _ in places], 0),
        drawn_figure("length_with_win", lambda at: spearman(longer[at], values[at]), tasks),
    ]


def _share(name: str, values: Sequence[float], tasks: Sequence[Any], total: int) -> Figure:
    mean = sum(values) / len(values) if values else None
    return named_figure(
        name, mean, mean_ends(values, tasks, DEFAULT), tasks, max(0, total - len(values))
    )
