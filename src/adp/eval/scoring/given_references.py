"""What is right, as it is named in a call: the runs of a store, or tasks of a file or a store."""

from __future__ import annotations

from pathlib import Path

from adp.eval.scoring.references import References, from_store, from_tasks, references
from adp.rollouts.collecting.task_files import read_task_file
from adp_schema.errors import UsageError
from adp_schema.store import Store


def given_references(reference: str | None, tasks: str | None) -> References | None:
    """What is right, besides what the scored store says.

    Args:
        reference: a store whose runs are the right ones.
        tasks: a file of tasks, or a store.

    Raises:
        UsageError: it is given twice.
    """
    if reference is not None and tasks is not None:
        raise UsageError("--reference and --tasks exclude each other")
    if reference is not None:
        return from_store(Store.open(reference))
    if tasks is None:
        return None
    if Path(tasks).is_file():
        return references(Path(tasks).name, read_task_file(Path(tasks), None).tasks)
    return from_tasks(Store.open(tasks))
