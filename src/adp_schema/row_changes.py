"""Rows of whole trajectories, taken out of their tables to be changed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from adp_schema.model import Columns
from adp_schema.table_rows import TableRows


@dataclass(slots=True)
class TrajectoryRows:
    """The rows of one trajectory, numbered and in order.

    Attributes:
        columns: those of the trajectory itself.
        steps: its steps.
        tool_calls: their calls.
        observations: the observations, those before the first step among them.
        links: its links.
        raw: its raw records.
    """

    columns: Columns
    steps: list[Columns] = field(default_factory=list)
    tool_calls: list[Columns] = field(default_factory=list)
    observations: list[Columns] = field(default_factory=list)
    links: list[Columns] = field(default_factory=list)
    raw: list[Columns] = field(default_factory=list)

    def tables(self) -> dict[str, list[Columns]]:
        """Table -> rows."""
        return {
            "steps": self.steps,
            "tool_calls": self.tool_calls,
            "observations": self.observations,
            "links": self.links,
            "raw": self.raw,
        }


Keys = list[tuple[int, str, int]]
"""Of the rows of a table: ``seq`` and id of a trajectory, and the position after its last row."""


def taken_apart(
    trajectories: list[Columns],
    tables: Mapping[str, TableRows],
    keys: Mapping[str, Keys],
    marks: Mapping[str, int],
) -> list[TrajectoryRows]:
    """Take the rows of trajectories out of their tables.

    Args:
        trajectories: their own rows, which stay.
        tables: the tables by name; those of ``keys`` are cut.
        keys: table -> whose its rows are; those of the trajectories are taken out.
        marks: table -> position of the first row to be taken.
    """
    runs = {row["trajectory_id"]: TrajectoryRows(row) for row in trajectories}
    for table, entries in keys.items():
        start = position = marks[table]
        taken = [key for key in entries if key[2] > start]
        rows = tables[table][start:]
        for _, name, end in taken:
            runs[name].tables()[table].extend(rows[position - start : end - start])
            position = end
        del entries[len(entries) - len(taken) :]
        tables[table].truncate(start)
    return list(runs.values())
