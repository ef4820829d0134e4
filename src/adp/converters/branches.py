"""Trajectories of one record: a run and its branches, put together for formats that embed them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from adp_schema.model import Trajectory
from adp_schema.protocols import Converter, Losses


def with_branches(trajectories: Iterable[Trajectory], converter: Converter) -> Iterator[Trajectory]:
    """Hang branches into their parents, where both come from the same record.

    Args:
        trajectories: in the order of a store, where branches follow their main line.
        converter: the format that is written. One without `embeds_branches` gets every
            trajectory by itself; one with the further attribute ``branch_kinds`` gets only
            branches of these kinds embedded.

    Returns:
        The records that are to be written. What comes from one record of the source is held.
    """
    if not converter.embeds_branches:
        yield from trajectories
        return
    kinds: frozenset[str] | None = getattr(converter, "branch_kinds", None)
    whole: list[Trajectory] = []
    known: dict[str | None, Trajectory] = {}
    for trajectory in trajectories:
        parent = known.get(trajectory.parent_id) if trajectory.parent_id is not None else None
        same = bool(whole) and _record(whole[0]) == _record(trajectory)
        if not same or (parent is None and trajectory.source_records is None):
            yield from whole
            whole, known, parent = [], {}, None
        known[trajectory.trajectory_id] = trajectory
        if parent is not None and (kinds is None or trajectory.branch_kind in kinds):
            parent.branches.append(trajectory)
        else:
            whole.append(trajectory)
    yield from whole


def _record(trajectory: Trajectory) -> tuple[str | None, list[int] | None]:
    return trajectory.source_file, trajectory.source_records


def count(trajectory: Trajectory) -> int:
    """Number of trajectories in a trajectory: itself and its branches."""
    return 1 + sum(map(count, trajectory.branches))


def report_parent(trajectory: Trajectory, losses: Losses) -> None:
    """Report a branch that is written as a record of its own."""
    if trajectory.parent_id is None:
        return
    reason = "a branch is written as a record of its own, without its parent"
    losses.add("$.parent_id", reason)
    if trajectory.parent_step:
        losses.add("$.parent_step", "the steps that it shares with its parent are not repeated")
