"""What scorers that may ask a judge have in common; how it is asked, see `adp.rollouts.judging`.

The failures of a judge are failures of the surroundings, so what it leaves open is unscored as
infrastructure. A tie of several verdicts is unscored, too, but nothing has failed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from adp.eval.scorers.base import PerTrajectory
from adp.rollouts.judging.judge import Judge, JudgeCosts, Judgement


class Judging(PerTrajectory):
    """Base of scorers that may ask a judge; they score in several threads at once."""

    version = "2"
    _judge: Judge | None = None

    @property
    def asks(self) -> bool:
        """Whether it asks a judge, so that scoring one trajectory after the other is slow."""
        return self._judge is not None

    def limit(self, requests: int) -> None:
        """Let no more than so many requests run at once."""
        if self._judge is not None:
            self._judge.limit(requests)

    def close(self) -> None:
        """Close the connections of the judge."""
        if self._judge is not None:
            self._judge.close()

    @property
    def costs(self) -> Mapping[str, JudgeCosts]:
        """What the judge cost so far, by the names of its models."""
        return self._judge.costs if self._judge is not None else {}


def kept(judge: Judge, judgements: Sequence[Judgement]) -> dict[str, Any]:
    """What the evidence of a score holds of a judge."""
    model = next((item.model for item in judgements if item.model), judge.name)
    return {"judge": model, "judgements": [item.kept() for item in judgements]}
