"""What a stage said, as files: a stopped run reads them instead of doing the stage again."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import polars as pl
import pyarrow as pa

from adp.curation.op import OpResult
from adp.stores.staged import write_rows
from adp_schema.builder import RowBuilder
from adp_schema.manifest import Counts, Lineage, Manifest, write_atomic
from adp_schema.model import Trajectory
from adp_schema.store import Store
from adp_schema.trajectory_rows import rows_of

FRAMES = (
    "columns", "step_columns", "dropped", "events", "weights", "copies", "admitted", "buffer",
    "pairs", "edits", "splits",
)  # fmt: skip


def save(outcome: OpResult, seen: pl.DataFrame, folder: Path) -> None:
    """Write what a stage said, whole or not at all.

    Args:
        outcome: what it said.
        seen: ``seq`` of the trajectories that it saw.
        folder: folder for it, which is not there yet.
    """
    staged = folder.with_name(folder.name + ".tmp")
    shutil.rmtree(staged, ignore_errors=True)
    staged.mkdir(parents=True)
    seen.select("seq").write_parquet(staged / "seen.parquet")
    for name in FRAMES:
        frame: pl.DataFrame | None = getattr(outcome, name)
        if frame is not None:
            _ordered(frame).write_parquet(staged / f"{name}.parquet")
    if outcome.made:
        write_made(outcome.made, staged / "made")
    words = {"summary": outcome.summary, "lines": outcome.lines}
    write_atomic(staged / "words.json", json.dumps(words, ensure_ascii=False, sort_keys=True))
    staged.replace(folder)


def _ordered(frame: pl.DataFrame) -> pl.DataFrame:
    """The rows by trajectory and step."""
    keys = [key for key in ("seq", "step") if key in frame.columns]
    if not keys or (keys == ["seq"] and frame["seq"].is_sorted()):
        return frame
    return frame.sort(keys, maintain_order=True)


def read(folder: Path) -> tuple[OpResult, pl.DataFrame]:
    """The inverse of `save`; made-up trajectories are in the store `made_store` names."""
    words = json.loads((folder / "words.json").read_text(encoding="utf-8"))
    outcome = OpResult(summary=words["summary"], lines=words["lines"])
    for name in FRAMES:
        path = folder / f"{name}.parquet"
        if path.exists():
            setattr(outcome, name, pl.read_parquet(path, glob=False))
    return outcome, pl.read_parquet(folder / "seen.parquet", glob=False)


def made_store(folder: Path) -> Store | None:
    """The store of the trajectories that a stage made up; None when there are none."""
    path = folder / "made"
    return Store.open(str(path)) if path.exists() else None


def write_made(trajectories: Sequence[Trajectory], folder: Path) -> None:
    """Write trajectories as a small store."""
    (folder / ".run").mkdir(parents=True)
    builder = RowBuilder()
    datasets: Counter[str] = Counter()
    for number, trajectory in enumerate(trajectories):
        columns, rows = rows_of(trajectory)
        columns = {**columns, "trajectory_id": trajectory.trajectory_id}
        builder.add_rows(number, columns, rows)
        datasets[trajectory.dataset or ""] += 1
    tables = write_rows(str(folder), 0, builder.tables().items())
    (folder / ".run").rmdir()
    count = len(trajectories)
    Manifest(
        tables={table: [shard] for table, shard in tables.items()},
        counts=Counts(records=count, used=count, trajectories=count),
        datasets=dict(sorted(datasets.items())),
        lineage=[Lineage(act="made")],
    ).write(folder)


def as_arrow(frame: pl.DataFrame) -> pa.Table:
    """A frame as an Arrow table with plain strings, which every reader takes."""
    table = frame.to_arrow(compat_level=pl.CompatLevel.oldest())
    fields = [field.with_type(_plain(field.type)) for field in table.schema]
    return table.cast(pa.schema(fields)).combine_chunks()


def _plain(data_type: pa.DataType) -> pa.DataType:
    if pa.types.is_large_string(data_type):
        return pa.string()
    if pa.types.is_large_binary(data_type):
        return pa.binary()
    if pa.types.is_large_list(data_type) or pa.types.is_list(data_type):
        return pa.list_(_plain(data_type.value_type))
    if pa.types.is_struct(data_type):
        return pa.struct([field.with_type(_plain(field.type)) for field in data_type])
    return data_type
