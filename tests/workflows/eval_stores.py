"""Stores of rollouts for tests of the report: two policies over the same tasks, and attacks."""

from __future__ import annotations

import json
import random

from adp.eval.scoring import score_store
from adp_schema.model import Observation, Step, Task, ToolCall
from adp_schema.store import Store
from tests.eval.scoring.small import Plain, chosen, grown, run
from tests.workflows.hostile_store import ATTACKS


def rollouts(folder, policy, rate, *, seed=0, tasks=6, attempts=3, scored=True):
    """Rollouts of a policy that solves a task with some chance; one episode broke."""
    drawn = random.Random(seed)
    runs = []
    for number in range(tasks):
        level = ("easy", "hard")[number % 2]
        for attempt in range(attempts):
            good = drawn.random() < rate
            runs.append(
                run(
                    f"task-{number}", attempt, agent_name=policy, agent_model="tiny",
                    success=good, reward=float(good), final_answer="2" if good else "7",
                    truncated=not good, stop_reason="answer" if good else "max_turns",
                    total_tokens_in=100, total_tokens_out=10 + attempt, split="test",
                    extra=json.dumps({"environment": "sums", "seed": 10 * number + attempt}),
                    task=Task(task_id=f"task-{number}", dataset="sums", difficulty=level,
                              answers='["2"]', extra=json.dumps({"category": "sum"})),
                )
            )  # fmt: skip
            if not good:
                wrong(runs[-1])
    runs.append(
        run("task-0", attempts, agent_name=policy, success=None, error_type="infrastructure",
            error_message="the server failed", stop_reason="http_500", task=None)
    )  # fmt: skip
    store = grown(folder, *runs)
    if scored:
        score_store(store, [chosen(Plain())])
    return store


def wrong(trajectory):
    """Let the second step be a call that fails."""
    call = ToolCall(call_id="x", kind="function", name="lookup", arguments="{}",
                    arguments_kind="object")  # fmt: skip
    result = Observation(source="environment", call_step=2, call=0, call_id="x", text="no such key",
                         is_error=True, error_type="execution")  # fmt: skip
    trajectory.steps[2:] = [
        Step(source="agent", kind="llm_turn", calls=[call], observations=[result]),
        *trajectory.steps[2:],
    ]


def hostile_rollouts(folder, attacks=ATTACKS):
    """Rollouts with an attack in everything that a report shows, and scores that hold them too."""
    runs = []
    for number, text in enumerate(attacks):
        task = f"{number} {text}"
        entry = run(
            task, number, agent_name=text, agent_model=text, dataset=text, split=text,
            success=number % 2 == 0, final_answer=text, stop_reason=text, error_message=text,
            error_type="infrastructure" if number % 7 == 6 else None, judge=json.dumps(text),
            extra=json.dumps({"environment": text, "seed": text}),
            task=Task(task_id=task, dataset=text, difficulty=text, environment=text,
                      extra=json.dumps({"category": text})),
        )  # fmt: skip
        for step in entry.steps:
            step.text = text
            for call in step.calls:
                call.name = text
            for result in step.observations:
                result.text, result.is_error, result.error_type = text, True, text
        runs.append(entry)
    return grown(folder, *runs)


class Loud(Plain):
    """Names its metrics, reasons and figures after the trajectory."""

    name, version = "<script>alert(1)</script>", "1"

    def score(self, item):
        from adp.eval.scorer import Score

        text = item.trajectory.final_answer or ""
        return [Score(text[:1000], 0.5), Score("x", None, text, evidence={text: text})]


def hostile_scores(store: Store):
    """Score hostile rollouts by a scorer whose every word is an attack."""
    score_store(store, [chosen(Loud())])
    return store
