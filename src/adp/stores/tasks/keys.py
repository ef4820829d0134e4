"""What tells a task from others: data sets number their tasks alike.

A task is told by its data set and its id. The column ``dataset`` of a trajectory is the data set
for data that was converted; for rollouts it is a name of the run, and says nothing about the tasks:
there the data set is what the task itself says. Where it says none (a task of a file, or made on
the spot), environment and words of the task tell it from others with its id.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from typing import NamedTuple

from adp_schema.ids import digest
from adp_schema.model import Task


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


_Named = dict[TaskKey, TaskKey]
"""Name of a task -> its key, with what it asks where that is known."""


class TrajectoryTask(NamedTuple):
    """The task of a trajectory.

    Attributes:
        key: what tells it from others; None for a trajectory without a task.
        row: number of its row in the table of tasks, from 0; None without a row.
    """

    key: TaskKey | None
    row: int | None = None


def key_of(task: Task) -> TaskKey | None:
    """The key of a task that hangs from no trajectory; None without an id."""
    if task.task_id is None:
        return None
    asked = asked_hash(task.instruction, task.turns, task.environment_config)
    return make_key(task.dataset, task.environment, task.task_id, asked)


def same_tasks(first: Iterable[TaskKey], second: Iterable[TaskKey]) -> dict[TaskKey, TaskKey]:
    """Which tasks of two stores, or of a store and a list of tasks, are the same.

    They are the same by data set, environment and id. Where the other side does not know the data
    set, or none is named, they are the same when they have one id and ask the same. What a task
    asks may be unknown; then the id is enough when one of both names no data set. Nothing is
    guessed: a task that could be two of the other side is none of them.

    Args:
        first: keys of tasks.
        second: keys of other tasks.

    Returns:
        Name of a task of the second -> name of that task in the first.
    """
    ours, theirs = _named(first), _named(second)
    names = {name: name for name in theirs if name in ours}
    rest, others = _strangers(ours, theirs), _strangers(theirs, ours)
    for result, other in _only_pairs(
        rest, others, lambda key: key.asked and (key.task_id, key.asked)
    ):
        names[other.name] = result.name
        del rest[result.name], others[other.name]
    for result, other in _only_pairs(rest, others, lambda key: key.task_id):
        unknown = result.asked is None or other.asked is None
        if unknown and (result.dataset is None or other.dataset is None):
            names[other.name] = result.name
    return names


def _strangers(side: _Named, other: _Named) -> _Named:
    """The tasks of one side that the name of a data set does not find on the other."""
    known = {name.origin for name in other if name.dataset is not None}
    return {
        name: key for name, key in side.items() if name.origin not in known and name not in other
    }


def _only_pairs(
    first: _Named, second: _Named, label: Callable[[TaskKey], Hashable]
) -> list[tuple[TaskKey, TaskKey]]:
    """Tasks that alone have a label on their side, with the one that alone has it on the other."""
    sides: list[dict[Hashable, list[TaskKey]]] = []
    for side in (first, second):
        sides.append(defaultdict(list))
        for key in side.values():
            sides[-1][label(key)].append(key)
    return [
        (ours[0], sides[1][name][0])
        for name, ours in sides[0].items()
        if name is not None and len(ours) == len(sides[1].get(name, ())) == 1
    ]


def _named(keys: Iterable[TaskKey]) -> _Named:
    results: _Named = {}
    for key in keys:
        if key.name not in results or results[key.name].asked is None:
            results[key.name] = key
    return results


@dataclass(frozen=True)
class Home:
    """What a trajectory says about where its task comes from."""

    seq: int
    trajectory_id: str
    dataset: str | None
    environment: str | None
    task_id: str | None
    rollout: bool

    def key(
        self,
        task_id: str,
        dataset: str | None = None,
        environment: str | None = None,
        asked: str | None = None,
    ) -> TaskKey:
        """The key of a task that hangs here, with what its row says of data set and environment."""
        environment = environment or self.environment
        # The data set of a rollout is named after the run; it is the last resort.
        task_dataset = None if self.rollout and environment else self.dataset
        return make_key(dataset or task_dataset, environment, task_id, asked)


NOWHERE = Home(-1, "", None, None, None, rollout=False)
"""In the place of a trajectory that is not there."""


def make_key(
    dataset: str | None, environment: str | None, task_id: str, asked: str | None = None
) -> TaskKey:
    """The key of a task; an environment that is named as the data set says nothing."""
    return TaskKey(dataset, None if environment == dataset else environment, task_id, asked)


def asked_hash(instruction: str | None, turns: str | None, config: str | None) -> str | None:
    """Hash of what a task asks: its words, or else the configuration of its environment."""
    parts = [instruction, turns] if instruction or turns else [config]
    if not any(parts):
        return None
    return digest(json.dumps(parts).encode())
