"""SAGE's `AgentTrainingEvaluator`: selection, plan, steps, timing, end to end, and their mean.

It judges one text: what the agent wrote, with its calls in tags. The right tools are the task's
``target_tools``, else its expected calls or the tools that fit.

- ``tool_selection_accuracy``: F1 of the tools named and the right ones; where there are none, 1,
  or 0.5 when tools are named all the same;
- ``plan_success_rate``: 0 without marks of a plan ("step 1", "first ... then", "1. ... 2. ...",
  "plan:"); with them 0.5 and as much for the right tools, or 0.8 where there are none;
- ``step_efficiency``: 1 up to the optimal number of tools, 0.1 less for each more; 0 without any;
- ``timing_precision``: 1 less the share of repeats. SAGE takes repeats out before it looks for
  them, so it is always 1 there; ``repeats=true`` counts the calls as they were made;
- ``end_to_end_success``: share of the calls that succeeded, where results are recorded; else 0.8
  of ``plan_success_rate``, as where SAGE has no executor.

``agent_training`` is 0.30, 0.25, 0.15, 0.10 and 0.20 of these.
"""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import Field

from adp.eval.scorer import Item, Score, ScorerKind
from adp.eval.scorers.base import PerTrajectory, scored
from adp.eval.scorers.execution import failed, marked
from adp.eval.scorers.sage_text import (
    plan_success,
    response_text,
    tool_selection_f1,
    tools_in_text,
)
from adp.rollouts.benchmark_tasks import extra_of, target_tools, truth_of
from adp.rollouts.environment import Settings
from adp.rollouts.trajectory_reading import SHOWN, Made, agent_calls, cut
from adp_schema.model import Task

WEIGHTS = {
    "tool_selection_accuracy": 0.30,
    "plan_success_rate": 0.25,
    "step_efficiency": 0.15,
    "timing_precision": 0.10,
    "end_to_end_success": 0.20,
}

_OPTIMAL = 3


class AgentTrainingSettings(Settings):
    """Settings of the scorer ``agent_training``."""

    optimal: int | None = Field(default=None, ge=1)
    """Tools that an optimal run names; null: as many as the task's expected_steps, else 3."""
    repeats: bool = False
    """Count a tool as often as it was called; SAGE counts each once."""


class AgentTrainingScorer(PerTrajectory):
    """Scores a run as SAGE evaluates training.

    Args:
        settings: its settings.
    """

    name = "agent_training"
    metrics = ("agent_training", *WEIGHTS)

    def __init__(self, settings: AgentTrainingSettings | None = None) -> None:
        self.settings = settings or AgentTrainingSettings()

    def measure(self, item: Item) -> Sequence[Score]:
        """Score a trajectory that ran as it should."""
        calls = agent_calls(item.trajectory)
        text = response_text(item.trajectory)
        named, wanted = tools_in_text(text), target_tools(item.task)
        if self.settings.repeats:
            named = [call.name for call in calls] or named
        plan = plan_success(text, named, wanted)
        results = {
            "tool_selection_accuracy": tool_selection_f1(named, wanted, 0.5),
            "plan_success_rate": plan,
            "step_efficiency": _efficiency(len(named), self._optimal(item.task)),
            "timing_precision": len(set(named)) / len(named) if named else 1.0,
            "end_to_end_success": _executed(calls, plan * 0.8),
        }
        total = sum(weight * results[name] for name, weight in WEIGHTS.items())
        evidence = {
            "named": [cut(name, 60) for name in named[:SHOWN]],
            "right": [cut(name, 60) for name in wanted[:SHOWN]],
        }
        more = [scored(name, value) for name, value in results.items()]
        return [scored("agent_training", total, evidence), *more]

    def _optimal(self, task: Task | None) -> int:
        steps = truth_of(task).get("expected_steps") or extra_of(task).get("expected_steps")
        known = len(steps) if isinstance(steps, list) and steps else _OPTIMAL
        return self.settings.optimal or known


def _efficiency(steps: int, optimal: int) -> float:
    if not steps:
        return 0.0
    return 1.0 if steps <= optimal else max(0.0, 1.0 - 0.1 * (steps - optimal))


def _executed(calls: Sequence[Made], otherwise: float) -> float:
    answered = [call for call in calls if call.results]
    if not answered:
        return otherwise
    return sum(not failed(call, marked(call)) for call in answered) / len(answered)


KIND = ScorerKind(
    name="agent_training",
    about="SAGE's evaluation of training: tool selection, plan, steps, timing, end to end, and "
    "their weighted mean (AgentTrainingEvaluator).",
    settings=AgentTrainingSettings,
    make=AgentTrainingScorer,
)
