"""The growing store of conversations, and the draft of the one that is under way.

A growing store takes finished trajectories. Until the conversation ends it lies as a draft in
``STORE/chats/``, written anew after each turn. The draft of a process that was killed is appended
by the next one; a lock beside it tells whether its writer lives.
"""

from __future__ import annotations

import json
import os
from contextlib import ExitStack, suppress
from pathlib import Path

from filelock import FileLock, Timeout

from adp.rollouts.collecting.recorder import branch_alone
from adp.stores.locks import holding
from adp.stores.transcript import as_json
from adp_schema.errors import IdTakenError
from adp_schema.growing import GrowingStore
from adp_schema.ids import numbered
from adp_schema.manifest import write_atomic
from adp_schema.model import Trajectory

FOLDER = "chats"


class ConversationStore:
    """Takes conversations.

    Args:
        root: folder of the store; it is made, or gone on with.

    Attributes:
        recovered: ids of trajectories of killed processes that were appended.
        damaged: drafts that cannot be read; they stay where they are.

    Raises:
        OutputExistsError: the folder holds a finished store or something else.
        StoreError: it cannot be written to.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        self.recovered: list[str] = []
        self.damaged: list[Path] = []
        with ExitStack() as opened:
            opened.enter_context(holding(root, together=True))
            self._store = GrowingStore(root)
            opened.callback(self._store.close)
            self._drafts = root / FOLDER
            self._drafts.mkdir(exist_ok=True)
            self._recover()
            self._draft = self._drafts / f"{os.getpid()}-{os.urandom(4).hex()}.json"
            lock = FileLock(_lock(self._draft))
            lock.acquire()
            opened.callback(_released, lock)
            self._opened = opened.pop_all()

    def holds(self, trajectory_id: str) -> bool:
        """Whether the store holds a trajectory."""
        return bool(self._store.holds([trajectory_id]))

    def keep(self, trajectory: Trajectory) -> None:
        """Write the draft of a conversation that goes on."""
        write_atomic(self._draft, json.dumps(as_json(branch_alone(trajectory))))

    def finish(self, trajectory: Trajectory) -> str:
        """Append a conversation that has ended.

        Returns:
            Its id.

        Raises:
            SealedError: the store was ended meanwhile; the draft is kept.
            StoreError: it cannot be written.
        """
        name = self._append(branch_alone(trajectory))
        self.drop()
        return name

    def drop(self) -> None:
        """Forget the draft."""
        self._draft.unlink(missing_ok=True)

    def close(self) -> None:
        """Free what it holds."""
        self._opened.close()
        with suppress(OSError):
            self._drafts.rmdir()

    def _append(self, trajectory: Trajectory) -> str:
        """Append; two who began with the same words at once get ids of their own."""
        first, tries = str(trajectory.trajectory_id), 1
        while True:
            try:
                self._store.append(trajectory)
            except IdTakenError:
                tries += 1
                trajectory = trajectory.model_copy(update={"trajectory_id": numbered(first, tries)})
            else:
                return str(trajectory.trajectory_id)

    def _recover(self) -> None:
        for path in sorted(self._drafts.glob("*.json")):
            lock = FileLock(_lock(path), blocking=False)
            try:
                lock.acquire()
            except Timeout:
                continue  # its writer lives
            try:
                trajectory = Trajectory.model_validate_json(path.read_bytes())
            except FileNotFoundError:
                pass
            except (OSError, ValueError):
                self.damaged.append(path)
            else:
                self.recovered.append(self._append(trajectory))
                path.unlink(missing_ok=True)
            finally:
                _released(lock)


def _lock(draft: Path) -> str:
    return f"{draft}.lock"


def _released(lock: FileLock) -> None:
    lock.release()
    Path(lock.lock_file).unlink(missing_ok=True)
