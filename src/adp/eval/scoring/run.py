"""Running scorers over a store. Those that ask an endpoint score several trajectories at once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from adp.core.progress import Progress, Silent
from adp.eval.scorer import Figure, Item
from adp.eval.scoring.choose import ChosenScorer
from adp.eval.scoring.concurrent import scored_in_order
from adp.eval.scoring.read import Key, digests, read_scores, rows_digest
from adp.eval.scoring.references import References, put_over
from adp.eval.scoring.rows import RAISED, Given, broke, to_rows, unscored
from adp.rollouts.collecting.assisted import Assisted, assisted
from adp.rollouts.collecting.attempts import BROKEN, is_attempt, superseded, tries_of
from adp.rollouts.judging.judge import JudgeCosts
from adp.stores.locks import holding
from adp.stores.tasks import TaskIndex, find_tasks
from adp_schema.errors import StoreError, UsageError
from adp_schema.location import is_url
from adp_schema.model import Task, Trajectory
from adp_schema.scores import ScoreFile, score_files, score_folder, writing
from adp_schema.store import Store

BATCH = 5_000
"""Rows that are written together."""

Rows = list[dict[str, Any]]


@dataclass(frozen=True)
class ScoreOptions:
    """How scorers are run.

    Attributes:
        out: folder for the scores; None: the folder ``scores`` in the store.
        references: what is right, besides what the tasks of the store say.
        branches: score branches too that are no attempts, with the steps of their parents.
        concurrency: requests at once of a scorer that asks an endpoint, such as a judge; the
            scores and their order do not depend on it.
    """

    out: str | None = None
    references: References | None = None
    branches: bool = False
    concurrency: int = 64


@dataclass(frozen=True)
class ScorerReport:
    """What one scorer gave.

    Attributes:
        scorer: its name.
        version: its version.
        settings: its settings, JSON text.
        settings_hash: their hash.
        trajectories: how many it looked at.
        new: for how many of them its scores are new or different.
        raised: how often it raised, by what it said; a bug of the scorer.
        unscored: why scores are missing, and how often.
        figures: the scores added up, over all that count.
        costs: what a judge was asked and cost in this run, by the names of its models.
    """

    scorer: str
    version: str
    settings: str
    settings_hash: str
    trajectories: int
    new: int
    raised: dict[str, int]
    unscored: dict[str, int]
    figures: tuple[Figure, ...]
    costs: dict[str, JudgeCosts] = field(default_factory=dict)


@dataclass(frozen=True)
class ScoreReport:
    """What a run of scorers gave.

    Attributes:
        store: the store.
        folder: where its scores are.
        file: the file that was written; None when every score was there already.
        trajectories: trajectories that were looked at.
        broken: of these, how many broke for a reason that is not the agent's, by error type.
        scorers: each scorer.
        superseded: tries that broke and were made again; they are not among the trajectories.
        assisted: trajectories in which an expert acted beside the policy, by mode.
    """

    store: str
    folder: str
    file: str | None
    trajectories: int
    broken: dict[str, int]
    scorers: tuple[ScorerReport, ...]
    superseded: int = 0
    assisted: tuple[Assisted, ...] = ()


def score_store(
    store: Store,
    scorers: Sequence[ChosenScorer],
    options: ScoreOptions | None = None,
    progress: Progress | None = None,
) -> ScoreReport:
    """Run scorers over the trajectories of a store and keep what they say.

    The same scorers over the same trajectories write nothing new. The bytes of a new file follow
    from the store, the scorers and the files that are there.

    Args:
        store: a finished store or a growing one.
        scorers: the scorers, see `choose`.
        options: where the scores go, and what is right.
        progress: told how many trajectories are done.

    Raises:
        UsageError: the store is a URL, and no folder for the scores is given.
        StoreError: the folder cannot be written to, or holds damaged scores.
    """
    options = options or ScoreOptions()
    if options.out is None and is_url(store.root):
        raise UsageError(f"scores cannot be put into {store.root}; give a folder with -o FOLDER")
    label = options.references.label if options.references else None
    chosen = [scorer.against(label) for scorer in scorers]
    folder = score_folder(options.out or store.root)
    with holding(folder), writing(folder) as file:
        run = _Run(store, chosen, options, file)
        run.go(progress or Silent())
    reports = [_report(store, item, run, folder) for item in chosen]
    path = folder / f"run-{file.run:05d}.parquet"
    written = str(path) if file.rows else None
    return ScoreReport(
        store.root,
        str(folder),
        written,
        run.seen,
        dict(sorted(run.broken.items())),
        tuple(reports),
        len(run.superseded),
        tuple(run.assisted[mode] for mode in sorted(run.assisted)),
    )


def _report(store: Store, chosen: ChosenScorer, run: _Run, folder: Path) -> ScorerReport:
    """Add the scores of one scorer up; those of the others are not in memory meanwhile."""
    first = next(iter(read_scores(store, str(folder), only={chosen.key})), None)
    if first is not None:  # branches may have been scored before
        rows = tuple(row for row in first.rows if row.trajectory_id in run.looked_at)
        first = replace(first, rows=rows) if rows else None
    return ScorerReport(
        chosen.scorer.name,
        chosen.scorer.version,
        chosen.settings,
        chosen.settings_hash,
        trajectories=run.seen,
        new=run.new[chosen.key],
        raised=dict(run.raised[chosen.key]),
        unscored=first.unscored() if first else {},
        figures=tuple(first.figures(chosen.scorer)) if first else (),
        costs=dict(getattr(chosen.scorer, "costs", {})),
    )


@dataclass
class _Run:
    store: Store
    chosen: Sequence[ChosenScorer]
    options: ScoreOptions
    file: ScoreFile
    seen: int = 0
    looked_at: set[str] = field(default_factory=set)
    new: Counter[Key] = field(default_factory=Counter)
    raised: dict[Key, Counter[str]] = field(default_factory=dict)
    broken: Counter[str] = field(default_factory=Counter)
    superseded: set[str] = field(default_factory=set)
    assisted: dict[str, Assisted] = field(default_factory=dict)
    _known: dict[tuple[str, str, str], str] = field(default_factory=dict)
    _metrics: dict[Key, dict[str, None]] = field(default_factory=dict)
    _late: list[tuple[ChosenScorer, Trajectory, str, bool]] = field(default_factory=list)
    _pending: Rows = field(default_factory=list)

    def go(self, progress: Progress) -> None:
        """Score everything, and write what is new."""
        files = score_files(str(self.file.folder))
        self._known = digests(files, {entry.key for entry in self.chosen})
        self.raised = {entry.key: Counter() for entry in self.chosen}
        self._metrics = {entry.key: {} for entry in self.chosen}
        self.superseded = superseded(tries_of(self.store))
        tasks = TaskIndex(self.store)
        right = self._right()
        progress.total(self.store.manifest.counts.trajectories)
        items = (
            Item(
                trajectory, put_over(tasks.of(trajectory), right.get(str(trajectory.trajectory_id)))
            )
            for trajectory in self._trajectories()
        )
        for item, given in scored_in_order(items, self.chosen, self.options.concurrency):
            self._take(item, given)
            progress.advance(1)
        self._end()

    def _right(self) -> dict[str, Task]:
        """What trajectories are compared with besides their own tasks, by their ids."""
        references = self.options.references
        if references is None:
            return {}
        keys = {name: task.key for name, task in find_tasks(self.store).items() if task.key}
        known = references.over(keys.values())
        return {name: known[key.name] for name, key in keys.items() if key.name in known}

    def _trajectories(self) -> Iterator[Trajectory]:
        for trajectory in self.store.trajectories():
            attempt = is_attempt(trajectory)
            above = None if attempt else trajectory.parent_id
            if not self.superseded.isdisjoint((trajectory.trajectory_id, above)):
                continue
            if trajectory.parent_id is None:
                yield trajectory
            elif attempt or self.options.branches:
                try:
                    full = self.store.resolve(trajectory)
                except StoreError as error:
                    self._alone(trajectory, error)
                    continue
                yield full

    def _take(self, item: Item, scored: Sequence[Given]) -> None:
        self.seen += 1
        trajectory = item.trajectory
        self.looked_at.add(str(trajectory.trajectory_id))
        if trajectory.error_type in BROKEN:
            self.broken[str(trajectory.error_type)] += 1
        helped = assisted(trajectory)
        if helped is not None:
            known = self.assisted.get(helped.mode)
            self.assisted[helped.mode] = helped if known is None else known + helped
        for result, given in zip(self.chosen, scored, strict=True):
            if given.raised is not None:
                self.raised[result.key][given.raised] += 1
            if given.scores:
                names = (score.metric for score in given.scores)
                self._metrics[result.key].update(dict.fromkeys(names))
                self._keep(result, trajectory, to_rows(result, trajectory, given.scores))
            elif given.raised is not None or broke(trajectory) is not None:
                # Of what is unscored here, the names come from the other trajectories.
                bare = trajectory.model_copy(update={"steps": [], "media": {}, "raw": []})
                reason = broke(trajectory) or given.raised or RAISED
                self._late.append((result, bare, reason, broke(trajectory) is not None))

    def _alone(self, trajectory: Trajectory, error: StoreError) -> None:
        """Leave a branch unscored whose parent is not there, or is its own branch."""
        self.seen += 1
        self.looked_at.add(str(trajectory.trajectory_id))
        bare = trajectory.model_copy(update={"steps": [], "media": {}, "raw": []})
        for item in self.chosen:
            self._late.append(
                (item, bare, f"the steps before the branch are missing: {error}", False)
            )

    def _keep(self, chosen_scorer: ChosenScorer, trajectory: Trajectory, rows: Rows) -> None:
        key = (str(trajectory.trajectory_id), *chosen_scorer.key)
        if self._known.get(key) == rows_digest(rows):
            return
        self.new[chosen_scorer.key] += 1
        self._pending += rows
        if len(self._pending) >= BATCH:
            self._flush()

    def _end(self) -> None:
        # Branches that stand alone were met ahead of what was then being scored.
        late = sorted(self._late, key=lambda item: (str(item[1].trajectory_id), item[0].key))
        for result, trajectory, reason, broken in late:
            metrics = self._metrics[result.key] or {result.scorer.name: None}
            scores = unscored(metrics, reason, broken=broken)
            self._keep(result, trajectory, to_rows(result, trajectory, scores))
        self._flush()

    def _flush(self) -> None:
        self.file.write(self._pending)
        self._pending = []
