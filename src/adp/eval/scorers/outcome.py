"""How runs ended: success, rewards, truncation, termination, errors; pass@k and pass^k.

``success`` is what the trajectory says; where it says nothing but has a reward, tau-bench's rule:
a reward within 1e-6 of 1 (Yao et al. 2024). ``error`` is an error of the agent's own that ended the
run; runs that something else broke are unscored in all metrics.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Literal

from adp.core.json_values import json_or_none
from adp.eval.metrics import mean_figures, pass_figures
from adp.eval.scorer import Figure, Item, Score, Scored, ScorerKind
from adp.eval.scorers.base import PerTrajectory, scored, unscored
from adp.eval.scorers.correctness import solved
from adp.rollouts.environment import Settings
from adp.rollouts.trajectory_reading import cut, number_or_none
from adp_schema.model import Trajectory

_NAMED = 20
_TYPES = 10


class OutcomeSettings(Settings):
    """Settings of the scorer ``outcome``."""

    success: Literal["auto", "success", "reward"] = "auto"
    """What is a success: as recorded (success), a reward within 1e-6 of 1 (reward), or the first
    of both that is known (auto)."""
    k: tuple[int, ...] | None = None
    """Values of k for pass@k and pass^k; by default up to the attempts that at least half of the
    tasks have."""
    partial: bool = False
    """Leave tasks with fewer than k attempts out of pass@k; otherwise it is undefined when there
    is one."""


class OutcomeScorer(PerTrajectory):
    """Scores how runs ended.

    Args:
        settings: its settings.
    """

    name = "outcome"
    metrics = ("success", "reward", "truncated", "terminated", "error")

    def __init__(self, settings: OutcomeSettings) -> None:
        self.settings = settings

    def measure(self, item: Item) -> Sequence[Score]:
        """Score a trajectory that ran as it should."""
        run = item.trajectory
        won = solved(run, self.settings.success)
        success = Score("success", won.value, won.reason, {"from": won.source})
        return [
            success,
            _number("reward", run.reward),
            _truth("truncated", run.truncated, run.stop_reason),
            _truth("terminated", run.terminated, run.stop_reason),
            _error(run),
            *_rewards(run),
        ]

    def figures(self, rows: Sequence[Scored]) -> Sequence[Figure]:
        """Means, shares of each type of error, pass@k and pass^k."""
        named = dict.fromkeys(row.score.metric for row in rows)
        more = sorted(name for name in named if name.startswith("reward."))
        result = mean_figures(rows, [*self.metrics, *more], self.intervals)
        result += mean_figures(_by_type(rows), None, self.intervals)
        passes = pass_figures(
            rows, "success", self.settings.k, self.intervals, partial=self.settings.partial
        )
        return [*result, *passes]


def _number(metric: str, value: float | None) -> Score:
    number = number_or_none(value)
    if number is None:
        return Score(metric, None, f"there is no {metric}")
    return scored(metric, number)


def _truth(metric: str, value: bool | None, stopped: str | None) -> Score:
    evidence = {} if stopped is None else {"stop_reason": cut(stopped)}
    if value is None:
        return Score(metric, None, "the source does not say how the run ended", evidence)
    return scored(metric, value, evidence)


def _error(run: Trajectory) -> Score:
    if run.error_type is not None:
        evidence = {"error_type": cut(run.error_type), "message": cut(run.error_message or "")}
        return scored("error", 1, evidence)
    if run.success is None and run.terminated is None and run.truncated is None:
        return unscored(["error"], "the source does not say how the run ended")[0]
    return scored("error", 0)


def _rewards(run: Trajectory) -> list[Score]:
    named = json_or_none(run.rewards)
    if not isinstance(named, Mapping):
        return []
    return [_number(f"reward.{cut(name, 60)}", named[name]) for name in sorted(named)[:_NAMED]]


def _by_type(rows: Sequence[Scored]) -> list[Scored]:
    """A row ``error:type`` of 0 or 1 for each type of error that came up, the commonest first."""
    errors = [row for row in rows if row.score.metric == "error" and row.score.value is not None]
    types = Counter(
        str(kind) for row in errors if (kind := row.score.evidence.get("error_type")) is not None
    )
    ordered = sorted(types, key=lambda name: (-types[name], name))[:_TYPES]
    return [
        replace(
            row, score=Score(f"error:{kind}", float(row.score.evidence.get("error_type") == kind))
        )
        for kind in ordered
        for row in errors
    ]


KIND = ScorerKind(
    name="outcome",
    about="How runs ended: success, rewards, truncation, termination, errors; pass@k (Chen et al. "
    "2021) and pass^k (Yao et al. 2024).",
    settings=OutcomeSettings,
    make=OutcomeScorer,
)
