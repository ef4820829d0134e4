"""Whether the files of a store are those that its manifest names, before somebody reads them.

Opening a store compares its files with its manifest: each must be there, be a regular file in the
folder of the store, and have its size. A store of at most `SMALL` bytes is hashed as well. Who
makes a store or files of a store hashes all of it, whatever its size:

    with verified():
        store = Store.open("my_store")     # DamagedStoreError names the file that differs

A file is hashed once in a process, as long as the system says that it is the same. A process that
works for another one hashes nothing. Of a store at a URL only who hashes all of it looks at the
files: each question goes over the network.
"""

from __future__ import annotations

import hashlib
import math
import os
import stat
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path

from adp_schema import location
from adp_schema.errors import DamagedStoreError, OutputExistsError, StoreError
from adp_schema.ids import digest_file
from adp_schema.manifest import MANIFEST, Manifest, Shard

SMALL = 16 << 20
"""Bytes of a store up to which every command hashes it: reading so much takes 20 to 26 ms."""

_limit: ContextVar[float | None] = ContextVar("hashed_up_to", default=None)
_hashes: dict[tuple[int, int, int, int], str] = {}
_opened: dict[str, Manifest] = {}


@contextmanager
def verified() -> Iterator[None]:
    """Hash every file of the stores that are opened in this block, but not within `unverified`."""
    token = _limit.set(0 if _limit.get() == 0 else math.inf)
    try:
        yield
    finally:
        _limit.reset(token)


@contextmanager
def unverified() -> Iterator[None]:
    """Hash no file of the stores that are opened in this block."""
    token = _limit.set(0)
    try:
        yield
    finally:
        _limit.reset(token)


def hash_all() -> None:
    """Hash every file of the stores that are opened from now on."""
    _limit.set(math.inf)


def hash_nothing() -> None:
    """Hash no file from now on: the process works for one that did, or was told not to."""
    _limit.set(0)


def check(root: str, manifest: Manifest) -> None:
    """Compare the files of a store with its manifest, as thoroughly as the block around it says.

    Args:
        root: path or URL of the store.
        manifest: its manifest.

    Raises:
        DamagedStoreError: a file differs.
    """
    if wrong := damage(root, manifest):
        raise DamagedStoreError(sentence(root, wrong))


def note(root: str, manifest: Manifest) -> None:
    """Note that a store was opened, for `explain`."""
    _opened[root] = manifest


def damage(root: str, manifest: Manifest, *, every_byte: bool | None = None) -> dict[str, str]:
    """What is wrong with the files of a store.

    Args:
        root: path or URL of the store.
        manifest: its manifest.
        every_byte: whether the files are hashed; None leaves that to the block around it.

    Returns:
        Path in the store -> what is wrong with it, only for files that differ.
    """
    shards = [shard for table in sorted(manifest.tables) for shard in manifest.tables[table]]
    if every_byte is None:
        limit = SMALL if (limit_set := _limit.get()) is None else limit_set
        far = location.is_url(root) and not math.isinf(limit)
        every_byte = not far and sum(shard.size for shard in shards) <= limit
    if location.is_url(root):
        return _far_damage(root, shards) if every_byte else {}
    known = {shard.path: _misplaced(Path(root), shard) for shard in shards}
    faults = {path: wrong for path, wrong in known.items() if wrong}
    if every_byte:
        left = [shard for shard in shards if shard.path not in faults]
        with ThreadPoolExecutor(min(4, os.cpu_count() or 1), "adp-hash") as pool:
            same = pool.map(lambda shard: _hash_of(Path(root, shard.path)) == shard.hash, left)
            differs = [shard.path for shard, is_same in zip(left, same, strict=True) if not is_same]
        faults.update(dict.fromkeys(differs, "its bytes differ"))
    return dict(sorted(faults.items()))


