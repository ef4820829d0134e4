"""Growing stores of Python programs: who appends keeps runs of another kind out."""

from __future__ import annotations

import os
from contextlib import ExitStack
from weakref import finalize

from adp.stores.locks import holding
from adp_schema.growing import SEAL_BYTES, GrowingStore


class SharedGrowth(GrowingStore):
    """A growing store that shares the lock of its folder with all others that append to it.

    The lock ends when it is closed, or gone. A copy in another process has none: the maker has it.

    Args:
        root: folder of the store.
        seal_bytes: size at which a journal becomes a shard; None means 64 MiB.
        seal_count: number of trajectories at which it does, if that comes first.
        seal_seconds: age at which it does at the next append, if that comes first.

    Raises:
        OutputExistsError: the folder holds a finished store or something else.
        StoreError: the folder cannot be written to, or a run of another kind writes there.
    """

    def __init__(
        self,
        root: str | os.PathLike[str],
        *,
        seal_bytes: int | None = None,
        seal_count: int | None = None,
        seal_seconds: float | None = None,
    ) -> None:
        size = SEAL_BYTES if seal_bytes is None else seal_bytes
        with ExitStack() as lock:
            lock.enter_context(holding(root, together=True))
            super().__init__(
                root, seal_bytes=size, seal_count=seal_count, seal_seconds=seal_seconds
            )
            self._unlock = finalize(self, lock.pop_all().close)

    def close(self) -> None:
        """Close the files, and let go of the lock."""
        super().close()
        if unlock := vars(self).get("_unlock"):
            unlock()
