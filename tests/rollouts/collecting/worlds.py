"""A small world for tests of experts: pairs of letters that must be looked up in order."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence
from typing import Any

from adp.rollouts.collecting.episode import run_episode
from adp.rollouts.collecting.limits import Limits
from adp.rollouts.collecting.recorder import About
from adp.rollouts.environment import CannotForkError, Start, Verdict
from adp.rollouts.experts.judges import Judges
from adp.rollouts.experts.modes import Assistance
from adp.rollouts.experts.settings import AssistSettings
from adp.rollouts.policies.scripted import Scripted
from adp.rollouts.tool_environment import ToolEnvironment
from adp.rollouts.tools import FunctionTool, ToolError
from adp.rollouts.turns import Call, Outcome, Turn
from adp_schema.model import Task, Trajectory

KEY = {"type": "object", "properties": {"key": {"type": "string"}}, "required": ["key"]}
VALUES = {"a": "b", "b": "c", "c": "d"}


class Chain(ToolEnvironment):
    """``look(key)`` gives the next letter; ``count`` is how often it was called.

    Args:
        questions: what the user asks after the first question was answered.
        read_only: whether the tool says that it changes nothing.
        forks: whether it can be forked.
    """

    def __init__(
        self, questions: Sequence[str] = (), *, read_only: bool = False, forks: bool = True
    ) -> None:
        super().__init__()
        self.questions = list(questions)
        self.count = 0
        self.read_only = read_only
        self.forks = forks
        self.closed = 0

    def offered(self) -> list[FunctionTool]:
        def look(key: str) -> dict[str, Any]:
            self.count += 1
            if key not in VALUES:
                raise ToolError(f"nothing lies at {key}")
            return {"value": VALUES[key], "count": self.count}

        return [FunctionTool("look", "Looks.", KEY, look, self.read_only)]

    def reset(self, task: Task | None = None, *, seed: int | None = None) -> Start:
        self.count = 0
        return super().reset(task, seed=seed)

    def finish(self, turn: Turn) -> Outcome:
        if self.questions:
            return Outcome(messages=(self.questions.pop(0),), answer=turn.text)
        return super().finish(turn)

    def fork(self) -> Chain:
        if not self.forks:
            raise CannotForkError("Chain has a door")
        return super().fork()

    def score(self, trajectory: Trajectory) -> Verdict:
        return Verdict(success=trajectory.final_answer == "d")

    def close(self) -> None:
        self.closed += 1


class Knowing(Chain):
    """A chain that knows what to do next: it looks at the letters in order, once each."""

    asked = 0

    def step(self, turn: Turn) -> Outcome:
        outcome = super().step(turn)
        for result in outcome.results:
            if result.error is None:
                self.known = result.structured["value"]
        return outcome

    known = "a"

    def expert_turn(self) -> Turn:
        return Turn(text="d") if self.known == "d" else look(self.known)


def look(key: str, thought: str | None = None) -> Turn:
    """A call of the tool."""
    return Turn(calls=(Call("look", json.dumps({"key": key})),), reasoning=thought)


def gold_turn(question: str, keys: str, answer: str) -> list[dict[str, Any]]:
    """A turn of a reference run in M3's form."""
    items: list[dict[str, Any]] = [{"input": question}]
    for key in keys:
        output = {"name": "look", "arguments": {"key": key}}
        plan = {"plan": f"gold thought {key}", "question": f"what is at {key}?"}
        items += [{**plan, "agent": "api_agent", "output": output}]
        items += [{"response": f"{{'value': '{VALUES[key]}'}}"}]
    return [*items, {"plan": "all seen", "answer": answer, "raw_answer": answer}]


GOLD = [gold_turn("Where does a lead?", "abc", "d")]
TASK = Task(task_id="t1", instruction="Where does a lead?", gold_trajectory=json.dumps(GOLD))


def play(
    script: Any,
    *,
    environment: ToolEnvironment | None = None,
    task: Task = TASK,
    judges: Judges | None = None,
    limits: Limits | None = None,
    attempt: int = 0,
    seed: int = 0,
    **settings: Any,
) -> Trajectory:
    """One assisted episode."""
    policy = None if script is None else Scripted(script)
    assistance = Assistance(AssistSettings(**settings), policy, judges or Judges())
    about = About("chain", attempt, task, "script", "chain", seed, timed=False)
    world = environment or Chain()
    return asyncio.run(run_episode(about, world, assistance.actor(), limits or Limits()))


def facts_of(run: Trajectory) -> dict[str, Any]:
    """What is kept of the assistance."""
    expert_assistance: dict[str, Any] = json.loads(run.extra or "{}")["run_metadata"][
        "expert_assistance"
    ]
    return expert_assistance


def acts(run: Trajectory) -> list[str]:
    """The turns in short: ``a:look b`` is the agent's call, ``e:=d`` the expert's answer."""
    results = []
    for step in run.steps:
        if step.source == "agent":
            calls = [json.loads(call.arguments or "{}").get("key", "?") for call in step.calls]
            what = f"look {','.join(map(str, calls))}" if calls else f"={step.text}"
            results.append(f"{(step.actor or '-')[0]}:{what}")
    return results


def labels(run: Trajectory) -> list[list[str]]:
    """The labels of the turns, without what M3 puts before them."""
    return [
        [label.removeprefix("REWARD_") for label in step.labels or []]
        for step in run.steps
        if step.source == "agent"
    ]


Script = Sequence[Turn] | Callable[[Any], Turn]
