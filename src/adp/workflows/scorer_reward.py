"""The reward ``scorer``: what a scorer of `adp score` says about an episode of a training.

    grpo.rewards: [environment, scorer:tool_f1, "scorer:name='efficiency:...',metric=calls"]

Trainers and scorers do not know each other; what joins them comes in by the door that is open to
every package, the entry points ``adp.rollout_rewards``.
"""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import Field

from adp.eval.scorer import Item, Score
from adp.eval.scoring.choose import choose_named
from adp.eval.scoring.concurrent import scored_in_order
from adp.eval.scoring.rows import Given
from adp.rollouts.environment import Settings
from adp.trainers.rollouts.reward import FinishedRollout, RewardStage, RolloutRewardKind
from adp_schema.errors import TrainingError, UsageError, unknown_name


class ScorerRewardSettings(Settings):
    """Settings of the reward ``scorer``."""

    name: str = Field(min_length=1)
    """The scorer, as `adp score --with` takes it: NAME, or NAME:key=value,... in quotes."""
    metric: str | None = None
    """Which of its numbers; null: the one that has the scorer's name, else the first."""
    unscored: float | None = None
    """The reward of an episode that the scorer cannot score; null: it does not apply there."""
    concurrency: int = Field(default=16, ge=1)
    """Requests at once, of a scorer that asks an endpoint."""


class ScorerReward:
    """What a scorer says.

    Args:
        settings: which one.

    Raises:
        UsageError: there is no such scorer, or a setting of it is wrong.
    """

    def __init__(self, settings: ScorerRewardSettings) -> None:
        self.settings = settings
        self.name = f"scorer:{settings.name}"
        self._chosen = choose_named([(settings.name, {})])[0]

    def __call__(
        self, rollouts: Sequence[FinishedRollout], stage: RewardStage
    ) -> list[float | None]:
        """A number an episode.

        Raises:
            UsageError: the scorer has no such metric.
            TrainingError: the scorer raised.
        """
        items = (Item(rollout.trajectory, rollout.trajectory.task) for rollout in rollouts)
        results = scored_in_order(items, [self._chosen], self.settings.concurrency)
        return [self._number(given) for _, (given,) in results]

    def _number(self, given: Given) -> float | None:
        if given.raised is not None:
            raise TrainingError(
                f"the reward {self.name} failed: {given.raised}; mend the scorer, or take another"
            )
        score = self._score(given.scores)
        return self.settings.unscored if score is None or score.value is None else score.value

    def _score(self, scores: Sequence[Score]) -> Score | None:
        wanted = self.settings.metric
        by_name = {score.metric: score for score in scores}
        if wanted is None:
            return by_name.get(self._chosen.scorer.name, scores[0] if scores else None)
        if scores and wanted not in by_name:
            raise UsageError(
                f"the scorer {self.settings.name}: {unknown_name('metric', wanted, by_name)}"
            )
        return by_name.get(wanted)


KIND = RolloutRewardKind(
    name="scorer",
    about="A number of a scorer of adp score: scorer:NAME, or scorer:name=NAME,metric=M.",
    settings=ScorerRewardSettings,
    make=ScorerReward,
)
