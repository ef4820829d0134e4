"""The environment ``m3``: M3's scenarios and its episodes of several turns.

m3_environment.py  the rules of an episode
m3_scenario.py     tools on offer, what is said about them, how to give up
m3_replay.py       recorded responses, and M3's names of errors
m3_tasks.py        tasks from a converted store
"""

from __future__ import annotations

from collections.abc import Sequence

from adp.rollouts.environment import ENVIRONMENTS, EnvironmentKind
from adp.rollouts.environments.m3_environment import M3Environment
from adp.rollouts.environments.m3_scenario import M3Settings
from adp.rollouts.environments.m3_tasks import split_of, tasks_of
from adp.rollouts.spec import load
from adp_schema.errors import UsageError
from adp_schema.model import Task


def _tasks(settings: M3Settings, split: str, count: int | None, seed: int) -> Sequence[Task]:
    if settings.store is not None:
        return split_of(tasks_of(settings.store), split, count)
    if settings.inner is not None:
        kind, about = load(ENVIRONMENTS, settings.inner)
        if kind.tasks is not None:
            return kind.tasks(about, split, count, seed)
    raise UsageError("the environment m3 takes its tasks from --env m3:store=STORE")


KIND = EnvironmentKind(
    name="m3",
    about="M3's episodes over reference data or around another environment: scenarios, a horizon, "
    "answers that are judged turn by turn.",
    settings=M3Settings,
    make=M3Environment,
    tasks=_tasks,
    stored=tasks_of,
)

__all__ = ["KIND", "M3Environment", "M3Settings"]
