"""What readers see of a growing store: its shards, and its journals as one more shard.

Readers take no lock and write nothing into the store, so they can read one that they may not
write to. What they see is what the store held at one moment; later appends do not show.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import time
import weakref
from contextlib import suppress
from pathlib import Path

from adp_schema.errors import StoreError
from adp_schema.journal import Line, items_of, journal_path, last_journal, missing, read_journal
from adp_schema.manifest import Manifest
from adp_schema.sealing import SealedPart, load, shard_count

_TRIES = 50
_PAUSE = 0.02


class Journal:
    """The journals of a growing store as a shard of their own, in a scratch folder.

    The folder goes when nothing refers to this object any more. Hold it as long as its files are
    read.

    Args:
        lines: what the journals hold.
        manifest: of the shards before; what the journals add to it is added.
        last_append: when something was appended last, in seconds since 1970.
        size: their bytes on disk.

    Attributes:
        files: table -> Parquet file.
        count: number of trajectories.
        size: bytes of the journals on disk.
        last_append: when something was appended last, in seconds since 1970; None when unknown.
    """

    def __init__(
        self, lines: list[Line], manifest: Manifest, last_append: float | None, size: int
    ) -> None:
        self.files: dict[str, str] = {}
        self.count = sum(len(line.entries) for line in lines)
        self.last_append, self.size = last_append, size
        if not self.count:
            return
        folder = _scratch_folder()
        weakref.finalize(self, _remove, folder, os.getpid())
        part = SealedPart(folder, manifest.counts.trajectories)
        for item in items_of(lines):
            part.add(item)
        self.files = {table: str(folder / f"{table}.parquet") for table in part.close()}
        part.count(manifest)


def _remove(folder: Path, owner: int) -> None:
    if os.getpid() == owner:  # a forked process has the object too
        shutil.rmtree(folder, ignore_errors=True)


def _scratch_folder() -> Path:
    """A new scratch folder. Those that killed processes of this machine left are removed."""
    base = Path(tempfile.gettempdir())
    for left in base.glob("adp-journal-*"):
        with suppress(OSError, ValueError):
            if not _is_alive(left.name) and time.time() - left.stat().st_mtime > 86_400:
                shutil.rmtree(left, ignore_errors=True)
    return Path(tempfile.mkdtemp(prefix=f"adp-journal-{os.getpid()}-"))


def _is_alive(name: str) -> bool:
    try:
        os.kill(int(name.split("-")[2]), 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def open_growing(root: Path) -> tuple[Manifest, Journal]:
    """The manifest of a growing store with its journals counted in, and the journals.

    Raises:
        StoreError: it is no growing store (any more), or a journal is damaged.
    """
    for attempt in range(_TRIES):
        manifest = load(root)
        first = shard_count(manifest)
        try:
            last = last_journal(root, first)
            # All but the last one are closed by now, so this reads the store up to one moment.
            journals = [journal_path(root, index) for index in range(first, last + 1)]
            lines = [
                line
                for journal in journals
                for line in read_journal(journal, closed=journal != journals[-1])
            ]
            changed = journals[-1].stat().st_mtime
            size = sum(journal.stat().st_size for journal in journals)
        except FileNotFoundError:  # it was sealed after the manifest was read
            time.sleep(_PAUSE if attempt > 2 else 0)
            continue
        except StoreError:  # a writer cut off a line while it was read, or it was sealed
            if attempt >= 9:
                raise
            time.sleep(_PAUSE)
            continue
        return manifest, Journal(lines, manifest, changed, size)
    raise missing(journal_path(root, first))
