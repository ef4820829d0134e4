"""The stage ``curate``: `adp curate` with a recipe that stands in the loop, or in a file."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import Field

from adp.core.options import OptionsModel
from adp.curation.check_plan import check_plan
from adp.curation.recipe import Recipe
from adp.curation.recipe_file import read_recipe
from adp.curation.run import CurateOptions, run
from adp.workflows.loop.hashes import combined, store_hash
from adp.workflows.loop.stage_kind import StageContext, StageFacts, StageKind

_REPORT = Path("curation") / "report.json"


class CurateStage(OptionsModel):
    """Options of a stage ``curate``: those of the command."""

    recipe: str | dict[str, Any]
    """A recipe, or its file. In a recipe that stands here, paths begin at the folder of the loop
    (-o), so those beside the file of the loop are written ${here}/NAME."""
    folder: str | None = None
    """Folder that paths in the ops are relative to; null: that of the file of the recipe."""
    inputs: dict[str, str] = Field(default_factory=dict)
    """Name of an input -> its store, over those of the recipe."""
    changes: tuple[str, ...] = Field(default=(), alias="set")
    """Changes of the recipe, each PATH=VALUE."""
    workers: int | None = Field(default=None, ge=1)
    """Processes; null: one a core."""


def _recipe(options: CurateStage, context: StageContext) -> tuple[Recipe, Path]:
    """The recipe, and the folder that paths of its ops are relative to."""
    given = [f"inputs.{name}={json.dumps(store)}" for name, store in options.inputs.items()]
    if isinstance(options.recipe, str):
        path = Path(context.given_path(options.recipe))
        source: Any = path
        folder = path.parent
    else:
        source, folder = {"recipe": 1, "inputs": {}, **options.recipe}, Path()
    if options.folder is not None:
        folder = Path(context.given_path(options.folder))
    recipe = read_recipe(source, [*given, *options.changes])
    if "seed" not in recipe.model_fields_set:
        recipe = recipe.model_copy(update={"seed": context.seed})
    return recipe, folder


def _check(options: CurateStage, context: StageContext) -> None:
    recipe, _ = _recipe(options, context)
    check_plan(recipe, allow_python=context.allow_python)


def _run(options: CurateStage, context: StageContext, out: Path) -> None:
    recipe, folder = _recipe(options, context)
    if (out / _REPORT).exists() and not (out / ".run").exists():
        return  # a call before was killed when all was written
    how = CurateOptions(folder, options.workers, allow_python=context.allow_python)
    run(recipe, str(out), options=how, progress=context.progress)


def _facts(options: CurateStage, folder: Path) -> StageFacts:
    report: Mapping[str, Any] = json.loads((folder / _REPORT).read_text(encoding="utf-8"))
    outputs = report["outputs"]
    hashes = {item["name"]: store_hash(folder / item["name"]) for item in outputs}
    counts = {
        "in": sum(item["trajectories"] for item in report["inputs"]),
        "out": sum(item["trajectories"] for item in outputs),
        "pairs": sum(item.get("pairs", 0) for item in outputs),
    }
    line = f"{counts['in']:,} trajectories in, {counts['out']:,} out"
    line += f", {counts['pairs']:,} pairs" if counts["pairs"] else ""
    return StageFacts(combined(hashes), counts, line=line)


KIND = StageKind(
    name="curate",
    about="A recipe makes a data set out of stores.",
    options=CurateStage,
    run=_run,
    facts=_facts,
    check=_check,
    free=frozenset({"workers"}),
)
