"""Writing the stores of a recipe: each output is cut into shards, which workers write."""

from __future__ import annotations

import shutil
from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from adp.core.progress import Progress
from adp.curation.inputs import MADE, Input
from adp.curation.outputs import BUFFER, OutputSelection
from adp.curation.record import write_frame
from adp.curation.write_shard import InputStore, Lookups, ShardJob, write_shard
from adp.stores import shards
from adp.stores.cutting import cut_places
from adp.stores.merge import with_prefix
from adp.stores.staged import StagedRun, WrittenShard, counted, tables_of
from adp.stores.tasks import task_index
from adp_schema.manifest import MANIFEST, Counts, Lineage, Manifest
from adp_schema.plain_arrays import empty_table
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


def write_stores(
    making: Making, chosen: list[OutputSelection], run: StagedRun, progress: Progress
) -> None:
    """Write all stores of a run.

    Args:
        making: what they are made from.
        chosen: what each output takes.
        run: the run; with one output its folder becomes the store.
        progress: told how far it is, in bytes.
    """
    writer = _StoreWriter(making, _lookups(making, run), progress)
    named = [output for output in chosen if output.name]
    for output in named:
        _named(writer, output, run)
    for output in chosen:
        if not output.name:
            run.finish(writer.write(output, run))
    if len(named) == len(chosen):
        run.end()


def _named(writer: _StoreWriter, chosen: OutputSelection, run: StagedRun) -> None:
    """Write a store into a folder of its own; what a stopped run finished is kept."""
    folder = run.folder / chosen.name
    if (folder / MANIFEST).exists():
        shutil.rmtree(folder / ".run", ignore_errors=True)
        return
    staged = StagedRun(str(folder), {"output": chosen.name, **run.key}, run.workers)
    if staged.finished is None:
        staged.finish(writer.write(chosen, staged))


def _lookups(making: Making, run: StagedRun) -> Lookups:
    """Write what all workers need."""
    sources = []
    prefixes = _prefixes(making.inputs)
    for source in making.inputs:
        renamed = ""
        if source.renamed:
            old, new = pa.array([*source.renamed]), pa.array([*source.renamed.values()])
            renamed = run.lookup(f"renamed-{source.index}", {"old": old, "new": new})
        tasks = _lookup(run, f"tasks-{source.index}", _task_rows(source))
        sources.append(
            InputStore(source.store.root, source.shift, renamed, prefixes[source.name], tasks)
        )
    weights, edits = _lookup(run, "weights", making.weights), _lookup(run, "edits", making.edits)
    return Lookups(weights, edits, tuple(sources))


def _lookup(run: StagedRun, name: str, frame: pl.DataFrame | None) -> str:
    """Write a frame for the workers; an empty name when there is none."""
    if frame is None:
        return ""
    path = run.scratch / f"{name}.parquet"
    write_frame(frame, path)
    return str(path)


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


@dataclass(frozen=True)
class _StoreWriter:
    """Writes the stores of a run, one after the other."""

    making: Making
    lookups: Lookups
    progress: Progress

    def write(self, chosen: OutputSelection, run: StagedRun) -> Manifest:
        """Write the shards of a store and describe it."""
        making = self.making
        jobs = self._jobs(chosen, run)
        self.progress.note(f"writing {chosen.name or 'the store'}")
        written = run.shards(jobs, write_shard, WrittenShard.parse, self.progress)
        once = chosen.entries.filter(chosen.entries["main"] & (chosen.entries["copy"] == 0))
        skipped = making.trajectories - once.height
        manifest = Manifest(
            tables=tables_of(written),
            datasets=dict(sorted(counted(written, "datasets").items())),
            losses=dict(sorted(counted(written, "losses").items())),
            counts=Counts(
                records=making.trajectories,
                used=once.height,
                skipped=skipped,
                trajectories=chosen.entries.height,
            ),
            reasons={LEFT_OUT: skipped} if skipped else {},
        )
        manifest.tables["sources"] = run.sources(self._sources(counted(written, "files")))
        given = [source for source in making.inputs if not source.name.startswith(MADE)]
        for source in given:
            known = source.store.manifest.lineage
            manifest.lineage += [act for act in known if act not in manifest.lineage]
        act = Lineage(
            act="curate",
            options=self._act(chosen),
            versions=run.key["versions"],
            parents=[source.hash for source in given],
        )
        manifest.lineage.append(act)
        return manifest

    def _act(self, chosen: OutputSelection) -> dict[str, Any]:
        """What the lineage says of the act."""
        report = self.making.report
        named = {
            "name": report["recipe"]["name"],
            "output": chosen.name,
            "buffer": chosen.facts_of_buffer,
        }
        return {
            "recipe": report["recipe"]["hash"],
            "seed": report["recipe"]["seed"],
            "stages": [
                {name: stage[name] for name in ("name", "op", "in", "dropped", "admitted", "out")}
                for stage in report["stages"]
            ],
            **{name: value for name, value in named.items() if value},
        }

    def _sources(self, files: Counter[str]) -> pa.Table:
        """The input files that something in the store comes from, with what came of them."""
        results = [empty_table(TABLES["sources"].schema)]
        for source, lookup in zip(self.making.inputs, self.lookups.sources, strict=True):
            rows = shards.source_rows(source.store)
            if lookup.prefix:
                rows = with_prefix("sources", rows, lookup.prefix)
            wanted = pc.is_in(rows["source_file"], value_set=pa.array([*files], pa.string()))
            rows = rows.filter(wanted)
            counts = [files[name] for name in rows["source_file"].to_pylist()]
            results.append(shards.put(rows, "trajectories", pa.array(counts, pa.int64())))
        return pa.concat_tables(results).combine_chunks()

    def _jobs(self, chosen: OutputSelection, run: StagedRun) -> list[ShardJob]:
        """Cut an output into shards, by what its trajectories hold."""
        entries = _lookup(run, "entries", chosen.entries)
        pairs = _lookup(run, "pairs", chosen.pairs)
        return [
            ShardJob(
                index=index,
                size=size,
                out=str(run.folder),
                entries=entries,
                first=first,
                last=last,
                lookups=self.lookups,
                pairs=pairs if index == 0 else "",
                buffer=chosen.name == BUFFER,
            )
            for index, (first, last, size) in enumerate(cut_shards(chosen.entries))
        ]


def cut_shards(entries: pl.DataFrame) -> list[tuple[int, int, int]]:
    """First and last position, and bytes of text, of each shard.

    A shard holds entries of one stage and one copy, so their ``seq`` go upwards.
    """
    sizes = entries["size"].to_numpy()
    limits = [(sizes, SHARD_BYTES), (np.ones(len(sizes), np.int64), SHARD_ROWS)]
    kinds = [entries["stage"].to_numpy(), entries["copy"].to_numpy()]
    positions = entries["position"].to_numpy()
    return [
        (int(positions[start]), int(positions[end - 1]), int(sizes[start:end].sum()))
        for start, end in cut_places(limits, kinds)
    ]
