"""Writing the stores of a folder that was made with ``--link``."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import polars as pl

from adp.core.progress import Progress, Silent
from adp.curation.inputs import Input
from adp.curation.outputs import BUFFER, OutputSelection
from adp.curation.recipe import NAME
from adp.curation.record import LINKED, reading
from adp.curation.write import Making, write_stores
from adp.stores import shards
from adp.stores.locks import alone
from adp.stores.remote_output import writes_to_urls
from adp.stores.staged import StagedRun, check_free
from adp_schema.errors import RecipeError, StoreError, unknown_name
from adp_schema.gate_files import RECORD


@writes_to_urls
@alone
def materialise(
    folder: str,
    out: str,
    places: Mapping[str, str],
    *,
    workers: int | None = None,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Write the stores that a linked folder selects.

    Args:
        folder: what ``adp curate --link`` made.
        out: folder for the stores.
        places: name of an input -> where its store lies now.
        workers: number of processes; None takes one a core.
        progress: told how far it is, in bytes.

    Returns:
        The report of the recipe.

    Raises:
        RecipeError: the folder is none of that kind, or an input is not named, or not known.
        StoreError: an input is no store, or not the one that was selected from.
        OutputExistsError: the output holds something.
    """
    record = Path(folder) / RECORD
    if not (record / LINKED).exists():
        raise RecipeError(f"{folder} was not made with adp curate --link; name a recipe instead")
    with reading(record):
        linked = json.loads((record / LINKED).read_text(encoding="utf-8"))
        report = json.loads((record / "report.json").read_text(encoding="utf-8"))
        names = [spec["name"] for spec in linked["inputs"] if not spec["made"]]
        if unknown := sorted(set(places) - set(names)):
            raise RecipeError(unknown_name("input", unknown[0], names))
        if missing := [name for name in names if name not in places]:
            wanted = " ".join(f"--input {name}=STORE" for name in missing)
            raise RecipeError(f"say where the inputs lie: {wanted}")
        for name in linked["outputs"]:
            # The folder may come from somebody else, and must not say where else to write.
            if name and not NAME.fullmatch(name):
                raise RecipeError(
                    f"{folder} names an output {name!r}; make it anew from its recipe"
                )
        inputs = [_open(record, index, spec, places) for index, spec in enumerate(linked["inputs"])]
        chosen = [_chosen(record, name, linked) for name in linked["outputs"]]
        making = Making(
            report=report,
            inputs=inputs,
            trajectories=linked["trajectories"],
            weights=_frame(record / "weights.parquet"),
            edits=_frame(record / "edits.parquet"),
        )
    check_free(Path(out))
    run = StagedRun(out, {**linked["key"], "link": False}, workers)
    _copy_record(record, Path(out) / RECORD)
    write_stores(making, chosen, run, progress or Silent())
    return dict(report)


def _copy_record(record: Path, target: Path) -> None:
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir()
    names = ("recipe.yaml", "report.json", "ledger.parquet", "annotations.parquet")
    for name in (*names, "step_columns.parquet"):
        if (record / name).exists():
            shutil.copyfile(record / name, target / name)


def _open(record: Path, index: int, spec: dict[str, Any], places: Mapping[str, str]) -> Input:
    name = spec["name"]
    path = str(record / name.replace(":", "-")) if spec["made"] else places[name]
    store = shards.open_finished(path)
    if not spec["made"] and shards.manifest_hash(store) != spec["hash"]:
        raise StoreError(f"{path} is not the store that {name} was; name the one it was made from")
    return Input(name, store, index, False, spec["hash"], spec["renamed"])


def _chosen(record: Path, name: str, linked: dict[str, Any]) -> OutputSelection:
    stem = name or "store"
    entries = _frame(record / f"entries-{stem}.parquet")
    assert entries is not None
    facts = linked["buffer"] if name == BUFFER else None
    return OutputSelection(name, entries, _frame(record / f"pairs-{stem}.parquet"), facts)


def _frame(path: Path) -> pl.DataFrame | None:
    return pl.read_parquet(path, glob=False) if path.exists() else None
