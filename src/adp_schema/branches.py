"""Branches: what they start from, and the steps that they share with it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pyarrow as pa

from adp_schema.errors import StoreError
from adp_schema.model import Trajectory

_NAMED = 5
"""Trajectories of a circle that its error names."""

_COLUMNS = ("trajectory_id", "parent_id", "parent_step")


class Parents:
    """What the branches of a store start from. Only branches that share steps count.

    Args:
        addresses: the files of the table of trajectories, in order. Of several trajectories of one
            id the last one counts.
    """

    def __init__(self, addresses: Iterable[str]) -> None:
        from adp_schema import location

        self._parents: dict[str | None, str] = {}
        self._circles: dict[str, str] = {}
        for address in addresses:
            self._add(location.open_parquet(address).read(columns=list(_COLUMNS)))

    def _add(self, rows: pa.Table) -> None:
        nulls = [None] * rows.num_rows
        known = rows.column_names
        columns = (rows[name].to_pylist() if name in known else nulls for name in _COLUMNS)
        for name, parent, step in zip(*columns, strict=True):
            if parent is not None and step is not None:
                self._parents[name] = parent
            else:
                self._parents.pop(name, None)

    def above(self, trajectory: Trajectory) -> list[str]:
        """What a trajectory starts from: its parent, the parent of that, and so on.

        Args:
            trajectory: a branch that shares steps.

        Returns:
            Ids; the last one is that of a main line, or is not in the store.

        Raises:
            StoreError: they lead in a circle.
        """
        names: dict[str, None] = {}
        name = trajectory.parent_id
        while name is not None and name not in names and name not in self._circles:
            names[name] = None
            name = self._parents.get(name)
        if name is None:
            return list(names)
        if name not in self._circles:
            there = list(names)
            endings = _named(there[there.index(name) :])
            self._circles.update(dict.fromkeys(names, endings))
        raise StoreError(self._circles[name])


def _named(circle: list[str]) -> str:
    shown = ", ".join(f"'{name}'" for name in sorted(circle)[:_NAMED])
    more = f" and {len(circle) - _NAMED:,} more" if len(circle) > _NAMED else ""
    if len(circle) == 1:
        which = f"the branch {shown} is its own parent"
    else:
        which = f"the branches {shown}{more} are each other's parents, in a circle"
    return f"{which}, so their first steps are unknown; leave them out with adp drop"


def after(parent: Trajectory, branch: Trajectory) -> Trajectory:
    """A branch with the steps that it shares with its parent before its own.

    Args:
        parent: the parent, with all its steps.
        branch: the branch. The tools on offer are the parent's too, unless it has its own.
    """
    kept = branch.parent_step or 0
    before = [step for step in parent.steps if (step.step or 0) < kept]
    update: dict[str, Any] = {
        "steps": before + branch.steps,
        "early_observations": parent.early_observations + branch.early_observations,
    }
    if branch.tools is None:
        update |= {"tools": parent.tools, "tools_origin": parent.tools_origin}
    return branch.model_copy(update=update)
