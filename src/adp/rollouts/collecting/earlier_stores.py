"""What finished stores hold of a run, so that another store takes only what is missing.

A finished store never changes. More attempts or more tasks go into a store beside it, and
`adp merge` puts both into one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl

from adp.rollouts.collecting.counts import Episode
from adp.rollouts.collecting.output_store import episodes_of
from adp.rollouts.collecting.run_file import begun_with
from adp.rollouts.collecting.setting_differences import check_same
from adp.stores.shards import manifest_hash, open_finished
from adp_schema.errors import UsageError
from adp_schema.model import Task
from adp_schema.store import Store

_MAY_DIFFER = ("tasks", "since")


@dataclass(frozen=True)
class EarlierStores:
    """What finished stores hold.

    Attributes:
        stores: where they are -> the settings that each was begun with; None when they are unknown.
        hashes: hashes of their manifests, in order.
        episodes: all tries of the data set: trajectory id -> what is counted of it.
    """

    stores: Mapping[str, Mapping[str, Any] | None] = field(default_factory=dict)
    hashes: tuple[str, ...] = ()
    episodes: dict[str, Episode] = field(default_factory=dict)

    def check(self, settings: Mapping[str, Any], tasks: Sequence[Task]) -> None:
        """Check that they are stores of the same run, but for the number of tasks and attempts.

        Args:
            settings: what must not change while a store grows, of this call.
            tasks: the tasks of this call.

        Raises:
            OutputExistsError: one was made with other settings.
            UsageError: a task is another one there.
        """
        for place, before in self.stores.items():
            if before is not None:
                check_same(Path(place), before, settings, without=_MAY_DIFFER)
            if before is None or before.get("tasks") != settings["tasks"]:
                _check_tasks(place, tasks)

    def notes(self) -> Iterator[str]:
        """What to say about them."""
        for place, before in self.stores.items():
            if before is None:
                yield (
                    f"{place} does not say what its episodes were made with, so nothing tells "
                    "whether this call makes the same ones"
                )


def read_earlier(places: Sequence[str], dataset: str | None) -> tuple[EarlierStores, str | None]:
    """Read what finished stores hold.

    Args:
        places: their folders.
        dataset: data set of the run; None takes the one that they have.

    Returns:
        What they hold, and the data set.

    Raises:
        StoreError: one is no finished store.
        UsageError: they have several data sets, and none is named.
    """
    opened = {place: open_finished(place) for place in places}
    begun = {place: begun_with(Path(place)) for place in places}
    if dataset is None and places:
        dataset = _dataset(opened, begun)
    hashes = tuple(dict.fromkeys(map(manifest_hash, opened.values())))
    episodes: dict[str, Episode] = {}
    for place in places:
        for episode in episodes_of(place, dataset or ""):
            known = episodes.get(episode.trajectory_id)
            if known is None or known.error_type is not None:
                episodes[episode.trajectory_id] = episode
    return EarlierStores(begun, hashes, episodes), dataset


def _dataset(
    opened: Mapping[str, Store], begun: Mapping[str, Mapping[str, Any] | None]
) -> str | None:
    names = {
        str(name)
        for place, store in opened.items()
        for name in ([(begun[place] or {}).get("dataset")] if begun[place] else _names(store))
    }
    if len(names) > 1:
        raise UsageError(
            f"--since names stores of several data sets ({', '.join(sorted(names))}); choose one "
            "with --dataset"
        )
    return next(iter(names), None)


def _names(store: Store) -> list[str]:
    return [name for name in store.manifest.datasets if name]


def _check_tasks(place: str, tasks: Sequence[Task]) -> None:
    """Check that tasks that a store has under the same ids are the same ones.

    Raises:
        UsageError: one is another there.
    """
    names = ("instruction", "turns", "answers", "environment_config")
    wanted = {task.task_id: task for task in tasks}
    rows = Store.open(place).scan("tasks").filter(pl.col("task_id").is_in(list(wanted)))
    for task_id, *columns in rows.select("task_id", *names).collect().iter_rows():
        for name, value in zip(names, columns, strict=True):
            if value != getattr(wanted[task_id], name):
                raise UsageError(
                    f"the task '{task_id}' of {place} has another {name} than that of this call; "
                    "give it another task_id"
                )
