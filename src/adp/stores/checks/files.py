"""Checks of the store itself: its files, its columns, its counts."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from adp.stores.checks.model import Check, Finding, FunctionCheck, SqlCheck
from adp.stores.checks.scope import Scope
from adp_schema import location
from adp_schema.errors import DamagedStoreError
from adp_schema.tables import SCHEMA_VERSION, TABLES

_WHOLE_ACTS = frozenset({"convert", "grow", "seal", "merge"})


def is_readable(scope: Scope) -> bool:
    """Whether every file can be opened and has the columns of its table."""
    if scope.damage:
        return False
    unreadable = any(wrong for _, _, wrong in _opened(scope) if isinstance(wrong, str))
    return not unreadable and next(_wrong_columns(scope), None) is None


def _opened(scope: Scope) -> Iterator[tuple[str, str, str | tuple[int, pa.Schema]]]:
    """Table, address, and rows and columns of every file; a sentence for one that is damaged."""
    damaged = {location.join(scope.store.root, path): wrong for path, wrong in scope.damage.items()}
    for table in sorted(scope.files):
        for address in scope.files[table]:
            if address in damaged:  # it may be a pipe, which nobody may open
                yield table, address, damaged[address]
                continue
            if not location.exists(address):
                yield table, address, "the file is missing"
                continue
            try:
                file = location.open_parquet(address)
            except DamagedStoreError as error:
                yield table, address, f"the file cannot be read: {error.__cause__ or error}"
                continue
            yield table, address, (file.metadata.num_rows, file.schema_arrow)
            file.close()


def _damaged_files(scope: Scope) -> Iterator[Finding]:
    manifest = scope.store.manifest
    stored = {
        location.join(scope.store.root, shard.path): shard
        for shards in manifest.tables.values()
        for shard in shards
    }
    for _, address, facts in _opened(scope):
        shard = stored.get(address)
        path = "adp-journal" if shard is None else shard.path
        if isinstance(facts, str):
            yield Finding(None, None, path, facts)
        elif shard is not None and facts[0] != shard.rows:
            text = f"it has {facts[0]:,} rows, not {shard.rows:,}"
            yield Finding(None, None, path, text)


def _wrong_columns(scope: Scope) -> Iterator[Finding]:
    older = scope.store.manifest.schema_version != SCHEMA_VERSION
    for table, address, facts in _opened(scope):
        if isinstance(facts, str):
            continue
        path = "/".join(address.rsplit("/", 2)[-2:])
        renamed = scope.store.renamed.get(table, {})
        present = {renamed.get(field.name, field.name): field.type for field in facts[1]}
        wanted = {field.name: field.type for field in TABLES[table].schema}
        for name in [*wanted, *(name for name in present if name not in wanted)]:
            if name not in present:
                if not older:
                    yield Finding(None, None, path, f"the column {name} is missing")
            elif name not in wanted:
                yield Finding(None, None, path, f"the table has no column {name}")
            elif present[name] != wanted[name]:
                text = f"the column {name} is {present[name]}, not {wanted[name]}"
                yield Finding(None, None, path, text)


def _unbalanced_counts(scope: Scope) -> Iterator[Finding]:
    manifest = scope.store.manifest
    counts = manifest.counts
    if not counts.balanced():
        text = (
            f"records {counts.records:,} are not used {counts.used:,} + "
            f"skipped {counts.skipped:,} + rejected {counts.rejected:,}"
        )
        yield Finding(None, None, "counts", text)
    rows = {
        name: sum(location.open_parquet(file).metadata.num_rows for file in scope.files[name])
        for name in ("trajectories", "rejects")
    }
    if rows["trajectories"] != counts.trajectories:
        text = f"{counts.trajectories:,} are counted, {rows['trajectories']:,} are there"
        yield Finding(None, None, "counts.trajectories", text)
    lost = counts.skipped + counts.rejected
    # A store made from a part of another one counts what it left out, without rows for it.
    partial = any(act.act not in _WHOLE_ACTS for act in manifest.lineage)
    if rows["rejects"] > lost or (rows["rejects"] < lost and not partial):
        text = f"{lost:,} records were skipped or rejected, {rows['rejects']:,} are there"
        yield Finding(None, None, "counts.rejected", text)
    in_sets = sum(manifest.datasets.values())
    if manifest.datasets and in_sets != counts.trajectories:
        text = f"the data sets have {in_sets:,} trajectories, the store {counts.trajectories:,}"
        yield Finding(None, None, "datasets", text)


CHECKS = (
    Check(
        "damaged-file",
        "error",
        "A file is missing, cannot be read, or has another number of rows than the manifest says; "
        "with --verify: its bytes differ.",
        "Restore the store from a copy, or convert the source again.",
        FunctionCheck(_damaged_files, whole_store=True),
        on_damage=True,
    ),
    Check(
        "wrong-column",
        "error",
        "A table lacks a column, has one too many, or one of another type.",
        "Write the table with adp, or with the types that docs/schema.md lists.",
        FunctionCheck(_wrong_columns, whole_store=True),
        on_damage=True,
    ),
    Check(
        "unbalanced-counts",
        "error",
        "The counts of the manifest contradict each other or the rows: a record was lost without "
        "a word.",
        "Convert the source again, and report it if that gives the same.",
        FunctionCheck(_unbalanced_counts, whole_store=True),
    ),
    Check(
        "rejected-records",
        "warning",
        "Records of the source could not be converted, so the store lacks them.",
        "Read the reasons with adp rejects STORE, mend the records, and convert them again.",
        SqlCheck(
            """
            SELECT seq, NULL::VARCHAR AS trajectory_id, NULL::INTEGER AS step, record AS place,
                source_file || coalesce('#' || record, '') AS path,
                reason || ' - at ' || coalesce(path, '$') AS excerpt
            FROM rejects WHERE status = 'rejected'"""
        ),
    ),
    Check(
        "recorded-losses",
        "note",
        "The conversion could not keep something of the trajectory.",
        "Read the column losses; keep the raw records with adp convert --keep-raw if it matters.",
        SqlCheck(
            """
            SELECT seq, trajectory_id, NULL::INTEGER AS step, 0 AS place, '$.losses' AS path,
                losses AS excerpt
            FROM all_trajectories WHERE losses IS NOT NULL"""
        ),
    ),
)
