"""Playing the episodes of one step of a training, as `adp collect` plays them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any

from adp.rollouts.collecting.actor import Acted, ActorView, Reflection
from adp.rollouts.collecting.branching.group import (
    BranchingGroup,
    GroupMember,
    vocabulary_of,
)
from adp.rollouts.collecting.branching.settings import BranchingSettings
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

    def play(
        self,
        jobs: Sequence[RolloutJob],
        policy: Callable[[], Policy],
        branching: BranchingSettings | None = None,
    ) -> list[Trajectory]:
        """Play episodes, and close the policy.

        Args:
            jobs: what to play.
            policy: makes who acts, on the event loop of the episodes.
            branching: how the episodes of a group branch; None: each begins at the beginning.

        Returns:
            The trajectories, in the order of the jobs. What breaks is one with ``error_type``.

        Raises:
            UsageError: the environment or the policy cannot be used like this; before any episode
                went well.
        """
        return asyncio.run(self._play(jobs, policy, branching))

    async def _play(
        self,
        jobs: Sequence[RolloutJob],
        make: Callable[[], Policy],
        branching: BranchingSettings | None,
    ) -> list[Trajectory]:
        threads = DaemonThreads("adp-tool")
        asyncio.get_running_loop().set_default_executor(threads)
        groups = [[job] for job in jobs] if branching is None else groups_of(jobs)
        largest = max(map(len, groups), default=1)
        free = asyncio.Semaphore(max(1, self.concurrency // largest))
        policy = make()

        async def played(group: Sequence[RolloutJob]) -> list[Trajectory]:
            async with free:
                return await self._tried(group, policy, branching)

        try:
            async with asyncio.TaskGroup() as crew:
                tasks = [crew.create_task(played(group)) for group in groups]
        except BaseExceptionGroup as errors:
            raise errors.exceptions[0] from None
        finally:
            await policy.close()
        self.hanging = threads.running
        return [trajectory for task in tasks for trajectory in task.result()]

    async def _tried(
        self, group: Sequence[RolloutJob], policy: Policy, branching: BranchingSettings | None
    ) -> list[Trajectory]:
        """Play some. What is wrong with the call itself is raised, unless others went well."""
        try:
            if branching is None:
                result = [await self._episode(job, policy) for job in group]
            else:
                result = await self._branching(group, policy, branching)
        except UsageError as error:
            if not self._through:
                raise
            return [broken(job.about, error) for job in group]
        except MissingExtraError:
            raise
        except BaseException as error:
            if stops(error):
                raise
            return [broken(job.about, error) for job in group]
        self._through = True
        return result

    async def _episode(self, job: RolloutJob, policy: Policy) -> Trajectory:
        environment = self.environments()
        actor = SeededActor(policy, job.seed)
        return await run_episode(job.about, environment, actor, self.limits)

    async def _branching(
        self, jobs: Sequence[RolloutJob], policy: Policy, branching: BranchingSettings
    ) -> list[Trajectory]:
        members = [GroupMember(job.about, SeededActor(policy, job.seed), job.seed) for job in jobs]
        vocabulary = vocabulary_of(policy, branching)
        group = BranchingGroup(members, self.environments, self.limits, branching, vocabulary)
        results = await group.run()
        for job, trajectory in zip(jobs, results, strict=True):
            trajectory.task = job.about.task  # rewards ask for it
        return results


def groups_of(jobs: Sequence[RolloutJob]) -> list[list[RolloutJob]]:
    """Jobs that follow each other and are of one group."""
    return [list(group) for _, group in groupby(jobs, key=lambda job: job.group)]
