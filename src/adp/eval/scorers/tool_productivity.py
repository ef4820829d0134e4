"""ET-Agent's tool productivity: 100 * a * T / (T + 0.1).

``a`` is the mean correctness and ``T`` the mean number of calls over all runs (ET-Agent, arXiv
2601.06860, ``evaluate.py``). It is a number about a corpus; a trajectory has only its two parts.
"""

from __future__ import annotations

from collections.abc import Sequence

from adp.eval.metrics import productivity_figure
from adp.eval.scorer import Figure, Item, Score, Scored, ScorerKind
from adp.eval.scorers.base import PerTrajectory
from adp.eval.scorers.correctness import WithCorrectness, correctness
from adp.rollouts.trajectory_reading import agent_calls


class ProductivitySettings(WithCorrectness):
    """Settings of the scorer ``tool_productivity``."""


class ProductivityScorer(PerTrajectory):
    """Counts calls and correctness.

    Args:
        settings: its settings.
    """

    name = "tool_productivity"
    metrics = ("correct", "tool_calls")
    amounts = frozenset({"tool_calls"})

    def __init__(self, settings: ProductivitySettings) -> None:
        self.settings = settings

    def measure(self, item: Item) -> Sequence[Score]:
        """Score a trajectory that ran as it should."""
        right = correctness(item, self.settings.correct)
        return [
            Score("correct", right.value, right.reason, {"from": right.source}),
            Score("tool_calls", float(len(agent_calls(item.trajectory)))),
        ]

    def figures(self, rows: Sequence[Scored]) -> Sequence[Figure]:
        """The productivity, and the means of its parts."""
        result = productivity_figure(rows, "correct", "tool_calls", intervals=self.intervals)
        return [result, *super().figures(rows)]


KIND = ScorerKind(
    name="tool_productivity",
    about="ET-Agent's tool productivity: 100 * a * T / (T + 0.1) of mean correctness and mean "
    "number of calls.",
    settings=ProductivitySettings,
    make=ProductivityScorer,
)
