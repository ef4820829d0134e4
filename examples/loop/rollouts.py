"""Many episodes at once, into a growing store that is sealed at the end."""

import asyncio
import os

from adp.eval.environments.toolworld import Toolworld
from adp.eval.rollout.episode import run_episode
from adp.eval.rollout.limits import Limits
from adp.eval.rollout.recorder import About
from adp_schema.ending import seal
from adp_schema.ids import digest
from adp_schema.store import Store

TOGETHER = 256
LIMITS = Limits(max_turns=40)


def roll_out(out, jobs, dataset, policy, together=TOGETHER):
    """Run episodes and keep them, in the order of the jobs.

    Args:
        out: the store to be made.
        jobs: (task, attempt, function that makes the actor).
        dataset: name of the data set.
        policy: name of the policy, for the record.
        together: how many episodes run at once.
    """
    store = Store.grow(os.fspath(out))
    with store:
        for begin in range(0, len(jobs), together):
            store.extend(asyncio.run(_some(jobs[begin : begin + together], dataset, policy)))
    seal(os.fspath(out))
    return Store.open(os.fspath(out))


async def _some(jobs, dataset, policy):
    return await asyncio.gather(*(_one(*job, dataset, policy) for job in jobs))


async def _one(task, attempt, make, dataset, policy):
    seed = int(digest(f"{task.task_id}/{attempt}".encode())[:8], 16) >> 1
    about = About(dataset, attempt, task, policy, "toolworld", seed, timed=False)
    return await run_episode(about, Toolworld(), make(), LIMITS)
