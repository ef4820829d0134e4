"""Making an environment once: to see that its settings are right, and which tools it offers."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from adp.rollouts.collecting.tasks import read_tasks
from adp.rollouts.environment import (
    AsyncEnvironment,
    Environment,
    EnvironmentKind,
    as_async,
)
from adp.rollouts.plugin_errors import error_text, stops
from adp.rollouts.turns import Tool
from adp_schema.errors import AdpError, UsageError
from adp_schema.model import Task


def made(kind: EnvironmentKind, settings: Any) -> Environment | AsyncEnvironment:
    """Make an environment; a fault in its settings or its code is one sentence.

    Raises:
        UsageError: it cannot be made.
    """
    try:
        return kind.make(settings)
    except AdpError:
        raise
    except BaseException as error:
        if stops(error):
            raise
        raise UsageError(
            f"the environment '{kind.name}' cannot be made: {error_text(error)}"
        ) from error


def closed(environment: Environment | AsyncEnvironment) -> None:
    """Close an environment that was only looked at."""
    asyncio.run(as_async(environment).close())


def check_tasks(kind: EnvironmentKind, settings: Any, tasks: Sequence[Task]) -> None:
    """Begin some tasks once, to see that they are of this environment.

    Args:
        kind: the environment.
        settings: its settings.
        tasks: some of the tasks; it is enough that it can do one of them.

    Raises:
        UsageError: it can do none of them; with the reason of the first.
    """
    reasons: list[UsageError] = []
    for task in tasks:
        try:
            asyncio.run(_offered(made(kind, settings), task))
        except UsageError as error:
            reasons.append(error)
        except BaseException as error:
            if stops(error):
                raise
            return  # it breaks, which an episode writes down
        else:
            return
    if reasons:
        raise reasons[0]


def offered_tools(kind: EnvironmentKind, settings: Any, tasks: str | None = None) -> Sequence[Tool]:
    """The tools at the beginning of an episode, in the OpenAI shape.

    Args:
        kind: the environment.
        settings: its settings.
        tasks: the first of these tasks is begun; None: one of its own, or one that says nothing.

    Raises:
        UsageError: it cannot be made or begun; where that is for want of a task, give one.
    """
    task = _task(kind, settings, tasks)
    return asyncio.run(_offered(made(kind, settings), task))


def _task(kind: EnvironmentKind, settings: Any, tasks: str | None) -> Task:
    if tasks is not None:
        return read_tasks(tasks, kind, settings).tasks[0]
    if kind.tasks is not None:
        return next(iter(kind.tasks(settings, "test", 1, 0)))
    return Task(task_id="tools", instruction="Which tools are there?")


async def _offered(environment: Environment | AsyncEnvironment, task: Task) -> Sequence[Tool]:
    result = as_async(environment)
    try:
        await result.reset(task, seed=0)
        return list(result.tools())
    finally:
        await result.close()
