"""Parsing the texts of a store that exists: what ``adp parse`` does.

It is what a conversion does with a dialect, so nobody needs to convert again.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl

from adp.converters.registry import formats
from adp.converters.text_calls.choose import RECORDS, dialect_of
from adp.converters.text_calls.numbering import StepNumbers
from adp.converters.text_calls.of_file import NONE
from adp.converters.text_calls.registry import dialect
from adp.converters.text_calls.store_rows import (
    ParsedShard,
    ParseJob,
    parse_shard,
    run_groups,
    some_runs,
)
from adp.core.progress import Progress, Silent
from adp.stores import shards
from adp.stores.locks import alone
from adp.stores.remote_output import writes_to_urls
from adp.stores.staged import StagedRun, WrittenShard, counted, tables_of, versions
from adp_schema.errors import UsageError
from adp_schema.manifest import Lineage, Manifest
from adp_schema.row_changes import TrajectoryRows
from adp_schema.store import Store

_REFERENCES = ("context_id", "chosen_id", "rejected_id")


@dataclass(frozen=True)
class ParseOptions:
    """How to parse.

    Attributes:
        dialect: name of the dialect of all files; None finds that of each.
        workers: number of processes; None takes one a core. The store does not depend on it.
    """

    dialect: str | None = None
    workers: int | None = None


@writes_to_urls
@alone
def parse(
    store: Store,
    out: str,
    *,
    options: ParseOptions | None = None,
    progress: Progress | None = None,
) -> Manifest:
    """Write a new store with calls, reasoning and observations made of the texts.

    Args:
        store: a finished store.
        out: folder of the new store; it must not hold anything else.
        options: how to parse.
        progress: told how far it is, in bytes.

    Returns:
        The manifest of the new store; ``parsed`` says what was read.

    Raises:
        UsageError: there is no such dialect, or no file of the store has one.
        OutputExistsError: the output holds a store, or something that is none.
    """
    options, report = options or ParseOptions(), progress or Silent()
    dialects = find_dialects(store, options.dialect)
    if not dialects:
        raise UsageError(
            "no file of the store has actions in texts that are surely of one dialect; "
            "name one: --dialect NAME (see: adp formats --dialects)"
        )
    for name, count in sorted(Counter(dialects.values()).items()):
        report.note(f"{count} file{'s' if count > 1 else ''}: {name}")
    act = Lineage(
        act="parse",
        options={"dialects": dict(sorted(Counter(dialects.values()).items()))},
        versions=versions(),
        parents=[shards.manifest_hash(store)],
    )
    run = StagedRun(out, {**act.model_dump(), "files": dialects}, options.workers)
    if run.finished is not None:
        return run.finished
    is_found = options.dialect is None
    numbers = _numbers_of_references(store, dialects, is_found=is_found)
    jobs = [
        ParseJob(index, size, files, store.renamed, str(Path(out)), dialects, numbers, is_found)
        for index, (files, size) in enumerate(shards.shard_files(store))
    ]
    written = run.shards(jobs, parse_shard, WrittenShard.parse, report)
    manifest = store.manifest.model_copy(deep=True)
    manifest.tables = tables_of(written)
    manifest.tables["sources"] = run.sources(shards.source_rows(store))
    parsed = Counter(store.manifest.parsed) + counted(written, "parsed")
    manifest.parsed = dict(sorted(parsed.items()))
    manifest.lineage = [*store.manifest.lineage, act]
    run.finish(manifest)
    return manifest


def find_dialects(store: Store, named: str | None = None) -> dict[str, str]:
    """Input file -> dialect of its texts; files without one are left out.

    Args:
        store: the store.
        named: dialect of all files; None finds that of each from its first trajectories.

    Raises:
        UsageError: there is no such dialect, or ``none`` is named.
    """
    if named == NONE:
        raise UsageError(f"--dialect {NONE} would leave every text as it is; name a dialect")
    frame = store.scan("trajectories").select("seq", "source_file", "source_format").collect()
    if named is not None:
        dialect(named)
        return dict.fromkeys(sorted({it or "" for it in frame["source_file"].to_list()}), named)
    holding = [name for name in formats if getattr(formats.get(name), "holds_text_actions", False)]
    likely = frame.filter(pl.col("source_format").is_in(holding)).sort("seq")
    first = likely.group_by("source_file", maintain_order=True).head(RECORDS)
    wanted = np.sort(first["seq"].to_numpy())
    runs: dict[str, list[TrajectoryRows]] = defaultdict(list)
    for reader in shards.readers(store):
        bounds = reader.ranges("trajectories")
        if bounds:
            start, end = np.searchsorted(wanted, [bounds[0][0], bounds[-1][1] + 1])
            for run in some_runs(reader, wanted[start:end]):
                runs[run.columns.get("source_file") or ""].append(run)
    chosen = {name: dialect_of(items) for name, items in sorted(runs.items())}
    return {name: value for name, value in chosen.items() if value}


def _numbers_of_references(
    store: Store, dialects: Mapping[str, str], *, is_found: bool
) -> dict[str, StepNumbers]:
    """The new numbers of trajectories that branches or pairs of another shard refer to."""
    wanted, here = set[str](), set[str]()
    for reader in shards.readers(store):
        for rows in shards.narrow(reader, "trajectories", ["trajectory_id", "parent_id"]):
            here = set(rows["trajectory_id"].to_pylist())
            wanted |= {it for it in rows["parent_id"].to_pylist() if it and it not in here}
        for rows in shards.narrow(reader, "pairs", _REFERENCES):
            wanted |= {it for name in _REFERENCES for it in rows[name].to_pylist() if it}
    if not wanted:
        return {}
    numbers: dict[str, StepNumbers] = {}
    for index, (files, size) in enumerate(shards.shard_files(store)):
        job = ParseJob(index, size, files, store.renamed, "", dialects, numbers, is_found)
        shard = ParsedShard(job, job.reader())
        for runs in run_groups(shard.reader):
            for run in runs:
                shard.parse(run)
        shard.reader.close()
        numbers |= {name: value for name, value in shard.numbers.items() if name in wanted}
    return numbers
