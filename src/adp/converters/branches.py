"""Trajectories of one record: a run and its branches, put together for formats that embed them.

A branch that its format has no place for in its run may become a record of its own, where that
makes sense by itself: `WHOLE`. The others are left out unless they are asked for: `LEFT_OUT`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from adp_schema.losses import Losses
from adp_schema.model import Trajectory

WHOLE = {
    "attempt": "a run of its own at the same task",
    "subagent": "a run of its own, with a task of its own",
    "continuation": "the run goes on in it",
}
"""Kind of branch -> why it is written as a record of its own."""

LEFT_OUT = {
    "alternate": "another answer at one step, with which the run did not go on",
    "fork": "another way from one step on; only one of the two was kept",
    "rewind": "what was taken back",
    "revision": "an answer that was made up or changed, often to be the worse one of a pair",
}
"""Kind of branch -> why it is not written as a record of its own unless that is asked for."""

_ALONE = "a branch is written as a record of its own, without its parent"

LONELY = f"$.parent_id: {_ALONE}"
"""The loss of a branch that is written as a record of its own."""


def with_branches(
    trajectories: Iterable[Trajectory],
    embeds: Callable[[Trajectory], bool],
    joins: Callable[[Trajectory, Trajectory], bool] | None = None,
) -> Iterator[Trajectory]:
    """Hang branches into their parents, where both come from the same record.

    Args:
        trajectories: in the order of a store, where branches follow their main line.
        embeds: whether a branch is wanted in its parent; see `Converter.embeds`.
        joins: whether a run is written in the record of the run before it, for formats that keep
            the attempts at a task in one record; see `Format.joins`.

    Returns:
        The records that are to be written. What comes from one record of the source is held.
    """
    full: list[Trajectory] = []
    known: dict[str | None, Trajectory] = {}
    for trajectory in trajectories:
        parent = known.get(trajectory.parent_id) if trajectory.parent_id is not None else None
        same = bool(full) and _record(full[0]) == _record(trajectory)
        alone = joins is None or not full or trajectory.parent_id is not None
        if not alone and joins is not None and joins(full[-1], trajectory):
            full[-1].branches.append(trajectory)
            known[trajectory.trajectory_id] = trajectory
            continue
        if not same or (parent is None and trajectory.source_records is None):
            yield from full
            full, known, parent = [], {}, None
        known[trajectory.trajectory_id] = trajectory
        if parent is not None and embeds(trajectory):
            parent.branches.append(trajectory)
        else:
            full.append(trajectory)
    yield from full


def _record(trajectory: Trajectory) -> tuple[str | None, list[int] | None]:
    return trajectory.source_file, trajectory.source_records


def count(trajectory: Trajectory) -> int:
    """Number of trajectories in a trajectory: itself and its branches."""
    return 1 + sum(map(count, trajectory.branches))


def report_parent(trajectory: Trajectory, losses: Losses) -> None:
    """Report a branch that is written as a record of its own."""
    if trajectory.parent_id is None:
        return
    losses.add("$.parent_id", _ALONE)
    if trajectory.branch_kind is not None:
        losses.add("$.branch_kind", "what it is of its parent is not said")
    if trajectory.parent_step:
        losses.add("$.parent_step", "the steps that it shares with its parent are not repeated")
