"""Playing the episodes of one step of a training, as `adp collect` plays them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from adp.rollouts.collecting.actor import Acted, ActorView, Reflection
from adp.rollouts.collecting.collect import Environments
from adp.rollouts.collecting.episode import run_episode, turn_seed
from adp.rollouts.collecting.foreign_code import broken
from adp.rollouts.collecting.limits import Limits
from adp.rollouts.collecting.recorder import About
from adp.rollouts.collecting.threads import DaemonThreads
from adp.rollouts.plugin_errors import stops
from adp.rollouts.policy import Policy, Request
from adp_schema.errors import MissingExtraError, UsageError
from adp_schema.model import Trajectory


@dataclass(frozen=True, slots=True)
class RolloutJob:
    """An episode to play.

    Attributes:
        about: what is known of it; its seed makes the world.
        seed: of what the policy draws.
        group: the same for all episodes of one world.
    """

    about: About
    seed: int
    group: str


@dataclass(frozen=True)
class SeededActor:
    """A policy that draws from a seed of its own, so that episodes of one world differ.

    Attributes:
        policy: the policy.
        seed: its seed.
    """

    policy: Policy
    seed: int

    async def act(self, request: Request, view: ActorView) -> Acted:
        """The policy's turn."""
        seed = turn_seed(self.seed, request.turn)
        return Acted(await self.policy.act(replace(request, seed=seed)))

    async def reflect(self, request: Request, view: ActorView) -> Reflection:
        """Nothing to add."""
        return Reflection()

    def summary(self) -> Mapping[str, Any]:
        """Nothing to keep."""
        return {}

    async def close(self) -> None:
        """Nothing to free."""


@dataclass
class RolloutPlayer:
    """Plays episodes.

    Attributes:
        environments: makes the environment of an episode.
        limits: budgets of an episode.
        concurrency: episodes that run at once.
        hanging: calls of tools that had not returned when the last episodes ended.
    """

    environments: Environments
    limits: Limits
    concurrency: int
    hanging: int = 0
    _through: bool = False

    def play(self, jobs: Sequence[RolloutJob], policy: Callable[[], Policy]) -> list[Trajectory]:
        """Play episodes, and close the policy.

        Args:
            jobs: what to play.
            policy: makes who acts, on the event loop of the episodes.

        Returns:
            The trajectories, in the order of the jobs. What breaks is one with ``error_type``.

        Raises:
            UsageError: the environment or the policy cannot be used like this; before any episode
                went well.
        """
        return asyncio.run(self._play(jobs, policy))

    async def _play(
        self, jobs: Sequence[RolloutJob], make: Callable[[], Policy]
    ) -> list[Trajectory]:
        threads = DaemonThreads("adp-tool")
        asyncio.get_running_loop().set_default_executor(threads)
        free = asyncio.Semaphore(self.concurrency)
        policy = make()

        async def episode(job: RolloutJob) -> Trajectory:
            async with free:
                return await self._episode(job, policy)

        try:
            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(episode(job)) for job in jobs]
        except BaseExceptionGroup as errors:
            raise errors.exceptions[0] from None
        finally:
            await policy.close()
        self.hanging = threads.running
        return [task.result() for task in tasks]

    async def _episode(self, job: RolloutJob, policy: Policy) -> Trajectory:
        """Play one. What is wrong with the call itself is raised, unless others went well."""
        try:
            environment = self.environments()
            actor = SeededActor(policy, job.seed)
            result = await run_episode(job.about, environment, actor, self.limits)
        except UsageError as error:
            if not self._through:
                raise
            return broken(job.about, error)
        except MissingExtraError:
            raise
        except BaseException as error:
            if stops(error):
                raise
            return broken(job.about, error)
        self._through = True
        return result
