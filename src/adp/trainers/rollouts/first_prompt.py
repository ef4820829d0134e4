"""The first prompt of a training in an environment, written without a model."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from adp.rollouts.collecting.threads import DaemonThreads
from adp.rollouts.environment import as_async
from adp.rollouts.plugin_errors import error_text, stops
from adp.rollouts.policies.prompts import ModelPrompt, Prompter
from adp.rollouts.policies.settings import InProcessSettings
from adp.rollouts.policy import AgentLimitError, Request
from adp.trainers.rollouts.acting import ActingPlace
from adp_schema.errors import MissingExtraError, UsageError
from adp_schema.model import Task

_TRIED = 5
"""Tasks that are begun until one can be: a single bad one does not keep the others from it."""


def first_prompt(
    place: ActingPlace, tasks: Sequence[Task], settings: InProcessSettings, tokenizer: Any
) -> ModelPrompt:
    """What the model will be asked first, at the first task that can be begun.

    Args:
        place: where it acts.
        tasks: the tasks.
        settings: how prompts are written.
        tokenizer: of the model.

    Raises:
        UsageError: the environment can do none of the first tasks, or the chat template cannot
            write what it says or its tools.
    """
    prompter = Prompter(tokenizer, settings)
    request = asyncio.run(_request(place, tasks[:_TRIED]))
    try:
        return prompter.prompt(request)
    except AgentLimitError as error:
        raise UsageError(
            f"the first prompt does not fit: {error}; use a larger render.max_length"
        ) from error


async def _request(place: ActingPlace, tasks: Sequence[Task]) -> Request:
    # A tool that never returns keeps no command from ending.
    asyncio.get_running_loop().set_default_executor(DaemonThreads("adp-tool"))
    faults: list[UsageError] = []
    for task in tasks:
        try:
            async with asyncio.timeout(place.limits.max_seconds):
                return await _begun(place, task)
        except TimeoutError:
            faults.append(_cannot(place, task, f"it took {place.limits.max_seconds:g} s"))
        except UsageError as error:
            faults.append(error)
        except MissingExtraError:
            raise
        except BaseException as error:
            if stops(error):
                raise
            faults.append(_cannot(place, task, error_text(error)))
    raise faults[0]


async def _begun(place: ActingPlace, task: Task) -> Request:
    environment = as_async(place.make())
    try:
        start = await environment.reset(task, seed=0)
        return Request(start.messages, list(environment.tools()), task)
    finally:
        await environment.close()


def _cannot(place: ActingPlace, task: Task, why: str) -> UsageError:
    return UsageError(
        f"the environment '{place.kind.name}' cannot begin the task '{task.task_id}': {why}; mend "
        "its cause, or give other tasks"
    )
