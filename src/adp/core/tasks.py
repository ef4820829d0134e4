"""The tasks of a store by their ids: several attempts share one row."""

from __future__ import annotations

from adp_schema.model import Task, Trajectory
from adp_schema.reader import to_models
from adp_schema.store import Store


class TaskIndex:
    """Looks tasks up. It is read when the first one is asked for.

    Args:
        store: the store.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._tasks: dict[tuple[str | None, str], Task] | None = None

    def of(self, trajectory: Trajectory) -> Task | None:
        """The task of a trajectory: its own row, else that of its id; None without either."""
        if trajectory.task is not None or trajectory.task_id is None:
            return trajectory.task
        if self._tasks is None:
            self._tasks = {}
            rows = self._store.scan("tasks").collect().to_arrow()
            for task in to_models(rows, Task):
                if task.task_id is not None:
                    self._tasks.setdefault((task.dataset, task.task_id), task)
                    self._tasks.setdefault((None, task.task_id), task)
        own = self._tasks.get((trajectory.dataset, trajectory.task_id))
        return own or self._tasks.get((None, trajectory.task_id))
