"""Collecting from Python: environments, policies and tasks by name or as objects."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping
from typing import Any

from pydantic import ValidationError

from adp.rollouts.collecting.collect import collect_now
from adp.rollouts.collecting.counts import CollectReport
from adp.rollouts.collecting.offered_tools import closed, made
from adp.rollouts.collecting.run_file import kind_facts
from adp.rollouts.collecting.settings import CollectSettings
from adp.rollouts.collecting.task_files import TaskSet, task_of
from adp.rollouts.collecting.tasks import read_tasks
from adp.rollouts.environment import ENVIRONMENTS, EnvironmentKind, Settings
from adp.rollouts.experts.spec import cast_of
from adp.rollouts.policy import POLICIES, Policy
from adp.rollouts.spec import checked, load, wrong_setting
from adp.rollouts.wrapped_code import as_policy, environment_kind
from adp_schema.errors import UsageError
from adp_schema.model import Task


def collect_in_python(
    env: Any,
    policy: Any,
    tasks: str | Iterable[Task | Mapping[str, Any]],
    out: str,
    *,
    expert: str | None,
    settings: Mapping[str, Any],
) -> CollectReport:
    """See `adp.collect`."""
    kind, about = _environment(env)
    acting, policy_facts = _policy(policy)
    given = read_tasks(tasks, kind, about) if isinstance(tasks, str) else TaskSet(_tasks(tasks))
    cast = cast_of(acting, expert)
    first = made(kind, about)
    if cast.assistance is not None and given.tasks:
        given.leave(*cast.able(given.tasks, first))
    closed(first)
    facts = {"environment": kind_facts(kind.name, about), "policy": policy_facts, **cast.facts}
    try:
        chosen = CollectSettings.model_validate(
            {
                "environment": kind.name,
                "policy": acting.name,
                **settings,
                "facts": {"made_with": facts, **settings.get("facts", {})},
            }
        )
    except ValidationError as error:
        raise UsageError(f"collect: {wrong_setting(error, CollectSettings)}") from error
    return collect_now(
        out,
        lambda: kind.make(about),
        cast.actors,
        given.tasks,
        chosen.within(first),
        policies=cast.policies,
    )


def _environment(env: Any) -> tuple[EnvironmentKind, Settings]:
    if isinstance(env, str):
        return load(ENVIRONMENTS, env)
    if callable(env) and not (inspect.isclass(env) or inspect.isroutine(env)):
        kind = EnvironmentKind(type(env).__name__, "An object.", Settings, lambda _: env())
    else:
        kind = environment_kind(env, getattr(env, "__name__", type(env).__name__))
    return kind, checked(kind, f"environment '{kind.name}'", {})


def _policy(policy: Any) -> tuple[Policy, dict[str, Any]]:
    if isinstance(policy, str):
        kind, about = load(POLICIES, policy)
        return kind.make(about), kind_facts(kind.name, about)
    acting = as_policy(policy)
    return acting, {"name": acting.name, "settings": {}}


def _tasks(tasks: Iterable[Task | Mapping[str, Any]]) -> list[Task]:
    results = []
    for number, task in enumerate(tasks):
        try:
            results.append(task if isinstance(task, Task) else task_of(dict(task)))
        except (ValueError, TypeError, KeyError) as error:
            raise UsageError(f"task {number}: {error}") from error
    return results
