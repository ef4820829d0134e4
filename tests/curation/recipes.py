"""Recipes and curated folders for tests."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl

from adp.curation.ledger import ENDS
from adp.curation.outputs import Curated
from adp.curation.recipe import Recipe
from adp.curation.recipe_file import check
from adp.curation.run import CurateOptions, run
from adp_schema.ids import digest_file


def recipe(inputs: dict[str, Any], *ops: Any, **more: Any) -> Recipe:
    """A recipe, checked."""
    return check({"recipe": 1, "inputs": inputs, "ops": list(ops), **more}, "recipe.yaml")


def curate(inputs: dict[str, Any], out: Path | None, *ops: Any, **more: Any) -> Curated:
    """Run a recipe; the words of `CurateOptions` and ``progress`` are no part of it."""
    names = ("workers", "link", "allow_python", "folder")
    options = CurateOptions(**{name: more.pop(name) for name in names if name in more})
    progress = more.pop("progress", None)
    made = recipe(inputs, *ops, **more)
    return run(made, None if out is None else str(out), options=options, progress=progress)


def contents(folder: Path) -> dict[str, str]:
    """Hashes of all that must not change with the workers, or with how the inputs were cut.

    The manifest names its parents by hash, and the report does; so those are left out.
    """
    results = {}
    for path in sorted(folder.rglob("*")):
        name = str(path.relative_to(folder))
        if path.suffix == ".parquet":
            results[name] = digest_file(str(path))
        elif path.name == "adp.json":
            results[name] = json.dumps(json.loads(path.read_text())["tables"], sort_keys=True)
    return results


def balanced(done: Curated) -> None:
    """Check that every trajectory of the inputs is accounted for, at every stage."""
    rows = done.state.rows.height
    ledger = done.ledger
    ends = ledger.filter(pl.col("verdict").is_in(ENDS))
    assert ends.height == rows
    assert ends["seq"].n_unique() == rows
    inside = rows - sum(
        source.store.manifest.rows("trajectories") for source in done.state.inputs if source.reserve
    )
    for stage in done.report["stages"]:
        assert stage["in"] == inside or done.state.branches.height
        inside = stage["out"]
        assert stage["in"] - stage["dropped"] + stage["admitted"] == stage["out"]
        assert sum(stage["reasons"].values()) == stage["dropped"]
        frame = ledger.filter(pl.col("stage") == stage["stage"])
        assert frame.filter(pl.col("verdict") == "dropped").height == stage["dropped"]
    kept = ends.filter(pl.col("verdict").is_in(["kept", "left_out"])).height
    assert kept == (done.report["stages"][-1]["out"] if done.report["stages"] else inside)
