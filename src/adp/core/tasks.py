"""Which task a trajectory tries to solve: data sets number their tasks alike.

A task is told by its data set and its id. The column ``dataset`` of a trajectory is the data set
for data that was converted; for rollouts it is a name of the run, and says nothing about the tasks:
there the data set is what the task itself says. Where it says none (a task of a file, or made on
the spot), environment and words of the task tell it from others with its id.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from adp_schema.ids import digest
from adp_schema.model import Task, Trajectory
from adp_schema.reader import to_models
from adp_schema.store import Store

ROLLOUT = "adp_rollout"
"""``source_format`` of what `adp collect` writes."""


class TaskKey(NamedTuple):
    """What tells a task from others.

    Attributes:
        dataset: its data set; None when none is known.
        environment: its environment, where it has another name than the data set.
        task_id: its id.
        asked: hash of what it asks; None when that is not known.
    """

    dataset: str | None
    environment: str | None
    task_id: str
    asked: str | None = None

    @property
    def name(self) -> TaskKey:
        """The key for one store: what a task of a known data set asks is no part of it."""
        return self if self.dataset is None else self._replace(asked=None)

    @property
    def origin(self) -> tuple[str | None, str | None]:
        """Where it comes from: data set and environment."""
        return self.dataset, self.environment


class Found(NamedTuple):
    """The task of a trajectory.

    Attributes:
        key: what tells it from others; None for a trajectory without a task.
        row: ``seq`` of its row among the tasks of the store; None without a row.
    """

    key: TaskKey | None
    row: int | None = None


def key_of(task: Task) -> TaskKey | None:
    """The key of a task that hangs from no trajectory; None without an id."""
    if task.task_id is None:
        return None
    asked = _asked(task.instruction, task.turns, task.environment_config)
    return _key(task.dataset, task.environment, task.task_id, asked)


def find_tasks(store: Store) -> dict[str, Found]:
    """The task of each trajectory of a store, by the id of the trajectory.

    A trajectory without a row of its own among the tasks has that of an attempt at the same task:
    same id, data set and environment.

    Args:
        store: the store.
    """
    homes = list(_homes(store))
    own = _rows(store, {home.seq: home.task_id for home in homes})
    index: dict[tuple[str | None, ...], dict[TaskKey, int]] = defaultdict(dict)
    keys: dict[int, TaskKey] = {}
    for home in homes:
        row = own.get(home.seq)
        if row is None:
            continue
        keys[home.seq] = key = _key(*home.place(row["dataset"], row["environment"]), row["asked"])
        for dataset in {home.dataset, row["dataset"], None}:  # None: of any
            for environment in {home.environment, None}:
                known = index[dataset, environment, home.task_id]
                known.setdefault(key.name, home.seq)
    found = {}
    for home in homes:
        if home.task_id is None:
            found[home.trajectory_id] = Found(None)
        elif home.seq in keys:
            found[home.trajectory_id] = Found(keys[home.seq], home.seq)
        else:
            fitting = index.get((home.dataset, home.environment, home.task_id), {})
            row_of = next(iter(fitting.values())) if len(fitting) == 1 else None
            key = _key(*home.place(None, None), None) if row_of is None else keys[row_of]
            found[home.trajectory_id] = Found(key, row_of)
    return found


class TaskIndex:
    """Looks the tasks of a store up. They are read when the first one is asked for.

    Args:
        store: the store.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._tasks: dict[int, Task] = {}
        self._found: dict[str, Found] | None = None

    def of(self, trajectory: Trajectory) -> Task | None:
        """The task of a trajectory: its own row, else that of another attempt; None without."""
        if trajectory.task is not None or trajectory.task_id is None:
            return trajectory.task
        if self._found is None:
            self._found = find_tasks(self._store)
            table = self._store.scan("tasks").collect().to_arrow()
            for seq, task in zip(table["seq"].to_pylist(), to_models(table, Task), strict=True):
                self._tasks.setdefault(seq, task)
        row = self._found.get(str(trajectory.trajectory_id), Found(None)).row
        return None if row is None else self._tasks[row]


