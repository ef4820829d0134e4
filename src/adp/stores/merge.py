"""Merging stores: one new store that holds the trajectories of all, in the order given.

What must be unique is made so, and only where it is not: a trajectory id that an earlier store
has too gets the next number (``#2``, ``#3``), and a store whose files go by the names of an
earlier store's gets its own name put before all of them. ``seq`` goes on where the store before
ended. All else is kept as it is. Memory does not grow with the stores, but for their ids.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from adp.core.progress import Progress, Silent
from adp.stores import shards
from adp.stores.locks import alone
from adp.stores.remote_output import writes_to_urls
from adp.stores.shards import ShardWork
from adp.stores.staged import StagedRun, WrittenShard, tables_of, versions, write_rows
from adp_schema import ids
from adp_schema.errors import UsageError
from adp_schema.location import is_url
from adp_schema.manifest import Lineage, Manifest
from adp_schema.store import Store
from adp_schema.tables import SHARDED_TABLES, TABLES

REFERENCES = {
    "trajectories": ("parent_id",),
    "steps": ("made_from_trajectory",),
    "links": ("target_id",),
    "pairs": ("context_id", "chosen_id", "rejected_id"),
}
"""Columns that name another trajectory, by table."""

NO_FILE = "trajectories"
"""What an export calls the file of trajectories that come from none."""


@dataclass
class Parent:
    """A store that is merged, and what changes in it.

    Attributes:
        store: the store.
        hash: hash of its manifest.
        shift: number that is added to its ``seq``.
        prefix: folder that is put before its file names; empty for none.
        changed: (seq, old id, new id) of trajectories whose id changes.
        pairs: old id -> new id of pairs whose id changes.
    """

    store: Store
    hash: str
    shift: int = 0
    prefix: str = ""
    changed: list[tuple[int, str, str]] = field(default_factory=list)
    pairs: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class MergeJob(ShardWork):
    """One shard to copy.

    Attributes:
        out: folder of the new store.
        shift: number that is added to ``seq``.
        prefix: folder that is put before file names; empty for none.
        changed: file of ids that change; empty for none.
        pairs: file of ids of pairs that change; empty for none.
    """

    out: str
    shift: int
    prefix: str
    changed: str
    pairs: str


@writes_to_urls
@alone
def merge(
    stores: Sequence[str],
    out: str,
    *,
    workers: int | None = None,
    progress: Progress | None = None,
    latest: bool = False,
) -> Manifest:
    """Merge finished stores into a new one.

    Args:
        stores: two stores or more; local paths or URLs.
        out: folder of the new store; it must not hold anything else.
        workers: number of processes; None takes one a core. The store does not depend on it.
        progress: told how far it is, in bytes.
        latest: files that a later store has anew keep their names (see `merge_latest`).

    Returns:
        The manifest of the new store. The last entry of its lineage says what was changed.

    Raises:
        UsageError: fewer than two stores, or the same one twice.
        StoreError: one of them is no finished store.
        OutputExistsError: the output holds a store, or something that is none.
    """
    parents = _parents(stores)
    options = {"stores": len(parents), "names": [_name(parent.store) for parent in parents]}
    hashes = [parent.hash for parent in parents]
    key = {"act": "merge", "parents": hashes, "options": options, "versions": versions()}
    run = StagedRun(out, key, workers)
    if run.finished is not None:
        return run.finished
    _plan(parents, latest=latest)
    written = run.shards(_jobs(parents, run), merge_shard, WrittenShard.parse, progress or Silent())
    manifest = _manifest(parents, written)
    manifest.tables["sources"] = run.sources(_sources(parents))
    run.finish(manifest)
    return manifest


def _parents(paths: Sequence[str]) -> list[Parent]:
    if len(paths) < 2:
        raise UsageError("there is nothing to merge: name two stores or more")
    parents: list[Parent] = []
    known: dict[str, str] = {}
    for path in paths:
        store = shards.open_finished(path)
        name = shards.manifest_hash(store)
        if name in known:
            raise UsageError(
                f"{known[name]} and {path} are the same store; its trajectories would be there "
                "twice, so name it once"
            )
        known[name] = path
        parents.append(Parent(store, name))
    return parents


def _name(store: Store) -> str:
    """What a store is called where files must be told apart: the last part of its path."""
    if is_url(store.root):
        return store.name
    return Path(store.root).resolve().name or "store"


# ---- what changes --------------------------------------------------------------------------------


def _plan(parents: list[Parent], *, latest: bool) -> None:
    """Settle the order, the ids and the names of files, store after store."""
    names = _Names()
    used_files: set[str] = set()
    pair_ids: set[str] = set()
    following = 0
    for parent in parents:
        parent.shift = following
        sources = shards.source_rows(parent.store)
        last, files = -1, set(sources["source_file"].to_pylist())
        for reader in shards.readers(parent.store):
            for rows in shards.narrow(reader, "trajectories", _ID_COLUMNS):
                files.update(pc.unique(rows["source_file"]).to_pylist())
                parent.changed += names.changes(rows)
            ranges = (*reader.ranges("trajectories"), *reader.ranges("rejects"))
            last = max([last, *(high for _, high in ranges)])
        following += last + 1
        present = {name or NO_FILE for name in files}
        again = _continued(sources, latest=latest)
        parent.prefix = _prefix(_name(parent.store), present - again, used_files)
        used_files |= {_joined(parent.prefix, name) for name in present}
        _plan_pairs(parent, pair_ids)


def _continued(sources: pa.Table, *, latest: bool) -> set[str]:
    """The files that go on with, or take the place of, files of the same name before them."""
    keys = ("continues", "supersedes") if latest else ("continues",)
    return {
        row["source_file"]
        for row in sources.select(["source_file", "style"]).to_pylist()
        if any(key in json.loads(row["style"] or "{}") for key in keys)
    }


_ID_COLUMNS = (
    "seq", "trajectory_id", "source_id", "dataset", "source_hash", "source_file",
)  # fmt: skip


class _Names:
    """The trajectory ids that are taken."""

    def __init__(self) -> None:
        self._taken: set[str] = set()
        self._last: dict[str, int] = {}

    def changes(self, rows: pa.Table) -> list[tuple[int, str, str]]:
        """Take the ids of some trajectories; return (seq, old, new) of those that change."""
        changed = []
        for position, name in enumerate(rows["trajectory_id"].to_pylist()):
            if name in self._taken:
                row = rows.slice(position, 1).to_pylist()[0]
                new = self._free(base_of(row))
                changed.append((row["seq"], name, new))
                name = new
            self._taken.add(name)
        return changed

    def _free(self, base: str) -> str:
        number = self._last.get(base, 1) + 1
        while ids.numbered(base, number) in self._taken:
            number += 1
        self._last[base] = number
        return ids.numbered(base, number)


def base_of(row: dict[str, Any]) -> str:
    """The id of a trajectory without the number of its repeat.

    Not every ``#2`` is such a number: a source's own ids may end like that.
    """
    name: str = row["trajectory_id"]
    base = ids.base_id(row["dataset"] or "", row["source_id"], row["source_hash"] or "")
    further = r"(?:\.\d+)?" if row["source_id"] is None else ""
    match = re.fullmatch(rf"({re.escape(base)}{further})(?:#\d+)?", name, re.DOTALL)
    return match[1] if match else name


def _prefix(name: str, files: set[str], used: set[str]) -> str:
    """The folder that keeps a store's files apart from those of the stores before it."""
    if not files & used:
        return ""
    number = 1
    while True:
        prefix = name if number == 1 else f"{name}-{number}"
        if not {_joined(prefix, file) for file in files} & used:
            return prefix
        number += 1


