"""The rows of a shard, trajectory by trajectory, and back into its tables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from adp.converters.text_calls.apply import TextParser
from adp.converters.text_calls.numbering import StepNumbers, pair_changes
from adp.converters.text_calls.registry import dialect
from adp.stores import shards
from adp.stores.shards import ShardWork
from adp.stores.staged import WrittenShard, write_rows
from adp_schema.builder import RowBuilder
from adp_schema.model import Columns
from adp_schema.reader import ShardReader
from adp_schema.row_changes import TrajectoryRows
from adp_schema.tables import CHILD_TABLES, TABLES

_AS_THEY_ARE = ("tasks", "media", "rejects")
_KEYS = ("seq", "trajectory_id")


@dataclass(frozen=True)
class ParseJob(ShardWork):
    """One shard whose texts are parsed.

    Attributes:
        out: folder of the new store.
        dialects: input file -> dialect.
        numbers: trajectory id -> new numbers of the steps, of those that other shards refer to.
        is_found: whether the dialects were found in the texts, and not named.
    """

    out: str
    dialects: Mapping[str, str]
    numbers: Mapping[str, StepNumbers]
    is_found: bool


def parse_shard(job: ParseJob) -> WrittenShard:
    """Parse the texts of one shard, and write it."""
    shard = ParsedShard(job, job.reader())
    tables = write_rows(job.out, job.index, shard.rows())
    shard.reader.close()
    return WrittenShard(job.index, tables, {"parsed": shard.counts()})


class ParsedShard:
    """The rows of a shard with its texts parsed.

    Args:
        job: the shard.
        reader: its files.
    """

    def __init__(self, job: ParseJob, reader: ShardReader) -> None:
        self.reader = reader
        self._dialects = job.dialects
        self._is_found = job.is_found
        self._parsers: dict[str, TextParser] = {}
        self.numbers: dict[str, StepNumbers] = dict(job.numbers)

    def counts(self) -> dict[str, int]:
        """What was read from texts, by dialect."""
        return {
            f"{name}: {what}": count
            for name, parser in self._parsers.items()
            for what, count in parser.counts.items()
        }

    def rows(self) -> Iterator[tuple[str, pa.Table]]:
        """All rows of the new shard: table and row group."""
        for runs in run_groups(self.reader):
            builder = RowBuilder()
            for run in runs:
                self.parse(run)
                seq = run.columns["seq"]
                builder.add_rows(seq, run.columns, run.tables())
            for table, rows in builder.tables().items():
                yield table, rows
        for table in _AS_THEY_ARE:
            for rows in shards.groups(self.reader, table):
                yield table, rows
        for rows in shards.groups(self.reader, "pairs"):
            pairs = [{**row, **pair_changes(row, self.numbers)} for row in rows.to_pylist()]
            yield "pairs", pa.Table.from_pylist(pairs, schema=TABLES["pairs"].schema)

    def parse(self, run: TrajectoryRows) -> None:
        """Parse one trajectory; those of files without a dialect follow their parents."""
        name = self._dialects.get(run.columns.get("source_file") or "", "")
        if not name:
            return
        if name not in self._parsers:
            parser = self._parsers[name] = TextParser(dialect(name), is_found=self._is_found)
            parser.numbers = self.numbers
        self._parsers[name].change(run)


def run_groups(reader: ShardReader) -> Iterator[list[TrajectoryRows]]:
    """The trajectories of a shard, a row group at a time."""
    for index, (first, last) in enumerate(reader.ranges("trajectories")):
        children = {name: reader.between(name, first, last) for name in CHILD_TABLES}
        yield runs_of(reader.group("trajectories", index), children)


def some_runs(reader: ShardReader, seqs: np.ndarray[Any, Any]) -> Iterator[TrajectoryRows]:
    """Trajectories of a shard by their ``seq``."""
    for seq in seqs.tolist():
        children = {name: reader.between(name, seq, seq) for name in CHILD_TABLES if name != "raw"}
        yield from runs_of(reader.between("trajectories", seq, seq), children)


def runs_of(rows: pa.Table, children: Mapping[str, pa.Table]) -> list[TrajectoryRows]:
    """The rows of trajectories as columns without nulls.

    Args:
        rows: rows of the table of trajectories.
        children: rows of the tables that hang from them.
    """
    runs = {row["seq"]: TrajectoryRows(row) for row in _plain(rows)}
    for table, values in children.items():
        for row in _plain(values):
            lists = runs[row["seq"]].tables()[table]
            lists.append({name: value for name, value in row.items() if name not in _KEYS})
    return list(runs.values())


def _plain(rows: pa.Table) -> list[Columns]:
    return [
        {name: value for name, value in row.items() if value is not None}
        for row in rows.to_pylist()
    ]
