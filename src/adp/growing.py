"""`adp.grow` and `adp.seal`: stores that trajectories are appended to."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, TypedDict

if TYPE_CHECKING:
    from os import PathLike
    from typing import Unpack

    from adp_schema.growing import GrowingStore
    from adp_schema.store import Store

    PathText = str | PathLike[str]


class GrowKeywords(TypedDict, total=False):
    """What `grow` takes besides the store: when a journal becomes a shard."""

    seal_bytes: int | None
    seal_count: int | None
    seal_seconds: float | None


def grow(path: PathText, **options: Unpack[GrowKeywords]) -> GrowingStore:
    """Make a store that trajectories are appended to, or go on with one.

    Args:
        path: folder of the store.
        **options: any of these; a journal becomes a shard when the first one is reached.
            seal_bytes: size of a journal; None means 64 MiB.
            seal_count: number of trajectories in it.
            seal_seconds: its age at an append.

    Returns:
        The store: ``append(trajectory)`` returns when it is safe on the disk. `adp.open` reads
        what it holds at the moment, and `adp.seal` ends it. It shares a lock with all others that
        append, until it is closed or gone: no run of another kind writes there meanwhile.

    Raises:
        OutputExistsError: the folder holds a finished store or something else.
        StoreError: the folder cannot be written to, or a run of another kind writes there.
    """
    from adp.stores.growth_locks import SharedGrowth

    return SharedGrowth(os.fspath(path), **options)


def seal(path: PathText) -> Store:
    """End a growing store, and open the finished one.

    Args:
        path: folder of the store. Sealing again does nothing; a stopped call is to be repeated.

    Raises:
        StoreError: the folder holds no growing store, or its disk is full.
    """
    from adp_schema.seal_store import seal as run
    from adp_schema.store import Store

    run(os.fspath(path))
    return Store.open(os.fspath(path))
