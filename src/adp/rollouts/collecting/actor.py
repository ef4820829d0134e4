"""Who acts in an episode: a policy alone, or a policy and an expert that take turns."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from adp.rollouts.environment import AsyncEnvironment
from adp.rollouts.policy import Policy, Request
from adp.rollouts.turns import Outcome, Turn


@dataclass(frozen=True, slots=True)
class Acted:
    """A turn and who made it.

    Attributes:
        turn: the turn.
        actor: ``agent``, ``expert``, or a name; None when there is only one.
    """

    turn: Turn
    actor: str | None = None


@dataclass(frozen=True, slots=True)
class Alternate:
    """A turn that was not taken, with what it would have brought; a branch of the trajectory.

    Attributes:
        turn: the turn.
        outcome: what a fork of the environment answered.
        actor: who made it.
    """

    turn: Turn
    outcome: Outcome
    actor: str


@dataclass
class Past:
    """One turn that was carried out.

    Attributes:
        acted: the turn and its actor.
        outcome: what it brought.
    """

    acted: Acted
    outcome: Outcome


@dataclass
class ActorView:
    """What an actor sees of the episode besides the request.

    Attributes:
        environment: the world; an actor may fork it, and must not step it.
        past: what was carried out so far.
        fork: makes the episode as it is now, in a fork of the world, for a `Followed`; raises
            CannotForkError. None where nothing can be followed.
    """

    environment: AsyncEnvironment
    past: Sequence[Past]
    fork: Callable[[], Any] | None = None


@dataclass(frozen=True, slots=True)
class Followed:
    """A turn that was not taken and is followed to the end: a branch with an outcome of its own.

    Attributes:
        state: the episode before that turn, from `ActorView.fork`.
        actor: who plays it; its first turn is the one that was not taken.
    """

    state: Any
    actor: Actor


@dataclass(frozen=True, slots=True)
class Reflection:
    """What an actor adds to a turn after it was carried out.

    Attributes:
        alternates: turns that were not taken.
        labels: labels for the step, besides those of the environment.
        followed: turns that were not taken, which are followed when the episode has ended.
    """

    alternates: tuple[Alternate, ...] = ()
    labels: tuple[str, ...] = ()
    followed: tuple[Followed, ...] = ()


class Actor(Protocol):
    """Makes the turns of one episode; a new one for each episode."""

    async def act(self, request: Request, view: ActorView) -> Acted:
        """The next turn.

        Raises:
            InfrastructureError: no answer could be had.
        """
        ...

    async def reflect(self, request: Request, view: ActorView) -> Reflection:
        """Called after each turn; the turn is the last of ``view.past``."""
        ...

    def summary(self) -> Mapping[str, Any]:
        """What to keep with the trajectory: keys of its column ``extra``; JSON."""
        ...

    async def close(self) -> None:
        """Free what it holds, when the episode has ended or was cut."""
        ...


@dataclass(frozen=True)
class Alone:
    """A policy that acts alone. It is the actor of all episodes, and makes it.

    Attributes:
        policy: the policy.
    """

    policy: Policy

    @property
    def name(self) -> str:
        """Name of the agent."""
        return self.policy.name

    def __call__(self, about: object) -> Alone:
        """The actor of an episode."""
        return self

    async def act(self, request: Request, view: ActorView) -> Acted:
        """The policy's turn."""
        return Acted(await self.policy.act(request))

    async def reflect(self, request: Request, view: ActorView) -> Reflection:
        """Nothing to add."""
        return Reflection()

    def summary(self) -> Mapping[str, Any]:
        """Nothing to keep."""
        return {}

    async def close(self) -> None:
        """Nothing to free."""
