"""Quality of a response: by a judge, or by rules where no judge is at hand.

With a policy as judge, by a rubric ([judges](judges.md) says more):

- ``grades``: ``judged_quality``; the judge ends with ``GRADE: C``, ``GRADE: P`` or ``GRADE: I``
  (the grades of Inspect AI's ``model_graded_qa``): 1, 0.5 and 0;
- ``binary``: ``judged_success``; it concludes with yes or no;
- ``partial``: ``judged_grade`` from 0 to 3, and ``judged_success``, which is 3 alone (M3).

Each judge of the panel is asked ``votes`` times, at temperature 0 unless another is given.
A judgement that does not end so is asked for once more, and is then no vote; with half of the votes
or fewer, or when they are tied, the trajectory is unscored, never wrong. All that the judges said
is kept.

Without one, ``response_quality`` of the LLM Tool Use Training Playground:
(tool accuracy + format correctness) / 2, where tool accuracy is whether the tool of the first call
is the first that is expected.
"""

from __future__ import annotations

from collections.abc import Sequence

from adp.eval.scorer import Item, Score, ScorerKind
from adp.eval.scorers.base import scored, unscored
from adp.eval.scorers.format import playground_fault
from adp.eval.scorers.judging import Judging, kept
from adp.rollouts.judging.judge import Judge
from adp.rollouts.judging.rulings import combined
from adp.rollouts.judging.settings import RubricSettings, judge_of
from adp.rollouts.judging.transcript import transcript
from adp.rollouts.task_references import expected_calls
from adp.rollouts.trajectory_reading import agent_calls, agent_steps, cut

METRICS = {
    "grades": ("judged_quality",),
    "binary": ("judged_success",),
    "partial": ("judged_grade", "judged_success"),
}
"""Rubric -> its metrics; the first one is the value of the verdict."""


class QualitySettings(RubricSettings):
    """Settings of the scorer ``judge``."""


class QualityScorer(Judging):
    """Scores the quality of responses.

    Args:
        settings: its settings.
        judge: a judge, in the place of the one that the settings name.
    """

    name = "judge"
    amounts = frozenset({"judged_grade"})

    def __init__(self, settings: QualitySettings, judge: Judge | None = None) -> None:
        self.settings = settings
        self._judge = judge or judge_of(settings)
        asks = self._judge is not None
        self.metrics = METRICS[settings.rubric] if asks else ("response_quality",)

    def measure(self, item: Item) -> Sequence[Score]:
        """Score a trajectory that ran as it should."""
        if self._judge is None:
            return [by_rules(item)]
        settings, rubric = self.settings, self.settings.chosen_rubric
        run = transcript(item.trajectory, item.task, settings.reads)
        judgements = self._judge.ask(rubric.question(run, settings.criterion))
        ruling = combined(judgements, rubric.labels, settings.combine)
        evidence = {
            **kept(self._judge, judgements),
            "labels": [judgement.label for judgement in judgements],
            "agreement": ruling.agreement,
            "length": len(run),
        }
        if ruling.value is None:
            failed = ruling.state == "unscored"
            reason = ruling.reason or "no reason is given"
            return unscored(self.metrics, reason, evidence, infrastructure=failed)
        value, *more = self.metrics
        success = ruling.value == rubric.labels[rubric.success]
        return [
            scored(value, ruling.value, evidence),
            *(scored(metric, success, evidence) for metric in more),
        ]


def by_rules(item: Item) -> Score:
    """The playground's response quality, without a judge."""
    wanted = expected_calls(item.task)
    if not wanted:
        return unscored(["response_quality"], "the task does not say which tool is expected")[0]
    calls = agent_calls(item.trajectory)
    used = calls[0].name if calls else None
    accuracy = float(used == wanted[0].name)
    fault = playground_fault(agent_steps(item.trajectory), item.trajectory)
    evidence = {
        "method": "playground",
        "tool": None if used is None else cut(used),
        "expected": cut(wanted[0].name),
        "fault": fault,
    }
    return Score("response_quality", (accuracy + float(fault is None)) / 2, evidence=evidence)


KIND = ScorerKind(
    name="judge",
    about="Quality of a response, by judges with a rubric; without one by rules (LLM Tool Use "
    "Training Playground: tool accuracy and format correctness).",
    settings=QualitySettings,
    make=QualityScorer,
)
