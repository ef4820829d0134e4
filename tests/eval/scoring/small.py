"""Small scorers and stores of rollouts for the tests of score tables."""

from __future__ import annotations

import json

from adp.eval.metrics import mean_figures, pass_figures
from adp.eval.scorer import Score, ScorerKind
from adp.eval.scoring import ChosenScorer
from adp.rollouts.environment import Settings
from adp_schema.model import Observation, Step, Task, ToolCall, Trajectory
from adp_schema.store import Store


class Plain:
    """Scores success, the number of calls, and whether the answer is the expected one."""

    name, version = "plain", "1"

    def __init__(self):
        self.items = []

    def score(self, item):
        self.items.append(item)
        run = item.trajectory
        calls = sum(len(step.calls) for step in run.steps)
        answers = json.loads(item.task.answers) if item.task and item.task.answers else None
        right = None if answers is None else float(run.final_answer in answers)
        return [
            Score("success", None if run.success is None else float(run.success),
                  "success is not recorded" if run.success is None else None),
            Score("calls", calls, evidence={"calls": calls}),
            Score("right", right, None if right is not None else "no answer is known"),
        ]  # fmt: skip

    def figures(self, rows):
        return [*mean_figures(rows), *pass_figures(rows, "success")]


class Doubtful(Plain):
    """Raises, or gives what is no number, as the answer says."""

    name = "doubtful"

    def score(self, item):
        match item.trajectory.final_answer:
            case "raise":
                raise KeyError("answer")
            case "nan":
                return [Score("one", float("nan"), evidence={"value": float("inf")})]
            case "true":
                return [Score("one", True)]
        return [Score("one", 1.0), Score("\ud800two", 2, evidence={"x": {1, 2}})]

    def figures(self, rows):
        return mean_figures(rows)


def chosen(scorer=None, **settings):
    return ChosenScorer(scorer or Plain(), json.dumps(settings, sort_keys=True))


def run(name, attempt=0, **columns):
    """One attempt at a task, with a call and an answer."""
    call = ToolCall(call_id="c1", kind="function", name="add", arguments='{"a": 1}',
                    arguments_kind="object")  # fmt: skip
    result = Observation(source="environment", call_step=1, call=0, call_id="c1", text="2")
    return Trajectory(
        **{
            "dataset": "sums",
            "source_id": f"{name}/attempt-{attempt}",
            "task_id": name,
            "attempt": attempt,
            "success": True,
            "final_answer": "2",
            "task": Task(task_id=name, instruction="1 + 1?", answers='["2"]'),
            "steps": [
                Step(source="user", kind="message", text="1 + 1?"),
                Step(source="agent", kind="llm_turn", calls=[call], observations=[result]),
                Step(source="agent", kind="llm_turn", text="2"),
            ],
        }
        | columns
    )


def grown(folder, *runs):
    """A growing store of runs."""
    with Store.grow(str(folder)) as store:
        for item in runs:
            store.append(item)
    return Store.open(str(folder))


class PlainSettings(Settings):
    """Settings of the scorer for tests."""

    mode: str = "one"
    words: tuple[str, ...] = ()
    api_key: str = "sk-1"


KIND = ScorerKind("plain", "Success, calls and answers.", PlainSettings, lambda settings: Plain())
DOUBTFUL = ScorerKind("doubtful", "Raises.", PlainSettings, lambda settings: Doubtful())
BUILTIN = {
    "plain": "tests.eval.scoring.small:KIND",
    "doubtful": "tests.eval.scoring.small:DOUBTFUL",
}
