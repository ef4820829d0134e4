"""A draft is carried out: its calls in a fresh environment, one a turn, and then the answer."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from adp.core.json_values import json_object
from adp.rollouts.collecting.actor import Acted, ActorView, Reflection
from adp.rollouts.collecting.episode import run_episode
from adp.rollouts.collecting.limits import Limits
from adp.rollouts.collecting.plan import episode_seed
from adp.rollouts.collecting.recorder import About
from adp.rollouts.environment import AsyncEnvironment, Environment, Start, Verdict, as_async
from adp.rollouts.generators.drafts import (
    CandidateResult,
    Draft,
    FromResult,
    NoValueError,
    PlannedCall,
    key_of,
    looked_up,
    spoken,
    value_of,
)
from adp.rollouts.policy import Request
from adp.rollouts.turns import Call, Outcome, Result, Tool, Turn
from adp_schema.model import Task, Trajectory

KEY = "generator"
"""Key of the column ``extra`` that says where a trajectory comes from."""

ANSWER = "The answer is {result}."
_LONGEST_RESULT = 300
_PLACE = re.compile(r"\{(\w+(?:\.\w+)*)\}")

RULE = "every call of the plan was carried out without an error"


def resolved(call: PlannedCall, results: Sequence[Result]) -> str:
    """The arguments of a call as JSON, with what is looked up in earlier results.

    Raises:
        NoValueError: a result does not hold what is looked up.
    """
    if isinstance(call.arguments, str):
        return call.arguments
    values = {
        name: value.value(results) if isinstance(value, FromResult) else value
        for name, value in call.arguments.items()
    }
    return json.dumps(values, ensure_ascii=False)


def filled(text: str, members: Mapping[str, Any]) -> str:
    """A text whose ``{name}`` and ``{name.member}`` are put in.

    Raises:
        NoValueError: there is no such member.
    """
    return _PLACE.sub(lambda match: spoken(looked_up(members, match[1].split("."))), text)


class PlanActor:
    """Makes the turns of a draft; it stops at the first call that goes wrong.

    Args:
        draft: the draft.
        answer: text of the answer where the draft has none.
    """

    def __init__(self, draft: Draft, answer: str = ANSWER) -> None:
        self._draft, self._form = draft, draft.answer or answer
        self.wrong: str | None = None
        """What could not be looked up."""

    async def act(self, request: Request, view: ActorView) -> Acted:
        """The next call, what is said between two questions, or the answer."""
        results = [result for past in view.past for result in past.outcome.results]
        calls, made = self._draft.calls, len(results)
        answered = sum(not past.acted.turn.calls for past in view.past)
        try:
            if any(result.error for result in results):
                return Acted(Turn(text=""))
            if self._draft.queries and made > answered:
                return Acted(Turn(text=self._answer(self._form, results)))
            if made < len(calls):
                call = Call(calls[made].tool, resolved(calls[made], results))
                return Acted(Turn(calls=(call,)))
            return Acted(Turn(text=self._answer(self._form, results)))
        except NoValueError as error:
            self.wrong = str(error)
            return Acted(Turn(text=""))

    def _answer(self, form: str, results: Sequence[Result]) -> str:
        if not results:
            return filled(form, {"result": ""})
        value = value_of(results[-1])
        text = spoken(value) if not isinstance(value, dict | list) else results[-1].text
        if len(text) > _LONGEST_RESULT:
            text = text[: _LONGEST_RESULT - 3] + "..."
        members = dict(value) if isinstance(value, Mapping) else {}
        return filled(form, {**members, "result": text})

    async def reflect(self, request: Request, view: ActorView) -> Reflection:
        """Nothing to add."""
        return Reflection()

    def summary(self) -> Mapping[str, Any]:
        """Nothing to keep."""
        return {}

    async def close(self) -> None:
        """Nothing to free."""


class AskingAgain:
    """An environment in which the user asks again after each answer.

    Args:
        inner: the environment.
        queries: what is asked, turn by turn; the first one is the instruction.
    """

    def __init__(self, inner: Environment | AsyncEnvironment, queries: Sequence[str]) -> None:
        self._inner, self._left = as_async(inner), list(queries[1:])

    def tools(self) -> Sequence[Tool]:
        """The tools on offer now."""
        return self._inner.tools()

    async def reset(self, task: Task | None = None, *, seed: int | None = None) -> Start:
        """Begin with the first question."""
        return await self._inner.reset(task, seed=seed)

    async def step(self, turn: Turn) -> Outcome:
        """Carry out a turn; an answer brings the next question, the last one ends it."""
        if turn.text and not turn.calls and self._left:
            return Outcome(messages=(self._left.pop(0),))
        return await self._inner.step(turn)

    async def score(self, trajectory: Trajectory) -> Verdict:
        """Judge the finished episode."""
        return await self._inner.score(trajectory)

    def fork(self) -> AskingAgain:
        """An independent copy in the same state."""
        return AskingAgain(self._inner.fork(), ["", *self._left])

    async def close(self) -> None:
        """Free what it holds."""
        await self._inner.close()


@dataclass(frozen=True)
class DraftRunner:
    """Carries drafts out in fresh environments.

    Attributes:
        environments: makes the environment of an episode.
        dataset: data set of the trajectories.
        generator: name of the generator.
        seed: seed of the run.
        environment: name of the environment.
        split: split of the samples.
        tasks: tasks of the environment that worlds are taken from, in turn; none: the
            environment needs no more than an instruction.
        answer: text of answers, with ``{result}``.
        limits: budgets of an episode.
    """

    environments: Callable[[], Environment | AsyncEnvironment]
    dataset: str
    generator: str
    seed: int = 0
    environment: str | None = None
    split: str | None = None
    tasks: Sequence[Task] = ()
    answer: str = ANSWER
    limits: Limits = field(default_factory=Limits)

    def task(self, draft: Draft, name: str) -> Task:
        """The task of a draft: of a world of the environment, where it has any."""
        task = Task(
            task_id=f"{self.generator}-{self.seed}/{name}",
            dataset=self.dataset,
            split=self.split,
            instruction=draft.queries[0] if draft.queries else draft.instruction,
            environment=self.environment,
        )
        if not self.tasks:
            return task
        world = self.tasks[episode_seed(self.seed, name, 0) % len(self.tasks)]
        kept = task.model_dump(exclude_none=True)
        return world.model_copy(update={**kept, "answers": None, "expected_calls": None})

    async def run(self, draft: Draft, name: str) -> CandidateResult:
        """Carry a draft out in a fresh environment.

        Args:
            draft: the draft.
            name: id of the candidate.
        """
        about = About(
            dataset=self.dataset,
            task=self.task(draft, name),
            policy=self.generator,
            environment=self.environment,
            seed=episode_seed(self.seed, name, 0),
            timed=False,
        )
        actor = PlanActor(draft, self.answer)
        environment = self.environments()
        if draft.queries:
            environment = AskingAgain(environment, draft.queries)
        trajectory = await run_episode(about, environment, actor, self.limits)
        reason = self._reason(draft, trajectory, actor)
        if reason is not None:
            texts = [seen.text for step in trajectory.steps for seen in step.observations]
            return CandidateResult(
                trajectory, reason, {"said": actor.wrong or (texts[-1] if texts else None)}
            )
        self._finish(draft, trajectory, name)
        return CandidateResult(trajectory)

    def _reason(self, draft: Draft, trajectory: Trajectory, actor: PlanActor) -> str | None:
        """Why a run is not kept, in a word or two; None when all is well."""
        if trajectory.error_type is not None:
            return f"broken: {trajectory.error_type}"
        if actor.wrong is not None:
            return "no value"
        seen = [result for step in trajectory.steps for result in step.observations]
        wrong = next((result.error_type or "error" for result in seen if result.is_error), None)
        if wrong is not None:
            return wrong
        if any(reports_error(result.structured or result.text or "") for result in seen):
            return "error result"
        if len(seen) != len(draft.calls) or any(result.call is None for result in seen):
            return "no result"
        return None

    def _finish(self, draft: Draft, trajectory: Trajectory, name: str) -> None:
        """Write down where it comes from, what is right, and that it was verified."""
        calls = made_calls(trajectory)
        task = trajectory.task
        assert task is not None
        task.instruction = draft.instruction
        task.expected_calls = json.dumps([{"name": n, "arguments": a} for n, a in calls])
        if draft.queries:
            task.turns = json.dumps([{"query": query} for query in draft.queries])
        answer = _plain_answer(trajectory)
        task.answers = None if answer is None else json.dumps([answer])
        stream, _, number = name.rpartition("/")
        members = {
            "name": self.generator,
            "stream": stream,
            "candidate": int(number),
            "seed": self.seed,
            "key": key_of(draft.instruction, calls),
            **draft.origin,
        }
        extra = {**json_object(trajectory.extra), KEY: members}
        trajectory.extra = json.dumps(extra, ensure_ascii=True)
        trajectory.success, trajectory.reward, trajectory.rewards = True, None, None
        trajectory.judge = json.dumps({"rule": RULE})


def made_calls(trajectory: Trajectory) -> list[tuple[str, Any]]:
    """Name and arguments of the calls of a trajectory, in order."""
    return [
        (str(call.name), json_object(call.arguments))
        for step in trajectory.steps
        for call in step.calls
    ]


def reports_error(value: str) -> bool:
    """Whether a result is an object with a member ``error`` that says something."""
    return bool(json_object(value).get("error"))


def _plain_answer(trajectory: Trajectory) -> str | None:
    """The last result, where it is one value; that is the answer which is right."""
    last = [seen for step in trajectory.steps for seen in step.observations][-1:]
    for seen in last:
        value = value_of(Result(seen.text or "", structured=json.loads(seen.structured or "null")))
        if not isinstance(value, dict | list) and len(spoken(value)) <= _LONGEST_RESULT:
            return spoken(value)
    return None
