"""Which task a trajectory tries to solve: the one page that answers it.

    index = task_index(store)            # computed once for a store, in this process
    index.key(trajectory)                # what tells its task from others
    index.of(trajectory)                 # the task itself
    index.rows                           # seq -> row of the table of tasks

`keys` says what tells a task from others, `rows` finds the row of each trajectory in columns, and
`words` makes keys of what the user asks where the source gives no id.
"""

from __future__ import annotations

from functools import cached_property

import polars as pl

from adp.stores.tasks.keys import (
    NOWHERE,
    Home,
    TaskKey,
    TrajectoryTask,
    asked_hash,
    key_of,
    same_tasks,
)
from adp.stores.tasks.rows import HOME_COLUMNS, ROLLOUT, ROW_COLUMNS, assign, homes, shard_starts
from adp_schema.model import Task, Trajectory
from adp_schema.reader import to_models
from adp_schema.store import Store

__all__ = ["NONE", "ROLLOUT", "TaskIndex", "TaskKey", "TrajectoryTask", "find_tasks", "key_of",
           "rollout_keys",           "same_tasks", "task_index"]  # fmt: skip

NONE = TrajectoryTask(None)
"""Of a trajectory without a task."""


class TaskIndex:
    """The tasks of a store. Each table is read when it is first asked for, and once.

    Args:
        store: the store.
    """

    def __init__(self, store: Store) -> None:
        self._store = store

    def of(self, trajectory: Trajectory) -> Task | None:
        """The task of a trajectory: its own row, else that of another attempt; None without."""
        if trajectory.task is not None or trajectory.task_id is None:
            return trajectory.task
        row = self.by_trajectory.get(str(trajectory.trajectory_id), NONE).row
        return None if row is None else self._models[row]

    def key(self, trajectory: Trajectory) -> TaskKey | None:
        """What tells the task of a trajectory from others of the store; None without a task."""
        key = self.by_trajectory.get(str(trajectory.trajectory_id), NONE).key
        return None if key is None else key.name

    def tasks(self) -> dict[TaskKey, Task]:
        """All tasks that have an id; of several rows for one task the first."""
        tasks: dict[TaskKey, Task] = {}
        for key, task in zip(self._read[0], self._models, strict=True):
            if key is not None:
                tasks.setdefault(key, task)
        return tasks

    @property
    def rows(self) -> pl.DataFrame:
        """The row of each trajectory that has one, as `adp.stores.tasks.rows.assign` gives it."""
        return self._frames[1]

    @cached_property
    def by_trajectory(self) -> dict[str, TrajectoryTask]:
        """The task of each trajectory, by the id of the trajectory."""
        keys, places = self._read
        rows = dict(self.rows.select("seq", "row").iter_rows())
        tasks = {}
        for home in places:
            row = rows.get(home.seq)
            if home.task_id is None:
                task = NONE
            elif row is None:
                task = TrajectoryTask(home.key(home.task_id))
            else:
                task = TrajectoryTask(keys[row], row)
            tasks[home.trajectory_id] = task
        return tasks

    @cached_property
    def hashes(self) -> pl.Series:
        """For each row of the table of tasks, a hash of what it says."""
        content = pl.struct(pl.exclude("seq", "trajectory_id")).hash()
        return self._store.scan("tasks").select(content.alias("says")).collect()["says"]

    @cached_property
    def _frames(self) -> tuple[pl.DataFrame, pl.DataFrame]:
        """The table of tasks, and `rows`."""
        table = self._store.scan("tasks").select(ROW_COLUMNS).collect().with_row_index("row")
        table = table.with_columns(pl.col("row").cast(pl.Int64))
        # Without any task there is nothing to look for, and trajectories may be very many.
        scan = self._store.scan("trajectories")
        trajectories = (scan if table.height else scan.head(0)).select(HOME_COLUMNS).collect()
        frame = homes(trajectories)
        owners = frame.join(table, on="seq", how="semi")
        starts = shard_starts(self._store, trajectories["seq"])
        return table, assign(frame, table, owners, starts)

    @cached_property
    def _read(self) -> tuple[list[TaskKey | None], list[Home]]:
        """The key of each row of the table of tasks, and where trajectories come from."""
        table = self._frames[0]
        trajectories = self._store.scan("trajectories").select(HOME_COLUMNS).collect()
        frame = homes(trajectories).with_columns(trajectories["trajectory_id"])
        names = ("seq", "trajectory_id", "home_set", "home_env", "task_id", "rollout")
        places = [
            Home(seq, str(name), dataset, environment, task_id, rollout=rollout)
            for seq, name, dataset, environment, task_id, rollout in frame.select(names).iter_rows()
        ]
        at = {home.seq: home for home in places}
        keys = [
            None
            if task_id is None
            else at.get(seq, NOWHERE).key(task_id, dataset, environment, asked_hash(*asks))
            for seq, task_id, dataset, environment, *asks in table.select(ROW_COLUMNS).iter_rows()
        ]
        return keys, places

    @cached_property
    def _models(self) -> list[Task]:
        return to_models(self._store.scan("tasks").collect().to_arrow(), Task)


def task_index(store: Store) -> TaskIndex:
    """The index of a store; while it is open, the same one for all who ask."""
    if store.journal is not None:
        return TaskIndex(store)  # it grows
    index: TaskIndex = vars(store).setdefault("_task_index", TaskIndex(store))
    return index


def find_tasks(store: Store) -> dict[str, TrajectoryTask]:
    """The task of each trajectory of a store, by the id of the trajectory.

    A trajectory without a row of its own among the tasks has that of an attempt at the same task:
    same id, data set and environment.

    Args:
        store: the store.
    """
    return task_index(store).by_trajectory


def rollout_keys(store: Store) -> pl.DataFrame:
    """Keys of the tasks of rollouts that have a task id: ``seq`` and ``tried``.

    The same task has one key in all runs: its data set, or else its environment and what it asks.
    """
    made = pl.col("source_format") == ROLLOUT
    rows = store.scan("trajectories").filter(made).select("seq", "trajectory_id").collect()
    tasks = find_tasks(store) if rows.height else {}
    results = [(seq, tasks[name].key) for seq, name in rows.iter_rows()]
    keys = [(seq, _name(key)) for seq, key in results if key is not None]
    return pl.DataFrame(keys, {"seq": pl.Int64, "tried": pl.String}, orient="row")


def _name(key: TaskKey) -> str:
    if key.dataset is not None:
        return f"{key.dataset}/{key.task_id}"
    return "/".join([key.environment or "", key.task_id, *([key.asked] if key.asked else ())])
