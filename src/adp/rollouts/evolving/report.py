"""What a run of operators made, counted from its store."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from adp.rollouts.evolving.buffer import Buffer, BufferEntry
from adp.rollouts.evolving.entries import read_entries
from adp.rollouts.evolving.lineage import INITIAL, UNCHANGED
from adp_schema.errors import RolloutError
from adp_schema.store import Store


@dataclass
class OperatorCounts:
    """What became of an operator: ``tried = made + unchanged + given_up + broken``.

    Attributes:
        tried: how often it was let at a trajectory.
        made: trajectories that it made.
        correct: of these, right ones.
        unchanged: how often there was nothing to change.
        given_up: how often refiner or analyser gave no answer that can be used.
        broken: how often something else broke.
    """

    tried: int = 0
    made: int = 0
    correct: int = 0
    unchanged: int = 0
    given_up: int = 0
    broken: int = 0


@dataclass
class EvolveReport:
    """What a store of `adp.rollouts.evolving.evolve` holds.

    Attributes:
        asked: tasks.
        left: tasks whose rounds are not all done.
        skipped: why trajectories of the source were left out, and how many.
        initial: trajectories that the buffers begin with.
        operators: counts by operator.
        solved: tasks with a right trajectory after each round; the first one is before round 1.
        bad_answers: answers that could not be used: who gave them and why, and how many.
        unjudged: why it is not known of trajectories whether they are right, and of how many.
        failures: what broke: the commonest sentences, and how many.
        made_now: entries of this call.
        seconds: wall time of the call.
        sealed: whether the store was ended.
    """

    asked: int = 0
    left: int = 0
    skipped: Counter[str] = field(default_factory=Counter)
    initial: int = 0
    operators: dict[str, OperatorCounts] = field(default_factory=dict)
    solved: list[int] = field(default_factory=list)
    bad_answers: Counter[str] = field(default_factory=Counter)
    unjudged: Counter[str] = field(default_factory=Counter)
    failures: Counter[str] = field(default_factory=Counter)
    made_now: int = 0
    seconds: float = 0.0
    sealed: bool = False

    @property
    def failed(self) -> int:
        """Entries that broke, and that may be made again."""
        return sum(self.failures.values())

    def check(self) -> None:
        """Check that not everything broke.

        Raises:
            RolloutError: entries broke, and no operator made anything.
        """
        made = sum(counts.made + counts.unchanged for counts in self.operators.values())
        if self.failed and not made:
            why = self.failures.most_common(1)[0][0]
            raise RolloutError(
                f"no trajectory was made, {self.failed:,} broke ({why}); mend the cause, and go on "
                "with the same call and --retry-failed"
            )

    def plain(self) -> dict[str, Any]:
        """As JSON."""
        return {
            "tasks": self.asked,
            "left": self.left,
            "skipped": dict(self.skipped.most_common()),
            "initial": self.initial,
            "operators": {name: vars(counts) for name, counts in self.operators.items()},
            "solved_by_round": self.solved,
            "bad_answers": dict(self.bad_answers.most_common()),
            "not_judged": dict(self.unjudged.most_common()),
            "failures": dict(self.failures.most_common()),
            "made_now": self.made_now,
            "seconds": round(self.seconds, 3),
            "sealed": self.sealed,
        }


def make_report(store: Store, dataset: str) -> EvolveReport:
    """Count what a store holds."""
    report = EvolveReport()
    rounds: dict[int, int] = {}
    for entries in read_entries(store).values():
        buffer = Buffer()
        for entry, _ in entries:
            buffer.add(entry)
            for bad in entry.lineage.get("bad_answers") or ():
                report.bad_answers[f"{bad['who']}: {bad['reason']}"] += 1
        last = list(buffer.entries.values())
        for entry in last:
            _count(report, entry)
        first = min((entry.round for entry in last if entry.is_correct), default=None)
        if first is not None:
            rounds[first] = rounds.get(first, 0) + 1
        for entry in last:
            rounds.setdefault(entry.round, 0)
    for number in range(max(rounds, default=-1) + 1):
        report.solved.append((report.solved[-1] if report.solved else 0) + rounds.get(number, 0))
    return report


def _count(report: EvolveReport, entry: BufferEntry) -> None:
    name = str(entry.lineage.get("operator"))
    if entry.is_failed:
        report.failures[f"{name}: {entry.error_message or entry.error_type}"] += 1
    elif entry.is_member and entry.lineage.get("correct") is None:
        verdict = entry.lineage.get("verdict") or {}
        report.unjudged[str(verdict.get("why") or "nobody says whether it is right")] += 1
    if name == INITIAL:
        report.initial += 1
        return
    counts = report.operators.setdefault(name, OperatorCounts())
    counts.tried += 1
    counts.made += entry.is_member
    counts.correct += entry.is_member and entry.is_correct
    counts.broken += entry.is_failed
    unchanged = entry.stop_reason == UNCHANGED and not entry.is_member
    counts.unchanged += unchanged
    counts.given_up += not entry.is_member and not entry.is_failed and not unchanged
