"""Writing the stores of a recipe: each output is cut into shards, which workers write."""

from __future__ import annotations

import shutil
from collections import Counter
from dataclasses import dataclass
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from adp.core.progress import Progress
from adp.curation.inputs import MADE, Input
from adp.curation.outputs import BUFFER, OutputSelection
from adp.curation.record import write_frame
from adp.curation.write_shard import InputStore, ShardJob, write_shard
from adp.stores import shards
from adp.stores.merge import with_prefix
from adp.stores.staged import StagedRun, WrittenShard, counted, tables_of
from adp.stores.tasks import task_index
from adp_schema.manifest import MANIFEST, Counts, Lineage, Manifest
from adp_schema.store import Store
from adp_schema.tables import TABLES

SHARD_BYTES = 64 << 20
"""Text of a shard, in bytes."""

SHARD_ROWS = 50_000
"""Trajectories of a shard at most."""

LEFT_OUT = "skipped: left out by curation"
"""The reason of trajectories of the inputs that an output does not take."""


@dataclass
class Making:
    """What the stores of a run are made from.

    Attributes:
        report: inputs, stages and outputs, with the recipe's name, hash and seed.
        inputs: the stores, those of made-up trajectories too.
        trajectories: main lines in all inputs.
        weights: loss weights of steps.
        edits: repaired texts of steps.
    """

    report: dict[str, Any]
    inputs: list[Input]
    trajectories: int
    weights: pl.DataFrame | None
    edits: pl.DataFrame | None


@dataclass(frozen=True)
class _Lookups:
    """Files that the workers look things up in; empty names for those that are not needed."""

    weights: str
    edits: str
    sources: tuple[InputStore, ...]


def write_stores(
    making: Making, chosen: list[OutputSelection], run: StagedRun, progress: Progress
) -> list[Manifest]:
    """Write all stores of a run.

    Args:
        making: what they are made from.
        chosen: what each output takes.
        run: the run; with one output its folder becomes the store.
        progress: told how far it is, in bytes.
    """
    lookups = _lookups(making, run)
    made = []
    single = [entry for entry in chosen if not entry.name]
    for item in (entry for entry in chosen if entry.name):
        made.append(_named(making, item, run, lookups, progress))
    for item in single:
        manifest = _manifest(making, item, run, lookups, progress)
        run.finish(manifest)
        made.append(manifest)
    if not single:
        run.end()
    return made


def _named(
    making: Making,
    chosen: OutputSelection,
    run: StagedRun,
    lookups: _Lookups,
    progress: Progress,
) -> Manifest:
    """Write a store into a folder of its own; what a stopped run finished is kept."""
    folder = run.folder / chosen.name
    if (folder / MANIFEST).exists():
        shutil.rmtree(folder / ".run", ignore_errors=True)
        return Store.open(str(folder), check=False).manifest
    staged_run = StagedRun(str(folder), {"output": chosen.name, **run.key}, run.workers)
    if staged_run.finished is not None:
        return staged_run.finished
    manifest = _manifest(making, chosen, staged_run, lookups, progress)
    staged_run.finish(manifest)
    return manifest


def _act(making: Making, chosen: OutputSelection) -> dict[str, Any]:
    """What the lineage says of the act."""
    options: dict[str, Any] = {
        "recipe": making.report["recipe"]["hash"],
        "seed": making.report["recipe"]["seed"],
        "stages": [
            {name: stage[name] for name in ("name", "op", "in", "dropped", "admitted", "out")}
            for stage in making.report["stages"]
        ],
    }
    name = making.report["recipe"]["name"]
    options.update({"name": name} if name else {})
    options.update({"output": chosen.name} if chosen.name else {})
    options.update({"buffer": chosen.facts_of_buffer} if chosen.facts_of_buffer else {})
    return options


def _lookups(making: Making, run: StagedRun) -> _Lookups:
    """Write what all workers need."""
    files: dict[str, str] = {}
    for name, frame in (("weights", making.weights), ("edits", making.edits)):
        path = run.scratch / f"{name}.parquet"
        if frame is not None:
            write_frame(frame, path)
        files[name] = str(path) if frame is not None else ""
    sources = []
    prefixes = _prefixes(making.inputs)
    for source in making.inputs:
        renamed = ""
        if source.renamed:
            columns = {
                "old": pa.array([*source.renamed]),
                "new": pa.array([*source.renamed.values()]),
            }
            renamed = run.lookup(f"renamed-{source.index}", columns)
        tasks = run.scratch / f"tasks-{source.index}.parquet"
        write_frame(_task_rows(source), tasks)
        sources.append(
            InputStore(source.store.root, source.shift, renamed, prefixes[source.name], str(tasks))
        )
    return _Lookups(files["weights"], files["edits"], tuple(sources))


