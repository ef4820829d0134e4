"""The rounds of a task: select, let the operators at it all at once, and keep what they bring."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from adp.core.json_values import json_object
from adp.rollouts.collecting.output_store import together
from adp.rollouts.collecting.plan import episode_seed
from adp.rollouts.collecting.recorder import About
from adp.rollouts.environment import as_async
from adp.rollouts.evolving.buffer import BufferEntry
from adp.rollouts.evolving.buffer_plan import BufferPlan
from adp.rollouts.evolving.carry_out import Evolver, adopted
from adp.rollouts.evolving.continuing import nobody
from adp.rollouts.evolving.correctness import rule_of
from adp.rollouts.evolving.entries import entry_of
from adp.rollouts.evolving.lineage import INITIAL, Derivation
from adp.rollouts.evolving.operator import Change, Operator
from adp.rollouts.evolving.recorded import parent_of
from adp.rollouts.evolving.sources import TaskJob
from adp.rollouts.plugin_errors import stops
from adp.rollouts.turns import Tool
from adp_schema.model import Trajectory
from adp_schema.store import Store


@dataclass(frozen=True)
class RoundsOfTasks:
    """What the rounds of all tasks share.

    Attributes:
        evolver: makes trajectories.
        plan: the buffers and their places.
        dataset: data set of the trajectories.
        source: the store that the buffers begin with.
        held: what the output held when the call began.
        put: takes a trajectory for the output.
    """

    evolver: Evolver
    plan: BufferPlan
    dataset: str
    source: Store
    held: Store
    put: Callable[[Trajectory], Awaitable[None]]

    async def run(self, job: TaskJob) -> None:
        """Do all rounds of a task that are left."""
        await _TaskRounds(self, job).run()


class _TaskRounds:
    """The rounds of a task."""

    def __init__(self, shared: RoundsOfTasks, job: TaskJob) -> None:
        self._shared, self._job = shared, job
        self._evolver, self._settings = shared.evolver, shared.evolver.settings
        self._buffer, self._tries = shared.plan.buffer(job)
        self._loaded: dict[str, Trajectory] = {}
        self._tools: Sequence[Tool] | None = None

    async def run(self) -> None:
        """Begin the buffer, and do all rounds."""
        places = range(len(self._job.initial))
        empty = [place for place in places if self._shared.plan.lacks(self._buffer, place)]
        await together(*(self._begin(place) for place in empty))
        for number in range(1, self._settings.rounds + 1):
            missing = self._shared.plan.missing(self._job, self._buffer, number)
            if not missing:
                continue
            parent = self._buffer.parent(number)
            assert parent is not None
            trajectory = self._trajectory(parent.trajectory_id)
            made = await together(
                *(self._make(item, trajectory, place, number) for place, item in missing)
            )
            for entry in made:
                self._buffer.add(entry)

    def _trajectory(self, name: str) -> Trajectory:
        if name not in self._loaded:
            self._loaded[name] = self._shared.held.get(name, exact=True)
        return self._loaded[name]

    async def _keep(self, trajectory: Trajectory, place: int) -> BufferEntry:
        self._loaded[str(trajectory.trajectory_id)] = trajectory
        await self._shared.put(trajectory)
        entry = entry_of(trajectory)
        self._buffer.add(entry)
        return entry

    def _about(self, place: int, seed: int) -> About:
        settings = self._settings
        held = self._buffer.entries.get(place)
        return About(
            dataset=self._shared.dataset,
            attempt=place,
            task=self._job.task,
            policy=settings.policy,
            environment=settings.environment,
            seed=seed,
            timed=settings.timed,
            tries=1 if held is None else self._tries.get(place, 1) + 1,
        )

    async def _begin(self, place: int) -> BufferEntry:
        """Put a trajectory of the source at its place; where its verdict is missing, replay it."""
        name = self._job.initial[place]
        before = self._shared.source.get(name, exact=True)
        seed = self._seed(before)
        about = self._about(place, seed)
        asking = self._evolver.asking(episode_seed(seed, name, 0))
        trajectory = adopted(before, about)
        more: dict[str, Any] = {"from": name}
        unjudged = before.success is None and before.reward is None
        if unjudged and rule_of(self._settings.correct, self._job.task) == "environment":
            again = await self._replayed(before, about)
            if again.error_type is None:
                trajectory, more = again, {**more, "replayed": True}
        origin = Derivation(INITIAL, 0, more=more)
        return await self._keep(
            await self._evolver.judged(trajectory, about, origin, asking), place
        )

    async def _replayed(self, before: Trajectory, about: About) -> Trajectory:
        parent = parent_of(before, self._job.task)
        evolver = replace(self._evolver, actors=nobody)
        change = Change(parent.turns, len(parent.turns))
        return await evolver.run(change, about, evolver.asking(about.seed))

    async def _make(
        self, operator: Operator, trajectory: Trajectory, place: int, number: int
    ) -> BufferEntry:
        tools = () if trajectory.tools else await self._offered()
        parent = parent_of(trajectory, self._job.task, tools)
        about = self._about(place, self._seed(trajectory))
        made = await self._evolver.make(operator, parent, about, number=number)
        return await self._keep(made, place)

    def _seed(self, trajectory: Trajectory) -> int:
        """Seed of the environment: the one that the trajectory was made with."""
        seed = json_object(trajectory.extra).get("seed")
        if isinstance(seed, int) and not isinstance(seed, bool):
            return seed
        attempt = trajectory.attempt or 0
        return episode_seed(self._settings.seed, str(self._job.task.task_id), attempt)

    async def _offered(self) -> Sequence[Tool]:
        """The tools of the environment, for trajectories that do not say theirs."""
        if self._tools is None:
            self._tools = ()
            try:
                environment = as_async(self._evolver.environments())
                await environment.reset(self._job.task, seed=0)
                self._tools = list(environment.tools())
                await environment.close()
            except BaseException as error:
                if stops(error):
                    raise
        return self._tools
