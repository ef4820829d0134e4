"""Episodes for the tests of the loop."""

import asyncio

from adp.eval.environments.toolworld import Toolworld
from adp.eval.rollout.episode import run_episode
from adp.eval.rollout.recorder import About


def played(task, actor, attempt=0):
    about = About(dataset="small", attempt=attempt, task=task, policy="teacher", timed=False)
    return asyncio.run(run_episode(about, Toolworld(), actor))
