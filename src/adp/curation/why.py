"""The story of one trajectory: where it comes from, and what each stage said about it."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl

from adp.curation.ledger import ENDS
from adp.curation.record import reading
from adp_schema import location
from adp_schema.errors import DamagedStoreError, StoreError
from adp_schema.find_id import find_id
from adp_schema.gate_files import RECORD
from adp_schema.store import Store


@dataclass
class Story:
    """What is known of one trajectory.

    Attributes:
        trajectory_id: the trajectory.
        copy_of: the trajectory that this one repeats; null when it repeats none.
        verdict: what became of it: dropped, kept, left_out, waiting; null without a record.
        stages: the stages of the recipe, each with what the ledger notes of this trajectory.
        columns: what the ops said about it.
        provenance: file, records, converter, losses, when a store holds it.
        lineage: what made the store.
    """

    trajectory_id: str
    copy_of: str | None = None
    verdict: str | None = None
    stages: list[dict[str, Any]] = field(default_factory=list)
    columns: dict[str, Any] = field(default_factory=dict)
    provenance: dict[str, Any] = field(default_factory=dict)
    lineage: list[str] = field(default_factory=list)


def record_of(path: str) -> Path | None:
    """The folder ``curation/`` of a store or of the folder that holds it; None without one."""
    if location.is_url(path):
        return None
    for folder in (Path(path), Path(path).resolve().parent):
        if (folder / RECORD / "ledger.parquet").exists():
            return folder / RECORD
    return None


def why(path: str, name: str) -> Story:
    """Tell the story of one trajectory.

    Args:
        path: a curated store, the folder that holds several, or any store.
        name: the id, or a part of it that names only one.

    Raises:
        StoreError: there is no store, or no such trajectory.
        UsageError: several trajectories have this part in their id.
    """
    record = record_of(path)
    store = _store(path)
    if record is None:
        if store is None:
            Store.open(path)  # says what is wrong
            raise StoreError(f"{path} is neither a store nor a curated folder")
        story = Story(store.find(name))
    else:
        with reading(record):
            story = _from_record(record, name)
    if store is not None:
        _add_provenance(story, store)
    return story


def _store(path: str) -> Store | None:
    try:
        return Store.open(path)
    except DamagedStoreError:
        raise
    except StoreError:
        return None


def _from_record(record: Path, name: str) -> Story:
    annotations = pl.scan_parquet(record / "annotations.parquet", glob=False)
    names = annotations.select("trajectory_id").collect()["trajectory_id"].to_list()
    ledger = pl.scan_parquet(record / "ledger.parquet", glob=False)
    others = ledger.select("trajectory_id").unique().collect()["trajectory_id"].to_list()
    known = {*names, *others}
    copied = _copied(ledger, name) if name not in known else None
    full = copied or find_id(sorted(known), name)
    rows = ledger.filter(pl.col("trajectory_id") == full).collect()
    report = json.loads((record / "report.json").read_text(encoding="utf-8"))
    story = Story(name if copied else full, copied)
    ends = rows.filter(pl.col("verdict").is_in(ENDS))
    story.verdict = ends["verdict"][-1] if ends.height else None
    stages = [{"stage": s["stage"], "name": s["name"]} for s in report["stages"]]
    stages.append({"stage": len(stages), "name": "output"})
    story.stages = [{**stage, "notes": _notes(rows, stage["stage"])} for stage in stages]
    known_columns = annotations.filter(pl.col("trajectory_id") == full).collect().to_dicts()
    story.columns = {
        key: value for row in known_columns for key, value in row.items() if value is not None
    }
    return story


def _copied(ledger: pl.LazyFrame, name: str) -> str | None:
    """The trajectory whose copy has this id, such as ``booking-2#2``; None when there is none."""
    base, mark, number = name.rpartition("#")
    if not mark or not number.isascii() or not number.isdigit():
        return None
    repeated = (pl.col("trajectory_id") == base) & (pl.col("verdict") == "repeated")
    return base if ledger.filter(repeated).collect().height else None


def _notes(rows: pl.DataFrame, stage: int) -> list[dict[str, Any]]:
    frame = rows.filter(pl.col("stage") == stage)
    return frame.select("verdict", "step", "reason", "evidence").to_dicts()


def _add_provenance(story: Story, store: Store) -> None:
    columns = (
        "source_file", "source_records", "source_format", "converter", "converter_version",
        "source_hash", "losses", "dataset", "license", "parent_id", "branch_kind",
    )  # fmt: skip
    rows = (
        store.scan("trajectories")
        .filter(pl.col("trajectory_id") == story.trajectory_id)
        .select(columns)
        .collect()
        .to_dicts()
    )
    for row in rows:
        story.provenance = {key: value for key, value in row.items() if value is not None}
    story.lineage = [act.act for act in store.manifest.lineage]
