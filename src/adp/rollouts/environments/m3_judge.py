"""A model that says whether an answer is right, as M3's scorer does.

It reads the question, the reference answer and the given one. An answer in which no verdict can be
read is asked for once more; after that, and where none comes, nothing is said.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from adp.rollouts.judging.judge import check_called
from adp.rollouts.judging.rubrics import RUBRICS, RubricName
from adp.rollouts.judging.settings import JudgeSettings, judge_of
from adp.rollouts.judging.transcript import transcript
from adp_schema.errors import UsageError
from adp_schema.model import Task, Trajectory


class AnswerJudge:
    """Asks a model about single answers.

    Args:
        policy: spec of the model.
        rubric: ``binary`` or ``partial``.

    Raises:
        UsageError: there is no such policy, or a setting of it is wrong.
    """

    def __init__(self, policy: str, rubric: RubricName) -> None:
        judge = judge_of(JudgeSettings(policy=policy)) if policy else None
        if judge is None:
            raise UsageError("judge is empty; name a policy, such as openai:model=...")
        self._judge, self._rubric = judge, RUBRICS[rubric]

    def ask(self, question: str, right: str, given: str) -> tuple[bool | None, Mapping[str, Any]]:
        """Ask about an answer.

        Args:
            question: what was asked.
            right: the reference answer.
            given: the answer that is judged.

        Returns:
            Whether it is right, None where nothing is said; and what the model said.

        Raises:
            UsageError: the model cannot be called like this.
        """
        task = Task(instruction=question, answers=json.dumps([right]))
        run = transcript(Trajectory(final_answer=given), task, "answer")
        judgements = self._judge.ask(self._rubric.question(run))
        check_called(self._judge, judgements)
        label = judgements[0].label
        return (None if label is None else label == self._rubric.success), judgements[0].kept()

    def close(self) -> None:
        """Close the connection; a later question opens it again."""
        self._judge.close()
