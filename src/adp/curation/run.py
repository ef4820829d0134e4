"""Running a recipe: stage after stage, then the selection, then the stores."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import polars as pl

from adp.core.progress import Progress, Silent
from adp.curation import mapped_frames, stage_files
from adp.curation.check_plan import check_plan, column_faults, raise_faults
from adp.curation.inputs import MADE, Input, open_inputs
from adp.curation.ledger import whole_ledger
from adp.curation.load import BRANCH_COLUMNS, load
from adp.curation.op import OpResult
from adp.curation.op_columns import checked
from adp.curation.outputs import Curated, choose
from adp.curation.partitions import trajectory_sizes
from adp.curation.pool import Pool
from adp.curation.recipe import Recipe, Stage
from adp.curation.record import write_record
from adp.curation.registry import OPS
from adp.curation.state import State
from adp.curation.write import Making, write_stores
from adp.stores import shards
from adp.stores.locks import alone
from adp.stores.remote_output import writes_to_urls
from adp.stores.stage import keep_workers
from adp.stores.staged import StagedRun, versions
from adp_schema import location
from adp_schema.errors import AdpError, EmptyResultError, QueryError, RecipeError
from adp_schema.ids import digest, digest_file
from adp_schema.scratch import ScratchFolder


@dataclass(frozen=True)
class CurateOptions:
    """How to run a recipe.

    Attributes:
        folder: folder of the recipe, to which the paths in its ops are relative.
        workers: number of processes; None takes one a core. What is made does not depend on it.
        link: write the selection and the record, but no stores.
        allow_python: let the recipe call Python functions.
    """

    folder: Path = Path()
    workers: int | None = None
    link: bool = False
    allow_python: bool = False


@writes_to_urls
@alone
def run(
    recipe: Recipe,
    out: str | None,
    *,
    options: CurateOptions | None = None,
    progress: Progress | None = None,
) -> Curated:
    """Run a recipe.

    Args:
        recipe: the recipe.
        out: folder for what is made; None only looks.
        options: how to run it.
        progress: told how far each stage is.

    Raises:
        RecipeError: the recipe cannot be carried out.
        EmptyResultError: nothing is left; nothing was written.
        StoreError: an input is no finished store.
        OutputExistsError: the output holds something else.
        QueryError: SQL in the recipe is not allowed or not valid.
    """
    options = options or CurateOptions()
    report = progress or Silent()
    check_plan(recipe, allow_python=options.allow_python)
    inputs = open_recipe_inputs(recipe)
    staged = None
    if out is not None:
        staged = StagedRun(out, _key(recipe, inputs, options), options.workers)
    with keep_workers():
        # A run that was stopped after its last file was written has nothing left to write.
        if staged is None or staged.finished is not None:
            with ScratchFolder("curate") as folder:
                return _Stages(recipe, load(inputs, folder), folder, options, report).run()
        scratch = staged.scratch / "curate"
        scratch.mkdir(parents=True, exist_ok=True)
        try:
            curated = _Stages(recipe, load(inputs, scratch), scratch, options, report).run()
        except AdpError:
            # Nothing that it did is worth keeping: the recipe or its inputs have to be changed.
            staged.drop()
            raise
        write_record(curated, recipe, staged, link=options.link)
        if not options.link:
            state = curated.state
            making = Making(
                curated.report, state.inputs, state.rows.height, state.weights, state.edits
            )
            write_stores(making, curated.outputs, staged, report)
    return curated


def open_recipe_inputs(recipe: Recipe) -> list[Input]:
    """Open the stores of a recipe; optional ones that are not there are left out.

    Raises:
        StoreError: one of them is no finished store.
    """
    there = {
        name: spec
        for name, spec in recipe.inputs.items()
        if not spec.optional or location.is_url(spec.store) or os.path.exists(spec.store)  # noqa: PTH110
    }
    reserve = [name for name, spec in there.items() if spec.reserve]
    inputs = open_inputs({name: spec.store for name, spec in there.items()}, reserve)
    if not inputs:
        raise RecipeError("none of the inputs is there; name a store that exists")
    seen: dict[str, str] = {}
    for source in inputs:
        if source.hash in seen:
            raise RecipeError(
                f"the inputs {seen[source.hash]} and {source.name} are the same store; name it once"
            )
        seen[source.hash] = source.name
    return inputs


def _key(recipe: Recipe, inputs: list[Input], options: CurateOptions) -> dict[str, Any]:
    """What a call must have in common with one that was stopped."""
    files = {
        name: digest_file(str(options.folder / name))
        for name in sorted(_texts([stage.options.model_dump() for stage in recipe.ops]))
        # Most texts are no names of files, and may be too long for one.
        if os.path.isfile(options.folder / name)  # noqa: PTH113
    }
    return {
        "act": "curate",
        "recipe": recipe.hash(),
        "inputs": {source.name: source.hash for source in inputs},
        "files": files,
        "link": options.link,
        "versions": curate_versions(),
    }


def curate_versions() -> dict[str, str]:
    """Versions that the selection and the bytes depend on."""
    return {**versions("duckdb", "polars"), "numpy": version("numpy")}


def _texts(value: Any) -> set[str]:
    """All short texts in the options of a recipe: some are names of files."""
    if isinstance(value, str):
        name = value.rpartition(":")[0] if ".py:" in value else value
        return {name} if name and len(name) < 256 and "\0" not in name else set()
    if isinstance(value, Mapping):
        value = list(value.values())
    if isinstance(value, list | tuple):
        return set().union(*(_texts(item) for item in value))
    return set()


@dataclass(frozen=True)
class _Stages:
    """The stages of a recipe, done one after the other, and the selection after them."""

    recipe: Recipe
    state: State
    scratch: Path
    options: CurateOptions
    progress: Progress

    def run(self) -> Curated:
        """Do all stages and the selection."""
        recipe, state = self.recipe, self.state
        if not state.rows.height:
            raise EmptyResultError("the inputs hold no trajectory; nothing was written")
        for number, stage in enumerate(recipe.ops):
            self._stage(number, stage)
            if not state.inside.any():
                last = state.report[-1]
                raise EmptyResultError(
                    f"the recipe leaves nothing: stage {number} ({stage.name}) drops the last "
                    f"{last['dropped']:,} of {last['in']:,}; nothing was written"
                )
        with self._pool("end", recipe.seed) as pool:
            outputs = choose(recipe, state, pool)
        report = {
            "recipe": {"name": recipe.name, "hash": recipe.hash(), "seed": recipe.seed},
            "inputs": [
                {
                    "name": source.name,
                    "hash": source.hash,
                    "reserve": source.reserve,
                    "trajectories": _count(state.rows, source.name),
                    "branches": _count(state.branches, source.name),
                }
                for source in state.inputs
                if not source.name.startswith(MADE)
            ],
            "stages": state.report,
            "outputs": [item.facts() for item in outputs],
        }
        return Curated(report, whole_ledger(state, outputs), state, outputs)

    def _pool(self, name: str, seed: int) -> closing[Pool]:
        """What is left of the inputs, with a scratch folder of this name."""
        scratch = self.scratch / name
        scratch.mkdir(exist_ok=True)
        folder, workers = self.options.folder, self.options.workers
        return closing(
            self.state.pool(
                scratch, folder=folder, seed=seed, workers=workers, progress=self.progress
            )
        )

    def _stage(self, number: int, stage: Stage) -> None:
        """Do one stage, or read what it said when a stopped run did it."""
        folder = self.scratch / f"stage-{number:02d}"
        if not folder.exists():
            work = f"work-{number:02d}"
            earlier = self.recipe.ops[:number]
            self.progress.note(f"stage {number + 1} of {len(self.recipe.ops)}: {stage.name}")
            before = sum(other.name == stage.name for other in earlier)
            with self._pool(work, stage_seed(self.recipe.seed, stage.name, before)) as pool:
                try:
                    outcome, seen = _call(stage, pool)
                except QueryError as error:
                    raise QueryError(f"stage {stage.name}: {error}") from None
            stage_files.save(outcome, seen, folder)
            shutil.rmtree(self.scratch / work)
        outcome, seen = stage_files.read(folder)
        _add_made(self.state, stage, number, folder)
        self.state.take(stage, number, outcome, seen)


def _count(rows: pl.DataFrame, name: str) -> int:
    return int((rows["input"] == name).sum())


def stage_seed(seed: int, name: str, before: int = 0) -> int:
    """Seed of a stage: it depends on its name, not on its place.

    Args:
        seed: seed of the recipe.
        name: name of the stage.
        before: how many earlier stages have the same name.
    """
    text = f"{seed}/{name}/{before}".encode()
    return int.from_bytes(hashlib.blake2b(text, digest_size=7).digest(), "big")


def _call(stage: Stage, pool: Pool) -> tuple[OpResult, pl.DataFrame]:
    """Call the op of a stage."""
    op = OPS.get(stage.op)
    if stage.where is not None:
        wanted = pool.members["seq"].is_in(pool.where(stage.where)["seq"].implode())
        pool.close()
        pool.members = mapped_frames.filtered(pool.members, wanted, pool.scratch / "where.arrow")
    raise_faults("the recipe", column_faults(stage, op.needs(stage.options), pool.members.columns))
    seen = pool.members.select("seq")
    outcome = op.run(pool, stage.options)
    if outcome.columns is not None:
        outcome.columns = checked(outcome.columns, stage.name)
    if outcome.step_columns is not None:
        outcome.step_columns = checked(outcome.step_columns, stage.name, ("seq", "step"))
    return outcome, seen


def _add_made(state: State, stage: Stage, number: int, folder: Path) -> None:
    """Add the trajectories that a stage made up, as branches."""
    store = stage_files.made_store(folder)
    if store is None:
        return
    made = Input(f"{MADE}{number}", store, len(state.inputs))
    made.hash = digest(json.dumps([made.name, shards.manifest_hash(store)]).encode())
    rows = store.scan("trajectories").select(
        (pl.col("seq") + made.shift).alias("seq"),
        "trajectory_id", "parent_id", "parent_step", "branch_kind",
    ).collect()  # fmt: skip
    known = state.named("seq", "trajectory_id")
    taken = rows["trajectory_id"].is_in(known["trajectory_id"].implode())
    owners = known.select(pl.col("trajectory_id").alias("parent_id"), parent_seq="seq")
    rows = rows.join(owners, on="parent_id", how="left", maintain_order="left").join(
        trajectory_sizes(made), on="seq", how="left", maintain_order="left"
    )
    if taken.any() or rows["parent_seq"].null_count():
        raise RecipeError(
            f"stage {stage.name} made up a trajectory without a parent, or of an id that is taken"
        )
    rows = rows.with_columns(pl.lit(made.name).alias("input"))
    state.inputs.append(made)
    state.branches = pl.concat([state.branches, rows.select(BRANCH_COLUMNS)])