def _joined(prefix: str, file: str) -> str:
    return f"{prefix}/{file}" if prefix else file


def _plan_pairs(parent: Parent, taken: set[str]) -> None:
    """Number the ids of pairs that a store before has too."""
    pair_ids: set[str] = set()
    for reader in shards.readers(parent.store):
        for rows in shards.narrow(reader, "pairs", ["pair_id"]):
            pair_ids.update(rows["pair_id"].drop_null().to_pylist())
    parent.pairs = ids.renamed_ids(sorted(pair_ids), taken)
    taken |= pair_ids | set(parent.pairs.values())


def _jobs(parents: list[Parent], run: StagedRun) -> list[MergeJob]:
    jobs: list[MergeJob] = []
    for number, parent in enumerate(parents):
        changed = pairs = ""
        if parent.changed:
            seqs, old, new = zip(*parent.changed, strict=True)
            columns = {
                "seq": pa.array(seqs, pa.int64()),
                "old": pa.array(old),
                "new": pa.array(new),
            }
            changed = run.lookup(f"ids-{number:05d}", columns)
        if parent.pairs:
            columns = {"old": pa.array([*parent.pairs]), "new": pa.array([*parent.pairs.values()])}
            pairs = run.lookup(f"pairs-{number:05d}", columns)
        for files, size in shards.shard_files(parent.store):
            jobs.append(
                MergeJob(
                    index=len(jobs),
                    size=size,
                    out=str(run.folder),
                    files=files,
                    renamed=parent.store.renamed,
                    shift=parent.shift,
                    prefix=parent.prefix,
                    changed=changed,
                    pairs=pairs,
                )
            )
    return jobs


