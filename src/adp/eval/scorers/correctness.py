"""Where correctness comes from, for scorers that put it in proportion to something.

By default it is whether the task was solved: the trajectory's ``success``, or, where only a reward
is known, whether that is within 1e-6 of 1 (tau-bench's rule).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

from adp.core.answers.extraction import extract
from adp.core.answers.formulas import math_equal
from adp.core.answers.hendrycks import is_equiv
from adp.core.answers.words import exact, holds, token_f1
from adp.eval.scorer import Item
from adp.rollouts.environment import Settings
from adp.rollouts.task_references import reference_answers
from adp.rollouts.task_sources import answer_rule
from adp.rollouts.trajectory_reading import last_text, number_or_none
from adp.rollouts.turns import is_success
from adp_schema.model import Trajectory

By = Literal[
    "success", "reward", "answer_em", "answer_f1", "answer_acc", "answer_math", "by_source"
]

_MEASURES: Mapping[str, Callable[[str, str], float]] = {
    "answer_em": lambda predicted, wanted: exact(predicted, wanted, "et_agent"),
    "answer_f1": lambda predicted, wanted: token_f1(predicted, wanted, "et_agent"),
    "answer_acc": lambda predicted, wanted: holds(predicted, wanted, "et_agent"),
    "answer_math": math_equal,
    "is_equiv": is_equiv,
}
_NO_SET = "no data set of the task is known by name; set correct=answer_f1 or correct=answer_math"


class WithCorrectness(Settings):
    """Settings of scorers that need to know what is correct."""

    correct: By = "success"
    """Where correctness comes from: success or reward of the trajectory, or the final answer
    against the task's (answer_em, answer_f1, answer_acc, answer_math; ET-Agent's manner).
    by_source: by the name of the task's data set, as ET-Agent does: the same formula (`is_equiv`)
    for sets such as aime24, F1 of words for sets such as hotpotqa."""


@dataclass(frozen=True)
class Correct:
    """How right a trajectory is.

    Attributes:
        value: from 0 to 1 (a reward may go beyond); None when it is unknown.
        reason: why it is unknown.
        source: where it comes from.
    """

    value: float | None
    reason: str | None
    source: str


def correctness(item: Item, by: str) -> Correct:
    """How right a trajectory is.

    Args:
        item: trajectory and task.
        by: one of `By`.
    """
    if by == "success":
        return solved(item.trajectory)
    if by == "reward":
        reward = number_or_none(item.trajectory.reward)
        return Correct(reward, None if reward is not None else "there is no reward", "reward")
    answers = reference_answers(item.task)
    if not answers:
        return Correct(None, "the task has no reference answer", by)
    if by == "by_source":
        rule = answer_rule(item.task, item.trajectory)
        if rule is None:
            return Correct(None, _NO_SET, by)
        by = "is_equiv" if rule == "math" else "answer_f1"
    predicted = prediction(item.trajectory)
    if predicted is None:
        return Correct(0.0, None, by)
    text = extract(predicted)
    return Correct(max(float(_MEASURES[by](text, answer)) for answer in answers), None, by)


def solved(trajectory: Trajectory, source: str = "auto") -> Correct:
    """Whether a trajectory solved its task.

    Args:
        trajectory: the trajectory.
        source: ``success``: as recorded; ``reward``: within 1e-6 of 1; ``auto``: as recorded, and
            by the reward where nothing is recorded.
    """
    if source != "reward" and trajectory.success is not None:
        return Correct(float(trajectory.success), None, "success")
    if source == "success":
        return Correct(None, "it is not known whether the task was solved", source)
    reward = number_or_none(trajectory.reward)
    if reward is None:
        return Correct(None, "it is not known whether the task was solved", source)
    return Correct(float(is_success(reward)), None, "reward")


def prediction(trajectory: Trajectory, source: str = "auto") -> str | None:
    """The answer that was given.

    Args:
        trajectory: the trajectory.
        source: ``final_answer``; ``last_text``: the last text of the agent; ``auto``: the first
            that is there.
    """
    if source != "last_text" and trajectory.final_answer is not None:
        return trajectory.final_answer
    return None if source == "final_answer" else last_text(trajectory)
