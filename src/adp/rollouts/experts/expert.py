"""Experts: one that walks a reference run, and one that asks the environment."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from adp.rollouts.collecting.actor import ActorView
from adp.rollouts.environment import InThread
from adp.rollouts.experts.history import (
    ActionResult,
    ErrorRule,
    call_key,
    current,
    is_final,
    items,
    user_turn,
)
from adp.rollouts.experts.judges import Asked, Judges, Observed
from adp.rollouts.experts.reference_run import GoldStep, GoldTurn, gold_of
from adp.rollouts.policy import Request
from adp.rollouts.step_rewards import StepRewarded
from adp.rollouts.turns import Turn
from adp_schema.model import Task

UNREAD = "; what this task has holds no call that can be read"


@dataclass(frozen=True, slots=True)
class Advice:
    """What an expert would do.

    Attributes:
        turn: its turn.
        place: where it then stands; for `Expert.took`.
    """

    turn: Turn
    place: Any = None


class Expert(Protocol):
    """Knows what to do next in one episode."""

    async def advise(self, request: Request, view: ActorView) -> Advice | None:
        """What it would do in this state; None when it does not know. It changes nothing."""
        ...

    def took(self, advice: Advice) -> None:
        """Its advice was carried out."""
        ...

    def copied(self, asked: Asked) -> Expert:
        """One that goes on from the same place by itself.

        Args:
            asked: asks the witness.
        """
        ...

    def plan(self, view: ActorView) -> tuple[str, ...]:
        """Questions that lead to the answer, in order, for the overseer; empty: not known."""
        ...


@dataclass
class LinearExpert:
    """Walks the reference run and leaves out what the agent knows already.

    Source: m3-train-eval, ``LinearExpert``: a machine with one state for each action of the
    reference run. When nothing but errors was seen, it takes the next action as it is. Else it
    leaves out the actions whose response the witness finds in what was seen; the answer is never
    left out.

    Attributes:
        gold: the reference run by turns of the user.
        asked: asks the witness. Without one an action is known when the same call was answered, or
            when its recorded response was seen, without an error.
        literal: never leave anything out (mode ``ground_truth``).
        errors: what an error is.
    """

    gold: Sequence[GoldTurn]
    asked: Asked = field(default_factory=lambda: Asked(Judges()))
    literal: bool = False
    errors: ErrorRule = "typed"
    _index: dict[int, int] = field(default_factory=dict)

    async def advise(self, request: Request, view: ActorView) -> Advice | None:
        """The next action of the reference run that brings something new."""
        number = user_turn(view.past)
        if number >= len(self.gold):
            return None
        steps = self.gold[number].steps
        index = self._index.get(number, 0)
        seen = [item for item in items(current(view.past), self.errors) if not item.error]
        while index < len(steps):
            step = steps[index]
            if self.literal or not seen or is_final(step.turn):
                return self._advice(number, index, step)
            if not await self._known(step, seen, request):
                return self._advice(number, index, step)
            index += 1
        return None

    def took(self, advice: Advice) -> None:
        """Go on behind that action."""
        number, index = advice.place
        self._index[number] = index

    def copied(self, asked: Asked) -> LinearExpert:
        """One that stands at the same action."""
        return replace(self, asked=asked, _index=dict(self._index))

    def plan(self, view: ActorView) -> tuple[str, ...]:
        """The questions of the reference run."""
        number = user_turn(view.past)
        return self.gold[number].plan if number < len(self.gold) else ()

    def _advice(self, number: int, index: int, step: GoldStep) -> Advice:
        # An answer that did not end the turn is given again.
        behind = index if is_final(step.turn) else index + 1
        return Advice(step.turn, (number, behind))

    async def _known(self, step: GoldStep, seen: Sequence[ActionResult], request: Request) -> bool:
        question = Observed(
            query=query_of(request),
            action=step.turn,
            response=step.response,
            history=seen,
            seed=request.seed,
        )
        observed_turn = await self.asked.observed(question)
        return was_seen(question) if observed_turn is None else observed_turn


def was_seen(question: Observed) -> bool:
    """A witness that compares: the same calls were answered, or the same response was seen."""
    wanted = {call_key(call) for call in question.action.calls}
    called = {call_key(item.call) for item in question.history if item.call is not None}
    if wanted <= called:
        return True
    response = (question.response or "").strip()
    return bool(response) and any(response in item.observation for item in question.history)


@dataclass
class EnvironmentExpert:
    """Asks the environment: its method ``expert_turn()`` gives the next turn from its state."""

    async def advise(self, request: Request, view: ActorView) -> Advice | None:
        """The turn that the environment gives."""
        method = expert_turn_of(view.environment)
        result = method() if method is not None else None
        if inspect.isawaitable(result):
            result = await result
        return None if result is None else Advice(result)

    def took(self, advice: Advice) -> None:
        """Nothing to remember; the environment has the state."""

    def copied(self, asked: Asked) -> EnvironmentExpert:
        """The same; it remembers nothing."""
        return self

    def plan(self, view: ActorView) -> tuple[str, ...]:
        """Not known."""
        return ()


def expert_for(
    task: Task | None,
    environment: Any,
    source: str,
    asked: Asked,
    *,
    literal: bool = False,
    errors: ErrorRule = "typed",
) -> Expert | None:
    """The expert of an episode.

    Args:
        task: may hold the reference run.
        environment: may have ``expert_turn()``, or ``gold_turns()`` when it rewrites the
            reference run, for example because a tool is missing.
        source: ``environment``, ``gold``, or ``auto``: the first of these that is there.
        asked: asks the witness.
        literal: never leave an action out.
        errors: what an error is.

    Returns:
        The expert; None when neither source has anything.
    """
    if source in ("auto", "environment") and expert_turn_of(environment) is not None:
        return EnvironmentExpert()
    if source in ("auto", "gold"):
        child = inner_of(environment)
        reference_turns = getattr(child, "gold_turns", None)
        gold = tuple(reference_turns()) if callable(reference_turns) else gold_of(task)
        if gold:
            return LinearExpert(gold, asked, literal, errors)
    return None


def no_expert(mode: str) -> str:
    """The sentence for a task that nobody knows how to do."""
    alone = mode == "ground_truth"
    return (
        f"the {'policy' if alone else 'mode'} '{'expert' if alone else mode}' needs an expert who "
        "knows the next step; this environment has none (toolworld has), and the task no reference "
        "run to follow (gold_trajectory or expected_calls): choose another "
        f"{'policy' if alone else 'mode'}, or tasks with a reference run"
    )


def expert_turn_of(environment: Any) -> Any:
    """The method ``expert_turn`` of an environment; None when it has none."""
    method = getattr(inner_of(environment), "expert_turn", None)
    return method if callable(method) else None


def inner_of(environment: Any) -> Any:
    """The environment itself, when it is one made asynchronous, or its steps are rewarded."""
    while isinstance(environment, InThread | StepRewarded):
        environment = environment.inner
    return environment


def query_of(request: Request) -> str:
    """What the user said last."""
    for message in reversed(request.messages):
        if message.get("role") == "user":
            return _text(message)
    return ""


def _text(message: Mapping[str, Any]) -> str:
    content = message.get("content")
    return content if isinstance(content, str) else str(content or "")
