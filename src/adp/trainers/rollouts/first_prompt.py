"""The first prompt of a training in an environment, written without a model."""

from __future__ import annotations

import asyncio
from typing import Any

from adp.rollouts.environment import as_async
from adp.rollouts.plugin_errors import error_text, stops
from adp.rollouts.policies.prompts import ModelPrompt, Prompter
from adp.rollouts.policies.settings import InProcessSettings
from adp.rollouts.policy import AgentLimitError, Request
from adp.trainers.rollouts.acting import ActingPlace
from adp_schema.errors import AdpError, UsageError
from adp_schema.model import Task


def first_prompt(
    place: ActingPlace, task: Task, settings: InProcessSettings, tokenizer: Any
) -> ModelPrompt:
    """What the model will be asked first.

    Args:
        place: where it acts.
        task: the first task.
        settings: how prompts are written.
        tokenizer: of the model.

    Raises:
        UsageError: the environment cannot do the task, or the chat template cannot write what it
            says or its tools.
    """
    prompter = Prompter(tokenizer, settings)
    request = asyncio.run(_request(place, task))
    try:
        return prompter.prompt(request)
    except AgentLimitError as error:
        raise UsageError(
            f"the first prompt does not fit: {error}; use a larger render.max_length"
        ) from error


async def _request(place: ActingPlace, task: Task) -> Request:
    environment = as_async(place.make())
    try:
        start = await environment.reset(task, seed=0)
        return Request(start.messages, list(environment.tools()), task)
    except AdpError:
        raise
    except BaseException as error:
        if stops(error):
            raise
        raise UsageError(
            f"the environment {place.kind.name} cannot begin the task '{task.task_id}': "
            f"{error_text(error)}"
        ) from error
    finally:
        await environment.close()
