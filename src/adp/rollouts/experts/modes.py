"""A policy and an expert that take turns: M3's modes of assistance.

- ``none``: the agent always acts.
- ``ground_truth``: the expert always acts, as the reference run says, thoughts unchanged.
- ``random``: each turn is the expert's with ``expert_probability``.
- ``informed``: the agent acts; the expert acts after a step at which the rules of
  `adp.rollouts.experts.rules` asked for it, and whenever the agent proposes an answer. So every
  answer is the expert's.

In the mode ``informed`` a turn of the other actor is kept beside some steps, as a branch: beside a
step of the expert that is no answer, what the agent would have done; beside a bad step of the
agent, what the expert would have done. It was really carried out, on the side
(`adp.rollouts.experts.counterfactual`).

Source: m3-train-eval. What differs is told in ``docs/experts.md``.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from adp.rollouts.collecting.actor import Acted, ActorView, Alternate, Past, Reflection
from adp.rollouts.collecting.recorder import About
from adp.rollouts.environment import AsyncEnvironment, Environment
from adp.rollouts.experts.counterfactual import ReadOnly, aside_of, numbered
from adp.rollouts.experts.expert import Advice, Expert, expert_for, inner_of, query_of
from adp.rollouts.experts.history import AGENT, EXPERT, current, is_final, items
from adp.rollouts.experts.judges import Asked, Judges, Stuck, Thought
from adp.rollouts.experts.labels import STUCK, added, erroneous
from adp.rollouts.experts.reference_run import gold_of
from adp.rollouts.experts.rules import Why, help_needed
from adp.rollouts.experts.settings import AssistSettings
from adp.rollouts.policy import Policy, Request
from adp.rollouts.turns import Turn
from adp_schema.errors import UsageError
from adp_schema.model import Task


def no_expert(mode: str) -> str:
    """The sentence for a task that nobody knows how to do."""
    alone = mode == "ground_truth"
    return (
        f"the {'policy' if alone else 'mode'} '{'expert' if alone else mode}' needs an expert who "
        "knows the next step; this environment has none (toolworld has), and the task no reference "
        "run to follow (gold_trajectory or expected_calls): choose another "
        f"{'policy' if alone else 'mode'}, or tasks with a reference run"
    )


UNREAD = "; what this task has holds no call that can be read"


@dataclass
class Assistance:
    """How the episodes of a run are assisted; it makes an actor for each.

    Attributes:
        settings: mode and limits.
        policy: the agent; it may be None in the mode ``ground_truth``.
        judges: whom the actors may ask.
    """

    settings: AssistSettings
    policy: Policy | None = None
    judges: Judges = field(default_factory=Judges)

    def __post_init__(self) -> None:
        if self.policy is None and self.settings.mode != "ground_truth":
            raise UsageError(f"the mode '{self.settings.mode}' needs a policy for the agent")

    def actor(self) -> AssistedActor:
        """The actor of one episode."""
        return AssistedActor(self.settings, self.policy, self.judges)

    def __call__(self, about: About) -> AssistedActor:
        """The same, for a rollout of many episodes."""
        return self.actor()

    @property
    def name(self) -> str:
        """Name of the agent."""
        return self.policy.name if self.policy is not None else "expert"

    def missing(self, task: Task | None, environment: Environment | Any) -> str | None:
        """Why a task has to be left out; None when it can be done.

        Args:
            task: the task.
            environment: one of those that the task would run in.
        """
        settings = self.settings
        if settings.mode == "none":
            return None
        # Before it is reset, an environment that rewrites reference runs knows none.
        if settings.expert in ("auto", "gold") and gold_of(task):
            return None
        expert = expert_for(task, environment, settings.expert, Asked(self.judges))
        if expert is not None:
            return None
        given = task is not None and (task.gold_trajectory or task.expected_calls)
        unread = given and settings.expert != "environment"
        return no_expert(settings.mode) + (UNREAD if unread else "")


@dataclass
class AssistedActor:
    """The actor of one episode: an agent, an expert, and the rule that says who acts.

    Attributes:
        settings: mode and limits.
        policy: the agent.
        judges: whom it may ask.
        tracker: who acted at each step: 0 the agent, 1 the expert.
    """

    settings: AssistSettings
    policy: Policy | None = None
    judges: Judges = field(default_factory=Judges)
    tracker: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._asked = Asked(self.judges)
        self._bad = frozenset(self.settings.bad_labels)
        self._counts: Counter[str] = Counter()
        self._expert: Expert | None = None
        self._help: Why | None = None
        self._counterfactual: AsyncEnvironment | None = None
        self._before: Request | None = None
        self._unused: Turn | None = None

    # ---- acting ----------------------------------------------------------------------------

    async def act(self, request: Request, view: ActorView) -> Acted:
        """The turn of whoever's turn it is.

        Raises:
            UsageError: the mode needs an expert and there is none, or alternates cannot be kept.
        """
        if self.settings.mode != "none" and self._expert is None:
            self._expert = self._begin(request, view)
        await self._forget()
        if self._keeps_alternates and request.turn == 0:
            self._remember(request, view)
        acted = await self._choose(request, view)
        if self._keeps_alternates and self._counterfactual is None and not is_final(acted.turn):
            self._remember(request, view)
        return acted

    def _remember(self, request: Request, view: ActorView) -> None:
        """Keep the state before the step. At the first turn this says whether it can be done."""
        # The list behind the messages goes on to grow.
        self._before = replace(request, messages=tuple(request.messages))
        self._counterfactual = aside_of(view.environment)

    async def _choose(self, request: Request, view: ActorView) -> Acted:
        settings = self.settings
        if settings.mode == "ground_truth":
            return await self._experts(request, view, "mode", None)
        if settings.mode == "random":
            draw = random.Random(f"assist/{request.seed}").random()
            if draw < settings.probability:
                return await self._experts(request, view, "random", None)
        if settings.mode == "informed" and self._help is not None:
            return await self._experts(request, view, self._help, None)
        turn = await self._agents(request)
        if settings.mode == "informed" and is_final(turn):
            self._unused = turn
            return await self._experts(request, view, "final", turn)
        return Acted(turn, AGENT)

    def _begin(self, request: Request, view: ActorView) -> Expert:
        expert = expert_for(
            request.task,
            view.environment,
            self.settings.expert,
            self._asked,
            literal=self.settings.mode == "ground_truth",
            errors=self.settings.errors,
        )
        if expert is None:
            raise UsageError(no_expert(self.settings.mode))
        return expert

    @property
    def _keeps_alternates(self) -> bool:
        return self.settings.mode == "informed" and self.settings.save_alternates

    async def _agents(self, request: Request) -> Turn:
        assert self.policy is not None
        return await self.policy.act(request)

    async def _experts(
        self, request: Request, view: ActorView, why: str, instead_of: Turn | None
    ) -> Acted:
        """The expert's turn; the agent's when the expert does not know what to do."""
        assert self._expert is not None
        advice = await self._advice(request, view)
        if advice is None:
            self._counts["expert_silent"] += 1
            self._unused = None
            if self.policy is None:
                return Acted(Turn(stop_reason="expert_silent"), EXPERT)
            return Acted(instead_of or await self._agents(request), AGENT)
        self._expert.took(advice)
        self._counts[f"expert_by_{why}"] += 1
        extra: dict[str, Any] = {"expert_because": why}
        if instead_of is not None:
            self._counts["answers_discarded"] += 1
            extra["discarded_answer"] = instead_of.text
        return Acted(replace(advice.turn, extra={**advice.turn.extra, **extra}), EXPERT)

    async def _advice(self, request: Request, view: ActorView) -> Advice | None:
        """What the expert would do, with its thought rewritten when it follows something."""
        assert self._expert is not None
        advice = await self._expert.advise(request, view)
        if advice is None or self.settings.mode == "ground_truth":
            return advice
        seen = [item for item in items(current(view.past), self.settings.errors) if not item.error]
        if not seen:
            return advice
        question = Thought(query_of(request), advice.turn, seen, request.seed)
        thought = await self._asked.thought(question)
        if thought is None:
            return advice
        return replace(advice, turn=replace(advice.turn, reasoning=thought))

    # ---- looking back ----------------------------------------------------------------------

    async def reflect(self, request: Request, view: ActorView) -> Reflection:
        """Say whether the agent is stuck, and try what the other actor would have done."""
        last = view.past[-1]
        self.tracker.append(1 if last.acted.actor == EXPERT else 0)
        labels = list(added(last.outcome))
        self._help = None
        if self.settings.mode == "informed" or self.judges.overseer is not None:
            self._help = await self._stuck(request, view)
            if self._help is not None:
                self._counts[f"stuck_by_{self._help}"] += 1
                labels.append(STUCK)
        alternates: tuple[Alternate, ...] = ()
        if self._keeps_alternates and not is_final(last.acted.turn):
            alternates = await self._alternates(last, labels, view)
        await self._forget()
        return Reflection(alternates, tuple(labels))

    async def _stuck(self, request: Request, view: ActorView) -> Why | None:
        settings = self.settings
        history = current(view.past)
        if not history or (history[-1].outcome.terminated and is_final(history[-1].acted.turn)):
            return None

        async def overseer() -> bool:
            plan = self._expert.plan(view) if self._expert is not None else ()
            seen = tuple(items(history, settings.errors))
            return await self._asked.stuck(Stuck(query_of(request), plan, seen, request.seed))

        return await help_needed(
            history,
            init_limit=settings.init_limit,
            recent_limit=settings.recent,
            overseer=overseer if self.judges.overseer is not None else None,
            errors=settings.errors,
        )

    async def _alternates(
        self, last: Past, labels: list[str], view: ActorView
    ) -> tuple[Alternate, ...]:
        """The other actor's turn from the state before the step, carried out on the side."""
        if self._counterfactual is None or self._before is None:
            return ()
        actor = AGENT if last.acted.actor == EXPERT else EXPERT
        turn: Turn | None = None
        if actor == AGENT:
            turn = self._unused or await self._agents(self._before)
        elif self._is_bad((*last.outcome.labels, *labels)):
            only_reads = isinstance(inner_of(self._counterfactual), ReadOnly)
            world = view.environment if only_reads else self._counterfactual
            advice = await self._advice(self._before, ActorView(world, view.past[:-1]))
            turn = advice.turn if advice is not None else None
        if turn is None:
            return ()
        turn = numbered(turn, self._before.turn)
        outcome = await self._counterfactual.step(turn)
        outcome = replace(outcome, labels=(*outcome.labels, *added(outcome)))
        self._counts[f"alternates_by_{actor}"] += 1
        return (Alternate(turn, outcome, actor),)

    def _is_bad(self, labels: tuple[str, ...]) -> bool:
        return erroneous(labels) or not self._bad.isdisjoint(labels)

    async def _forget(self) -> None:
        counterfactual = self._counterfactual
        self._counterfactual = self._before = self._unused = None
        if counterfactual is not None:
            await counterfactual.close()

    async def close(self) -> None:
        """Free what was kept for a turn that never came."""
        await self._forget()

    def summary(self) -> Mapping[str, Any]:
        """Mode, limits and tracker where runs of M3 have them."""
        settings = self.settings
        record = {
            "mode": settings.mode,
            "init_limit": settings.init_limit,
            "recent_limit": settings.recent,
            "expert_probability": settings.probability if settings.mode == "random" else None,
            "save_alternates": self._keeps_alternates,
            "tracker": list(self.tracker),
            "counts": dict(sorted((self._counts + self._asked.counts).items())),
        }
        return {"run_metadata": {"expert_assistance": record}}
