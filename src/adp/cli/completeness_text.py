"""What runs lack, in a line a group."""

from __future__ import annotations

from adp.cli.text import counted, say
from adp.stores.completeness import CompletenessFigures


def show_completeness(figures: list[CompletenessFigures]) -> None:
    """Print a line a group: what its trajectories lack."""
    for row in figures:
        lacking = row.missing()
        runs = counted(row.trajectories, "trajectory", "trajectories")
        compacted = f"; {row.compacted:,} compacted" if row.compacted else ""
        lacks = f"missing {', '.join(lacking)}" if lacking else "complete"
        say(f"{row.group or 'all'}: {runs}, {lacks}{compacted}")
