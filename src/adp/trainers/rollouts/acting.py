"""Where a model acts while it is trained: environment, tasks and prompts of a configuration."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any

from adp.rollouts.collecting.branching.settings import BranchingSettings, read_branching
from adp.rollouts.collecting.limits import Limits, limits_in
from adp.rollouts.collecting.offered_tools import closed, made
from adp.rollouts.collecting.plan import check_tasks, task_hash
from adp.rollouts.collecting.run_file import kind_facts
from adp.rollouts.collecting.task_files import TaskSet
from adp.rollouts.collecting.tasks import own_tasks, read_tasks
from adp.rollouts.environment import AsyncEnvironment, Environment, EnvironmentKind
from adp.rollouts.policies.transformers import TransformersSettings
from adp.rollouts.spec import load_environment
from adp.trainers.config import TrainConfig
from adp.trainers.config_environment import EnvironmentSection
from adp_schema.model import Task

DEFAULT_TASKS = "train:100"
"""Tasks that are taken when none are named."""


@dataclass(frozen=True)
class ActingPlace:
    """An environment that is acted in.

    Attributes:
        kind: what it is.
        settings: its settings.
        limits: budgets of an episode.
    """

    kind: EnvironmentKind
    settings: Any
    limits: Limits

    def make(self) -> Environment | AsyncEnvironment:
        """The environment of an episode."""
        return self.kind.make(self.settings)

    def facts(self, tasks: list[Task]) -> dict[str, Any]:
        """What the record of a run says about it; a run that is resumed has the same."""
        return {
            "environment": kind_facts(self.kind.name, self.settings),
            "tasks": {"count": len(tasks), "hash": task_hash(tasks)},
        }


def section_of(config: TrainConfig) -> EnvironmentSection:
    """The section ``grpo.environment`` of a configuration that has one."""
    section = config.grpo.environment
    assert section is not None, "the configuration names no environment"
    return section


def branching_of(section: EnvironmentSection) -> BranchingSettings | None:
    """How the episodes of a group branch; None when they do not.

    Raises:
        UsageError: a setting is unknown, or a value is wrong.
    """
    return None if section.branching is None else read_branching(section.branching)


def acting_place(config: TrainConfig) -> ActingPlace:
    """The environment of a configuration, tried out once.

    Raises:
        UsageError: there is no such environment, or it cannot be made with these settings.
    """
    section = section_of(config)
    kind, settings = load_environment(section.name)
    first = made(kind, settings)
    limits = limits_in(first, Limits.model_validate(section.limits()))
    closed(first)
    return ActingPlace(kind, settings, limits)


def acting_tasks(config: TrainConfig, place: ActingPlace) -> TaskSet:
    """The tasks of a configuration.

    Raises:
        UsageError: none are named, and the environment makes none; or two have one id.
        InputError: they cannot be read, or there are none.
    """
    section = section_of(config)
    text = section.tasks or config.data.store
    if text is None:
        own_tasks(place.kind)  # refuses one that makes none
        text = DEFAULT_TASKS
    result = read_tasks(text, place.kind, place.settings, split=section.split)
    check_tasks(result.tasks)
    return result


def policy_settings(config: TrainConfig) -> TransformersSettings:
    """How the model acts: the settings that `adp collect` would be given."""
    grpo, render, section = config.grpo, config.render, section_of(config)
    branching = branching_of(section)
    return TransformersSettings(
        model=config.model.model_name_or_path,
        temperature=grpo.temperature,
        top_p=grpo.top_p,
        top_k=grpo.top_k,
        max_tokens=grpo.max_completion_length,
        context_length=render.max_length,
        call_form=section.call_form,
        template_options=render.template_options,
        tools_in=render.tools,
        reasoning=render.reasoning,
        parallel_calls=render.parallel_calls,
        wire_form=render.wire_form,
        system_text=render.system_text,
        logprobs=True,
        token_ids=True,
        entropies=0 if branching is None else branching.top,
        batch_size=section.concurrency,
        prefix_cache_mb=section.prefix_cache_mb,
    )


def acting_tokenizer(config: TrainConfig, tokenizer: Any) -> Any:
    """The tokenizer that prompts are written with: with the chat template that is asked for."""
    if config.render.chat_template is None:
        return tokenizer
    result = copy.copy(tokenizer)
    result.chat_template = config.render.chat_template
    return result
