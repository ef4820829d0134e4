"""What passes between the taskset and its servers of tools."""

from __future__ import annotations

import verifiers.v1 as vf


class AdpTaskData(vf.TaskData):
    """A task, and where it is played."""

    environment: str
    """The environment as on the command line of adp, such as ``toolworld:max_hops=2``."""
    task: str
    """The task as JSON: a row of the table of tasks."""
    seed: int = 0
    """Seed of the episode."""


class AdpState(vf.State):
    """What the server of tools tells the host."""

    done: bool = False
    """Whether the environment has ended the episode."""