def sentence(root: str, wrong: dict[str, str]) -> str:
    """What to say about a store whose files differ from its manifest."""
    named = "; ".join(f"{path}: {what}" for path, what in list(wrong.items())[:3])
    more = f"; and {len(wrong) - 3:,} more files" if len(wrong) > 3 else ""
    if all(what.startswith(_LINK) for what in wrong.values()):
        advice = f"copy it with what the links lead to, if you trust that: cp -rL {root} COPY"
        return f"{root} is not read: {named}{more}; {advice}"
    return f"{root} is damaged: {named}{more}; restore it from a copy, or make it again"


def explain(files: Iterable[str] | None = None) -> DamagedStoreError | None:
    """The error for a store that was opened by this process and is damaged, if one is.

    Called when something failed in a way that nobody foresaw: damage shows itself in many.

    Args:
        files: paths of the files that were read; only stores that hold one of them are looked at.
            None stands for all stores that were opened.
    """
    read = None if files is None else list(files)
    for root, manifest in list(_opened.items()):
        if read is not None and not any(path.startswith(f"{root}{os.sep}") for path in read):
            continue
        # One that was removed as a whole since is not damaged, and not what failed here.
        local = not location.is_url(root) and Path(root, MANIFEST).exists()
        if local and (wrong := damage(root, manifest, every_byte=True)):
            return DamagedStoreError(sentence(root, wrong))
    return None


def cannot_write(out: object, error: OSError) -> StoreError:
    """The error for an output that cannot be written, unless it was a store that was not read.

    Args:
        out: what was to be written.
        error: what the system, or a reader of Parquet, raised.
    """
    place = str(error.filename or "")
    root = next((root for root in _opened if place.startswith(f"{root}{os.sep}")), None)
    if error.errno is not None and root is None:
        return OutputExistsError(f"cannot write to {out}: {error.strerror or error}")
    if damaged := explain():
        return damaged
    return StoreError(f"cannot read or write {place or out}: {error.strerror or error}")


def forget() -> None:
    """Forget which stores were opened: a new command begins."""
    _opened.clear()


_SETTLED = 2_000_000_000
"""Nanoseconds after which the time of a file tells a further change from the last one."""

_LINK = "it is a link that leads out of the store"


def _misplaced(root: Path, shard: Shard) -> str | None:
    """What is wrong with a file, as far as the system says without reading it."""
    path = root / shard.path
    try:
        there = path.stat()
    except OSError as error:
        return "missing" if isinstance(error, FileNotFoundError) else str(error.strerror)
    if (path.is_symlink() or path.parent.is_symlink()) and not path.resolve().is_relative_to(
        root.resolve()
    ):
        return f"{_LINK}, to {path.resolve()}"
    if not stat.S_ISREG(there.st_mode):
        return "it is no regular file"
    if there.st_size != shard.size:
        return f"it has {there.st_size:,} bytes, not {shard.size:,}"
    return None


def _hash_of(path: Path) -> str | None:
    """The hash of a file, which is taken once; None when the file cannot be read."""
    try:
        there = path.stat()
        key = (there.st_dev, there.st_ino, there.st_size, there.st_mtime_ns)
        if key in _hashes:
            return _hashes[key]
        hashed = digest_file(str(path))
        if time.time_ns() - there.st_mtime_ns > _SETTLED:
            _hashes[key] = hashed
        return hashed
    except OSError:
        return None


def _far_damage(root: str, shards: list[Shard]) -> dict[str, str]:
    """What is wrong with the files of a store at a URL; all of them are fetched."""
    remote_damage = {}
    for shard in shards:
        address = location.join(root, shard.path)
        if not location.exists(address):
            remote_damage[shard.path] = "missing"
        elif _far_hash(address) != shard.hash:
            remote_damage[shard.path] = "its bytes differ"
    return remote_damage


def _far_hash(address: str) -> str:
    hasher = hashlib.blake2b(digest_size=16)
    with location.open_stream(address) as file:
        while piece := file.read(1 << 20):
            hasher.update(piece)
    return hasher.hexdigest()
