"""Write small stores for tests: rows by a builder, files by the writer that everything uses."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from adp_schema.builder import RowBuilder
from adp_schema.ids import digest, digest_file
from adp_schema.manifest import MANIFEST, Counts, Lineage, Manifest, Shard
from adp_schema.store import Store
from adp_schema.tables import TABLES
from adp_schema.writer import ShardWriter, place


def write_store(
    folder: Path,
    *builders: RowBuilder,
    sources: list[dict[str, Any]] | None = None,
    losses: dict[str, int] | None = None,
) -> Store:
    """Write a store: one shard a builder, in order, then the manifest.

    Args:
        folder: folder of the store; it is made.
        builders: the rows. Every trajectory counts as one used record, every row of ``rejects``
            as one rejected or skipped record. Ids are not made unique across builders.
        sources: rows of the table of input files.
        losses: the losses of the manifest.
    """
    folder.mkdir(parents=True, exist_ok=True)
    tables: dict[str, list[Shard]] = {}
    manifest = Manifest(losses=losses or {})
    datasets: Counter[str] = Counter()
    reasons: Counter[str] = Counter()
    for index, builder in enumerate(builders):
        rows = builder.tables()
        datasets.update(rows["trajectories"]["dataset"].to_pylist())
        reasons.update(rows["rejects"]["reason"].to_pylist())
        manifest.counts.add(_counts(rows))
        _write_shard(folder, index, rows, tables)
    source_rows = pa.Table.from_pylist(sources or [], schema=TABLES["sources"].schema)
    _write_shard(folder, 0, {"sources": source_rows}, tables, only="sources")
    manifest.tables = tables
    manifest.datasets = dict(sorted(datasets.items()))
    manifest.reasons = dict(sorted(reasons.items()))
    manifest.lineage = [Lineage(act="convert", options={"inputs": len(sources or [])})]
    manifest.write(folder)
    return Store.open(str(folder))


def _counts(rows: dict[str, pa.Table]) -> Counts:
    status = Counter(rows["rejects"]["status"].to_pylist())
    used = rows["trajectories"].num_rows
    return Counts(
        records=used + rows["rejects"].num_rows,
        used=used,
        skipped=status["skipped"],
        rejected=status["rejected"],
        trajectories=used,
    )


def _write_shard(
    folder: Path,
    index: int,
    rows: dict[str, pa.Table],
    tables: dict[str, list[Shard]],
    only: str | None = None,
) -> None:
    staged = folder / ".staged"
    writer = ShardWriter(staged)
    for name, table in rows.items():
        writer.write(name, table)
    for name in writer.close():
        if only is None or name == only:
            file = staged / f"{name}.parquet"
            shard = place(file, folder, name, index, writer.rows.get(name, 0))
            tables.setdefault(name, []).append(shard)
    for left in staged.iterdir():
        left.unlink()
    staged.rmdir()


def reject_row(
    data: bytes, reason: str, *, record: int, status: str = "rejected", path: str = "$"
) -> dict[str, Any]:
    """A row of the table of rejects, for `RowBuilder.reject`."""
    return {
        "seq": record,
        "status": status,
        "source_file": "logs.jsonl",
        "record": record,
        "offset": 0,
        "length": len(data),
        "path": path,
        "reason": reason,
        "source_hash": digest(data),
        "data": data,
    }


def describe_again(root: str | Path, **more: Any) -> None:
    """Let a manifest describe the files as they are now, after a test has written some anew.

    Args:
        root: folder of the store.
        **more: values of the manifest to be changed.
    """
    path = Path(root) / MANIFEST
    data = json.loads(path.read_text(encoding="utf-8"))
    for shards in data["tables"].values():
        for shard in shards:
            file = Path(root, shard["path"])
            rows = pq.read_metadata(file).num_rows
            shard.update(size=file.stat().st_size, hash=digest_file(str(file)), rows=rows)
    path.write_text(json.dumps({**data, **more}), encoding="utf-8")
