"""The entries of buffers, as a store holds them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from adp.rollouts.evolving.buffer import BufferEntry
from adp.rollouts.evolving.lineage import lineage_of
from adp_schema.ids import numbered
from adp_schema.model import Trajectory
from adp_schema.store import Store

_COLUMNS = ("trajectory_id", "attempt", "error_type", "stop_reason", "error_message")


def entry_of(trajectory: Trajectory) -> BufferEntry:
    """A trajectory as an entry of a buffer."""
    columns = {name: getattr(trajectory, name) for name in _COLUMNS}
    return BufferEntry(**columns, lineage=lineage_of(trajectory.extra))


def read_entries(store: Store) -> Mapping[str, Sequence[tuple[BufferEntry, int]]]:
    """The entries of all tasks, each with the number of its try: later tries follow earlier ones.

    Args:
        store: the store that `adp.rollouts.evolving.evolve` writes.
    """
    frame = store.scan("trajectories").select("task_id", "extra", *_COLUMNS).collect()
    tasks: dict[str, list[tuple[BufferEntry, int]]] = {}
    for task_id, extra, *values in frame.iter_rows():
        columns = dict(zip(_COLUMNS, values, strict=True))
        entry = BufferEntry(**columns, lineage=lineage_of(extra))
        if entry.lineage and entry.attempt is not None:
            tasks.setdefault(str(task_id), []).append((entry, try_of(entry.trajectory_id)))
    for entries in tasks.values():
        entries.sort(key=lambda item: (item[0].attempt, item[1]))
    return tasks


def try_of(trajectory_id: str) -> int:
    """Number of the try that an id is of, from 1."""
    base, _, number = trajectory_id.rpartition("#")
    if base and number.isascii() and number.isdigit():
        value = int(number)
        if numbered(base, value) == trajectory_id:
            return value
    return 1
