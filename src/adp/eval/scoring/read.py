"""Reading score tables: which scores count, and what they add up to."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from adp.eval.metrics import mean_figures
from adp.eval.scorer import Figure, Score, Scored, Scorer
from adp.eval.scoring.choose import rebuild
from adp.rollouts.collecting.attempts import superseded, tries_of
from adp.stores.tasks import TaskKey, find_tasks
from adp_schema.errors import StoreError
from adp_schema.ids import digest
from adp_schema.scores import SCORES, score_files
from adp_schema.store import Store

Key = tuple[str, str]
"""Name of a scorer, and the hash of its settings."""


@dataclass(frozen=True)
class ScoreSet:
    """The scores that count of one scorer with one set of settings.

    Attributes:
        scorer: name of the scorer.
        version: its version when it scored last.
        settings: its settings, JSON text.
        settings_hash: their hash.
        rows: the scores, in the order of the store.
    """

    scorer: str
    version: str
    settings: str
    settings_hash: str
    rows: tuple[Scored, ...]

    def figures(self, scorer: Scorer | None = None) -> list[Figure]:
        """Add the scores up.

        Args:
            scorer: what does it; None makes the scorer from its settings, and takes plain means
                when it is not there any more.
        """
        scorer = scorer or rebuild(self.scorer, self.settings)
        if scorer is None:
            return list(mean_figures(self.rows))
        try:
            return list(scorer.figures(self.rows))
        except Exception as error:  # code of a plug-in
            reason = f"adding up raised {type(error).__name__}: {error}"
            return [Figure(self.scorer, None, unscored=len(self.rows), reason=reason)]

    def amounts(self) -> frozenset[str]:
        """Its metrics that are amounts, such as calls, as far as the scorer says so."""
        scorer = rebuild(self.scorer, self.settings)
        return frozenset(getattr(scorer, "amounts", ()))

    def unscored(self) -> dict[str, int]:
        """Why scores are missing: reason -> how often, the most frequent first."""
        counts = Counter(
            row.score.reason or "no reason is given" for row in self.rows if row.score.value is None
        )
        return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))


def read_scores(
    store: Store, folder: str | None = None, *, only: Collection[Key] | None = None
) -> list[ScoreSet]:
    """The scores that count of a store, by scorer and settings.

    A try that broke and was made again has none.

    Args:
        store: the store.
        folder: where its scores are; None: in the store itself.
        only: the scorers that are wanted; None means all.

    Raises:
        StoreError: a file of scores is damaged.
    """
    tries = list(tries_of(store))
    again = superseded(tries)
    order = {
        result.trajectory_id: place
        for place, result in enumerate(tries)
        if result.trajectory_id is not None and result.trajectory_id not in again
    }
    last: dict[Key, dict[str, tuple[int, list[dict[str, Any]]]]] = {}
    for number, rows in _groups(score_files(folder or store.root), only):
        first = rows[0]
        if first["trajectory_id"] in order:
            value = last.setdefault((first["scorer"], first["settings_hash"]), {})
            value[first["trajectory_id"]] = (number, rows)
    tasks = {name: task.key for name, task in find_tasks(store).items()} if last else {}
    branches = {item.trajectory_id for item in tries if not item.is_attempt}
    return [_score_set(result, order, tasks, branches) for _, result in sorted(last.items())]


def digests(files: Sequence[str], only: Collection[Key]) -> dict[tuple[str, str, str], str]:
    """What counts now: (trajectory, scorer, hash of the settings) -> hash of its rows."""
    return {
        (rows[0]["trajectory_id"], rows[0]["scorer"], rows[0]["settings_hash"]): rows_digest(rows)
        for _, rows in _groups(files, only)
    }


def rows_digest(rows: Sequence[Mapping[str, Any]]) -> str:
    """Hash of what rows say, whatever the run that wrote them."""
    names = [name for name in SCORES.schema.names if name != "run"]
    text = json.dumps([[row.get(name) for name in names] for row in rows], ensure_ascii=True)
    return digest(text.encode())


def _groups(
    files: Sequence[str], only: Collection[Key] | None
) -> Iterator[tuple[int, list[dict[str, Any]]]]:
    """The rows of one trajectory, scorer and settings together, file by file: what is later wins.

    They stand together in a file, but a row group may end between them.
    """
    for path in files:
        group: list[dict[str, Any]] = []
        for row in _rows(path, only):
            if only is not None and (row["scorer"], row["settings_hash"]) not in only:
                continue
            if group and any(group[0][name] != row[name] for name in _GROUP):
                yield group[0]["run"], group
                group = []
            group.append(row)
        if group:
            yield group[0]["run"], group


_GROUP = ("trajectory_id", "scorer", "settings_hash")


def _rows(path: str, only: Collection[Key] | None) -> Iterator[dict[str, Any]]:
    """The rows of a file; with ``only``, those with one of the settings, and perhaps others."""
    wanted = None if only is None else pa.array({result for _, result in only}, pa.string())
    try:
        with pq.ParquetFile(path) as file:
            for batch in file.iter_batches(columns=SCORES.schema.names):
                if wanted is not None:
                    batch = batch.filter(pc.is_in(batch["settings_hash"], wanted))
                yield from batch.to_pylist()
    except (OSError, pa.ArrowException, KeyError) as error:
        first = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise StoreError(
            f"the scores in {path} are damaged: {first}; remove the file and score again"
        ) from error


def _score_set(
    items: Mapping[str, tuple[int, list[dict[str, Any]]]],
    order: Mapping[str, int],
    tasks: Mapping[str, TaskKey | None],
    branches: Collection[str | None],
) -> ScoreSet:
    _, newest = max(items.values(), key=lambda item: item[0])
    first = newest[0]
    rows = [
        _scored(row, tasks.get(name), branch=name in branches)
        for name in sorted(items, key=order.__getitem__)
        for row in items[name][1]
    ]
    return ScoreSet(
        first["scorer"],
        first["version"],
        first["settings"],
        first["settings_hash"],
        tuple(rows),
    )


def _scored(row: Mapping[str, Any], task: TaskKey | None, *, branch: bool) -> Scored:
    score = Score(
        metric=row["metric"],
        value=row["value"],
        reason=row["reason"],
        evidence=json.loads(row["evidence"]) if row["evidence"] else {},
        infrastructure=bool(row["infrastructure"]),
    )
    return Scored(row["trajectory_id"], row["task_id"], row["attempt"], score, task, branch)
