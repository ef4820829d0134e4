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
(`adp.rollouts.experts.counterfactual`). With ``alternates="end"`` such a turn is not tried alone:
its actor goes on from it to the end of the episode, in that fork, and the other actor's turns stand
beside its steps in the same way, up to ``alternate_depth``.

Source: m3-train-eval. What differs is told in ``docs/experts.md``.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from adp.rollouts.collecting.actor import (
    Acted,
    ActorView,
    Alternate,
    Followed,
    Past,
    Reflection,
)
from adp.rollouts.collecting.recorder import About
from adp.rollouts.environment import AsyncEnvironment, Environment
from adp.rollouts.experts.counterfactual import (
    BranchBudget,
    Lead,
    ReadOnly,
    aside_of,
    kept_state,
    numbered,
)
from adp.rollouts.experts.expert import (
    UNREAD,
    Advice,
    Expert,
    expert_for,
    inner_of,
    no_expert,
    query_of,
)
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

if TYPE_CHECKING:
    from adp.rollouts.collecting.episode import RunningEpisode


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
        lead: who plays a branch that is followed to the end; None: the episode itself.
        budget: how many branches the episode may still have; None: as the settings say.
    """

    settings: AssistSettings
    policy: Policy | None = None
    judges: Judges = field(default_factory=Judges)
    tracker: list[int] = field(default_factory=list)
    lead: Lead | None = None
    budget: BranchBudget | None = None

    def __post_init__(self) -> None:
        self.budget = self.budget or BranchBudget(self.settings.alternate_branches)
        self._asked = Asked(self.judges)
        self._bad = frozenset(self.settings.bad_labels)
        self._counts: Counter[str] = Counter()
        self._expert: Expert | None = None
        self._help: Why | None = None
        self._counterfactual: AsyncEnvironment | None = None
        self._before: Request | None = None
        self._unused: Turn | None = None
        self._state: RunningEpisode | None = None
        self._stood: Expert | None = None
        """The expert as it was before the step."""
        self._first: Acted | None = None
        """The turn that a branch begins with."""

    # ---- acting ----------------------------------------------------------------------------

    async def act(self, request: Request, view: ActorView) -> Acted:
        """The turn of whoever's turn it is.

        Raises:
            UsageError: the mode needs an expert and there is none, or alternates cannot be kept.
        """
        if self.settings.mode != "none" and self._expert is None:
            self._expert = self._begin(request, view)
        await self._forget()
        if self._first is not None:  # beside it stands the step that was taken
            first, self._first = self._first, None
            return first
        if self._keeps_alternates and self._expert is not None:
            self._stood = self._expert.copied(self._asked)
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
        if self.settings.follows:
            self._state = kept_state(view)
            self._counterfactual = self._state.environment
        else:
            self._counterfactual = aside_of(view.environment)

    async def _choose(self, request: Request, view: ActorView) -> Acted:
        settings = self.settings
        if self.lead is not None and self.lead.actor == EXPERT:
            return await self._experts(request, view, "alternate", None)
        if self.lead is not None:
            return Acted(await self._agents(request), AGENT)
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
        deep = self.lead is not None and self.lead.depth >= self.settings.alternate_depth
        return self.settings.mode == "informed" and self.settings.save_alternates and not deep

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
        followed: tuple[Followed, ...] = ()
        if self._keeps_alternates and not is_final(last.acted.turn):
            proposed = await self._proposed(last, labels, view)
            if proposed is not None and self._state is not None:
                followed = (self._followed(self._state, *proposed),)
            elif proposed is not None:
                alternates = (await self._tried(*proposed),)
        await self._forget()
        return Reflection(alternates, tuple(labels), followed)

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

    async def _proposed(
        self, last: Past, labels: list[str], view: ActorView
    ) -> tuple[Turn, str, Advice | None] | None:
        """The other actor's turn from the state before the step, and who makes it."""
        if self._counterfactual is None or self._before is None:
            return None
        actor = AGENT if last.acted.actor == EXPERT else EXPERT
        if actor == EXPERT and not self._is_bad((*last.outcome.labels, *labels)):
            return None
        assert self.budget is not None
        if self.settings.follows and not self.budget.left:
            self._counts["alternates_beyond_the_limit"] += 1
            return None
        advice = None
        if actor == AGENT:
            turn = self._unused or await self._agents(self._before)
        else:
            only_reads = isinstance(inner_of(self._counterfactual), ReadOnly)
            world = view.environment if only_reads else self._counterfactual
            advice = await self._advice(self._before, ActorView(world, view.past[:-1]))
            if advice is None:
                return None
            turn = advice.turn
        self._counts[f"alternates_by_{actor}"] += 1
        return numbered(turn, self._before.turn), actor, advice

    async def _tried(self, turn: Turn, actor: str, _: Advice | None) -> Alternate:
        """One turn, carried out on the side."""
        assert self._counterfactual is not None
        outcome = await self._counterfactual.step(turn)
        outcome = replace(outcome, labels=(*outcome.labels, *added(outcome)))
        return Alternate(turn, outcome, actor)

    def _followed(
        self, state: RunningEpisode, turn: Turn, actor: str, advice: Advice | None
    ) -> Followed:
        """The branch in which the actor of a turn goes on from it; the world is its own now."""
        assert self._stood is not None
        assert self.budget is not None
        self.budget.left -= 1
        self._counterfactual = self._state = None
        lead = Lead(actor, 1 if self.lead is None else self.lead.depth + 1)
        before = self.tracker[:-1]
        child = AssistedActor(self.settings, self.policy, self.judges, before, lead, self.budget)
        child._expert = self._stood.copied(child._asked)
        if advice is not None:
            child._expert.took(advice)
            turn = replace(turn, extra={**turn.extra, "expert_because": "alternate"})
        child._first = Acted(turn, actor)
        return Followed(state, child)

    def _is_bad(self, labels: tuple[str, ...]) -> bool:
        return erroneous(labels) or not self._bad.isdisjoint(labels)

    async def _forget(self) -> None:
        counterfactual = self._counterfactual
        self._counterfactual = self._before = self._unused = self._state = None
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
            "save_alternates": settings.mode == "informed" and settings.save_alternates,
            **self._place(),
            "tracker": list(self.tracker),
            "counts": dict(sorted((self._counts + self._asked.counts).items())),
        }
        return {"run_metadata": {"expert_assistance": record}}

    def _place(self) -> dict[str, Any]:
        """Where the branch stands, of alternates that are followed."""
        if not self.settings.follows:
            return {}
        limits = {"alternates": "end", "alternate_depth": self.settings.alternate_depth}
        if self.lead is None:
            return limits
        return {**limits, "depth": self.lead.depth, "lead": self.lead.actor}