def _task_rows(source: Input) -> pl.DataFrame:
    """What each trajectory needs of the table of tasks, as in `adp.stores.tasks.rows.Needed`.

    Rollouts keep the rows that hang from them. Data sets that were converted hold a task once a
    shard; which rows these are must not depend on how the input was cut.
    """
    index = task_index(source.store)
    frame = index.rows.filter(~pl.col("above"))
    rollout = ~pl.col("shared").fill_null("").str.starts_with("{")
    return frame.select(
        "seq",
        "row",
        index.hashes.gather(frame["row"]),
        pl.when(rollout)
        .then(pl.format("{}:{}", pl.lit(source.index), "shared"))
        .otherwise("shared")
        .alias("shared"),
        (pl.col("own") & rollout).alias("stays"),
    )


def _prefixes(inputs: list[Input]) -> dict[str, str]:
    """A folder to put before the file names of an input that shares one with an earlier input."""
    used: set[str] = set()
    prefixes = {}
    for source in inputs:
        files = set(shards.source_rows(source.store)["source_file"].to_pylist())
        prefixes[source.name] = source.name if files & used else ""
        used |= {f"{source.name}/{file}" if prefixes[source.name] else file for file in files}
    return prefixes


def _manifest(
    making: Making,
    chosen: OutputSelection,
    run: StagedRun,
    lookups: _Lookups,
    progress: Progress,
) -> Manifest:
    """Write the shards of a store and describe it."""
    jobs = _jobs(chosen, run, lookups)
    progress.note(f"writing {chosen.name or 'the store'}")
    written = run.shards(jobs, write_shard, WrittenShard.parse, progress)
    manifest = Manifest(
        tables=tables_of(written),
        datasets=dict(sorted(counted(written, "datasets").items())),
        losses=dict(sorted(counted(written, "losses").items())),
    )
    once = chosen.entries.filter(chosen.entries["main"] & (chosen.entries["copy"] == 0))
    trajectories = making.trajectories
    manifest.counts = Counts(
        records=trajectories,
        used=once.height,
        skipped=trajectories - once.height,
        trajectories=chosen.entries.height,
    )
    manifest.reasons = {LEFT_OUT: manifest.counts.skipped} if manifest.counts.skipped else {}
    manifest.tables["sources"] = run.sources(_sources(making, lookups, counted(written, "files")))
    given = [source for source in making.inputs if not source.name.startswith(MADE)]
    for source in given:
        known = source.store.manifest.lineage
        manifest.lineage += [act for act in known if act not in manifest.lineage]
    act = Lineage(
        act="curate",
        options=_act(making, chosen),
        versions=run.key["versions"],
        parents=[source.hash for source in given],
    )
    manifest.lineage.append(act)
    return manifest


def _sources(making: Making, lookups: _Lookups, files: Counter[str]) -> pa.Table:
    """The input files that something in the store comes from, with what came of them."""
    results = [TABLES["sources"].schema.empty_table()]
    for source, lookup in zip(making.inputs, lookups.sources, strict=True):
        rows = shards.source_rows(source.store)
        if lookup.prefix:
            rows = with_prefix("sources", rows, lookup.prefix)
        wanted = pc.is_in(rows["source_file"], value_set=pa.array([*files], pa.string()))
        rows = rows.filter(wanted)
        counts = [files[name] for name in rows["source_file"].to_pylist()]
        results.append(shards.put(rows, "trajectories", pa.array(counts, pa.int64())))
    return pa.concat_tables(results).combine_chunks()


def _jobs(chosen: OutputSelection, run: StagedRun, lookups: _Lookups) -> list[ShardJob]:
    """Cut an output into shards, by what its trajectories hold."""
    path = run.scratch / "entries.parquet"
    write_frame(chosen.entries, path)
    pairs = run.scratch / "pairs.parquet"
    if chosen.pairs is not None and chosen.pairs.height:
        write_frame(chosen.pairs, pairs)
    cuts = cut_shards(chosen.entries)
    return [
        ShardJob(
            index=index,
            size=size,
            out=str(run.folder),
            entries=str(path),
            first=first,
            last=last,
            sources=lookups.sources,
            weights=lookups.weights,
            edits=lookups.edits,
            pairs=str(pairs) if index == 0 and pairs.exists() else "",
            buffer=chosen.name == BUFFER,
        )
        for index, (first, last, size) in enumerate(cuts)
    ]


def cut_shards(entries: pl.DataFrame) -> list[tuple[int, int, int]]:
    """First and last position, and bytes of text, of each shard.

    A shard holds entries of one stage and one copy, so their ``seq`` go upwards.
    """
    results: list[tuple[int, int, int]] = []
    start, total = 0, 0
    before: tuple[int, int] | None = None
    columns = ("position", "stage", "copy", "size")
    for position, stage, copy, size in entries.select(columns).iter_rows():
        full = total + size > SHARD_BYTES or position - start >= SHARD_ROWS
        if before is not None and (full or (stage, copy) != before):
            results.append((start, position - 1, total))
            start, total = position, 0
        before = (stage, copy)
        total += size
    if before is not None:
        results.append((start, entries.height - 1, total))
    return results
