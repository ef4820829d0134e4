"""SAGE's `PlanEvaluator`: whether a plan has a goal, names tools, and can be carried out.

The plan is a final answer that is a JSON list of objects; without one, the calls of the run: each
names its tool, and the first has a goal when the agent wrote something before it.

- ``has_clear_goal`` (0.3): the first step has a ``goal`` or an ``objective``;
- ``has_tool_assignments`` (0.4): a step has a ``tool`` or a ``tool_id``;
- ``is_executable`` (0.3): every step has an ``action`` or a ``tool``.

``plan_evaluator`` is their sum; 0 where there is no plan.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from adp.core.json_values import json_or_none
from adp.eval.scorer import Item, Score, ScorerKind
from adp.eval.scorers.base import PerTrajectory, scored
from adp.rollouts.environment import Settings
from adp.rollouts.trajectory_reading import agent_steps
from adp_schema.model import Trajectory

WEIGHTS = {"has_clear_goal": 0.3, "has_tool_assignments": 0.4, "is_executable": 0.3}


class PlanEvaluatorSettings(Settings):
    """Settings of the scorer ``plan_evaluator``."""


class PlanEvaluatorScorer(PerTrajectory):
    """Scores the plan of a run by its form.

    Args:
        settings: none.
    """

    name = "plan_evaluator"
    metrics = ("plan_evaluator", *WEIGHTS)

    def __init__(self, settings: PlanEvaluatorSettings | None = None) -> None:
        self.settings = settings or PlanEvaluatorSettings()

    def measure(self, item: Item) -> Sequence[Score]:
        """Score a trajectory that ran as it should."""
        plan = written_plan(item.trajectory)
        holds = evaluate_plan(plan)
        total = sum(WEIGHTS[name] for name, right in holds.items() if right)
        rows = [scored(name, right) for name, right in holds.items()]
        return [scored("plan_evaluator", total, {"steps": len(plan)}), *rows]


def evaluate_plan(plan: Sequence[Mapping[str, Any]]) -> dict[str, bool]:
    """What holds of a plan: ``has_clear_goal``, ``has_tool_assignments``, ``is_executable``.

    Args:
        plan: its steps; only their keys count.
    """
    return {
        "has_clear_goal": bool(plan) and ("goal" in plan[0] or "objective" in plan[0]),
        "has_tool_assignments": any("tool" in step or "tool_id" in step for step in plan),
        "is_executable": bool(plan) and all("action" in step or "tool" in step for step in plan),
    }


def written_plan(trajectory: Trajectory) -> list[Mapping[str, Any]]:
    """The plan that a run wrote as its answer, or else carried out."""
    value = json_or_none(trajectory.final_answer)
    steps = value.get("steps", value.get("plan")) if isinstance(value, Mapping) else value
    if isinstance(steps, list) and steps and all(isinstance(step, Mapping) for step in steps):
        return steps
    plan: list[Mapping[str, Any]] = []
    before = ""
    for step in agent_steps(trajectory):
        before += f"{step.row.reasoning or ''}{step.row.text or ''}" if not plan else ""
        for call in step.calls:
            goal = {"goal": before} if before.strip() and not plan else {}
            plan.append({**goal, "tool": call.name})
    return plan


KIND = ScorerKind(
    name="plan_evaluator",
    about="Whether a plan has a goal, names tools, and can be carried out (SAGE's PlanEvaluator).",
    settings=PlanEvaluatorSettings,
    make=PlanEvaluatorScorer,
)
