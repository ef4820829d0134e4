"""The keys of a trajectory of SAGE's collector, and what some of its values mean."""

from __future__ import annotations

from msgspec import Raw

from adp.converters.reading import NULL_VALUE

NAME = "sage_trajectories"

RUN = (
    *("trajectory_id", "task_id", "instruction", "steps", "success", "total_reward"),
    *("start_time", "end_time", "available_tools", "ground_truth", "metadata"),
)
STEP = (
    *("step_id", "thought", "action", "action_input", "observation", "reward", "timestamp"),
    "metadata",
)
EMPTY = {"metadata": Raw(b"{}"), "ground_truth": NULL_VALUE}
"""Values that are written when nothing else is known."""

ERROR = "error"
ENDS = ("finish", "done")
FAILED = "Error executing "
"""What an observation begins with when the tool raised an error."""
