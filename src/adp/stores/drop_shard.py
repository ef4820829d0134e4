"""Leaving trajectories out of one shard: what a worker of `adp.stores.drop` does."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from adp.stores import shards
from adp.stores.merge import REFERENCES
from adp.stores.shards import ShardWork
from adp.stores.staged import WrittenShard, write_rows
from adp.stores.tasks.rows import HOME_COLUMNS, ROW_COLUMNS, Needed, assign, homes, places_of
from adp_schema.losses import general_path
from adp_schema.plain_arrays import empty_table
from adp_schema.tables import CHILD_TABLES, TABLES

_WORDS = ("trajectories", "steps", "tool_calls", "observations", "links")
"""Tables whose texts may refer to blobs, besides tasks."""

_MEDIA_ID = re.compile(rb"(?=([0-9a-f]{32}))")
"""Every place where the id of a blob may stand, also in the midst of other such characters."""

Record = tuple[str, int]
"""A raw record: its file and its number."""


@dataclass(frozen=True)
class DropJob(ShardWork):
    """One shard to leave trajectories out of.

    Attributes:
        target: number of the new shard; None when nothing of it is left.
        out: folder of the new store.
        dropped: file of ``seq`` and ids of all trajectories that are left out.
        drop_rejects: leave out the rejects too.
    """

    target: int | None
    out: str
    dropped: str
    drop_rejects: bool


def drop_shard(job: DropJob) -> WrittenShard:
    """Write one shard without the trajectories that are left out."""
    shard = _Shard(job)
    shard.tally()
    tables = {}
    if job.target is not None:
        tables = write_rows(job.out, job.index, shard.rows(), target=job.target)
    shard.reader.close()
    return WrittenShard(job.index, tables, shard.facts())


class _Shard:
    """The rows of a shard that stay, and the counts of those that go."""

    def __init__(self, job: DropJob) -> None:
        self.job = job
        self.reader = job.reader()
        self._seqs = pq.read_table(job.dropped, columns=["seq"]).combine_chunks()["seq"].chunk(0)
        self._records: set[Record] = set()
        self._counts: dict[str, Counter[str]] = {
            name: Counter() for name in ("datasets", "losses", "records", "trajectories")
        }
        self._made_from = 0

    def facts(self) -> dict[str, Any]:
        """What is counted: of what is left, trajectories by data set; of what goes, the rest."""
        return {**self._counts, "made_from": self._made_from}

    @cached_property
    def _ids(self) -> pa.Array:
        """Ids of all that goes; few shards have a column that names other trajectories."""
        column = pq.read_table(self.job.dropped, columns=["trajectory_id"])["trajectory_id"]
        return pa.concat_arrays([pa.array([], pa.string()), *column.chunks])

    def _gone(self, rows: pa.Table) -> pa.ChunkedArray:
        return pc.is_in(rows["seq"], value_set=self._seqs)

    def _narrow(self, table: str, *columns: str) -> Iterator[pa.Table]:
        return shards.narrow(self.reader, table, ["seq", *columns])

    # ---- counting --------------------------------------------------------------------------

    def tally(self) -> None:
        """Count what goes, and note which raw records it came from."""
        counts = self._counts
        columns = ("dataset", "source_file", "source_records", "losses")
        for rows in self._narrow("trajectories", *columns):
            gone = self._gone(rows)
            left = rows["dataset"].filter(pc.invert(gone)).drop_null()
            counts["datasets"].update(left.to_pylist())
            for row in rows.filter(gone).to_pylist():
                file = row["source_file"] or ""
                counts["trajectories"][file] += 1
                self._records |= {(file, number) for number in row["source_records"] or ()}
                for loss in json.loads(row["losses"] or "[]"):
                    counts["losses"][f"{general_path(loss['path'])}: {loss['reason']}"] += 1
        counts["records"].update(file for file, _ in self._records - self._shared_records())

    def _shared_records(self) -> set[Record]:
        """Records that trajectories came from of which some go and some stay."""
        shared: set[Record] = set()
        if not self._records:
            return shared
        for rows in self._narrow("trajectories", "source_file", "source_records"):
            left = rows.filter(pc.invert(self._gone(rows)))
            files, numbers = left["source_file"].to_pylist(), left["source_records"].to_pylist()
            for file, file_numbers in zip(files, numbers, strict=True):
                shared.update((file or "", number) for number in file_numbers or ())
        return shared & self._records

    # ---- the rows that stay ----------------------------------------------------------------

    def rows(self) -> Iterator[tuple[str, pa.Table]]:
        """All rows of the new shard: table and row group, table by table."""
        for table in ("trajectories", *CHILD_TABLES):
            for rows in shards.groups(self.reader, table):
                left = rows.filter(pc.invert(self._gone(rows)))
                if table == "raw":
                    left = self._without_records(left)
                for column in REFERENCES.get(table, ()):
                    if column != "parent_id":
                        left = self._cleared(left, column)
                yield table, left
        for table in ("tasks", "media"):
            for rows in self._owned(table):
                yield table, rows
        for rows in shards.groups(self.reader, "pairs"):
            yield "pairs", rows.filter(pc.invert(refers(rows, REFERENCES["pairs"], self._ids)))
        if not self.job.drop_rejects:
            for rows in shards.groups(self.reader, "rejects"):
                yield "rejects", rows

    def _without_records(self, rows: pa.Table) -> pa.Table:
        """Leave out raw records that also hold a trajectory that goes."""
        places = zip(rows["source_file"].to_pylist(), rows["record"].to_pylist(), strict=True)
        keep = [(file or "", number) not in self._records for file, number in places]
        return rows.filter(pa.array(keep, pa.bool_()))

    def _cleared(self, rows: pa.Table, column: str) -> pa.Table:
        """Take out the ids of trajectories that go."""
        values = rows[column]
        if values.null_count == len(values):
            return rows
        gone = pc.is_in(values, value_set=self._ids)
        if column == "made_from_trajectory":
            self._made_from += pc.sum(gone).as_py() or 0
        return shards.put(rows, column, pc.if_else(gone, pa.scalar(None, pa.string()), values))

    # ---- blobs and tasks, which are stored once a shard --------------------------------------

    def _owned(self, table: str) -> Iterator[pa.Table]:
        """Rows that hang from the first trajectory that needs them: some get another one.

        What nothing that stays refers to goes.
        """
        moved = self._moved(table)
        for rows in shards.groups(self.reader, table):
            last = pc.max(rows["seq"])
            due = moved.filter(pc.less_equal(moved["seq"], last))
            moved = moved.filter(pc.greater(moved["seq"], last))
            left = pa.concat_tables([rows.filter(pc.invert(self._gone(rows))), due])
            yield left.take(pc.sort_indices(left, sort_keys=[("seq", "ascending")]))
        yield moved

    def _moved(self, table: str) -> pa.Table:
        """The rows whose trajectory goes while another one still needs them, hung from that."""
        places = self._task_places() if table == "tasks" else self._media_places()
        places.sort()
        numbers = [row for row, _ in places]
        results = [empty_table(TABLES[table].schema)]
        start = 0
        for rows in shards.groups(self.reader, table) if places else ():
            first, last = np.searchsorted(numbers, [start, start + len(rows)])
            offsets = np.array(numbers[first:last], np.int64) - start
            results.append(rows.take(pa.array(offsets)))
            start += len(rows)
        moved = pa.concat_tables(results)
        seqs = [seq for _, seq in places]
        names = self._names(set(seqs))
        moved = hung(moved, seqs, names)
        return moved.take(pc.sort_indices(moved, sort_keys=[("seq", "ascending")]))

    def _media_places(self) -> list[tuple[int, int]]:
        """Rows of blobs that hang from another trajectory now: number of the row, and ``seq``."""
        numbers: dict[str, int] = {}
        staying: set[str] = set()
        total = 0
        for rows in self._narrow("media", "media_id"):
            gone = self._gone(rows).to_pylist()
            for number, (name, goes) in enumerate(
                zip(rows["media_id"].to_pylist(), gone, strict=True)
            ):
                if goes:
                    numbers.setdefault(name, total + number)
                else:
                    staying.add(name)
            total += len(rows)
        orphans = numbers.keys() - staying
        owners = self._mentions(orphans) if orphans else {}
        return [(numbers[name], seq) for name, seq in owners.items()]

    def _task_places(self) -> list[tuple[int, int]]:
        """Rows of tasks that hang from another trajectory now: number of the row, and ``seq``."""

        def read(table: str, columns: Sequence[str]) -> pl.DataFrame:
            results = [empty_table(TABLES[table].schema).select(columns)]
            return pl.DataFrame(pa.concat_tables([*results, *self._narrow(table, *columns[1:])]))

        rows = read("tasks", ROW_COLUMNS).with_row_index("row")
        gone = pl.col("seq").is_in(pl.Series(self._seqs).implode())
        if not rows.select(gone.any()).item():
            return []
        places = homes(read("trajectories", HOME_COLUMNS))
        left = assign(places, rows, places).filter(~gone & ~pl.col("above"))
        # What a shard says of a task is there once, so the number of the row tells it apart.
        rows_of = left.select(
            "seq", "row", pl.col("row").alias("says"), "shared", "own"
        ).iter_rows()
        hung = places_of(Needed(*item) for item in rows_of)
        return [(item.row, item.seq) for item in hung if not item.stays]

    def _names(self, seqs: set[int]) -> Mapping[int, str]:
        """Ids of trajectories."""
        wanted = pa.array(sorted(seqs), pa.int64())
        names: dict[int, str] = {}
        for rows in self._narrow("trajectories", "trajectory_id") if seqs else ():
            frame = rows.filter(pc.is_in(rows["seq"], value_set=wanted))
            pairs = zip(frame["seq"].to_pylist(), frame["trajectory_id"].to_pylist(), strict=True)
            names.update(pairs)
        return names

    def _mentions(self, media: Set[str]) -> dict[str, int]:
        """The first trajectory that stays and mentions each of some blobs, in any text."""
        wanted = {name.encode(): name for name in media}
        mentions: dict[str, int] = {}
        for rows in self._texts():
            note_mentions(rows, wanted, mentions)
        return mentions

    def _texts(self) -> Iterator[pa.Table]:
        for table in _WORDS:
            for rows in shards.groups(self.reader, table):
                yield rows.filter(pc.invert(self._gone(rows)))
        yield from self._owned("tasks")


def note_mentions(rows: pa.Table, wanted: Mapping[bytes, str], first: dict[str, int]) -> None:
    """Note the first trajectory that mentions each of some blobs, in any text of some rows.

    Args:
        rows: rows of a table.
        wanted: ids of blobs, as bytes and as text.
        first: id of a blob -> the lowest ``seq`` so far; it is added to.
    """
    seqs = rows["seq"].to_numpy()
    for column in rows.columns:
        if pa.types.is_string(column.type):
            for place, name in _id_places(column, wanted):
                seq = int(seqs[place])
                first[name] = min(first.get(name, seq), seq)


def hung(rows: pa.Table, seqs: Sequence[int], names: Mapping[int, str]) -> pa.Table:
    """Rows that hang from other trajectories now: with their ``seq`` and ids."""
    rows = shards.put(rows, "seq", pa.array(seqs, pa.int64()))
    return shards.put(rows, "trajectory_id", pa.array([names[seq] for seq in seqs], pa.string()))


def _id_places(column: pa.ChunkedArray, wanted: Mapping[bytes, str]) -> Iterator[tuple[int, str]]:
    """Where the texts of a column hold some ids: (row, id)."""
    start = 0
    for chunk in column.chunks:
        _, offsets, data = chunk.buffers()
        if data is not None and len(chunk):
            window = np.frombuffer(offsets, np.int32)[chunk.offset : chunk.offset + len(chunk) + 1]
            text = memoryview(data)[: int(window[-1])]
            for match in _MEDIA_ID.finditer(text, int(window[0])):
                name = wanted.get(match[1])
                if name is not None:
                    row = int(np.searchsorted(window, match.start(), "right")) - 1
                    yield start + row, name
        start += len(chunk)


def refers(rows: pa.Table, columns: Sequence[str], ids: pa.Array) -> pa.ChunkedArray:
    """Which rows name one of some trajectories in one of some columns."""
    result = pc.is_in(rows[columns[0]], value_set=ids)
    for name in columns[1:]:
        result = pc.or_(result, pc.is_in(rows[name], value_set=ids))
    return result
