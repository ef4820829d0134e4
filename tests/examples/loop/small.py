"""Episodes for the tests of the loop."""

import asyncio

from adp.rollouts.collecting.episode import run_episode
from adp.rollouts.collecting.recorder import About
from adp.rollouts.environments.toolworld import Toolworld


def played(task, actor, attempt=0):
    about = About(dataset="small", attempt=attempt, task=task, policy="teacher", timed=False)
    return asyncio.run(run_episode(about, Toolworld(), actor))
