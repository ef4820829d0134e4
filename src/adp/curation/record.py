"""The record of a curation: the folder ``curation/`` beside what was made.

    recipe.yaml            the recipe, resolved
    report.json            inputs, stages and outputs, with counts
    ledger.parquet         why each trajectory is in or out
    annotations.parquet    what the ops said of each trajectory, one row each
    step_columns.parquet   what they said of steps, if they did

With ``--link`` there are no stores, and the folder holds the selection too, from which
``adp curate FOLDER -o NEW`` writes them.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow.parquet as pq
import yaml

from adp.curation.inputs import MADE
from adp.curation.outputs import Curated
from adp.curation.recipe import Recipe
from adp.curation.stage_files import as_arrow
from adp.stores.staged import StagedRun
from adp_schema.errors import StoreError
from adp_schema.gate_files import RECORD
from adp_schema.manifest import write_atomic

_GROUP_ROWS = 50_000
_SLICE_ROWS = 10 * _GROUP_ROWS
"""Rows that are Arrow's at a time."""

LINKED = "linked.json"
"""In a folder that only links: what its stores are made from."""


@contextmanager
def reading(record: Path) -> Iterator[None]:
    """Say in one sentence when a record cannot be read.

    Raises:
        StoreError: a file of it is missing or damaged.
    """
    kinds = (OSError, ValueError, LookupError, TypeError, pl.exceptions.PolarsError)
    try:
        yield
    except kinds as error:
        lines = str(error).strip().splitlines() or [type(error).__name__]
        raise StoreError(
            f"the record {record} is damaged or not whole; make it anew from its recipe "
            f"({lines[0]})"
        ) from None


def write_record(curated: Curated, recipe: Recipe, run: StagedRun, *, link: bool) -> None:
    """Write the folder, whole or not at all.

    Args:
        curated: what was decided.
        recipe: the recipe.
        run: the run; its folder gets the record.
        link: write the selection too, and no stores will follow.
    """
    target = run.folder / RECORD
    staged = run.scratch / RECORD
    shutil.rmtree(staged, ignore_errors=True)
    staged.mkdir()
    text = yaml.safe_dump(recipe.plain(), sort_keys=False, allow_unicode=True, width=100)
    write_atomic(staged / "recipe.yaml", text)
    report = json.dumps(curated.report, indent=2, ensure_ascii=False) + "\n"
    write_atomic(staged / "report.json", report)
    write_frame(curated.ledger, staged / "ledger.parquet")
    write_frame(curated.state.rows, staged / "annotations.parquet")
    if curated.state.steps is not None:
        write_frame(curated.state.steps, staged / "step_columns.parquet")
    if link:
        write_selection(curated, run.key, staged)
    shutil.rmtree(target, ignore_errors=True)
    staged.replace(target)
    if link:
        run.end()


def write_selection(curated: Curated, key: dict[str, Any], folder: Path) -> None:
    """Write what the stores are made from: entries, weights, repaired texts, pairs."""
    state = curated.state
    for item in curated.outputs:
        name = item.name or "store"
        write_frame(item.entries, folder / f"entries-{name}.parquet")
        if item.pairs is not None:
            write_frame(item.pairs, folder / f"pairs-{name}.parquet")
    for name, frame in (("weights", state.weights), ("edits", state.edits)):
        if frame is not None:
            write_frame(frame, folder / f"{name}.parquet")
    parents = []
    for source in state.inputs:
        made = source.name.startswith(MADE)
        if made:  # trajectories that a stage made up exist nowhere else
            shutil.copytree(source.store.root, folder / source.name.replace(":", "-"))
        parents.append(
            {"name": source.name, "hash": source.hash, "made": made, "renamed": source.renamed}
        )
    linked = {
        "key": key,
        "trajectories": state.rows.height,
        "inputs": parents,
        "outputs": [entry.name for entry in curated.outputs],
        "buffer": state.buffer_facts or None,
    }
    write_atomic(folder / LINKED, json.dumps(linked, indent=2, ensure_ascii=False) + "\n")


def write_frame(frame: pl.DataFrame, path: Path) -> None:
    """Write a frame so that equal rows make equal bytes."""
    schema = as_arrow(frame.clear()).schema
    with pq.ParquetWriter(path, schema, compression="zstd", compression_level=3) as writer:
        for start in range(0, max(frame.height, 1), _SLICE_ROWS):
            rows = as_arrow(frame.slice(start, _SLICE_ROWS))
            writer.write_table(rows, row_group_size=_GROUP_ROWS)
