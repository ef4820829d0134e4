"""Which tools were chosen, in what order, and whether at the right time, as SAGE measures it.

The names of the tools, in the order in which the agent first called them, are a ranking; a final
answer that is a JSON list of names is one, too, when there is no call. The expected calls are what
is right. After SAGE's metric registry (its agent benchmark of tool selection, planning, timing):

- ``top_k_accuracy``: whether one of the first k is expected; ``precision_at_k``: how many of the
  first k are, over k or their number if that is less; ``recall_at_k``: how many of the expected
  tools are among the first k; ``mrr``: 1 / rank of the first that is expected, else 0;
- ``plan_exact``: whether the names called are the expected ones, in order; ``step_accuracy``: share
  of positions of the longer of both lists that agree;
- ``timing_correct``: whether the agent called a tool just when one is expected. The figures
  ``timing_precision``, ``timing_recall`` and ``timing_f1`` are about all runs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import Field

from adp.core.json_values import json_or_none
from adp.eval.metrics import evidence_figure
from adp.eval.scorer import Figure, Item, Score, Scored, ScorerKind
from adp.eval.scorers.base import PerTrajectory, unscored
from adp.rollouts.environment import Settings
from adp.rollouts.task_references import expected_calls
from adp.rollouts.trajectory_reading import agent_calls, cut
from adp_schema.model import Trajectory

_SHOWN = 20
_NOTHING = "no call is expected"


class PlanningSettings(Settings):
    """Settings of the scorer ``planning``."""

    k: int = Field(default=5, ge=1)
    """How many of the first tools count."""


class PlanningScorer(PerTrajectory):
    """Scores the choice, the order and the timing of tools.

    Args:
        settings: its settings.
    """

    name = "planning"
    _ranked = ("top_k_accuracy", "precision_at_k", "recall_at_k", "mrr")
    metrics = (*_ranked, "plan_exact", "step_accuracy", "timing_correct")

    def __init__(self, settings: PlanningSettings) -> None:
        self.settings = settings

    def measure(self, item: Item) -> Sequence[Score]:
        """Score a trajectory that ran as it should."""
        expected = expected_calls(item.task)
        if expected is None:
            return unscored(self.metrics, "the task does not say which calls are expected")
        wanted = [call.name for call in expected]
        called = [call.name for call in agent_calls(item.trajectory)]
        plan = called or _listed(item.trajectory)
        evidence = {
            "called": [cut(name, 60) for name in plan[:_SHOWN]],
            "expected": [cut(name, 60) for name in wanted[:_SHOWN]],
        }
        return [
            *self._ranking(list(dict.fromkeys(plan)), frozenset(wanted)),
            *_plan(plan, wanted, evidence),
            _timing(bool(plan), bool(wanted)),
        ]

    def _ranking(self, ranked: Sequence[str], wanted: frozenset[str]) -> list[Score]:
        if not wanted:
            return unscored(self._ranked, _NOTHING)
        first = ranked[: self.settings.k]
        hits = sum(name in wanted for name in first)
        rank = next((place for place, name in enumerate(ranked, 1) if name in wanted), None)
        precision = hits / len(first) if first else None
        return [
            Score("top_k_accuracy", float(hits > 0), evidence={"k": self.settings.k}),
            Score("precision_at_k", precision, None if first else "the agent chose no tool"),
            Score("recall_at_k", hits / len(wanted)),
            Score("mrr", 0.0 if rank is None else 1 / rank),
        ]

    def figures(self, rows: Sequence[Scored]) -> Sequence[Figure]:
        """Means over trajectories, and the timing of all runs together."""
        figures = list(super().figures(rows))
        parts = {
            "step_accuracy:steps": ("step_accuracy", ("agreeing", "steps")),
            "timing_precision": ("timing_correct", ("right_calls", "calls")),
            "timing_recall": ("timing_correct", ("right_calls", "due")),
            "timing_f1": ("timing_correct", ("twice_right_calls", "calls_and_due")),
        }
        for name, (metric, keys) in parts.items():
            figures.append(evidence_figure(rows, metric, keys, name, self.intervals))
        return figures


def _plan(plan: Sequence[str], wanted: Sequence[str], evidence: Mapping[str, Any]) -> list[Score]:
    longest = max(len(plan), len(wanted))
    agreeing = sum(result == other for result, other in zip(plan, wanted, strict=False))
    exact = Score("plan_exact", float(list(plan) == list(wanted)), evidence=evidence)
    if not longest:
        return [exact, Score("step_accuracy", None, "no call is expected and none was made")]
    steps = {"agreeing": agreeing, "steps": longest}
    return [exact, Score("step_accuracy", agreeing / longest, evidence=steps)]


def _timing(called: bool, due: bool) -> Score:
    """Whether a tool was called just when one is due; the evidence holds the counts of the F1."""
    right = called and due
    counts = {"right_calls": int(right), "calls": int(called), "due": int(due)}
    more = {"twice_right_calls": 2 * int(right), "calls_and_due": int(called) + int(due)}
    return Score("timing_correct", float(called == due), evidence={**counts, **more})


def _listed(trajectory: Trajectory) -> list[str]:
    """Names in a final answer that is a JSON list of them."""
    value = json_or_none(trajectory.final_answer)
    if not isinstance(value, list):
        return []
    names = [item.get("name") if isinstance(item, dict) else item for item in value]
    return [name for name in names if isinstance(name, str)]


KIND = ScorerKind(
    name="planning",
    about="Choice, order and timing of tools in SAGE's manner: top-k accuracy, precision and "
    "recall at k, MRR, exact plans, steps in place, timing F1.",
    settings=PlanningSettings,
    make=PlanningScorer,
)
