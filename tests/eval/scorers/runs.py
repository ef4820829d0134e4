"""Small runs for tests of scorers."""

from __future__ import annotations

import json

from adp.core.registry import Registry
from adp.eval.scorer import SCORERS, Item, Scored
from adp.rollouts.spec import load
from adp_schema.model import Observation, Step, Task, ToolCall, Trajectory

assert isinstance(SCORERS, Registry)

OURS = (
    "agent_reward",
    "agent_training",
    "answer",
    "capability",
    "conciseness",
    "efficiency",
    "et_agent",
    "execution",
    "format",
    "judge",
    "m3",
    "outcome",
    "plan_evaluator",
    "planning",
    "reasoning_length",
    "schema_validity",
    "tool_f1",
    "tool_productivity",
    "tool_verifier",
    "trajectory_match",
)


def scorer(spec, **more):
    """A scorer by its spec, as a user writes it."""
    kind, settings = load(SCORERS, spec, **more)
    return kind.make(settings)


def call(name, arguments=None, result=None, **columns):
    """A call, and the text or the columns of its result."""
    return {"name": name, "arguments": arguments, "result": result, **columns}


def turn(*calls, text=None, **columns):
    """A turn of the agent."""
    step = Step(source="agent", kind="llm_turn", text=text, **columns)
    for index, given in enumerate(calls):
        arguments, result = given.pop("arguments"), given.pop("result")
        written = arguments if isinstance(arguments, str) else json.dumps(arguments or {})
        step.calls.append(ToolCall(call=index, call_id=None, **_arguments(written), **given))
        if result is not None:
            columns = result if isinstance(result, dict) else {"text": result}
            step.observations.append(Observation(call=index, **columns))
    return step


def _arguments(text):
    try:
        json.loads(text)
    except ValueError:
        return {"arguments_raw": text, "arguments_kind": "invalid"}
    return {"arguments": text, "arguments_kind": "json_string"}


def run(*steps, task=None, request="What is to be done?", **columns):
    """A trajectory, as what a scorer sees."""
    listed = [Step(source="user", kind="message", text=request), *steps]
    for number, step in enumerate(listed):
        step.step = number
        for row in (*step.calls, *step.observations):
            row.step = number
        for row in step.observations:
            row.call_step = number
    columns.setdefault("trajectory_id", "d/1")
    return Item(Trajectory(steps=listed, **columns), Task(task_id="t", **task) if task else None)


def tools(**schemas):
    """The column ``tools``: a name and the properties of its arguments, all of them required."""
    return json.dumps(
        [
            {
                "type": "function",
                "function": {
                    "name": name,
                    "parameters": {
                        "type": "object",
                        "properties": properties,
                        "required": list(properties),
                    },
                },
            }
            for name, properties in schemas.items()
        ]
    )


def values(value):
    """Metric -> value."""
    return {score.metric: score.value for score in value}


def reasons(value):
    """Metric -> reason."""
    return {score.metric: score.reason for score in value}


def rows(value, trajectory="a", task="a"):
    """Scores as rows."""
    return [Scored(trajectory, task, 0, score) for score in value]


def figures(scorer, *items):
    """Name -> figure, over several runs, each of its own task."""
    listed = [
        row
        for number, item in enumerate(items)
        for row in rows(scorer.score(item), str(number), str(number))
    ]
    return {figure.name: figure for figure in scorer.figures(listed)}
