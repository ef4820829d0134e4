"""The reward ``et_agent``: right answers, with few calls and short responses, in the right format.

It is the reward of ET-Agent (arXiv 2601.06860): ``adp.trainers.rollouts.et_agent_formula`` has the
formula. Rollouts whose calls are texts in tags (``<search>``, ``<python>``, ``<answer>``) are read
as ET-Agent reads them. Where calls are data they are counted, the final answer is the answer, and a
rollout is malformed when a turn could not be read or when there is no final answer.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Literal

from pydantic import Field

from adp.core.answers.extraction import extract
from adp.core.tagged_run import count_calls, invalid_v1, invalid_v2
from adp.rollouts.environment import Settings
from adp.rollouts.run_text import is_tagged, run_fault, run_text
from adp.rollouts.task_references import reference_answers
from adp.rollouts.task_sources import answer_rule
from adp.rollouts.trajectory_reading import agent_calls, agent_steps, broken, last_text
from adp.trainers.rollouts.environment_reward import verdict
from adp.trainers.rollouts.et_agent_formula import (
    MeasuredRollout,
    boxed_answer,
    rightness,
    shaped,
    sigma_share,
)
from adp.trainers.rollouts.reward import FinishedRollout, RewardStage, RolloutRewardKind
from adp_schema.model import Trajectory


class EtAgentSettings(Settings):
    """Settings of the reward ``et_agent``."""

    sigma_tool: float = Field(default=0.2, ge=0)
    """How much fewer calls than the mean of the group are worth; 0: nothing."""
    sigma_len: float = Field(default=0.5, ge=0)
    """How much a shorter response than the mean of the group is worth; 0: nothing."""
    decay: bool = True
    """Whether both sigmas shrink to 0 over the steps of the training."""
    form: Literal["auto", "tags", "calls"] = "auto"
    """Where calls and answer stand: between tags in the text (tags), or as data (calls). auto:
    between tags where any rollout of the group has them."""
    format: Literal["v1", "v2", "none"] = "v1"
    """Which validator takes 1 from a malformed text in tags: ET-Agent's of the reward (v1), the
    stricter one of its Pareto sampling (v2), or none, which never takes anything."""
    metric: Literal["auto", "math", "qa", "environment"] = "auto"
    """What is right: the same formula (math), F1 of words (qa), or what the environment says. auto:
    by the name of the task's data set (`aime24`: math, `hotpotqa`: qa); for other sets what the
    environment says, and F1 of words where it says nothing."""
    words: Literal["f1", "joined"] = "f1"
    """How words count in qa: by their F1, or 1 for the same words and else 0, as in the code that
    ET-Agent published (joined)."""


class EtAgentReward:
    """ET-Agent's reward.

    Args:
        settings: its settings.
    """

    name = "et_agent"

    def __init__(self, settings: EtAgentSettings | None = None) -> None:
        self.settings = settings or EtAgentSettings()

    def __call__(
        self, rollouts: Sequence[FinishedRollout], stage: RewardStage
    ) -> list[float | None]:
        """A number for each rollout; None for one that broke, or of which nothing is known.

        Outside of a training it is how right the answer is, and nothing else.
        """
        results: list[float | None] = [None] * len(rollouts)
        groups: dict[str, list[int]] = defaultdict(list)
        for place, rollout in enumerate(rollouts):
            if broken(rollout.trajectory) is None:
                groups[rollout.group].append(place)
        for places in groups.values():
            members = [rollouts[place] for place in places]
            rewards = self._rewards(members, stage)
            for place, reward in zip(places, rewards, strict=True):
                results[place] = reward
        return results

    def _rewards(self, group: Sequence[FinishedRollout], stage: RewardStage) -> list[float | None]:
        """The rewards of the rollouts of one task, none of which broke."""
        settings = self.settings
        measured = [self.measure(rollout, in_tags=self._in_tags(group)) for rollout in group]
        if not stage.training:
            return [None if item is None else item.right for item in measured]
        left = sigma_share(stage.step + 1, stage.steps) if settings.decay else 1.0
        known = [item for item in measured if item is not None]
        rewards = iter(shaped(known, settings.sigma_tool * left, settings.sigma_len * left))
        return [None if item is None else next(rewards) for item in measured]

    def _in_tags(self, group: Sequence[FinishedRollout]) -> bool:
        form = self.settings.form
        if form != "auto":
            return form == "tags"
        return any(is_tagged(agent_steps(rollout.trajectory)) for rollout in group)

    def measure(self, rollout: FinishedRollout, *, in_tags: bool) -> MeasuredRollout | None:
        """What the formula needs of a rollout; None for one of which nothing is known.

        Args:
            rollout: the rollout.
            in_tags: whether calls and answer stand between tags.
        """
        trajectory, chosen = rollout.trajectory, self.settings.format
        text = run_text(agent_steps(trajectory)) if in_tags else None
        right = self._right(trajectory, text)
        if right is None:
            return None
        if text is None:
            calls, malformed = len(agent_calls(trajectory)), run_fault(trajectory) is not None
        else:
            calls = count_calls(text)
            malformed = (invalid_v2 if chosen == "v2" else invalid_v1)(text) is not None
        malformed = malformed and chosen != "none"
        return MeasuredRollout(right, calls, rollout.response_tokens, malformed)

    def _right(self, trajectory: Trajectory, text: str | None) -> float | None:
        """How right the answer is; ``text`` is that of a run in tags."""
        task, metric = trajectory.task, self.settings.metric
        if metric == "auto":
            known = answer_rule(task, trajectory)
            judged = verdict(trajectory) is not None
            metric = known or ("environment" if judged else "qa")
        if metric == "environment":
            return verdict(trajectory)
        references = reference_answers(task)
        if not references:
            return None
        answer = _final(trajectory) if text is None else boxed_answer(text, metric)
        return rightness(answer, references, metric, self.settings.words)


def _final(trajectory: Trajectory) -> str | None:
    """The answer of a run whose calls are data."""
    answer = trajectory.final_answer
    answer = last_text(trajectory) if answer is None else answer
    return None if answer is None else extract(answer)


KIND = RolloutRewardKind(
    name="et_agent",
    about="How right the answer is, times factors for fewer calls and a shorter response than the "
    "mean of the group, less 1 for a malformed text (ET-Agent, arXiv 2601.06860).",
    settings=EtAgentSettings,
    make=EtAgentReward,
)
