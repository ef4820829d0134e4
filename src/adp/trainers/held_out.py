"""Which trajectories the loss is measured on, when a share of them is held out."""

from __future__ import annotations

from adp.trainers.preference import is_held_out
from adp_schema.store import Store


def held_out(store: Store, share: float) -> frozenset[str]:
    """Trajectories that are measured and not trained on.

    The hash of the task decides, so all attempts at one task are on the same side, and a store
    that grows keeps what it held out. It is the id alone: stores may name one data set differently,
    and what one holds out another must not train on; two tasks with one id are on the same side.
    Without a task it is the trajectory that a branch began from.

    Args:
        store: the store.
        share: between 0 and 1.

    Returns:
        Their ids.
    """
    rows = store.scan("trajectories").select("trajectory_id", "task_id", "parent_id").collect()
    parents = dict(zip(rows["trajectory_id"], rows["parent_id"], strict=True))
    result = set()
    for row, task in zip(rows["trajectory_id"], rows["task_id"], strict=True):
        if row is None:
            continue
        name = task if task is not None else _root(row, parents)
        if is_held_out(name, share):
            result.add(row)
    return frozenset(result)


def _root(text: str, parents: dict[str | None, str | None]) -> str:
    """Where a branch comes from; damaged links that go in a circle end where they began."""
    seen = {text}
    while (above := parents.get(text)) is not None and above not in seen:
        seen.add(above)
        text = above
    return text
