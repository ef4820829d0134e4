"""Comparisons of runs at one task, in both orders."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import polars as pl

from adp.curation.op import OpResult
from adp.curation.ops.judge.runs import (
    EVENTS,
    VerdictTotals,
    transcripts,
    unscored_event,
    verdicts_text,
)
from adp.curation.pool import Pool
from adp.rollouts.judging.judge import Judge, check_called
from adp.rollouts.judging.many import in_order
from adp.rollouts.judging.pairwise import POINTS, RunComparison, compare, pairs_of
from adp.rollouts.judging.settings import RubricSettings

_KINDS = {
    "seq": pl.Int64,
    "judge_win_rate": pl.Float64,
    "judge_comparisons": pl.Int64,
    "judge_inconsistent": pl.Int64,
}
ALONE = "no other run at its task"
NO_TASK = "its task is not known"


def compared_runs(
    pool: Pool, judge: Judge, options: RubricSettings, most: int | None, concurrency: int
) -> OpResult:
    """Compare runs at one task.

    Args:
        pool: the runs.
        judge: the judge.
        options: what the judge reads and is asked.
        most: comparisons of one task at most; None: all.
        concurrency: comparisons at once.

    Raises:
        UsageError: the judge cannot be called like this.
    """
    groups, events = _groups(pool)
    wanted = {seq for group in groups for seq in group}
    texts = {}
    for seq, text, fault in transcripts(pool, options.reads):
        if seq in wanted and fault is None:
            texts[seq] = text
        elif fault is not None:
            events.append(unscored_event(seq, fault, "{}"))
    groups = [[seq for seq in group if seq in texts] for group in groups]
    pairs = [
        (group[first], group[second])
        for group in groups
        for first, second in pairs_of(len(group), most)
    ]
    pool.progress.total(len(pairs))

    async def work(pair: tuple[int, int]) -> tuple[tuple[int, int], RunComparison]:
        first, second = (texts[seq] for seq in pair)
        return pair, await compare(judge, first, second, options.criterion)

    table = _Standings()
    totals = VerdictTotals()
    for pair, comparison in in_order(work, pairs, concurrency):
        check_called(judge, comparison.judgements)
        totals.add(comparison.judgements)
        table.add(pair, comparison)
        if comparison.winner is None:
            evidence = verdicts_text(comparison.judgements)
            reason = comparison.reason or "no reason is given"
            events += [unscored_event(seq, reason, evidence) for seq in pair]
        pool.progress.advance(1)
    frame = pl.DataFrame(table.rows(pool.members["seq"].to_list()), schema=_KINDS)
    return OpResult(
        columns=frame.sort("seq"),
        events=pl.DataFrame(events, schema=EVENTS).sort("seq", maintain_order=True),
        summary={**table.facts(), "judges": totals.facts()},
        lines=[table.line(), *totals.lines()],
    )


def _groups(pool: Pool) -> tuple[list[list[int]], list[dict[str, Any]]]:
    """The runs at each task with several; and the events of those that are alone."""
    members = pool.members.select("seq", "task").sort("seq")
    groups: dict[str | None, list[int]] = {}
    for seq, task in members.iter_rows():
        groups.setdefault(task, []).append(seq)
    unknown = groups.pop(None, [])
    several = [groups[task] for task in sorted(filter(None, groups)) if len(groups[task]) > 1]
    alone = [group[0] for group in groups.values() if len(group) == 1]
    reasons = [*((seq, NO_TASK) for seq in unknown), *((seq, ALONE) for seq in alone)]
    return several, [unscored_event(seq, reason, "{}") for seq, reason in reasons]


class _Standings:
    def __init__(self) -> None:
        self._points: Counter[int] = Counter()
        self._counts: Counter[int] = Counter()
        self._inconsistent: Counter[int] = Counter()
        self._winners: Counter[str] = Counter()
        self._places: Counter[str] = Counter()

    def add(self, pair: tuple[int, int], comparison: RunComparison) -> None:
        winner = comparison.winner
        self._places += comparison.places
        self._winners["unscored" if winner is None else winner] += 1
        if winner is None:
            return
        first = POINTS[winner]
        for seq, points in zip(pair, (first, 1 - first), strict=True):
            self._points[seq] += points  # type: ignore[assignment]
            self._counts[seq] += 1
            self._inconsistent[seq] += winner == "inconsistent"

    def rows(self, seqs: list[int]) -> Iterator[dict[str, Any]]:
        for seq in seqs:
            count = self._counts[seq]
            yield {
                "seq": seq,
                "judge_win_rate": self._points[seq] / count if count else None,
                "judge_comparisons": count,
                "judge_inconsistent": self._inconsistent[seq],
            }

    def facts(self) -> dict[str, Any]:
        counts = self._winners
        return {
            "comparisons": counts.total(),
            "decided": counts["first"] + counts["second"],
            **{name: counts[name] for name in ("tie", "inconsistent", "unscored")},
            "shown_first_won": self._places["first"],
            "shown_second_won": self._places["second"],
        }

    def line(self) -> str:
        facts = self.facts()
        return (
            f"{facts['comparisons']:,} comparisons in both orders: {facts['decided']:,} decided, "
            f"{facts['tie']:,} tied, {facts['inconsistent']:,} inconsistent, "
            f"{facts['unscored']:,} unscored"
        )
