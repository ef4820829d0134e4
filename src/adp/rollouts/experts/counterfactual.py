"""Carrying a turn out on the side: what another action would have brought.

It happens in a fork of the environment that was taken before the step. An environment that cannot
be forked will do when all its tools only read: then the calls are carried out beside the episode.
Anything else is refused when the episode begins.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from adp.rollouts.environment import AsyncEnvironment, CannotForkError, as_async
from adp.rollouts.experts.expert import inner_of
from adp.rollouts.tool_environment import ToolEnvironment
from adp.rollouts.tools import FunctionTool
from adp.rollouts.turns import Turn
from adp_schema.errors import UsageError


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
