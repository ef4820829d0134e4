"""Carrying a turn out on the side: what another action would have brought.

It happens in a fork of the environment that was taken before the step. An environment that cannot
be forked will do when all its tools only read: then the calls are carried out beside the episode.
Anything else is refused when the episode begins.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from adp.rollouts.environment import AsyncEnvironment, CannotForkError
from adp.rollouts.experts.expert import inner_of
from adp.rollouts.tool_environment import by_name, unreadable
from adp.rollouts.tools import FunctionTool, carry_out
from adp.rollouts.turns import Outcome, Turn
from adp_schema.errors import UsageError


class CounterfactualWorld(Protocol):
    """The world as it was before a step."""

    environment: AsyncEnvironment | None

    async def step(self, turn: Turn) -> Outcome:
        """What the turn brings there."""
        ...

    async def close(self) -> None:
        """Free it."""
        ...


@dataclass
class EnvironmentFork:
    """A fork of the environment."""

    environment: AsyncEnvironment | None

    async def step(self, turn: Turn) -> Outcome:
        """What the turn brings in the fork."""
        assert self.environment is not None
        return await self.environment.step(turn)

    async def close(self) -> None:
        """Close the fork."""
        if self.environment is not None:
            await self.environment.close()


@dataclass
class ReadOnly:
    """Tools that only read, called beside the episode. An answer is not judged."""

    tools: Mapping[str, FunctionTool]
    blocking: bool = False
    environment: AsyncEnvironment | None = None

    async def step(self, turn: Turn) -> Outcome:
        """What the calls bring."""
        if turn.malformed is not None:
            return Outcome(results=(unreadable(turn),))
        if not turn.calls:
            return Outcome(terminated=True, stop_reason="answer", answer=turn.text)
        if self.blocking:
            return await asyncio.to_thread(self._calls, turn)
        return self._calls(turn)

    def _calls(self, turn: Turn) -> Outcome:
        return Outcome(results=tuple(carry_out(call, self.tools) for call in turn.calls))

    async def close(self) -> None:
        """Nothing to free."""


def aside_of(environment: AsyncEnvironment) -> CounterfactualWorld:
    """The world as it is now, for a turn on the side.

    Raises:
        UsageError: it can neither be forked nor do all its tools only read.
    """
    try:
        return EnvironmentFork(environment.fork())
    except (CannotForkError, NotImplementedError) as error:
        tools = _offered(environment)
        if tools is not None and all(tool.read_only for tool in tools):
            blocking = bool(getattr(inner_of(environment), "blocking", False))
            return ReadOnly(by_name(tools), blocking)
        raise UsageError(
            f"alternates need an environment that can be forked, or tools that only read "
            f"({error}); set save_alternates=false"
        ) from error


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
