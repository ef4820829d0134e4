r"""Whether a trajectory is right, by a rule of the user's choice.

| rule | who says so |
|---|---|
| environment | the environment that it ran in |
| answer | the answer is one of the references, by `adp.rollouts.answer_match` |
| math | a judge, ``Correct`` or ``Incorrect``; without one the same formula |
| qa | the best F1 of lower-cased words over the references is above 0.8 |
| et_agent | `math` or `qa`, by the data set of the task (`adp.core.answers.sources`); else `qa` |

The answer is what `adp.core.answers.extraction` finds in the final one: the last ``\boxed{}``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from adp.core.answers.extraction import extract
from adp.core.answers.formulas import math_equal
from adp.core.answers.hendrycks import is_equiv
from adp.core.answers.words import overlap_f1
from adp.rollouts.answer_match import references_of, same_answer
from adp.rollouts.evolving.asking import JUDGE, Asking, GaveUpError
from adp.rollouts.evolving.settings import Rule
from adp.rollouts.judging.answers import UnreadableError
from adp.rollouts.judging.words import last_line
from adp.rollouts.task_sources import answer_rule
from adp.rollouts.turns import is_success
from adp_schema.model import Task, Trajectory

RIGHT_F1 = 0.8
"""An answer to a question is right when its F1 is greater."""

_WORD = re.compile(r"\W*(correct|incorrect)\W*", re.IGNORECASE)


@dataclass(frozen=True)
class Correctness:
    """Whether a trajectory is right.

    Attributes:
        correct: whether it is; None when nobody can say.
        quality: 1 or 0, or the best F1.
        facts: who said so, and in which words; JSON.
        unreachable: why the judge gave no answer at all, where it did not; so it can be asked
            later.
    """

    correct: bool | None
    quality: float
    facts: dict[str, Any] = field(default_factory=dict)
    unreachable: str | None = None


def rule_of(rule: Rule, task: Task) -> Rule:
    """The rule of a task."""
    if rule != "et_agent":
        return rule
    return answer_rule(task) or "qa"


async def judge_trajectory(
    trajectory: Trajectory, task: Task, rule: Rule, asking: Asking
) -> Correctness:
    """Whether a trajectory is right.

    Args:
        trajectory: the trajectory.
        task: its task.
        rule: who says so.
        asking: asks the judge.

    Raises:
        UsageError: the judge cannot be called like this.
    """
    chosen = rule_of(rule, task)
    if chosen == "environment":
        return _by_environment(trajectory)
    references, answer = references_of(task), extract(trajectory.final_answer or "")
    facts: dict[str, Any] = {"rule": chosen}
    if references is None:
        return Correctness(None, 0.0, {**facts, "why": "the task has no reference answers"})
    if not answer.strip():
        return Correctness(False, 0.0, {**facts, "why": "there is no answer"})
    if chosen == "qa":
        f1 = max(overlap_f1(answer.lower(), reference.lower()) for reference in references)
        return Correctness(f1 > RIGHT_F1, f1, {**facts, "f1": f1})
    if chosen == "math" and JUDGE in asking.models:
        return await _by_judge(task, answer, references, asking, facts)
    same = same_formula if chosen == "math" else same_answer
    correct = any(same(answer, extract(reference)) for reference in references)
    return Correctness(correct, float(correct), facts)


def _by_environment(trajectory: Trajectory) -> Correctness:
    success = trajectory.success
    if success is None and trajectory.reward is not None:
        success = is_success(trajectory.reward)
    facts = {"rule": "environment"}
    if success is None:
        return Correctness(None, 0.0, {**facts, "why": "the environment does not say"})
    return Correctness(success, float(success), facts)


async def _by_judge(
    task: Task, answer: str, references: Sequence[str], asking: Asking, facts: dict[str, Any]
) -> Correctness:
    about = {
        "question": task.instruction,
        "reference answers": list(references),
        "answer": answer,
    }
    text = json.dumps(about, ensure_ascii=False, indent=1)
    try:
        correct = await asking.ask(JUDGE, "judge_math", text, read_verdict)
    except GaveUpError as error:
        unreachable = str(error) if error.unreachable else None
        return Correctness(None, 0.0, {**facts, "why": str(error)}, unreachable)
    return Correctness(correct, float(correct), {**facts, "words": asking.words["judge_math"]})


def read_verdict(text: str) -> bool:
    """Whether the judge says ``Correct``; its last line must be one of the two words.

    Raises:
        UnreadableError: it is neither.
    """
    word = last_line(text, _WORD)
    if word is None:
        raise UnreadableError("neither Correct nor Incorrect")
    return word.lower() == "correct"


def same_formula(answer: str, reference: str) -> bool:
    """Whether two formulas are the same, in MATH's own form or by their values."""
    return is_equiv(answer, reference) or math_equal(answer, reference)
