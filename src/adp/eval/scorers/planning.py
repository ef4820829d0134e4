"""Which tools were chosen, in what order, and whether at the right time, as SAGE measures it.

The names of the tools, in the order in which the agent first called them, are a ranking; a final
answer that is a JSON list of names is one, too, when there is no call. The expected calls are what
is right; a task of SAGE's ``agent_benchmark`` says one thing, and is scored for that alone: which
tools fit (``tool_selection``), the plan (``task_planning``), or whether a tool is needed
(``timing_judgment``). After SAGE's metric registry:

- ``top_k_accuracy``: whether one of the first k is expected; ``precision_at_k``: how many of the
  first k are, over k or their number if that is less; ``recall_at_k``: how many of the expected
  tools are among the first k; ``mrr``: 1 / rank of the first that is expected, else 0;
- ``plan_exact``: whether the names called are the expected ones, in order (SAGE's
  ``plan_success_rate`` and ``sequence_match``); ``plan_partial``: share of the expected positions
  that agree (its partial success; over all steps together, ``plan_partial:steps``, its
  ``step_accuracy``); ``step_accuracy``: share of positions of the longer of both lists that agree;
  ``plan_similarity``: 2 * common / (called + expected), with the longest common subsequence, so
  that a step too many at the beginning does not shift all others;
- ``timing_correct``: whether the agent called a tool just when one is expected (SAGE's
  ``timing_accuracy``); a final answer that is an object with ``should_call_tool`` says it in words.
  The figures ``timing_precision``, ``timing_recall`` and ``timing_f1`` are about all runs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pydantic import Field

from adp.core.json_values import json_or_none
from adp.eval.metrics import evidence_figure
from adp.eval.scorer import Figure, Item, Score, Scored, ScorerKind
from adp.eval.scorers.base import PerTrajectory, unscored
from adp.rollouts.benchmark_tasks import tool_truth
from adp.rollouts.environment import Settings
from adp.rollouts.trajectory_reading import agent_calls, cut
from adp_schema.model import Trajectory

_SHOWN = 20
_LONGEST = 1_000
_NOTHING = "no call is expected"
_UNKNOWN = "the task does not say which calls are expected"
_OTHER = "the task is of the kind {}"


_PLANS = ("plan_exact", "plan_partial", "step_accuracy", "plan_similarity")


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
    version = "2"
    _ranked = ("top_k_accuracy", "precision_at_k", "recall_at_k", "mrr")
    metrics = (*_ranked, *_PLANS, "timing_correct")

    def __init__(self, settings: PlanningSettings) -> None:
        self.settings = settings

    def measure(self, item: Item) -> Sequence[Score]:
        """Score a trajectory that ran as it should."""
        truth = tool_truth(item.task)
        why = _UNKNOWN if truth.kind is None else _OTHER.format(truth.kind)
        plan = plan_of(item.trajectory)
        ranked = list(dict.fromkeys(plan))
        tools, wanted, due = truth.tools, truth.plan, truth.call_due
        called = called_in_words(item.trajectory)
        return [
            *(unscored(self._ranked, why) if tools is None else self._ranking(ranked, tools)),
            *(unscored(_PLANS, why) if wanted is None else _plan(plan, wanted)),
            *(unscored(["timing_correct"], why) if due is None
              else [_timing(bool(plan) if called is None else called, due)]),
        ]  # fmt: skip

    def _ranking(self, ranked: Sequence[str], tools: Sequence[str]) -> list[Score]:
        wanted = frozenset(tools)
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
            "plan_partial:steps": ("plan_partial", ("agreeing", "expected")),
            "timing_precision": ("timing_correct", ("right_calls", "calls")),
            "timing_recall": ("timing_correct", ("right_calls", "due")),
            "timing_f1": ("timing_correct", ("twice_right_calls", "calls_and_due")),
        }
        for name, (metric, keys) in parts.items():
            figures.append(evidence_figure(rows, metric, keys, name, self.intervals))
        return figures


def plan_of(trajectory: Trajectory) -> list[str]:
    """The plan of a run: names of the tools that it called, else those that its answer lists."""
    return [call.name for call in agent_calls(trajectory)] or _listed(trajectory)


def _plan(plan: Sequence[str], wanted: Sequence[str]) -> list[Score]:
    longest = max(len(plan), len(wanted))
    agreeing = sum(result == other for result, other in zip(plan, wanted, strict=False))
    evidence = {
        "called": [cut(name, 60) for name in plan[:_SHOWN]],
        "expected": [cut(name, 60) for name in wanted[:_SHOWN]],
    }
    exact = Score("plan_exact", float(list(plan) == list(wanted)), evidence=evidence)
    if not longest:
        return [exact, *unscored(_PLANS[1:], "no call is expected and none was made")]
    parts = {"agreeing": agreeing, "expected": len(wanted)}
    partial = exact.value or agreeing / len(wanted) if wanted else None
    steps = {"agreeing": agreeing, "steps": longest}
    return [
        exact,
        Score("plan_partial", partial, None if wanted else _NOTHING, parts),
        Score("step_accuracy", agreeing / longest, evidence=steps),
        Score("plan_similarity", plan_similarity(plan, wanted)),
    ]


def plan_similarity(plan: Sequence[str], wanted: Sequence[str]) -> float:
    """2 * common / (steps of both plans), by their longest common subsequence.

    Of plans of more than 1,000 steps the first 1,000 are compared: the time is their product.

    Args:
        plan: the tools of a plan, in order.
        wanted: those of the right one. Two empty plans are alike.
    """
    first, second = plan[:_LONGEST], wanted[:_LONGEST]
    if not first and not second:
        return 1.0
    lengths = [0] * (len(second) + 1)
    for name in first:
        before = 0
        for place, other in enumerate(second, 1):
            above = lengths[place]
            lengths[place] = before + 1 if name == other else max(above, lengths[place - 1])
            before = above
    return 2 * lengths[-1] / (len(first) + len(second))


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


def called_in_words(trajectory: Trajectory) -> bool | None:
    """What a final answer like ``{"should_call_tool": false}`` says; None where it says nothing."""
    value = json_or_none(trajectory.final_answer)
    called = value.get("should_call_tool") if isinstance(value, Mapping) else None
    return called if isinstance(called, bool) else None


KIND = ScorerKind(
    name="planning",
    about="Choice, order and timing of tools in SAGE's manner: top-k accuracy, precision and "
    "recall at k, MRR, exact and similar plans, steps in place, timing F1.",
    settings=PlanningSettings,
    make=PlanningScorer,
)
