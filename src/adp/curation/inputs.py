"""The stores that a recipe reads."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from adp.stores import shards
from adp_schema import location
from adp_schema.manifest import MANIFEST
from adp_schema.store import Store
from adp_schema.views import SEQ_SHIFT

Content = TypeVar("Content")

MADE = "made:"
"""What the names of inputs begin with that hold what a stage made up. No recipe can say it."""


def cached_by_file(read: Callable[[str], Content]) -> Callable[[str], Content]:
    """Keep what was read of the last files or stores, by path or URL, until they change.

    A cache by name alone would show the old one, when a folder is removed and made anew.
    """
    kept = functools.lru_cache(maxsize=8)(lambda path, _: read(path))

    @functools.wraps(read)
    def cached(path: str) -> Content:
        file = (
            location.join(path, MANIFEST) if location.is_url(path) or Path(path).is_dir() else path
        )
        try:
            status = Path(file).stat()
        except OSError:
            return kept(path, None)
        return kept(path, (status.st_ino, status.st_mtime_ns, status.st_size))

    return cached


@dataclass
class Input:
    """One store.

    Attributes:
        name: its name in the recipe.
        store: the store.
        index: its number, from 0.
        reserve: its trajectories are out until an op admits them, as from a replay buffer.
        hash: hash of its manifest.
        renamed: id in the store -> id in the pool, where an earlier input has the same id.
    """

    name: str
    store: Store
    index: int
    reserve: bool = False
    hash: str = ""
    renamed: dict[str, str] = field(default_factory=dict)

    @property
    def shift(self) -> int:
        """What is added to ``seq``, so that it is unique over all inputs."""
        return self.index << SEQ_SHIFT


def open_inputs(paths: Mapping[str, str], reserve: Sequence[str] = ()) -> list[Input]:
    """Open the stores of a recipe.

    Args:
        paths: name -> path or URL, in order.
        reserve: names of those whose trajectories are out at first.

    Raises:
        StoreError: one of them is no finished store.
    """
    results = []
    for index, (name, path) in enumerate(paths.items()):
        store = shards.open_finished(path)
        results.append(Input(name, store, index, name in reserve, shards.manifest_hash(store)))
    return results
