"""Leaving trajectories out: a new store without those that meet a condition in SQL.

With a trajectory goes all that hangs from it: its rows in every table, the branches that start
from it, the blobs, tasks, raw records and pairs that nothing else in the new store refers to. The
new store does not hold a byte of them. The condition itself may quote what has to go, so the
lineage keeps its hash only; a note for people is kept as it is.

Records stay accounted for: one whose trajectories are all gone counts as skipped from then on.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from adp.core.progress import Progress, Silent
from adp.stores import shards
from adp.stores.condition import own_lines, select_where
from adp.stores.drop_shard import DropJob, drop_shard, refers
from adp.stores.locks import alone
from adp.stores.merge import REFERENCES
from adp.stores.remote_output import writes_to_urls
from adp.stores.shards import Files
from adp.stores.staged import StagedRun, WrittenShard, counted, tables_of, versions
from adp_schema.errors import QueryError
from adp_schema.ids import digest
from adp_schema.manifest import Counts, Lineage, Manifest
from adp_schema.reader import ShardReader
from adp_schema.store import Store
from adp_schema.tables import TABLES

DROPPED = "skipped: dropped"
"""The reason of records that a drop left out; the note follows."""


@dataclass(frozen=True)
class DropSelection:
    """The trajectories that a condition selects, and the branches that go with them.

    Attributes:
        store: the store.
        where: hash of the condition.
        matched: how many meet the condition.
        datasets: data set -> how many go.
        seqs: ``seq`` of all that go, in order.
        ids: their ids.
    """

    store: Store
    where: str
    matched: int
    datasets: dict[str, int]
    seqs: list[int]
    ids: list[str]

    @property
    def branches(self) -> int:
        """How many go only because what they start from goes."""
        return len(self.seqs) - self.matched


@dataclass(frozen=True)
class DropOptions:
    """How to drop.

    Attributes:
        note: why, for people; it is written into the new store.
        drop_rejects: leave out the rejected and skipped records too.
        workers: number of processes; None takes one a core. The store does not depend on it.
    """

    note: str | None = None
    drop_rejects: bool = False
    workers: int | None = None


def select(path: str, where: str) -> DropSelection:
    """Find the trajectories that a condition selects, and their branches.

    Args:
        path: path or URL of a finished store.
        where: a condition over the view ``all_trajectories``. Where it is null, a trajectory
            stays.

    Raises:
        StoreError: there is no finished store.
        QueryError: it is not one valid condition.
    """
    store = shards.open_finished(path)
    results: dict[int, tuple[str, str | None]] = {}
    query = select_where("seq, trajectory_id, dataset", where)
    try:
        for batch in store.gate().of_user(query):
            for seq, name, dataset in zip(*(column.to_pylist() for column in batch), strict=True):
                results[seq] = (name, dataset)
    except QueryError as error:
        raise QueryError(own_lines(str(error))) from None
    matched = len(results)
    _add_branches(store, results)
    seqs = sorted(results)
    counted = Counter(results[seq][1] or "" for seq in seqs)
    return DropSelection(
        store=store,
        where=digest(where.strip().encode("utf-8")),
        matched=matched,
        datasets=dict(sorted(counted.items())),
        seqs=seqs,
        ids=[results[seq][0] for seq in seqs],
    )


def _add_branches(store: Store, fields: dict[int, tuple[str, str | None]]) -> None:
    """Add the branches of what was found, and their branches; without it they make no sense."""
    sql = (
        "SELECT seq, trajectory_id, dataset, parent_id FROM all_trajectories WHERE parent_id <> ''"
    )
    children: dict[str, list[tuple[int, str, str | None]]] = defaultdict(list)
    for batch in store.gate().batches(sql):
        for *child, parent in zip(*(column.to_pylist() for column in batch), strict=True):
            children[parent].append((child[0], child[1], child[2]))
    pending = [name for name, _ in fields.values()]
    while pending:
        for seq, name, dataset in children.pop(pending.pop(), []):
            if seq not in fields:
                fields[seq] = (name, dataset)
                pending.append(name)


@writes_to_urls
@alone
def drop(
    selection: DropSelection,
    out: str,
    *,
    options: DropOptions | None = None,
    progress: Progress | None = None,
) -> Manifest:
    """Write a new store without the trajectories of a selection.

    Args:
        selection: what `select` found.
        out: folder of the new store; it must not hold anything else.
        options: how to drop.
        progress: told how far it is, in bytes.

    Returns:
        The manifest of the new store. The last entry of its lineage says what was done.

    Raises:
        OutputExistsError: the output holds a store, or something that is none.
    """
    options = options or DropOptions()
    act = Lineage(
        act="drop",
        options={"where_hash": selection.where, "dropped": len(selection.seqs)},
        versions=versions("duckdb"),
        parents=[shards.manifest_hash(selection.store)],
    )
    act.options.update({"branches": selection.branches} if selection.branches else {})
    act.options.update({"note": options.note} if options.note else {})
    act.options.update({"rejects": "left out"} if options.drop_rejects else {})
    seqs = pa.array(selection.seqs, pa.int64())
    key = {**act.model_dump(), "seqs": digest(seqs.to_numpy().astype("<i8").tobytes())}
    run = StagedRun(out, key, options.workers)
    if run.finished is not None:
        return run.finished
    written = run.shards(
        _jobs(selection, options, run, seqs), drop_shard, WrittenShard.parse, progress or Silent()
    )
    manifest, sources = _manifest(selection, options, written)
    manifest.tables["sources"] = run.sources(sources)
    manifest.lineage = [*selection.store.manifest.lineage, act]
    if left := sum(shard.facts["made_from"] for shard in written):
        act.options["constructed_steps"] = left
    run.finish(manifest)
    return manifest


def _jobs(
    selection: DropSelection, options: DropOptions, run: StagedRun, seqs: pa.Array
) -> list[DropJob]:
    """One job a shard. Shards of which nothing is left get no number, unless all are such."""
    names = pa.array(selection.ids, pa.string())
    lookup = run.lookup("dropped", {"seq": seqs, "trajectory_id": names})
    shard_files = shards.shard_files(selection.store)
    held = [_holds(files, selection, options, seqs, names) for files, _ in shard_files]
    if shard_files and not any(held):
        held[0] = True
    return [
        DropJob(
            index=index,
            target=sum(held[:index]) if held[index] else None,
            size=size,
            out=str(run.folder),
            files=files,
            renamed=selection.store.renamed,
            dropped=lookup,
            drop_rejects=options.drop_rejects,
        )
        for index, (files, size) in enumerate(shard_files)
    ]


def _holds(
    files: Files, selection: DropSelection, options: DropOptions, seqs: pa.Array, names: pa.Array
) -> bool:
    """Whether a shard holds a trajectory, a pair or a reject that stays."""
    reader = ShardReader(files, selection.store.renamed)
    try:
        for rows in shards.narrow(reader, "trajectories", ["seq"]):
            if not pc.all(pc.is_in(rows["seq"], value_set=seqs)).as_py():
                return True
        for rows in shards.narrow(reader, "pairs", REFERENCES["pairs"]):
            if not pc.all(refers(rows, REFERENCES["pairs"], names)).as_py():
                return True
        rejects = reader.file("rejects")
        return not options.drop_rejects and rejects is not None and rejects.metadata.num_rows > 0
    finally:
        reader.close()


def _manifest(
    selection: DropSelection, options: DropOptions, written: list[WrittenShard]
) -> tuple[Manifest, pa.Table]:
    """The manifest of the new store and its table of input files, with counts that fit the rows."""
    known = selection.store.manifest
    manifest = Manifest(counts=known.counts.model_copy(), tables=tables_of(written))
    facts = {
        name: counted(written, name) for name in ("datasets", "losses", "records", "trajectories")
    }
    rows = shards.source_rows(selection.store).to_pylist()
    files = {row["source_file"] for row in rows}
    for row in rows:
        gone = facts["trajectories"][row["source_file"]]
        row["trajectories"] = max((row["trajectories"] or 0) - gone, 0)
        _skip(row, facts["records"][row["source_file"]])
    # Trajectories of a file that is not listed were added one by one: each is a record.
    moved = sum(
        facts["records" if file in files else "trajectories"][file]
        for file in facts["trajectories"]
    )
    counts = manifest.counts.model_dump()
    if any(act.act == "curate" for act in known.lineage):
        moved = _main_lines_gone(selection)
    moved = _skip(counts, moved)
    manifest.counts = Counts(**{**counts, "trajectories": manifest.rows("trajectories")})
    manifest.datasets = dict(sorted(facts["datasets"].items()))
    losses = Counter(known.losses)
    losses.subtract(facts["losses"])
    manifest.losses = {name: count for name, count in sorted(losses.items()) if count > 0}
    manifest.reasons = _reasons(known.reasons, options, moved)
    return manifest, pa.Table.from_pylist(rows, schema=TABLES["sources"].schema)


def _main_lines_gone(selection: DropSelection) -> int:
    """Main lines of which no copy stays: curation counts these as records, and each once."""
    name = pl.coalesce("source_id", "trajectory_id")
    what = pl.struct("dataset", "source_file", "source_records", name.alias("name"))
    gone = pl.col("seq").is_in(pl.Series(selection.seqs, dtype=pl.Int64).implode())
    rows = selection.store.scan("trajectories").filter(pl.col("parent_id").is_null())
    groups = rows.select(what.alias("what"), gone.alias("gone")).group_by("what")
    return int(groups.agg(pl.col("gone").all()).select(pl.col("gone").sum()).collect().item())


def _skip(counts: dict[str, int], moved: int) -> int:
    """Count used records as skipped ones; return how many."""
    moved = min(moved, counts["used"] or 0)
    if moved:
        counts["used"] -= moved
        counts["skipped"] = (counts["skipped"] or 0) + moved
    return moved


def _reasons(known: dict[str, int], options: DropOptions, moved: int) -> dict[str, int]:
    """The reasons of the new store; those of records that are left out may quote them."""
    reasons: Counter[str] = Counter()
    for reason, count in known.items():
        if options.drop_rejects and not reason.startswith(DROPPED):
            status = "skipped" if reason.startswith("skipped") else "rejected"
            reason = f"{status}: left out"
        reasons[reason] += count
    if moved:
        reasons[f"{DROPPED} ({options.note})" if options.note else DROPPED] += moved
    return dict(sorted(reasons.items()))
