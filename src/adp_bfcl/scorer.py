"""The scorer ``bfcl``: verdicts of BFCL's checkers about trajectories, official and fixed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from adp.eval.scorer import Figure, Item, Score, Scored, ScorerKind
from adp.rollouts.environment import Settings
from adp.rollouts.trajectory_reading import broken
from adp_bfcl.answers import given
from adp_bfcl.categories import SUPPLEMENTARY, SUPPORTED, in_short
from adp_bfcl.decoding import Mode
from adp_bfcl.entries import BfclEntry
from adp_bfcl.figures import aggregate, category_figures
from adp_bfcl.judge import judge_entry
from adp_bfcl.loader import by_id
from adp_bfcl.tasks import entry_from
from adp_bfcl.verdict import CHECKER_ERROR
from adp_schema.errors import AdpError

OFFICIAL, FIXED, ABSTAINED, MALFORMED, CALLED = (
    "bfcl",
    "bfcl_fixed",
    "bfcl_abstained",
    "bfcl_malformed",
    "bfcl_called",
)
"""Names of the metrics. The last three are 1 or 0 for entries of the (ir)relevance categories."""


class BfclScorerSettings(Settings):
    """Settings of the scorer ``bfcl``."""

    data: Path | None = None
    """Folder of questions, for trajectories whose task is not in the store; without it, those of
    installed bfcl-eval."""
    mode: Mode | None = None
    """fc or prompt: form of the answers; without it, what the trajectory says, else fc."""
    missing_as_zero: bool = False
    """Count categories that were not run as 0 in overall figures, as BFCL does."""


class BfclScorer:
    """Judges trajectories whose task is an entry of BFCL.

    Args:
        settings: its settings.
    """

    name = "bfcl"
    version = "1"

    def __init__(self, settings: BfclScorerSettings | None = None) -> None:
        self._settings = settings or BfclScorerSettings()

    def score(self, item: Item) -> Sequence[Score]:
        """The verdicts under both sets of rules, and the state of (ir)relevance."""
        trajectory = item.trajectory
        entry, reason = self._entry(item)
        if entry is None:
            return self._unscored(reason, {})
        evidence = {"id": entry.entry_id, "category": entry.category}
        failure = broken(trajectory)
        if failure is not None:
            return self._unscored(failure, evidence, infrastructure=True)
        if not entry.scorable:
            return self._unscored("the possible answers are not known", evidence)
        answer, mode, malformed = given(trajectory, multi_turn=entry.multi_turn)
        if answer is None:
            return self._unscored("the agent did not answer", evidence)
        try:
            return self._scores(entry, answer, self._settings.mode or mode or "fc", malformed)
        except AdpError as error:
            return self._unscored(str(error), evidence)

    def _scores(self, entry: BfclEntry, answer: Any, mode: Mode, malformed: bool) -> list[Score]:
        scores = []
        state = None
        for metric in (OFFICIAL, FIXED):
            verdict = judge_entry(
                entry,
                answer,
                mode=mode,
                rules="official" if metric == OFFICIAL else "fixed",
                malformed=malformed,
            )
            state = verdict.relevance
            evidence = {
                "id": entry.entry_id,
                "category": entry.category,
                "error_type": verdict.error_type,
                "detail": verdict.detail[:1000],
                "relevance": state,
            }
            value: float | None = float(verdict.valid)
            reason = None
            if verdict.error_type == CHECKER_ERROR:
                value, reason = None, "the official checker raises an exception here"
            scores.append(Score(metric, value, reason, evidence))
        if state is not None:
            evidence = {"id": entry.entry_id, "category": entry.category}
            states = {ABSTAINED: "abstained", MALFORMED: "malformed", CALLED: "called"}
            scores += [
                Score(metric, float(state == name), None, evidence)
                for metric, name in states.items()
            ]
        return scores

    def _entry(self, item: Item) -> tuple[BfclEntry | None, str]:
        entry = entry_from(item.task)
        if entry is not None:
            return entry, ""
        task_id = item.task.task_id if item.task else item.trajectory.task_id
        if not task_id:
            return None, "the trajectory has no task"
        try:
            entry = by_id(self._settings.data).get(task_id)
        except AdpError as error:
            return None, f"the task is not in the store, and {error}"
        return entry, "the task is no entry of BFCL"

    def _unscored(
        self, reason: str, evidence: dict[str, Any], *, infrastructure: bool = False
    ) -> list[Score]:
        return [
            Score(metric, None, reason, evidence, infrastructure) for metric in (OFFICIAL, FIXED)
        ]

    def figures(self, rows: Sequence[Scored]) -> Sequence[Figure]:
        """Accuracy of each category, and the figures of BFCL v4 under both sets of rules."""
        result = category_figures(rows)
        order = {name: number for number, name in enumerate((*SUPPORTED, *SUPPLEMENTARY))}
        figures: list[Figure] = []
        for metric in (OFFICIAL, FIXED, ABSTAINED, MALFORMED, CALLED):
            categories = sorted(
                (category for name, category in result if name == metric),
                key=lambda name: (order.get(name, len(order)), name),
            )
            parts = {category: result[metric, category] for category in categories}
            figures += parts.values()
            if metric in (OFFICIAL, FIXED) and parts:
                figures += self._overall(metric, parts)
        return figures

    def _overall(self, metric: str, parts: Mapping[str, Figure]) -> list[Figure]:
        accuracy = {name: part.value for name, part in parts.items() if part.value is not None}
        counts = {name: part.count for name, part in parts.items() if part.count}
        result = aggregate(accuracy, counts, missing_as_zero=self._settings.missing_as_zero)
        return [
            Figure(
                name=f"{metric}/v4 {name}",
                value=part.value,
                count=sum(counts.get(category, 0) for category in part.parts),
                tasks=sum(parts[item].tasks for item in part.parts if item in parts),
                reason=f"not run: {in_short(part.missing)}" if part.missing else None,
            )
            for name, part in result.items()
            if set(part.parts) & set(parts)
            # What was not run is said once, of the official figures.
            and (metric == OFFICIAL or part.value is not None)
        ]


KIND = ScorerKind(
    name="bfcl",
    about="Verdicts of BFCL's AST, multi-turn and relevance checkers, official and without their "
    "known faults (Patil et al., 2025).",
    settings=BfclScorerSettings,
    make=BfclScorer,
)
