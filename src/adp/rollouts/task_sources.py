"""Which published data set a task is from, and so by which rule its answers are compared."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from adp.core.answers.sources import Rule, rule_of
from adp.core.json_values import json_or_none
from adp_schema.model import Task, Trajectory

_KEYS = ("source", "data_source", "dataset")


def data_set_names(task: Task | None, trajectory: Trajectory | None = None) -> Iterator[str]:
    """Names that may be those of a task's data set, the surest first.

    Args:
        task: the task: its column ``dataset``, and ``source``, ``data_source`` and ``dataset`` in
            its ``extra``.
        trajectory: an attempt at it: the same keys in its ``extra``, and its ``dataset``.
    """
    if task is not None and task.dataset:
        yield task.dataset
    for row in (task, trajectory):
        extra = json_or_none(row.extra) if row is not None else None
        if isinstance(extra, Mapping):
            yield from (text for key in _KEYS if isinstance(text := extra.get(key), str) and text)
    if trajectory is not None and trajectory.dataset:
        yield trajectory.dataset


def answer_rule(task: Task | None, trajectory: Trajectory | None = None) -> Rule | None:
    """The rule of the first name that is known; None when none of them is."""
    return rule_of(*data_set_names(task, trajectory))
