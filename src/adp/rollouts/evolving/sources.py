"""The tasks of a store, each with the trajectories that its buffer begins with."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import polars as pl

from adp.core.json_values import json_object
from adp.stores.tasks import task_index
from adp_schema.errors import EmptyResultError
from adp_schema.ids import digest
from adp_schema.model import Task
from adp_schema.store import Store

_COLUMNS = ("trajectory_id", "task_id", "attempt", "parent_id", "error_type")


@dataclass(frozen=True)
class TaskJob:
    """A task to work on.

    Attributes:
        task: the task.
        initial: ids of the trajectories in the source that its buffer begins with.
    """

    task: Task
    initial: tuple[str, ...]


@dataclass
class TaskJobs:
    """All tasks of a store.

    Attributes:
        store: the store.
        jobs: the tasks that are worked on, in the order of the store.
        skipped: why trajectories are left out, and how many.
    """

    store: Store
    jobs: list[TaskJob] = field(default_factory=list)
    skipped: Counter[str] = field(default_factory=Counter)

    def facts(self) -> dict[str, Any]:
        """What of it must not change while the output grows; JSON."""
        lines = (
            f"{digest(job.task.model_dump_json().encode())} {' '.join(job.initial)}"
            for job in self.jobs
        )
        return {"count": len(self.jobs), "hash": digest("\n".join(lines).encode())}


def read_jobs(store: Store, tasks: Iterable[Task] | None = None) -> TaskJobs:
    """The tasks of a store with their trajectories: main lines that did not break.

    Args:
        store: the store.
        tasks: its tasks, where the environment reads them in a way of its own; None: as they stand.

    Raises:
        EmptyResultError: there is nothing to work on.
    """
    result = TaskJobs(store)
    index = task_index(store)
    rows = {str(key.task_id): task for key, task in index.tasks().items()}
    known = rows if tasks is None else {str(task.task_id): task for task in tasks}
    ids: dict[str, list[tuple[int, str]]] = {}
    names: dict[str, str] = {}
    source = pl.col("extra").str.json_path_match("$.source").alias("source")
    frame = store.scan("trajectories").select("seq", *_COLUMNS, source).sort("seq").collect()
    sources: dict[str, str] = {}
    for row in frame.filter(pl.col("parent_id").is_null()).iter_rows(named=True):
        name = row["trajectory_id"]
        item = index.by_trajectory.get(name)
        key = None if item is None or item.key is None else item.key
        reason = _reason(row, key, known, names)
        if reason is not None or key is None:
            result.skipped[reason or "it has no task"] += 1
            continue
        if row["source"]:
            sources.setdefault(key.task_id, row["source"])
        ids.setdefault(key.task_id, []).append((row["attempt"] or 0, name))
    for task_id, listed in ids.items():
        ordered = sorted(listed, key=lambda item: item[0])
        task = _with_source(known[task_id], sources.get(task_id))
        result.jobs.append(TaskJob(task, tuple(name for _, name in ordered)))
    if not result.jobs:
        why = "; ".join(f"{reason} ({count})" for reason, count in result.skipped.items())
        raise EmptyResultError(
            f"{store.name} holds no trajectory to go on from{': ' if why else ''}{why}"
        )
    return result


def _with_source(task: Task, source: str | None) -> Task:
    """The task with the data set that its runs name, as those of ET-Agent do, where it has none."""
    extra = json_object(task.extra)
    if source is None or extra.get("source"):
        return task
    return task.model_copy(update={"extra": json.dumps({**extra, "source": source})})


def _reason(row: Any, key: Any, known: dict[str, Task], names: dict[str, str]) -> str | None:
    """Why a trajectory is left out; None when it is not."""
    if row["error_type"] is not None:
        return "it broke"
    if key is None:
        return "it has no task"
    task = known.get(key.task_id)
    if task is None:
        return "its task is not in the table of tasks"
    if not (task.instruction or task.turns or task.environment_config):
        return "its task has no instruction"
    if names.setdefault(key.task_id, str(key.name)) != str(key.name):
        return "another task has the id of its task"
    return None
