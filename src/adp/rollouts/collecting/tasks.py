"""Where the tasks of a run come from: a file, a store, or the environment itself."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from adp.rollouts.collecting.task_files import ENDINGS, TaskSet, read_task_file
from adp.rollouts.environment import EnvironmentKind
from adp_schema.errors import InputError, UsageError
from adp_schema.ids import digest
from adp_schema.location import is_url
from adp_schema.model import Task

DEFAULT = "test:100"
"""Tasks that are taken when none are named."""

MOST = 10_000_000
"""Tasks that an environment is asked to make, at most."""

_GENERATED = re.compile(r"(?P<split>[A-Za-z_][\w.-]*)(:(?P<count>\d{1,30}))?(:(?P<seed>\d{1,30}))?")


def read_tasks(
    text: str, kind: EnvironmentKind, settings: Any, *, split: str | None = None
) -> TaskSet:
    """Read or make tasks.

    Args:
        text: a file of tasks, a store, or ``split[:count[:seed]]`` for tasks that the environment
            makes.
        kind: the environment.
        settings: its settings.
        split: of a file or a store, only tasks of this split.

    Raises:
        UsageError: the environment makes no tasks.
        InputError: the file cannot be read, or there are no tasks.
        StoreError: the store cannot be read.
    """
    if is_url(text):
        name = text.partition("?")[0].rpartition("/")[2]
        if name.lower().endswith(ENDINGS):
            raise InputError(
                f"{name} is not read over the network; fetch it, and give --tasks its path"
            )
        return _of_store(text, kind, split)
    path = Path(text)
    if path.is_dir():
        return _of_store(text, kind, split)
    if path.is_file() or text.lower().endswith(ENDINGS):
        if path.suffix.lower() not in ENDINGS:
            raise UsageError(f"{text} is no file of tasks; name it {', '.join(ENDINGS)}")
        return read_task_file(path, split)
    match = _GENERATED.fullmatch(text)
    if match is None:
        raise InputError(
            f"there is no file or store '{text}'; --tasks takes a file of tasks, a store, or "
            "split:count[:seed]"
        )
    return _generated(match, kind, settings)


def check_tasks_text(text: str, kind: EnvironmentKind, settings: Any) -> None:
    """Check where tasks are to come from, without reading them all.

    Args:
        text: as for `read_tasks`.
        kind: the environment.
        settings: its settings.

    Raises:
        UsageError: the environment makes no tasks, or none of this split.
        InputError: there is no such file.
    """
    path = Path(text)
    if is_url(text) or path.is_dir() or path.is_file():
        return
    match = _GENERATED.fullmatch(text)
    if match is None or text.lower().endswith(ENDINGS):
        raise InputError(
            f"there is no file or store '{text}'; tasks are a file of tasks, a store, or "
            "split:count[:seed]"
        )
    # Of a split that is there, one task is enough to know it.
    short = f"{match['split']}:1" if int(match["count"] or 1) else text
    first = _GENERATED.fullmatch(short)
    assert first is not None
    _generated(first, kind, settings)


def own_tasks(kind: EnvironmentKind) -> str:
    """What is taken when no tasks are named: some that the environment makes.

    Raises:
        UsageError: it makes none.
    """
    if kind.tasks is None:
        raise UsageError(
            f"the environment '{kind.name}' makes no tasks of its own; give --tasks a file of "
            "tasks or a store"
        )
    return DEFAULT


def _generated(match: re.Match[str], kind: EnvironmentKind, settings: Any) -> TaskSet:
    if kind.tasks is None:
        raise UsageError(
            f"the environment '{kind.name}' makes no tasks of its own, and there is no file or "
            f"store '{match[0]}'; give --tasks a file of tasks or a store"
        )
    count = None if match["count"] is None else int(match["count"])
    if count == 0:
        raise UsageError("--tasks asks for 0 tasks; ask for one at least")
    if count is not None and count > MOST:
        raise UsageError(f"--tasks asks for {match['count']} tasks; ask for {MOST:,} at most")
    made = kind.tasks(settings, match["split"], count, int(match["seed"] or 0))
    tasks = list(made)
    if not tasks:
        raise InputError(f"the environment '{kind.name}' has no tasks of '{match[0]}'")
    return TaskSet(tasks, len(tasks))


def _of_store(place: str, kind: EnvironmentKind, split: str | None) -> TaskSet:
    from adp_schema.reader import to_models
    from adp_schema.store import Store

    store = Store.open(place)
    if kind.stored is not None:
        rows = list(kind.stored(place))
    else:
        rows = to_models(store.scan("tasks").collect().to_arrow(), Task)
    task_set = TaskSet()
    seen: dict[str, Task] = {}
    for task in rows:
        if not task.task_id:
            task.task_id = digest(task.model_dump_json().encode())
        first = seen.get(task.task_id)
        if first == task:  # attempts at one task, each with a row of its own
            continue
        task_set.records += 1
        where = f"task '{task.task_id}' of {store.name}"
        if split is not None and task.split != split:
            task_set.refuse(f"{where}: it is of the split {task.split!r}, not {split!r}")
        elif not (task.instruction or task.turns or task.environment_config):
            task_set.refuse(f"{where}: it has no instruction")
        elif first is not None:
            task_set.refuse(f"{where}: another task has this id")
        else:
            seen[task.task_id] = task
    if not seen:
        why = f": {task_set.reasons[0]}" if task_set.reasons else "; its table of tasks is empty"
        raise InputError(f"{place} holds no task{why}")
    task_set.tasks = list(seen.values())
    return task_set
