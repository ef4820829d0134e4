"""What a run has to do: all attempts at all tasks, less what the store holds."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from adp.rendering.arguments import whole_text
from adp.rollouts.collecting.counts import CollectReport, Episode, EpisodeCounts
from adp.rollouts.collecting.earlier_stores import EarlierStores
from adp.rollouts.collecting.recorder import About
from adp.rollouts.collecting.settings import CollectSettings
from adp_schema.errors import UsageError
from adp_schema.ids import digest, numbered
from adp_schema.model import Task


@dataclass(frozen=True, slots=True)
class EpisodeJob:
    """An episode to run.

    Attributes:
        about: what is known of it; its trajectory id is that of the try.
        name: trajectory id of the first try.
        group: itself and the others, where all of them are run together.
    """

    about: About
    name: str
    group: tuple[EpisodeJob, ...] = ()

    @property
    def members(self) -> tuple[EpisodeJob, ...]:
        """The episodes that are run together."""
        return self.group or (self,)


class EpisodePlan:
    """The work of a run.

    Args:
        dataset: data set of the trajectories.
        tasks: the tasks.
        settings: settings of the run.
        earlier: what finished stores hold; it is done.

    Attributes:
        report: the counts, kept up to date.
        spent: counts of all that the store holds, and of all episodes that ended since.

    Raises:
        UsageError: there are no tasks, or one has no id or that of another one.
    """

    def __init__(
        self,
        dataset: str,
        tasks: Sequence[Task],
        settings: CollectSettings,
        earlier: EarlierStores | None = None,
    ) -> None:
        check_tasks(tasks)
        self._earlier = earlier or EarlierStores()
        self.dataset = dataset
        self.report = CollectReport(asked=len(tasks) * settings.n)
        self.report.left = self.report.asked
        self.spent = EpisodeCounts()
        self._tasks, self._settings = tasks, settings
        self._broken: dict[str, Episode] = {}
        self._in_other_stores: list[str] = []

    def settings(self) -> dict[str, Any]:
        """What must not change while a store grows; plain JSON."""
        settings, earlier = self._settings, self._earlier
        return {
            **({"since": list(earlier.hashes)} if earlier.hashes else {}),
            "dataset": self.dataset,
            "environment": settings.environment,
            "policy": settings.policy,
            **settings.facts,
            "tasks": {"count": len(self._tasks), "hash": task_hash(self._tasks)},
            "seed": settings.seed,
            "limits": settings.limits.model_dump(),
            "timed": settings.timed,
            **self._branching(),
        }

    def _branching(self) -> dict[str, Any]:
        """How attempts branch, which the number of attempts is a part of."""
        settings = self._settings
        if settings.branching is None:
            return {}
        return {"branching": {"n": settings.n, **settings.branching.model_dump()}}

    def asked(self) -> Iterator[About]:
        """All episodes: the first attempt at every task, then the second at every task."""
        settings = self._settings
        for attempt in range(settings.n):
            for task in self._tasks:
                yield About(
                    dataset=self.dataset,
                    attempt=attempt,
                    task=task,
                    policy=settings.policy,
                    environment=settings.environment,
                    seed=episode_seed(settings.seed, task.task_id or "", attempt),
                    timed=settings.timed,
                )

    def jobs(self, there: Iterable[Episode]) -> Iterator[EpisodeJob]:
        """Count what the store holds, and return what is left to do.

        Args:
            there: all tries that the store holds.
        """
        episodes = {episode.trajectory_id: episode for episode in there}
        tries = self._earlier.episodes | episodes
        beyond = set(episodes)
        for episode in episodes.values():
            self.spent.add(episode)
        again = self._settings.retry_failed
        done: set[str] = set()
        number_of: dict[str, int] = {}
        for about in self.asked() if tries else ():
            name = about.trajectory_id
            last, number = last_try(tries, name)
            if last is None:
                continue
            beyond.difference_update(numbered(name, item + 1) for item in range(number))
            self.report.left -= 1
            if last.error_type is None:
                self.report.done_before += 1
            else:
                self.report.failed += 1
            if last.error_type is None or not again:
                self.report.whole.add(last)
                done.add(name)
            else:
                self._broken[name], number_of[name] = last, number + 1
        self.report.beyond = len(beyond)
        jobs = (
            EpisodeJob(
                replace(about, tries=number_of.get(about.trajectory_id, 1)), about.trajectory_id
            )
            for about in self.asked()
            if about.trajectory_id not in done
        )
        return jobs if self._settings.branching is None else self._groups(jobs)

    def _groups(self, jobs: Iterable[EpisodeJob]) -> Iterator[EpisodeJob]:
        """All attempts at a task together; those that are missing from a task one by one."""
        by_task: dict[str, list[EpisodeJob]] = {}
        for job in jobs:
            by_task.setdefault(job.about.task_id, []).append(job)
        for group in by_task.values():
            full = len(group) == self._settings.n and all(job.about.tries == 1 for job in group)
            if full and len(group) > 1:
                yield replace(group[0], group=tuple(group))
            else:
                yield from group

    def ended(self, job: EpisodeJob, episode: Episode) -> None:
        """Count an episode of this call that is on the disk."""
        report = self.report
        self._leave(job)
        report.now.add(episode)
        report.whole.add(episode)
        if episode.error_type is None:
            report.done_now += 1
        else:
            report.failed += 1

    def done_elsewhere(self, job: EpisodeJob) -> None:
        """Count an episode that another process has done."""
        self._leave(job)
        self._in_other_stores.append(job.name)
        self.report.done_elsewhere += 1

    def _leave(self, job: EpisodeJob) -> None:
        if job.about.tries > 1:
            self.report.failed -= 1
            self._broken.pop(job.name, None)
        else:
            self.report.left -= 1

    @property
    def has_elsewhere(self) -> bool:
        """Whether another process has done any."""
        return bool(self._in_other_stores)

    def close(self, there: Iterable[Episode]) -> CollectReport:
        """The report, with what other processes did.

        Args:
            there: all tries that the store holds; needed when `has_elsewhere`.
        """
        report = self.report
        tries = self._earlier.episodes | {episode.trajectory_id: episode for episode in there}
        for name in self._in_other_stores:
            last, _ = last_try(tries, name)
            if last is not None:
                report.whole.add(last)
                if last.error_type is not None:
                    report.done_elsewhere -= 1
                    report.failed += 1
        for episode in self._broken.values():
            report.whole.add(episode)
        self._in_other_stores, self._broken = [], {}
        return report


def last_try(tries: Mapping[str, Episode], name: str) -> tuple[Episode | None, int]:
    """The last try of an episode, and its number; None and 0 when there is none."""
    last, number = None, 0
    while (value := tries.get(numbered(name, number + 1))) is not None:
        last, number = value, number + 1
    return last, number


def check_tasks(tasks: Sequence[Task]) -> None:
    """Check that there are tasks, each with an id of its own.

    Raises:
        UsageError: not so.
    """
    if not tasks:
        raise UsageError("there are no tasks; give at least one")
    seen = set()
    for task in tasks:
        if not task.task_id:
            raise UsageError("a task has no task_id; give each task one of its own")
        if whole_text(task.task_id) != task.task_id:
            raise UsageError(f"the task_id {task.task_id!r} is no text; give the task another one")
        if task.task_id in seen:
            raise UsageError(f"two tasks have the id '{task.task_id}'; give each one of its own")
        seen.add(task.task_id)


def episode_seed(seed: int, task_id: str, attempt: int) -> int:
    """Seed of an episode, 31 bits: a hash, so that neighbours have nothing in common."""
    text = f"{seed}/{task_id}/{attempt}".encode("utf-8", "surrogatepass")
    return int(digest(text)[:8], 16) >> 1


def task_hash(tasks: Iterable[Task]) -> str:
    """Hash of the contents of tasks, in order."""
    return digest("\n".join(digest(task.model_dump_json().encode()) for task in tasks).encode())
