"""Tasksets of verifiers: loading one, and its tasks as tasks of ours."""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Iterable, Sequence
from typing import Any

from pydantic import Field

from adp.rollouts.environment import Settings
from adp_schema.errors import UsageError
from adp_schema.model import Task

NAME = "verifiers"
_PLACE = "verifiers_index"


class VerifiersSettings(Settings):
    """Settings of the environment ``verifiers``."""

    env: str = Field(min_length=1)
    """Id of an installed taskset."""
    allow_import: bool = False
    """Importing the taskset runs its code; true allows that."""
    config: dict[str, Any] = Field(default_factory=dict)
    """Further fields of the taskset's configuration."""
    solved_at: float | None = Field(default=None, allow_inf_nan=False)
    """Reward from which on a task counts as solved."""


def taskset_of(settings: VerifiersSettings) -> Any:
    """Load a taskset.

    Args:
        settings: its id, and what it is told.

    Raises:
        UsageError: the import is not allowed, there is no such taskset, or verifiers is missing.
    """
    name = settings.env
    if not settings.allow_import:
        raise UsageError(
            f"loading {name!r} runs the code of that package; add allow_import=true if you trust it"
        )
    if importlib.util.find_spec(NAME) is None:
        raise UsageError("verifiers is not installed; run: pip install 'verifiers>=0.4'")
    try:
        import verifiers.v1 as package

        config = package.taskset_config_type(name).model_validate({**settings.config, "id": name})
        return package.load_taskset(config)
    except Exception as error:  # the package may fail in any way
        reason = " ".join(str(error).split())
        raise UsageError(f"verifiers cannot load the taskset {name!r}: {reason}") from error


def found_task(taskset: Any, task: Task | None, seed: int | None) -> Any:
    """The task of the taskset that a task of ours names; without one, drawn by the seed."""
    tasks = list(taskset) if taskset.bounded else list(taskset.take((seed or 0) % 100 + 1))
    if task is None:
        if not tasks:
            raise UsageError("the taskset has no tasks")
        return tasks[(seed or 0) % len(tasks)]
    config = json.loads(task.environment_config or "{}")
    place = config.get(_PLACE) if isinstance(config, dict) else None
    if not isinstance(place, int) or not 0 <= place < len(tasks):
        raise UsageError(
            f"the task '{task.task_id}' is none of this taskset; let --tasks name a split of it, "
            "such as train:100"
        )
    return tasks[place]


def check_task(task: Any) -> None:
    """Refuse a task that needs a machine to run in."""
    import verifiers.v1 as package

    kind = type(task)
    needs = [name for name in ("setup", "finalize") if _changed(kind, package.Task, name)]
    if task.NEEDS_CONTAINER or task.data.image:
        needs.append("a container")
    if needs:
        raise UsageError(
            f"{kind.__name__} needs {' and '.join(needs)}, and with it a machine that verifiers "
            "starts; play it with verifiers itself, and convert its traces"
        )


def _changed(kind: type, base: type, name: str) -> bool:
    return getattr(kind, name) is not getattr(base, name)


def make_tasks(
    settings: VerifiersSettings, split: str, count: int | None, seed: int
) -> Sequence[Task]:
    """The tasks of a taskset, in its order. A taskset has no splits: all are the same tasks."""
    taskset = taskset_of(settings)
    if not taskset.bounded and count is None:
        count = 100
    chosen: Iterable[Any] = taskset if count is None else taskset.take(count)
    return [
        Task(
            task_id=item.data.id or item.data.name or f"{settings.env}-{place}",
            dataset=settings.env,
            split=split,
            instruction=item.data.prompt_text or None,
            environment=NAME,
            environment_config=json.dumps({_PLACE: place, "key": item.key}),
            extra=json.dumps({"verifiers": item.data.model_dump(mode="json", exclude_none=True)}),
        )
        for place, item in enumerate(chosen)
    ]