def same_tasks(first: Iterable[TaskKey], second: Iterable[TaskKey]) -> dict[TaskKey, TaskKey]:
    """Which tasks of two stores, or of a store and a list of tasks, are the same.

    They are the same by data set, environment and id. Stores may call one data set differently, so
    tasks of data sets that the other side does not know at all are the same, too, when both have
    one id and ask the same; and when one side names no data set and what it asks is not known.

    Args:
        first: keys of tasks.
        second: keys of other tasks.

    Returns:
        Name of a task of the second -> name of that task in the first.
    """
    mine, theirs = _named(first), _named(second)
    found = {name: name for name in theirs if name in mine}
    origins = [{name.origin for name in side} for side in (mine, theirs)]
    rest = _by_id(key for name, key in mine.items() if name.origin not in origins[1])
    others = _by_id(key for name, key in theirs.items() if name.origin not in origins[0])
    for task_id, keys in others.items():
        pairs = [(a, b) for a in rest.get(task_id, ()) for b in keys if _may_be_same(a, b)]
        for one, other in pairs:
            if sum(one is a or other is b for a, b in pairs) == 1:
                found[other.name] = one.name
    return found


def _may_be_same(one: TaskKey, other: TaskKey) -> bool:
    if one.asked is not None and other.asked is not None:
        return one.asked == other.asked
    return one.dataset is None or other.dataset is None


def _named(keys: Iterable[TaskKey]) -> dict[TaskKey, TaskKey]:
    found: dict[TaskKey, TaskKey] = {}
    for key in keys:
        if key.name not in found or found[key.name].asked is None:
            found[key.name] = key
    return found


def _by_id(keys: Iterable[TaskKey]) -> Mapping[str, list[TaskKey]]:
    found: dict[str, list[TaskKey]] = defaultdict(list)
    for key in keys:
        found[key.task_id].append(key)
    return found


@dataclass(frozen=True)
class _Home:
    """What a trajectory says about where its task comes from."""

    seq: int
    trajectory_id: str
    dataset: str | None
    environment: str | None
    task_id: str | None
    rollout: bool

    def place(
        self, dataset: str | None, environment: str | None
    ) -> tuple[str | None, str | None, str]:
        """Data set, environment and id of the task, with what its row says of the first two."""
        environment = environment or self.environment
        # The data set of a rollout is named after the run; it is the last resort.
        own = None if self.rollout and environment else self.dataset
        return dataset or own, environment, str(self.task_id)


def _key(dataset: str | None, environment: str | None, task_id: str, asked: str | None) -> TaskKey:
    return TaskKey(dataset, None if environment == dataset else environment, task_id, asked)


def _asked(instruction: str | None, turns: str | None, config: str | None) -> str | None:
    """Hash of what a task asks: its words, or else the configuration of its environment."""
    parts = [instruction, turns] if instruction or turns else [config]
    if not any(parts):
        return None
    return digest(json.dumps(parts).encode())


def _homes(store: Store) -> Iterator[_Home]:
    import polars as pl

    rows = store.scan("trajectories")
    rollout = pl.col("source_format") == ROLLOUT
    extras = rows.filter(rollout).select("seq", "extra").collect().iter_rows()
    environments = {seq: _environment(extra) for seq, extra in extras}
    names = ("seq", "trajectory_id", "dataset", "task_id", "source_format")
    for seq, name, dataset, task_id, form in rows.select(names).collect().iter_rows():
        home = (dataset or None, environments.get(seq), task_id)
        yield _Home(seq, str(name), *home, rollout=form == ROLLOUT)


def _environment(extra: str | None) -> str | None:
    try:
        found = json.loads(extra or "null")
    except (ValueError, RecursionError):
        return None
    name = found.get("environment") if isinstance(found, dict) else None
    return name if isinstance(name, str) and name else None


def _rows(store: Store, wanted: Mapping[int, str | None]) -> dict[int, dict[str, Any]]:
    """Of the rows of tasks, those that are the task of the trajectory that they hang from."""
    names = ("seq", "task_id", "dataset", "environment", "instruction", "turns",
             "environment_config")  # fmt: skip
    found: dict[int, dict[str, Any]] = {}
    for row in store.scan("tasks").select(names).collect().iter_rows(named=True):
        if row["task_id"] is not None and wanted.get(row["seq"]) == row["task_id"]:
            asked = _asked(row["instruction"], row["turns"], row["environment_config"])
            kept = {name: row[name] or None for name in ("dataset", "environment")}
            found.setdefault(row["seq"], {**kept, "asked": asked})
    return found
