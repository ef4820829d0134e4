"""Verdicts of judges: models that read each run, or compare runs at one task. Nothing is dropped.

**Runs.** A judge reads the run (task, reference answers, calls, results, answer) and ends with a
verdict by the rubric: ``grades``, ``binary`` or ``partial``. What cannot be read is asked for once
more. ``judge_value`` is the number, and ``judge_state`` says ``scored``, ``tie`` or ``unscored``; a
run that is not scored has null, and an event ``unscored`` in the ledger with the reason and all
verdicts. A filter decides what becomes of it: ``filter: {min: {judge_value: 1}, unknown: keep}``.

**Pairs.** With ``pairwise: true``, runs at one task are compared two by two, each pair in both
orders; a verdict that changes with the order is inconsistent. ``judge_win_rate`` counts wins, and
ties and inconsistent comparisons half. ``pairs: {rule: ranked, score: judge_win_rate}`` makes
preference pairs of it.

**Answers are kept** by the hash of what was asked (judge, settings, prompt, vote, seed) in
``$ADP_CACHE`` or the user's cache: a run that was stopped goes on where it was, and a second run
asks nothing. What failed is not kept, and is asked again. What is chosen does not depend on
``concurrency``.

[Judges](judges.md) says how far a judge can be trusted, and how to find out.
"""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import Field, model_validator

from adp.curation.op import Op, OpOptions, OpResult
from adp.curation.ops.judge.comparisons import compared_runs
from adp.curation.ops.judge.runs import judged_runs
from adp.curation.pool import Pool
from adp.rollouts.judging.settings import RubricSettings, judge_of


class JudgeRuns(OpOptions, RubricSettings):
    """Options of `judge`."""

    policy: str
    """The judge: a policy, such as openai:model=..."""
    pairwise: bool = False
    """Compare the runs at one task two by two, in the place of judging each by a rubric."""
    max_per_task: int | None = Field(6, ge=1)
    """pairwise: most comparisons of one task; null: every two runs."""
    cache: bool = Field(True, exclude=True)
    """Keep the answers, so that nothing is asked twice."""
    concurrency: int = Field(16, ge=1, exclude=True)
    """Requests at once."""

    @model_validator(mode="after")
    def _fits(self) -> JudgeRuns:
        if self.pairwise and (wrong := sorted(self.given() & {"rubric", "combine"})):
            raise ValueError(f"pairwise takes no {wrong[0]}: a comparison has its own verdicts")
        if not self.pairwise and "max_per_task" in self.given():
            raise ValueError("max_per_task is for pairwise: true")
        return self


def run(pool: Pool, options: JudgeRuns) -> OpResult:
    """Ask the judges."""
    judge = judge_of(options)
    assert judge is not None
    judge.limit(options.concurrency)
    try:
        if options.pairwise:
            return compared_runs(pool, judge, options, options.max_per_task, options.concurrency)
        return judged_runs(pool, judge, options, options.concurrency)
    finally:
        for name, cost in judge.costs.items():
            pool.progress.note(f"{name}: {cost.words}")
        judge.close()


RUN_COLUMNS = {
    "judge_value": "Number of the verdict: 1, 0.5 or 0 (grades), 1 or 0 (binary), 0 to 3 "
    "(partial); null: tied or unscored.",
    "judge_verdict": "The verdict in the judge's word, such as C, yes or 3.",
    "judge_success": "Whether it is the best verdict of the rubric.",
    "judge_state": "scored, tie or unscored.",
    "judge_agreement": "Share of the votes with the most frequent verdict.",
    "judge_reasoning": "What the first judge said who gave the verdict.",
    "judge_verdicts": "All verdicts, JSON.",
}
PAIR_COLUMNS = {
    "judge_win_rate": "Share of its comparisons that the run won; ties and inconsistent ones count "
    "half. Null: it was in none.",
    "judge_comparisons": "Comparisons that it was in.",
    "judge_inconsistent": "Of these, those in which the verdict changed with the order.",
}


def columns(options: JudgeRuns) -> Mapping[str, str]:
    """The columns of either way."""
    return PAIR_COLUMNS if options.pairwise else RUN_COLUMNS


OP = Op(
    name="judge",
    title="Verdicts of models about each run, or about which of two runs is better.",
    options=JudgeRuns,
    run=run,
    cost="A request a run, vote and judge; a comparison takes two. Costs in tokens and dollars are "
    "printed.",
    source="Inspect AI, model_graded_qa (grades); M3, m3-train-eval (binary, partial); Zheng et "
    "al. 2023, MT-Bench (both orders).",
    columns=columns,
)
