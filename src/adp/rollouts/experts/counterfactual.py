"""Carrying a turn out on the side: what another action would have brought.

It happens in a fork of the environment that was taken before the step. An environment that cannot
be forked will do when all its tools only read: then the calls are carried out beside the episode.
Anything else is refused when the episode begins.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from adp.rollouts.collecting.actor import ActorView
from adp.rollouts.environment import AsyncEnvironment, CannotForkError, Environment, as_async
from adp.rollouts.experts.expert import inner_of
from adp.rollouts.tool_environment import ToolEnvironment
from adp.rollouts.tools import FunctionTool
from adp.rollouts.turns import Turn
from adp_schema.errors import UsageError

if TYPE_CHECKING:
    from adp.rollouts.collecting.episode import RunningEpisode

_NO_FORK = (
    "alternates=end needs an environment that can be forked ({error}); leave it out for alternates "
    "of one step, where all tools only read, or set save_alternates=false"
)


@dataclass
class BranchBudget:
    """How many branches an episode may still have, at any depth.

    Attributes:
        left: so many.
    """

    left: int


@dataclass(frozen=True)
class Lead:
    """Who plays a branch that is followed to the end.

    Attributes:
        actor: ``agent`` or ``expert``.
        depth: turns that were not taken on the way to it.
    """

    actor: str
    depth: int


class ReadOnly(ToolEnvironment):
    """Tools that only read, called beside the episode. An answer is not judged."""


def aside_of(environment: AsyncEnvironment) -> AsyncEnvironment:
    """The world as it is now, for a turn on the side.

    Raises:
        UsageError: it can neither be forked nor do all its tools only read.
    """
    try:
        return environment.fork()
    except (CannotForkError, NotImplementedError) as error:
        tools = _offered(environment)
        if tools is not None and all(tool.read_only for tool in tools):
            readers = ReadOnly(tools)
            readers.blocking = bool(getattr(inner_of(environment), "blocking", False))
            return as_async(readers)
        raise UsageError(
            f"alternates need an environment that can be forked, or tools that only read "
            f"({error}); set save_alternates=false"
        ) from error


def kept_state(view: ActorView) -> RunningEpisode:
    """The episode as it is now, for an alternate that is followed to the end.

    Raises:
        UsageError: the world cannot be forked.
    """
    if view.fork is None:
        raise UsageError("alternates=end needs an episode that is run by run_episode")
    try:
        state: RunningEpisode = view.fork()
        return state
    except (CannotForkError, NotImplementedError) as error:
        raise UsageError(_NO_FORK.format(error=error)) from error


def check_forks(environment: Environment | Any) -> None:
    """Check, before anything is run, that an environment does not say it cannot be forked.

    Raises:
        UsageError: it says so.
    """
    try:
        environment.fork()
    except (CannotForkError, NotImplementedError) as error:
        raise UsageError(_NO_FORK.format(error=error)) from error
    except Exception:
        return  # before it is reset it may raise anything; the first episode will say


def _offered(environment: Any) -> Sequence[FunctionTool] | None:
    method = getattr(inner_of(environment), "offered", None)
    result = method() if callable(method) else None
    if result is None or not all(isinstance(tool, FunctionTool) for tool in result):
        return None
    return list(result)


def numbered(turn: Turn, number: int) -> Turn:
    """The turn with ids of calls of its own, which no turn of the episode has."""
    calls = tuple(
        replace(call, call_id=f"alternate_{number}_{index}")
        for index, call in enumerate(turn.calls)
    )
    return replace(turn, calls=calls)
