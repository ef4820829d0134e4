"""The store that a run of episodes writes: what it holds, and appending off the event loop."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

import polars as pl

from adp.rendering.arguments import whole_text
from adp.rollouts.collecting.attempts import is_attempt_column
from adp.rollouts.collecting.counts import COLUMNS, Episode
from adp.rollouts.collecting.recorder import ENVIRONMENT
from adp_schema.errors import IdTakenError, SchemaError, SealedError
from adp_schema.growing import GrowingStore
from adp_schema.journal import encode
from adp_schema.manifest import MANIFEST
from adp_schema.model import Step, Trajectory
from adp_schema.store import Store

UNSTORABLE = "unstorable"
"""The ``stop_reason`` of an episode that the store refuses."""

_IDENTITY = (
    *("trajectory_id", "source_id", "source_format", "dataset", "task_id", "attempt"),
    "agent_name",
)
"""Columns that an episode keeps when nothing else of it can be stored."""
_TOGETHER = 256
"""Trajectories of one append."""

_Made = TypeVar("_Made")

_Group = list[tuple[Any, Trajectory]]

_LONGEST_PAUSE = 0.05
"""Seconds between two appends, at most: meanwhile others may append, and more is gathered."""


class OutputStore:
    """A growing store, used from threads of its own: one appends, one looks up.

    Args:
        root: folder of the store; it is made, or gone on with.
        stored: called on the event loop for each trajectory that is safe on the disk; with what
            was given to `put`, and whether this call has put it there.

    Raises:
        OutputExistsError: the folder holds a finished store or something else.
        StoreError: it cannot be written to.
    """

    def __init__(self, root: Path, stored: Callable[[Any, Trajectory, bool], None]) -> None:
        self.root = root
        self._store = GrowingStore(root)
        self._stored = stored
        self._thread = ThreadPoolExecutor(2, thread_name_prefix="adp-store")
        self._queue: asyncio.Queue[_Group | None] = asyncio.Queue(2 * _TOGETHER)

    async def put(self, tag: Any, trajectory: Trajectory) -> None:
        """Hand a trajectory over; it waits while too many are on their way to the disk."""
        await self.put_together([(tag, trajectory)])

    async def put_together(self, group: _Group) -> None:
        """Hand trajectories over that are appended at once.

        Args:
            group: each with its tag. A kill leaves all of them in the store or none, unless they
                are more than the store writes at once (256, or some megabytes).
        """
        await self._queue.put(group)

    def is_empty(self) -> bool:
        """Whether the store holds nothing yet. It waits for the disk."""
        return not self._thread.submit(self._store.ids).result()

    async def holds(self, trajectory_ids: Iterable[str]) -> set[str]:
        """Which of some ids the store holds now, whoever wrote them."""
        names = list(trajectory_ids)
        try:
            there: set[str] = await self._call(self._store.holds, names)
        except SealedError:
            there = await self._call(_ids_of_sealed, self.root)
        return there.intersection(names)

    async def write(self) -> None:
        """Append what is handed over, until `finish`.

        Raises:
            StoreError: it cannot be written; what was appended before is kept.
        """
        while True:
            batch = [await self._queue.get()]
            while len(batch) < _TOGETHER and not self._queue.empty():
                batch.append(self._queue.get_nowait())
            groups = [group for group in batch if group is not None]
            began = time.monotonic()
            for (tag, trajectory), new in await self._call(self._append_all, groups):
                self._stored(tag, trajectory, new)
            if len(groups) < len(batch):
                return
            await asyncio.sleep(min(time.monotonic() - began, _LONGEST_PAUSE))

    async def written_while(self, *work: Coroutine[Any, Any, None]) -> None:
        """Do all work at once, and append what it hands over.

        When a part of it raises, or the store cannot be written, the other parts are stopped. What
        was handed over until then is on the disk when this returns.

        Args:
            work: hands trajectories over.
        """
        writer = asyncio.create_task(self.write())
        crew = asyncio.create_task(together(*work))
        try:
            either: set[asyncio.Future[Any]] = {crew, writer}
            await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
            if not writer.done():
                crew.result()
        finally:
            crew.cancel()
            await asyncio.gather(crew, return_exceptions=True)
            if not writer.done():
                await self.finish()
            await writer

    async def finish(self) -> None:
        """Let `write` return when all is on the disk."""
        await self._queue.put(None)

    def close(self) -> None:
        """Close the files."""
        self._thread.shutdown()
        self._store.close()

    async def _call(self, function: Callable[..., Any], *args: Any) -> Any:
        return await asyncio.get_running_loop().run_in_executor(self._thread, function, *args)

    def _append_all(self, groups: list[_Group]) -> list[tuple[tuple[Any, Trajectory], bool]]:
        """Append groups; those of one trajectory all at once."""
        done = self._append([group[0] for group in groups if len(group) == 1])
        for group in groups:
            done += self._append(group) if len(group) > 1 else []
        return done

    def _append(self, items: _Group) -> list[tuple[tuple[Any, Trajectory], bool]]:
        """Append several at once; when one of them is refused, one by one."""
        if not items:
            return []
        try:
            self._store.extend([trajectory for _, trajectory in items])
        except (IdTakenError, SchemaError):
            return [self._append_one(tag, trajectory) for tag, trajectory in items]
        return [(item, True) for item in items]

    def _append_one(self, tag: Any, trajectory: Trajectory) -> tuple[tuple[Any, Trajectory], bool]:
        try:
            self._store.append(trajectory)
        except IdTakenError:
            return (tag, trajectory), False
        except SchemaError as error:
            if trajectory.stop_reason == UNSTORABLE:
                raise
            return self._append_one(tag, unstorable(trajectory, error))
        return (tag, trajectory), True


async def together(*work: Coroutine[Any, Any, _Made]) -> list[_Made]:
    """Do all at once; when a part raises, the others are stopped before it is raised."""
    tasks = [asyncio.create_task(part) for part in work]
    try:
        return list(await asyncio.gather(*tasks))
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def unstorable(trajectory: Trajectory, error: SchemaError) -> Trajectory:
    """What is kept of an episode that the store refuses: its ids, why, and the steps that fit."""
    result = Trajectory(
        **{name: getattr(trajectory, name) for name in _IDENTITY},
        terminated=False,
        error_type=ENVIRONMENT,
        error_message=whole_text(f"the store cannot hold this episode: {error}"),
        stop_reason=UNSTORABLE,
    )
    steps = [step for step in trajectory.steps if _fits(result, [step])]
    return result.model_copy(update={"steps": steps}) if _fits(result, steps) else result


def _fits(trajectory: Trajectory, steps: list[Step]) -> bool:
    try:
        encode(trajectory.model_copy(update={"steps": steps}))
    except (SchemaError, UnicodeError):
        return False
    return True


def episodes_of(root: str | Path, dataset: str) -> Iterator[Episode]:
    """What a store holds of a data set: all tries, without branches that are no attempts."""
    frame = (
        Store.open(str(root))
        .scan("trajectories")
        .filter((pl.col("dataset") == dataset) & is_attempt_column())
        .select(COLUMNS)
        .collect()
    )
    return (Episode(*row) for row in frame.iter_rows())


def is_sealed(root: Path) -> bool:
    """Whether a folder holds a finished store."""
    return (root / MANIFEST).exists()


def _ids_of_sealed(root: Path) -> set[str]:
    column = Store.open(str(root)).scan("trajectories").select("trajectory_id").collect()
    return set(column["trajectory_id"].to_list())
