"""A verdict about each run."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import polars as pl

from adp.curation.op import OpResult
from adp.curation.pool import Pool
from adp.rollouts.judging.judge import Judge, Judgement, check_called
from adp.rollouts.judging.many import in_order
from adp.rollouts.judging.rulings import Ruling, combined
from adp.rollouts.judging.settings import RubricSettings
from adp.rollouts.judging.transcript import Reads, transcript
from adp.rollouts.trajectory_reading import broken
from adp.stores.tasks import task_index

_KINDS = {
    "seq": pl.Int64,
    "judge_value": pl.Float64,
    "judge_verdict": pl.String,
    "judge_success": pl.Boolean,
    "judge_state": pl.String,
    "judge_agreement": pl.Float64,
    "judge_reasoning": pl.String,
    "judge_verdicts": pl.String,
}
EVENTS = {
    "seq": pl.Int64,
    "step": pl.Int32,
    "verdict": pl.String,
    "reason": pl.String,
    "evidence": pl.String,
}
"""Columns of the events of the op."""

Transcript = tuple[int, str, str | None]
"""``seq`` of a run, the run as text, and what broke it without the agent's fault."""


def transcripts(pool: Pool, reads: Reads) -> Iterator[Transcript]:
    """The runs as a judge reads them, in order."""
    stores = {source.store.root: source.store for source in pool.inputs}
    for partition in pool.partitions:
        tasks = task_index(stores[partition.root])
        for seq, trajectory in partition.trajectories():
            text = transcript(trajectory, tasks.of(trajectory), reads)
            yield seq, text, broken(trajectory)


def judged_runs(pool: Pool, judge: Judge, options: RubricSettings, concurrency: int) -> OpResult:
    """Ask about each run.

    Args:
        pool: the runs.
        judge: the judge.
        options: the rubric.
        concurrency: runs that are asked about at once.

    Raises:
        UsageError: the judge cannot be called like this.
    """
    rubric = options.chosen_rubric
    pool.progress.total(len(pool))

    async def work(given: Transcript) -> tuple[int, Ruling, list[Judgement]]:
        seq, text, fault = given
        if fault is not None:
            return seq, Ruling("unscored", reason=fault), []
        judgements = await judge.judgements(rubric.question(text, options.criterion))
        return seq, combined(judgements, rubric.labels, options.combine), judgements

    rows: list[dict[str, Any]] = []
    events: list[dict[str, Any]] = []
    totals = VerdictTotals()
    best = rubric.labels[rubric.success]
    for seq, ruling, judgements in in_order(work, transcripts(pool, options.reads), concurrency):
        check_called(judge, judgements)
        totals.add(judgements)
        verdicts = verdicts_text(judgements)
        value, label = ruling.value, ruling.label
        rows.append(
            {
                "seq": seq,
                "judge_value": value,
                "judge_verdict": label,
                "judge_success": None if value is None else value == best,
                "judge_state": ruling.state,
                "judge_agreement": ruling.agreement,
                "judge_reasoning": _reasoning(judgements, label) if value is not None else None,
                "judge_verdicts": verdicts if judgements else None,
            }
        )
        if value is None:
            reason = "the votes are split" if ruling.state == "tie" else ruling.reason
            events.append(unscored_event(seq, reason or "no reason is given", verdicts))
        pool.progress.advance(1)
    frame = pl.DataFrame(rows, schema=_KINDS).sort("seq")
    return OpResult(
        columns=frame,
        events=pl.DataFrame(events, schema=EVENTS).sort("seq"),
        summary={**_counts(frame), "judges": totals.facts()},
        lines=[_line(frame), *totals.lines()],
    )


def unscored_event(seq: int, reason: str, evidence: str) -> dict[str, Any]:
    """A row of the events: a run that could not be judged."""
    return {
        "seq": seq, "step": None, "verdict": "unscored", "reason": reason, "evidence": evidence,
    }  # fmt: skip


def verdicts_text(judgements: Sequence[Judgement]) -> str:
    """All verdicts as JSON text."""
    return json.dumps([item.kept() for item in judgements], ensure_ascii=False)


class VerdictTotals:
    """What verdicts took, whether they were asked for now or kept from before."""

    def __init__(self) -> None:
        self._sums: dict[str, Counter[str]] = {}
        self._costs: dict[str, float] = {}

    def add(self, judgements: Sequence[Judgement]) -> None:
        """Count some verdicts."""
        for item in judgements:
            sums = self._sums.setdefault(item.judge, Counter())
            sums["verdicts"] += item.label is not None
            sums["unread"] += item.label is None
            sums["tokens_in"] += item.tokens_in or 0
            sums["tokens_out"] += item.tokens_out or 0
            if item.cost_usd is not None:
                self._costs[item.judge] = self._costs.get(item.judge, 0.0) + item.cost_usd

    def facts(self) -> dict[str, Any]:
        """The sums of each judge, for the report."""
        return {
            name: {**sums, "cost_usd": round(self._costs[name], 6) if name in self._costs else None}
            for name, sums in sorted(self._sums.items())
        }

    def lines(self) -> list[str]:
        """The sums of each judge, for people."""
        return [
            f"{name}: {sums['verdicts']:,} verdicts, {sums['unread']:,} not to be had, "
            f"{sums['tokens_in']:,} tokens in, {sums['tokens_out']:,} out"
            + (f", ${self._costs[name]:,.4f}" if name in self._costs else "")
            for name, sums in sorted(self._sums.items())
        ]


def _reasoning(judgements: Sequence[Judgement], label: str | None) -> str | None:
    """What the first judge wrote who gave the verdict, or any verdict where the mean is none."""
    given = [item for item in judgements if item.label is not None]
    return next((item.text for item in given if label in (None, item.label)), None)


def _counts(frame: pl.DataFrame) -> dict[str, Any]:
    states = dict.fromkeys(("scored", "tie", "unscored"), 0)
    states |= dict(frame["judge_state"].value_counts().iter_rows())
    verdicts = frame["judge_verdict"].drop_nulls().value_counts().sort("judge_verdict")
    mean = frame["judge_value"].mean()
    value = round(mean, 6) if isinstance(mean, float) else None
    return {**states, "verdicts": dict(verdicts.iter_rows()), "mean": value}


def _line(frame: pl.DataFrame) -> str:
    counts = _counts(frame)
    given = ", ".join(f"{label} {number:,}" for label, number in counts["verdicts"].items())
    return (
        f"judged {counts['scored']:,} of {frame.height:,} trajectories"
        + (f": {given}" if given else "")
        + f"; {counts['tie']:,} tied, {counts['unscored']:,} unscored"
    )