# ---- one shard -----------------------------------------------------------------------------------


def merge_shard(job: MergeJob) -> WrittenShard:
    """Copy one shard into the new store."""
    changes = _Changes(job)
    reader = job.reader()
    changed = (
        (table, changes.apply(table, rows))
        for table in SHARDED_TABLES
        for rows in shards.groups(reader, table)
    )
    written = WrittenShard(job.index, write_rows(job.out, job.index, changed))
    reader.close()
    return written


class _Changes:
    """What merging changes in the rows of one store."""

    def __init__(self, job: MergeJob) -> None:
        self._job = job
        self._ids = pq.read_table(job.changed).combine_chunks() if job.changed else None
        self._pairs = pq.read_table(job.pairs).combine_chunks() if job.pairs else None

    def apply(self, table: str, rows: pa.Table) -> pa.Table:
        """Return the rows as the new store holds them."""
        names = TABLES[table].schema.names
        if self._ids is not None:
            old, new = (self._ids[name].chunk(0) for name in ("old", "new"))
            if "trajectory_id" in names:
                # By seq: an id that was not unique in its store names more than one trajectory.
                exchange_keys = shards.exchange_keys(rows["seq"], self._ids["seq"].chunk(0), new)
                rows = shards.put(
                    rows, "trajectory_id", pc.coalesce(exchange_keys, rows["trajectory_id"])
                )
            for name in REFERENCES.get(table, ()):
                rows = shards.put(rows, name, shards.exchange(rows[name], old, new))
        if table == "pairs" and self._pairs is not None:
            old, new = (self._pairs[name].chunk(0) for name in ("old", "new"))
            rows = shards.put(rows, "pair_id", shards.exchange(rows["pair_id"], old, new))
        if "seq" in names and self._job.shift:
            rows = shards.put(rows, "seq", pc.add(rows["seq"], self._job.shift))
        if "source_file" in names and self._job.prefix:
            rows = with_prefix(table, rows, self._job.prefix)
        return rows


def with_prefix(table: str, rows: pa.Table, prefix: str) -> pa.Table:
    """Put a folder before the file names of a table; trajectories without one get a name too."""
    empty = NO_FILE if table == "trajectories" else None
    files = pc.coalesce(rows["source_file"], pa.scalar(empty, pa.string()))
    joined = pc.binary_join_element_wise(pa.scalar(prefix), files, "/")
    return shards.put(rows, "source_file", joined)


# ---- the whole -----------------------------------------------------------------------------------


def _sources(parents: list[Parent]) -> pa.Table:
    """The input files of all stores."""
    results = []
    for parent in parents:
        rows = shards.source_rows(parent.store)
        results.append(with_prefix("sources", rows, parent.prefix) if parent.prefix else rows)
    return pa.concat_tables(results).combine_chunks()


def _manifest(parents: list[Parent], written: list[WrittenShard]) -> Manifest:
    known = [parent.store.manifest for parent in parents]
    manifest = Manifest(
        tables=tables_of(written),
        datasets=_summed(part.datasets for part in known),
        reasons=_summed(part.reasons for part in known),
        losses=_summed(part.losses for part in known),
    )
    for part in known:
        manifest.counts.add(part.counts)
        manifest.lineage += [act for act in part.lineage if act not in manifest.lineage]
    options: dict[str, Any] = {"stores": len(parents)}
    if renumbered := sum(len(parent.changed) for parent in parents):
        options["renumbered"] = renumbered
    if prefixes := {str(n): parent.prefix for n, parent in enumerate(parents, 1) if parent.prefix}:
        options["folders"] = prefixes
    hashes = [parent.hash for parent in parents]
    act = Lineage(act="merge", options=options, versions=versions(), parents=hashes)
    manifest.lineage.append(act)
    return manifest


def _summed(counts: Iterable[dict[str, int]]) -> dict[str, int]:
    total: Counter[str] = Counter()
    for part in counts:
        total.update(part)
    return dict(sorted(total.items()))
