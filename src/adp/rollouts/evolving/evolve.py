"""Rounds of operators over the trajectories of a store, into a growing store.

The buffer of a task begins with its trajectories. In each round the best one that was not selected
yet is what the operators start from: those for right trajectories or those for wrong ones, all at
once. Whatever they bring is stored as soon as it is there, under an id that depends on task, round
and operator alone; so a run may be killed at any moment, and the same call goes on.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from adp.rollouts.collecting.counts import Episode, Streak
from adp.rollouts.collecting.output_store import OutputStore, is_sealed
from adp.rollouts.collecting.recorder import INFRASTRUCTURE
from adp.rollouts.collecting.threads import DaemonThreads
from adp.rollouts.evolving.buffer_plan import BufferPlan, chosen_operators
from adp.rollouts.evolving.carry_out import Evolver
from adp.rollouts.evolving.entries import read_entries
from adp.rollouts.evolving.lineage import NOT_MADE
from adp.rollouts.evolving.operator import Operator
from adp.rollouts.evolving.report import EvolveReport, make_report
from adp.rollouts.evolving.run_facts import settle_facts
from adp.rollouts.evolving.settings import EvolveSettings
from adp.rollouts.evolving.sources import TaskJob, TaskJobs
from adp.rollouts.evolving.task_rounds import RoundsOfTasks
from adp.rollouts.policy import Policy
from adp.stores.locks import holding
from adp_schema.errors import OutputExistsError, SealedError, UsageError
from adp_schema.model import Trajectory
from adp_schema.seal_store import seal
from adp_schema.store import Store

Watch = Callable[[int, int], None]
"""Told how many tasks are done, and of how many."""


async def evolve(
    out: str | Path, source: TaskJobs, evolver: Evolver, *, watch: Watch | None = None
) -> EvolveReport:
    """Make trajectories of those of a store, round after round.

    Args:
        out: folder of the growing store; it is made, or gone on with.
        source: the tasks with the trajectories that their buffers begin with.
        evolver: environments, policy, models and settings.
        watch: told how far it is.

    Raises:
        UsageError: an operator or a model that is needed is missing, or cannot be used like this.
        OutputExistsError: the store was begun with other settings or by something else; or it is
            finished, and not all of what is asked for was done.
        RolloutError: one trajectory after the other broke for the same reason.
        StoreError: the store cannot be written to.
    """
    root = Path(out)
    operators = chosen_operators(evolver.settings.operators)
    for operator in operators:
        for who in operator.asks:
            if who not in evolver.models:
                raise UsageError(
                    f"the operator {operator.name} asks a {who}; give --{who} a policy"
                )
    with holding(root):
        run = _Run(root, source, evolver, operators, watch)
        return await run.run()


def evolve_now(
    out: str | Path,
    source: TaskJobs,
    evolver: Evolver,
    *,
    watch: Watch | None = None,
    policies: Sequence[Policy] = (),
) -> EvolveReport:
    """`evolve` for code that is not asynchronous; the policies are closed at the end."""

    async def call() -> EvolveReport:
        asyncio.get_running_loop().set_default_executor(DaemonThreads("adp-tool"))
        try:
            return await evolve(out, source, evolver, watch=watch)
        finally:
            for policy in policies:
                await policy.close()

    return asyncio.run(call())


class _Run:
    """One call of `evolve`."""

    def __init__(
        self,
        root: Path,
        source: TaskJobs,
        evolver: Evolver,
        operators: Sequence[Operator],
        watch: Watch | None,
    ) -> None:
        self._root, self._source, self._evolver, self._watch = root, source, evolver, watch
        self._settings: EvolveSettings = evolver.settings
        self._dataset = self._settings.dataset or root.resolve().name or "evolved"
        self._plan = BufferPlan(evolver.settings, operators)
        self._streak = Streak(self._settings.max_failures, 3 * self._settings.concurrency)
        self._done = 0
        self._made_now = 0

    async def run(self) -> EvolveReport:
        """Do all that is left, and seal the store when that is all."""
        began = time.monotonic()
        sealed = await self._open()
        try:
            await asyncio.to_thread(settle_facts, self._root, self._facts(), sealed=sealed)
            self._held = Store.open(str(self._root))
            self._plan.entries = read_entries(self._held)
            if not sealed:
                await self._all()
        finally:
            if not sealed:
                self._target.close()
        report = self._report()
        report.seconds, report.made_now = time.monotonic() - began, self._made_now
        if sealed:
            self._check_sealed(report)
        elif self._is_full(report):
            await asyncio.to_thread(seal, self._root)
        report.sealed = is_sealed(self._root)
        return report

    async def _open(self) -> bool:
        """Open the store; whether it is sealed. One that was to be sealed and was not, is now."""
        if is_sealed(self._root):
            return True
        with ExitStack() as opened:
            try:
                self._target = OutputStore(self._root, self._stored)
                opened.callback(self._target.close)
                self._target.is_empty()  # it says when the store takes no more
            except SealedError:
                await asyncio.to_thread(seal, self._root)
                return True
            opened.pop_all()
        return False

    def _check_sealed(self, report: EvolveReport) -> None:
        if report.left or (self._settings.retry_failed and report.failed):
            raise OutputExistsError(
                f"{self._root} is sealed, with {report.left:,} tasks left and {report.failed:,} "
                "entries broken, and takes no more; choose another -o, or ask for no more rounds"
            )

    def _report(self) -> EvolveReport:
        report = make_report(Store.open(str(self._root)), self._dataset)
        report.asked, report.skipped = len(self._source.jobs), self._source.skipped
        while report.solved and len(report.solved) <= self._settings.rounds:
            report.solved.append(report.solved[-1])  # rounds without an operator change nothing
        report.left = sum(not self._plan.is_done(job) for job in self._source.jobs)
        return report

    def _is_full(self, report: EvolveReport) -> bool:
        if self._settings.seal is not None:
            return self._settings.seal
        return not report.left and not report.failed

    def _facts(self) -> dict[str, Any]:
        settings = self._settings
        return {
            "dataset": self._dataset,
            "environment": settings.environment,
            "policy": settings.policy,
            **settings.facts,
            "store": self._source.facts(),
            "seed": settings.seed,
            "operators": [operator.name for operator in self._plan.operators],
            "correct": settings.correct,
            "limits": settings.limits.model_dump(),
            "additional_calls": settings.additional_calls,
            "tries": settings.tries,
            "tagged": settings.tagged,
            "first_is_used": settings.first_is_used,
            "timed": settings.timed,
        }

    async def _all(self) -> None:
        """Let workers do the tasks, and one coroutine write what they bring."""
        waiting = iter(self._source.jobs)
        rounds = RoundsOfTasks(
            self._evolver, self._plan, self._dataset, self._source.store, self._held, self._put
        )
        count = min(self._settings.concurrency, len(self._source.jobs))
        await self._target.written_while(*(self._worker(rounds, waiting) for _ in range(count)))
        self._plan.entries = read_entries(Store.open(str(self._root)))

    async def _worker(self, rounds: RoundsOfTasks, waiting: Iterator[TaskJob]) -> None:
        for job in waiting:
            await rounds.run(job)
            self._done += 1
            if self._watch is not None:
                self._watch(self._done, len(self._source.jobs))

    def _stored(self, tag: Any, trajectory: Trajectory, new: bool) -> None:
        self._made_now += new

    async def _put(self, trajectory: Trajectory) -> None:
        """Hand a trajectory over to the store."""
        await self._target.put(None, trajectory)
        episode = Episode.of(trajectory)
        if trajectory.error_type == NOT_MADE:
            episode = episode._replace(error_type=None)
        elif trajectory.error_type == INFRASTRUCTURE:  # whichever model it was
            episode = episode._replace(stop_reason=None)
        self._streak.add(episode)
