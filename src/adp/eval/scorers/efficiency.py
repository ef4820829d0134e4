"""Correctness in proportion to what it took: calls, tokens, seconds, dollars.

- ``efficiency``: correctness / calls, and correctness alone without a call (ET-Agent, arXiv
  2601.06860, ``evaluate.py``);
- ``step_efficiency``: calls of the right run / calls made, at most 1, whether it was solved or not
  (tau2 and SAGE compare with an optimal number of steps);
- ``spl``: correctness * expected / max(calls, expected): success weighted by path length
  (Anderson et al. 2018, eq. 1), a step being a call;
- ``tokens_per_success``, ``seconds_per_success``, ``cost_per_success``, ``calls_per_success``: the
  sum over all runs, failed ones included, over the sum of correctness.
"""

from __future__ import annotations

from collections.abc import Sequence

from adp.eval.metrics import ratio_figure
from adp.eval.scorer import Figure, Item, Score, Scored, ScorerKind
from adp.eval.scorers.base import PerTrajectory
from adp.eval.scorers.correctness import WithCorrectness, correctness
from adp.eval.scorers.usage import cost_of, seconds_of, tokens_of
from adp.rollouts.task_references import expected_calls
from adp.rollouts.trajectory_reading import agent_calls, agent_steps

_USED = ("calls", "turns", "tokens", "seconds", "cost_usd")
_PER_SUCCESS = {
    "calls_per_success": "calls",
    "tokens_per_success": "tokens",
    "seconds_per_success": "seconds",
    "cost_per_success": "cost_usd",
}


class EfficiencySettings(WithCorrectness):
    """Settings of the scorer ``efficiency``."""


class EfficiencyScorer(PerTrajectory):
    """Scores correctness in proportion to what it took.

    Args:
        settings: its settings.
    """

    name = "efficiency"
    metrics = ("efficiency", "step_efficiency", "spl", "correctness", *_USED)
    amounts = frozenset(_USED)

    def __init__(self, settings: EfficiencySettings) -> None:
        self.settings = settings

    def measure(self, item: Item) -> Sequence[Score]:
        """Score a trajectory that ran as it should."""
        run = item.trajectory
        calls = len(agent_calls(run))
        right = correctness(item, self.settings.correct)
        wanted = expected_calls(item.task)
        evidence = {"calls": calls, "correct": right.value, "from": right.source}
        value = None if right.value is None else right.value / max(calls, 1)
        return [
            Score("efficiency", value, right.reason, evidence),
            *_steps(calls, None if wanted is None else len(wanted), right.value, right.reason),
            Score("correctness", right.value, right.reason, {"from": right.source}),
            Score("calls", float(calls)),
            Score("turns", float(len(agent_steps(run)))),
            _known("tokens", tokens_of(run)),
            _known("seconds", seconds_of(run)),
            _known("cost_usd", cost_of(run)),
        ]

    def figures(self, rows: Sequence[Scored]) -> Sequence[Figure]:
        """Means, and what each success cost."""
        figures = list(super().figures(rows))
        for name, used in _PER_SUCCESS.items():
            figures.append(
                ratio_figure(rows, used, "correctness", name, self.intervals, amount=True)
            )
        return figures


def _steps(
    calls: int, wanted: int | None, right: float | None, reason: str | None
) -> tuple[Score, Score]:
    if wanted is None:
        unknown = "the task does not say which calls are expected"
        return Score("step_efficiency", None, unknown), Score("spl", None, unknown)
    evidence = {"calls": calls, "expected": wanted}
    ratio = 1.0 if calls <= wanted else wanted / calls
    spl = None if right is None else right * ratio
    return (
        Score("step_efficiency", ratio, evidence=evidence),
        Score("spl", spl, reason, evidence),
    )


def _known(metric: str, value: float | None) -> Score:
    reason = None if value is not None else f"the source does not record {metric}"
    return Score(metric, value, reason)


KIND = ScorerKind(
    name="efficiency",
    about="Correctness for each call (ET-Agent), calls against those of a right run (also weighted "
    "by success, Anderson et al. 2018), and what a success costs.",
    settings=EfficiencySettings,
    make=EfficiencyScorer,
)
