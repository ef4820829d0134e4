"""A store: a folder of Parquet tables and a manifest, and the doors to it.

store = Store.open("my_store")
store.scan("steps")            # polars.LazyFrame
store.query("SELECT ...")      # pyarrow.Table, through the query gate
store.trajectories()           # streamed, constant memory
store.get("dataset/id")        # one trajectory; a part of the id will do
len(store), iter(store)        # how many, and each of them
Store.grow("rollouts")         # a store that trajectories are appended to
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from adp_schema import location, verification
from adp_schema.branches import Parents, after
from adp_schema.errors import DamagedStoreError, StoreError, UsageError, unknown_name
from adp_schema.id_index import IdIndex
from adp_schema.manifest import MANIFEST, Manifest, read_manifest
from adp_schema.migrate import column_names
from adp_schema.model import Trajectory
from adp_schema.reader import ShardReader
from adp_schema.tables import TABLES
from adp_schema.unfinished import unfinished

if TYPE_CHECKING:
    import numpy as np
    import polars as pl

    from adp_schema.gate import QueryGate
    from adp_schema.growing import GrowingStore
    from adp_schema.snapshot import Journal


class Store:
    """A finished store, or what a growing one holds now. It never changes.

    Attributes:
        root: path or URL of the store.
        manifest: what the store holds.
        journal: of a growing store, what is not in its shards yet; else None.
        renamed: for stores of an older schema version, table -> {column stored: column now}.
    """

    def __init__(self, root: str, manifest: Manifest, journal: Journal | None = None) -> None:
        self.root = root
        self.manifest = manifest
        self.renamed = column_names(manifest.schema_version)
        self.journal = journal
        self._name = ""
        self._gate: QueryGate | None = None
        self._scored: Sequence[str] = ()
        self._ids: IdIndex | None = None
        self._readers: dict[int, ShardReader] = {}
        self._parents: Parents | None = None
        self._near: int | None = None
        self._every_shard: list[ShardReader] | None = None

    def __repr__(self) -> str:
        count = self.manifest.counts.trajectories
        return f"<Store {self.root}: {count:,} {'trajectory' if count == 1 else 'trajectories'}>"

    def _repr_html_(self) -> str:
        from adp_schema.notebook import store_html

        return store_html(self)

    @classmethod
    def open(cls, root: str, *, check: bool = True) -> Store:
        """Open a store by its local path or its URL.

        On the Hugging Face Hub that is ``hf://datasets/OWNER/NAME[@REVISION][/PATH]``. Of a
        publication, there or in a local folder, the store is in the folder ``store``.

        Args:
            root: the path or URL.
            check: compare its files with its manifest (`adp_schema.verification`); False is for who
                says what is wrong with them, or has just written them.

        Raises:
            StoreError: there is no store, its manifest is damaged, or nothing reads the URL.
            DamagedStoreError: its files are not those of its manifest.
            StoreVersionError: a newer version of this package wrote it.
            HubError: the Hub refuses, or cannot be reached.
        """
        store = cls._opened(str(root))
        verification.note(store.root, store.manifest)
        if check:
            try:
                store.check()
            except DamagedStoreError:
                if store.journal is None or not location.exists(
                    location.join(store.root, MANIFEST)
                ):
                    raise
                store = cls._opened(store.root)  # it was sealed meanwhile
                store.check()
        return store

    def check(self) -> None:
        """Compare the files with the manifest, as `adp_schema.verification` says.

        Raises:
            DamagedStoreError: a file differs.
        """
        verification.check(self.root, self.manifest)

    def damage(self, *, every_byte: bool | None = None) -> dict[str, str]:
        """What is wrong with the files: path in the store -> words; see `verifying.damage`."""
        return verification.damage(self.root, self.manifest, every_byte=every_byte)

    @classmethod
    def _opened(cls, root: str) -> Store:
        if location.is_hub(root):
            from adp_schema.hub import store_place

            # Pinned to a commit: what is read later must belong to the same manifest.
            root = store_place(root).url()
            return cls(root, read_manifest(root, location.join(root, MANIFEST)))
        location.check_readable(root)
        address = location.join(root, MANIFEST)
        if not location.exists(address):
            if location.exists(location.join(root, "growing.json")):
                return cls._open_growing(root)
            below = location.join(root, "store")
            if location.exists(location.join(below, MANIFEST)):
                store = cls._opened(below)
                store._name = _last_part(root)
                return store
            raise StoreError(_no_store(root))
        return cls(root, read_manifest(root, address))

    @classmethod
    def _open_growing(cls, root: str) -> Store:
        """Open a store that is still written: its shards and what its journals hold now."""
        from adp_schema.snapshot import open_growing

        if location.is_url(root):
            raise StoreError(f"{root} is still growing; seal it first: adp seal STORE")
        try:
            return cls(root, *open_growing(Path(root)))
        except StoreError:
            address = location.join(root, MANIFEST)
            if not location.exists(address):
                raise
            return cls(root, read_manifest(root, address))  # it was sealed meanwhile

    @staticmethod
    def grow(
        root: str,
        *,
        seal_bytes: int | None = None,
        seal_count: int | None = None,
        seal_seconds: float | None = None,
    ) -> GrowingStore:
        """Make a store that trajectories are appended to, or go on with one.

        Args:
            root: folder of the store.
            seal_bytes: size at which a journal becomes a shard; None means 64 MiB.
            seal_count: number of trajectories at which it does, if that comes first.
            seal_seconds: age at which it does at the next append, if that comes first.

        Raises:
            OutputExistsError: the folder holds a finished store or something else.
            StoreError: the folder cannot be written to.
        """
        from adp_schema.growing import SEAL_BYTES, GrowingStore

        size = SEAL_BYTES if seal_bytes is None else seal_bytes
        return GrowingStore(root, seal_bytes=size, seal_count=seal_count, seal_seconds=seal_seconds)

    @property
    def name(self) -> str:
        """Last part of the store's path; of a publication, its own or that of the repository."""
        if location.is_hub(self.root):
            from adp_schema.hub import parse

            place = parse(self.root)
            return place.path.removesuffix("store").rstrip("/").rsplit("/", 1)[-1] or place.name
        return self._name or _last_part(self.root)

    def files(self, table: str) -> list[str]:
        """Addresses of a table's files, in order.

        Raises:
            UsageError: there is no table of this name.
            StoreError: it was growing when it was opened, and its shards were cut anew since.
        """
        if table not in TABLES:
            raise UsageError(unknown_name("table", table, TABLES))
        self._check_there()
        shards = self.manifest.tables.get(table, [])
        files = [location.join(self.root, shard.path) for shard in shards]
        if self.journal is not None and table in self.journal.files:
            files.append(self.journal.files[table])
        return files

    def _check_there(self) -> None:
        if self.journal is None or not location.exists(location.join(self.root, MANIFEST)):
            return
        if any("/early-" in shard.path for shard in self.manifest.tables.get("trajectories", [])):
            raise StoreError(f"{self.root} was sealed after it was opened; open it again")

    def tables_files(self) -> dict[str, list[str]]:
        """Addresses of all files: table -> files."""
        return {table: self.files(table) for table in TABLES}

    def scan(self, table: str) -> pl.LazyFrame:
        """A lazy frame over a table."""
        from adp_schema.table_frame import scan

        held = self.journal is not None and table in self.journal.files
        return scan(table, self.files(table), self.renamed, held=held)

    def gate(self) -> QueryGate:
        """The query gate over this store; used again until the store gets further scores."""
        from adp_schema.scores import score_files, score_views

        files = score_files(self.root)
        if self._gate is None or files != self._scored:
            from adp_schema.gate import QueryGate
            from adp_schema.gate_files import record_views

            extra = [*record_views(self.root), *score_views([("", files)], named=False)]
            self._gate = QueryGate(self.tables_files(), renamed=self.renamed, extra=extra)
            self._gate.held = self.journal
            self._scored = files
        return self._gate

    def query(self, sql: str, parameters: Sequence[Any] | None = None) -> pa.Table:
        """Answer one SELECT over the views of the store.

        Raises:
            QueryError: the statement is not a SELECT, or the engine rejects it.
        """
        return self.gate().query(sql, parameters)

    def shards(self) -> Iterator[ShardReader]:
        """Readers of the shards, in order."""
        for index in range(len(self.files("trajectories"))):
            yield self._shard(index)

    def shard_files(self) -> Iterator[Mapping[str, str]]:
        """Files of each shard, in order: table -> address. Tables without rows may be missing."""
        for index in range(len(self.files("trajectories"))):
            yield self._shard_files(index)

    def _shard_files(self, index: int) -> Mapping[str, str]:
        self._check_there()
        sealed = len(self.manifest.tables.get("trajectories", []))
        if index >= sealed and self.journal is not None:
            return self.journal.files
        name = self.manifest.tables["trajectories"][index].path.rsplit("/", 1)[-1]
        return {
            table: location.join(self.root, shard.path)
            for table, shards in self.manifest.tables.items()
            for shard in shards
            if shard.path.endswith("/" + name)
        }

    def _shard(self, index: int, *, keep: bool = False) -> ShardReader:
        reader = ShardReader(self._shard_files(index), self.renamed, keep=keep)
        reader.held = self.journal  # blobs are read when they are asked for
        return reader

    def trajectories(self, *, resolve: bool = False) -> Iterator[Trajectory]:
        """All trajectories in input order, streamed.

        Args:
            resolve: give a branch the steps of its parent up to the branching point.
        """
        for shard in self.shards():
            for trajectory in shard.trajectories():
                yield self.resolve(trajectory) if resolve else trajectory
            shard.close()

    def some(self, seqs: np.ndarray[Any, Any]) -> Iterator[Trajectory]:
        """Those trajectories of some ``seq``, streamed in the order of the store.

        Only the row groups that hold one are read, one after the other.

        Args:
            seqs: sorted whole numbers.
        """
        if self._every_shard is None:
            self._every_shard = list(self.shards())
        for shard in self._every_shard:
            yield from shard.some(seqs)
            shard.close()

    def __len__(self) -> int:
        return self.manifest.counts.trajectories

    def __bool__(self) -> bool:
        return True  # a store without trajectories is a store

    def __iter__(self) -> Iterator[Trajectory]:
        return self.trajectories()

    def find(self, text: str) -> str:
        """The id of the one trajectory that a text names: an id, its begin or its end.

        Raises:
            StoreError: none; the message names the nearest ones.
            UsageError: more than one, with the first of them.
        """
        return self._index().find(text)

    def get(self, trajectory_id: str, *, resolve: bool = False, exact: bool = False) -> Trajectory:
        """One trajectory.

        Args:
            trajectory_id: its id, or the begin or end of it, as `find` takes it.
            resolve: give a branch the steps of its parent up to the branching point.
            exact: take nothing but the whole id.

        Raises:
            StoreError: there is none; the message names the nearest ones.
            UsageError: the text names more than one.
        """
        place = self._index().place(trajectory_id)
        if place is None and exact:
            raise StoreError(f"the store has no trajectory '{trajectory_id}'")
        place = place or self._index().place(self.find(trajectory_id))
        assert place is not None
        shard, seq = place
        if shard not in self._readers:
            self._readers[shard] = self._shard(shard, keep=True)
        if self._near is not None and self._near != shard:
            self._readers[self._near].forget()  # a store may have thousands of shards
        self._near = shard
        trajectory = self._readers[shard].get(seq)
        assert trajectory is not None
        return self.resolve(trajectory) if resolve else trajectory

    def resolve(self, trajectory: Trajectory) -> Trajectory:
        """Put the parent's steps before a branch's own ones.

        The tools on offer are the parent's too, unless the branch has its own. A branch without
        ``parent_step``, such as a subagent, shares no steps and stays as it is.

        Raises:
            StoreError: a parent is not in the store, or the parents lead in a circle.
        """
        if trajectory.parent_id is None or trajectory.parent_step is None:
            return trajectory
        if self._parents is None:
            self._parents = Parents(self.files("trajectories"))
        above = [self.get(name, exact=True) for name in self._parents.above(trajectory)]
        full = above.pop()
        for branch in (*reversed(above), trajectory):
            full = after(full, branch)
        return full

    def _index(self) -> IdIndex:
        if self._ids is None:
            self._ids = IdIndex(self.files("trajectories"))
        return self._ids


def _no_store(root: str) -> str:
    """Why a path is no store, and what to do about it."""
    local = not location.is_url(root)
    if local and (stopped := unfinished(root)):
        return stopped
    inside = sorted(Path(root).iterdir()) if local and Path(root).is_dir() else []
    names = [path.name for path in inside if (path / MANIFEST).is_file()]
    advice = "make one with: adp convert SRC -o STORE"
    if names and len(names) <= 20:
        advice = f"it holds {'the store' if len(names) == 1 else 'stores'}: {', '.join(names)}"
    return f"{root} is not a store: it has no {MANIFEST}; {advice}"


def _last_part(root: str) -> str:
    return root.rstrip("/").rsplit("/", 1)[-1]
