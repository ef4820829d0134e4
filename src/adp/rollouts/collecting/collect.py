"""Many episodes at once, into a growing store: resumed, counted, within budgets.

What was done is decided by the ids in the store, ``dataset/task/attempt-k``; a second try of an
episode that broke is ``...#2``. So a run may be killed at any moment, and several processes may
work on one store: nothing is lost, and nothing is there twice.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from adp.rollouts.collecting.actor import Actor, Alone
from adp.rollouts.collecting.alternate_counts import alternate_counts, note_alternates
from adp.rollouts.collecting.branching.counts import note_branching
from adp.rollouts.collecting.branching.group import (
    BranchingGroup,
    GroupMember,
    vocabulary_of,
)
from adp.rollouts.collecting.branching.settings import BranchingSettings
from adp.rollouts.collecting.counts import CollectReport, Episode, Streak
from adp.rollouts.collecting.episode import run_episode
from adp.rollouts.collecting.episode_locks import EpisodeLocks
from adp.rollouts.collecting.foreign_code import broken
from adp.rollouts.collecting.output_store import UNSTORABLE, OutputStore, episodes_of, is_sealed
from adp.rollouts.collecting.plan import EpisodeJob, EpisodePlan
from adp.rollouts.collecting.prepare import look_up, plan_of
from adp.rollouts.collecting.recorder import About, branch_alone
from adp.rollouts.collecting.run_file import most_asked, settle
from adp.rollouts.collecting.settings import CollectSettings
from adp.rollouts.collecting.threads import DaemonThreads
from adp.rollouts.environment import AsyncEnvironment, Environment
from adp.rollouts.plugin_errors import stops
from adp.rollouts.policy import Policy
from adp.stores.locks import holding
from adp_schema.errors import (
    MissingExtraError,
    RolloutError,
    SealedError,
    StoreError,
    UsageError,
)
from adp_schema.model import Task, Trajectory
from adp_schema.seal_store import seal

Environments = Callable[[], Environment | AsyncEnvironment]
"""Makes the environment of an episode."""

Actors = Callable[[About], Actor]
"""Makes who acts in an episode."""

Watch = Callable[[CollectReport], None]
"""Told how far a run is; called often."""

_POLL_SECONDS = 0.25
"""How often to look whether another process has done what it is at."""

_MOST_CLAIMED = 256
"""Episodes that are claimed ahead, at most."""


def alone(policy: Policy) -> Actors:
    """Actors of a policy that acts alone."""
    return Alone(policy)


def branching_actor(actors: Actors) -> Alone:
    """Who acts in attempts that branch.

    Raises:
        UsageError: it is not a policy alone.
    """
    if not isinstance(actors, Alone):
        raise UsageError(
            "attempts branch only where a model acts alone; choose such a policy, and no expert"
        )
    return actors


async def collect(
    out: str | Path,
    environments: Environments,
    actors: Actors,
    tasks: Sequence[Task],
    settings: CollectSettings | None = None,
    *,
    watch: Watch | None = None,
) -> CollectReport:
    """Run all attempts at all tasks, but for those that the store holds already.

    Args:
        out: folder of the growing store; it is made, or gone on with.
        environments: makes the environment of an episode.
        actors: makes who acts in an episode; `alone` for a policy.
        tasks: the tasks; each has a ``task_id`` of its own.
        settings: everything else.
        watch: told how far it is.

    Raises:
        UsageError: a task has no id or that of another one; the environment or the policy cannot
            be used like this.
        OutputExistsError: the store was begun with other settings, or by something else; or it is
            finished, and not all of what is asked for was done.
        NothingNewError: earlier stores hold all that is asked for; nothing was written.
        RolloutError: one episode after the other broke for the same reason.
        StoreError: the store cannot be written to, or a run of another kind writes there.
    """
    settings = settings or CollectSettings()
    if settings.branching is not None:
        vocabulary_of(branching_actor(actors).policy, settings.branching)
    if settings.policy is None:
        settings = settings.model_copy(update={"policy": getattr(actors, "name", None)})
    root = Path(out)
    with holding(root, together=True):
        plan = plan_of(root, tasks, settings)
        if not is_sealed(root):
            run = _Run(root, environments, actors, plan, settings, watch)
            try:
                await run.open()
            except SealedError:
                # Another process is ending the store, or was killed while it did.
                await asyncio.to_thread(seal, root)
            except StoreError:
                if not is_sealed(root):  # else another process was faster
                    raise
            else:
                return await run.run()
        return look_up(root, plan, settings)


def collect_now(
    out: str | Path,
    environments: Environments,
    actors: Actors,
    tasks: Sequence[Task],
    settings: CollectSettings | None = None,
    *,
    watch: Watch | None = None,
    policies: Sequence[Policy] = (),
) -> CollectReport:
    """`collect` for code that is not asynchronous.

    Args:
        out: as for `collect`, and so on.
        environments: makes the environment of an episode.
        actors: makes who acts in an episode.
        tasks: the tasks.
        settings: everything else.
        watch: told how far it is.
        policies: closed at the end. What their method ``remarks(tasks)`` says, where there is one,
            is added to the notes of the report.
    """

    async def call() -> CollectReport:
        # Tools that wait run in threads; the default number of these follows the processors.
        threads = DaemonThreads("adp-tool")
        asyncio.get_running_loop().set_default_executor(threads)
        try:
            report = await collect(out, environments, actors, tasks, settings, watch=watch)
            report.hanging = threads.running
            for policy in policies:
                remarks = getattr(policy, "remarks", None)
                report.notes += remarks(tasks) if callable(remarks) else []
            return report
        finally:
            for policy in policies:
                await policy.close()

    return asyncio.run(call())


@dataclass(eq=False)
class _Run:
    """One call of `collect`."""

    _root: Path
    _environments: Environments
    _actors: Actors
    _plan: EpisodePlan
    _settings: CollectSettings
    _watch: Watch | None

    def __post_init__(self) -> None:
        settings = self._settings
        self._started = time.monotonic()
        self._work: Iterator[EpisodeJob] = iter(())
        ahead = min(_MOST_CLAIMED, max(1, settings.concurrency // 4))
        self._ready: asyncio.Queue[EpisodeJob | None] = asyncio.Queue(ahead)
        self._others: list[EpisodeJob] = []
        self._through = False
        most = settings.max_failures, settings.concurrency
        self._judged, self._kept = Streak(*most), Streak(*most)
        self._wrong: RolloutError | None = None

    async def open(self) -> None:
        """Open the store, and lay out what is left to do."""
        plan = self._plan
        with ExitStack() as opened:
            self._target = OutputStore(self._root, self._stored)
            opened.callback(self._target.close)
            self._locks = EpisodeLocks(self._root)
            opened.callback(self._locks.close)
            empty, alone = self._target.is_empty, self._locks.join
            now, n = plan.settings(), self._settings.n
            await asyncio.to_thread(settle, self._root, now, n, empty=empty, alone=alone)
            self._work = plan.jobs(() if empty() else episodes_of(self._root, plan.dataset))
            counts = None if empty() else alternate_counts(self._root, plan.dataset)
            if counts is not None:
                plan.spent.tokens_in += counts["tokens_in"]
                plan.spent.tokens_out += counts["tokens_out"]
                plan.spent.cost_usd += counts["cost_usd"]
            self._through = bool(plan.report.done_before)
            self._opened = opened.pop_all()

    async def run(self) -> CollectReport:
        """Do all that is left, and seal the store when that is all."""
        plan = self._plan
        with self._opened:
            await self._all()
        plan.report.seconds = time.monotonic() - self._started
        there = episodes_of(self._root, plan.dataset) if plan.has_elsewhere else ()
        report = plan.close(there)
        report.stopped = report.stopped if report.left else None
        report.most_asked = most_asked(self._root)
        fewer = report.beyond or report.most_asked > self._settings.n
        full = not report.left and not report.failed and not fewer
        note_branching(report, self._root, plan.dataset, self._settings.branching)
        note_alternates(report, self._root, plan.dataset)
        if self._settings.seal or (self._settings.seal is None and full):
            await asyncio.to_thread(seal, self._root)
            report.sealed = True
        return report

    async def _all(self) -> None:
        """Let workers run the episodes, and one task write what they bring."""
        report = self._plan.report
        count = min(self._settings.concurrency, report.left + report.failed)
        if self._settings.branching is not None:
            count = max(1, count // self._settings.n)  # so many groups run at once
        workers = (self._worker() for _ in range(count))
        await self._target.written_while(*workers, self._feed(count))

    # ---- which episode is next ------------------------------------------------------------

    async def _feed(self, workers: int) -> None:
        """Claim episodes ahead of the workers, and tell each when there are no more."""
        while not self._over() and await self._claim():
            pass
        for _ in range(workers):
            await self._ready.put(None)

    def _over(self) -> bool:
        spent = self._plan.spent
        tokens = spent.tokens_in + spent.tokens_out
        seconds = time.monotonic() - self._started
        used = self._settings.totals.reached(tokens, spent.cost_usd, seconds)
        self._plan.report.stopped = used
        return used is not None

    async def _claim(self) -> bool:
        """Claim some episodes that no other process is at; whether any are left at all."""
        block = list(islice(self._work, self._ready.maxsize))
        if not block:
            if not self._others:
                return False
            block = await self._left_by_others()
        taken: list[EpisodeJob] = []
        for job in block:
            free = self._locks.take(job.about.trajectory_id)
            (taken if free else self._others).append(job)
        there = await self._target.holds(job.about.trajectory_id for job in taken)
        for job in taken:
            if job.about.trajectory_id in there:
                self._locks.free(job.about.trajectory_id)
                self._done_elsewhere(job)
            else:
                await self._ready.put(job)
        return True

    async def _left_by_others(self) -> list[EpisodeJob]:
        """Episodes that another process is at. When it is killed, they can be claimed."""
        others, self._others = self._others, []
        there = await self._target.holds(job.about.trajectory_id for job in others)
        left = []
        for job in others:
            if job.about.trajectory_id in there:
                self._done_elsewhere(job)
            else:
                left.append(job)
        if left and len(left) == len(others):
            await asyncio.sleep(_POLL_SECONDS)
        return left

    def _done_elsewhere(self, job: EpisodeJob) -> None:
        for member in job.members:
            self._plan.done_elsewhere(member)

    # ---- one episode ----------------------------------------------------------------------

    async def _worker(self) -> None:
        while (job := await self._ready.get()) is not None:
            if self._wrong is not None:
                raise self._wrong
            if self._over():
                continue
            if self._settings.branching is None:
                trajectories = [await self._episode(job.about)]
            else:
                trajectories = await self._group(job.members, self._settings.branching)
            await self._target.put_together(list(zip(job.members, trajectories, strict=True)))
            for trajectory in trajectories:
                episode = Episode.of(trajectory)
                self._plan.spent.add(episode)
                for branch in trajectory.branches:
                    self._plan.spent.pay(Episode.of(branch))
                self._judged.add(episode)

    async def _episode(self, about: About) -> Trajectory:
        """Run an episode."""

        async def run() -> list[Trajectory]:
            actor = self._actors(about)
            environment = self._environments()
            return [await run_episode(about, environment, actor, self._settings.limits)]

        return (await self._tried([about], run))[0]

    async def _group(
        self, members: Sequence[EpisodeJob], branching: BranchingSettings
    ) -> list[Trajectory]:
        """Run the attempts at one task."""
        actor = branching_actor(self._actors)
        abouts = [member.about for member in members]
        group = BranchingGroup(
            [GroupMember(about, actor, about.seed) for about in abouts],
            self._environments,
            self._settings.limits,
            branching,
            vocabulary_of(actor.policy, branching),
        )
        return [branch_alone(item) for item in await self._tried(abouts, group.run)]

    async def _tried(
        self, abouts: Sequence[About], run: Callable[[], Awaitable[list[Trajectory]]]
    ) -> list[Trajectory]:
        """Run. What is wrong with the call itself is raised, unless others went well."""
        try:
            trajectories = await run()
        except UsageError as error:
            if not self._through:
                raise
            return [broken(about, error) for about in abouts]
        except MissingExtraError:
            raise
        except BaseException as error:
            if stops(error):
                raise
            return [broken(about, error) for about in abouts]
        self._through = True
        return trajectories

    def _stored(self, job: EpisodeJob, trajectory: Trajectory, new: bool) -> None:
        """An episode is on the disk."""
        self._locks.free(job.about.trajectory_id)
        episode = Episode.of(trajectory)
        if new:
            self._plan.ended(job, episode)
            if self._wrong is None:
                self._wrong = self._refused(episode)
        else:
            self._plan.done_elsewhere(job)
        if self._watch is not None:
            self._plan.report.seconds = time.monotonic() - self._started
            self._watch(self._plan.report)

    def _refused(self, episode: Episode) -> RolloutError | None:
        """Why to stop the run, when the store refuses one episode after the other."""
        if episode.stop_reason != UNSTORABLE:
            episode = episode._replace(error_type=None)
        try:
            self._kept.add(episode)
        except RolloutError as error:
            return error
        return None
