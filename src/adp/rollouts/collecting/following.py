"""An episode with its branches: turns that were not taken, each followed to an end of its own.

The episode itself is played first, then its branches in the order of their steps, then the
branches of these: so where a limit of branches is reached, it is the deepest that are missing.
Each is judged by its own fork of the world. When the episode itself broke, it may be tried again,
and nothing is followed.
"""

from __future__ import annotations

from collections import deque
from typing import Any

from adp.rollouts.collecting.recorder import branch_alone
from adp_schema.model import Trajectory


async def follow(episode: Any) -> Trajectory:
    """Play an episode, and what branches from it.

    Args:
        episode: a `RunningEpisode`; it and all branches are closed at the end.

    Returns:
        Its trajectory. Its ``branches`` hold the branches of every depth, each with its own steps
        and behind its parent.

    Raises:
        UsageError: the environment cannot do the task, or the policy cannot be called like this.
        MissingExtraError: a package is missing.
    """
    waiting = deque([episode])
    done: list[Trajectory] = []
    try:
        while waiting:
            playing = waiting.popleft()
            try:
                trajectory = await playing.run()
            except BaseException:
                waiting.extend(playing.branches)
                raise
            done.append(trajectory)
            if trajectory.error_type is None:
                waiting.extend(playing.branches)
            else:
                for branch in playing.branches:
                    await branch.close()
    finally:
        for branch in waiting:
            await branch.close()
    main = done[0]
    main.branches = [*main.branches, *map(branch_alone, done[1:])]
    return main
