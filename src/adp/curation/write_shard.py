"""Writing one shard of an output: what a worker of `adp.curation.write` does.

Rows are read row group by row group from the shards of the inputs and cut into new row groups by
what they hold, so that the bytes do not depend on how the inputs were cut.
"""

from __future__ import annotations

import itertools
import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from operator import itemgetter
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from adp.curation.inputs import cached_by_file
from adp.curation.store_rows import store_rows
from adp.stores import shards
from adp.stores.cutting import cut_runs
from adp.stores.drop_shard import hung, note_mentions
from adp.stores.merge import REFERENCES, with_prefix
from adp.stores.staged import WrittenShard, write_rows
from adp.stores.tasks.rows import Needed, places_of
from adp_schema.builder import ROW_GROUP_BYTES, ROW_GROUP_ROWS
from adp_schema.losses import general_path
from adp_schema.plain_arrays import empty_table
from adp_schema.tables import TABLES
from adp_schema.views import SEQ_SHIFT

_KEYED = ("trajectories", "steps", "tool_calls", "observations", "links", "raw")


@dataclass(frozen=True)
class InputStore:
    """An input.

    Attributes:
        root: path or URL of the store.
        shift: what is added to ``seq`` in the pool.
        renamed: file of ids that change (old, new); empty for none.
        prefix: folder that is put before file names; empty for none.
        tasks: file of the rows of the table of tasks that its trajectories have.
    """

    root: str
    shift: int
    renamed: str
    prefix: str
    tasks: str


@dataclass(frozen=True)
class Lookups:
    """Files that the workers look things up in; empty names for those that are not needed.

    Attributes:
        weights: file of loss weights.
        edits: file of repaired texts.
        sources: the inputs.
    """

    weights: str
    edits: str
    sources: tuple[InputStore, ...]


@dataclass(frozen=True)
class ShardJob:
    """One shard to write.

    Attributes:
        index: its number.
        size: bytes of text.
        out: folder of the new store.
        entries: file of the output's entries.
        first: first position of the shard.
        last: last position.
        lookups: what all shards need.
        pairs: file of the output's pairs, for its first shard; else empty.
        buffer: whether the output is a replay buffer, which keeps neither weights nor splits.
    """

    index: int
    size: int
    out: str
    entries: str
    first: int
    last: int
    lookups: Lookups
    pairs: str
    buffer: bool


def write_shard(job: ShardJob) -> WrittenShard:
    """Write one shard."""
    shard = _Shard(job)
    tables = write_rows(job.out, job.index, shard.rows())
    return WrittenShard(job.index, tables, dict(shard.counts))


class _Shard:
    """The rows of a shard, chunk by chunk.

    Attributes:
        counts: what the manifest counts.
    """

    def __init__(self, job: ShardJob) -> None:
        self._job = job
        self._entries = _entries_of(job.entries, job.first, job.last)
        self.counts: dict[str, Counter[str]] = {
            name: Counter() for name in ("datasets", "losses", "files")
        }
        self._media: dict[int, dict[str, int]] = {}

    def rows(self) -> Iterator[tuple[str, pa.Table]]:
        """Table and row group, row group after row group."""
        sizes, counts = (self._entries[name].to_pylist() for name in ("size", "rows"))
        limits = [(itemgetter(0), ROW_GROUP_BYTES), (itemgetter(1), ROW_GROUP_ROWS)]
        start = 0
        for group in cut_runs(zip(sizes, counts, strict=True), limits):
            chunk = self._entries.slice(start, len(group))
            start += len(group)
            for table in _KEYED:
                rows = self._chunk(table, chunk)
                if table == "trajectories":
                    self._tally(rows)
                self._look_for_media(rows, chunk)
                yield table, rows
        yield "tasks", self._tasks()
        yield "media", self._shared_media()
        if self._job.pairs:
            yield "pairs", _as_table(pq.read_table(self._job.pairs), "pairs")

    def _chunk(self, table: str, chunk: pa.Table) -> pa.Table:
        """Rows of a table of some entries, as the new store holds them."""
        results = [empty_table(TABLES[table].schema)]
        inputs = chunk["seq"].to_numpy() >> SEQ_SHIFT
        for number in np.unique(inputs):
            source = self._job.lookups.sources[int(number)]
            frame = chunk.filter(pa.array(inputs == number))
            seqs = pc.subtract(frame["seq"], source.shift).combine_chunks()
            for rows in store_rows(source.root).rows(table, seqs):
                results.append(self._changed(table, rows, source, frame, seqs))
        return pa.concat_tables(results)

    def _changed(
        self, table: str, rows: pa.Table, source: InputStore, sources: pa.Table, seqs: pa.Array
    ) -> pa.Table:
        """What changes in the rows of one input."""
        places = pc.index_in(rows["seq"], value_set=seqs)

        def of(name: str) -> pa.ChunkedArray:
            return pc.take(sources[name], places)

        old = pc.add(rows["seq"], source.shift)
        if table == "steps" and not self._job.buffer:
            rows = self._steps(rows, old)
        rows = shards.put(rows, "seq", of("position"))
        rows = shards.put(rows, "trajectory_id", of("trajectory_id"))
        if source.renamed:
            names = _renamed(source.renamed)
            for name in REFERENCES.get(table, ()):
                changed = shards.exchange(rows[name], names["old"], names["new"])
                rows = shards.put(rows, name, changed)
        if table == "trajectories" and not self._job.buffer:
            rows = shards.put(rows, "split", pc.coalesce(of("split"), rows["split"]))
        if "source_file" in rows.schema.names and source.prefix:
            rows = with_prefix(table, rows, source.prefix)
        return rows

    def _steps(self, rows: pa.Table, seqs: pa.ChunkedArray) -> pa.Table:
        """Put in the loss weights and the repaired texts."""
        if self._job.lookups.weights:
            weights = _by_step(self._job.lookups.weights, "loss_weight", seqs, rows["step"])
            rows = shards.put(rows, "loss_weight", pc.coalesce(weights, rows["loss_weight"]))
        if self._job.lookups.edits:
            texts = _by_step(self._job.lookups.edits, "text", seqs, rows["step"])
            changed = pc.is_valid(texts)
            ops = _by_step(self._job.lookups.edits, "made_by", seqs, rows["step"])
            puts = {
                "text": texts,
                "made_by": ops,
                "made_from_trajectory": rows["trajectory_id"],
                "made_from_step": rows["step"],
            }
            for name, values in puts.items():
                rows = shards.put(rows, name, pc.if_else(changed, values, rows[name]))
            # They described the text that was replaced.
            for name in ("prose", "content"):
                empty = pa.scalar(None, pa.string())
                rows = shards.put(rows, name, pc.if_else(changed, empty, rows[name]))
        return rows

    # ---- counting, and what trajectories share ---------------------------------------------

    def _tally(self, rows: pa.Table) -> None:
        """Count trajectories."""
        for row in rows.select(["dataset", "losses", "source_file"]).to_pylist():
            self.counts["datasets"][row["dataset"] or ""] += 1
            self.counts["files"][row["source_file"] or ""] += 1
            for loss in json.loads(row["losses"] or "[]"):
                self.counts["losses"][f"{general_path(loss['path'])}: {loss['reason']}"] += 1

    def _look_for_media(self, rows: pa.Table, chunk: pa.Table) -> None:
        """Note the first trajectory that mentions each blob of its input."""
        inputs = np.unique(chunk["seq"].to_numpy() >> SEQ_SHIFT)
        for number in inputs:
            wanted = store_rows(self._job.lookups.sources[int(number)].root).media_ids
            if not wanted:
                continue
            note_mentions(rows, wanted, self._media.setdefault(int(number), {}))

    def _tasks(self) -> pa.Table:
        """The rows of tasks that the trajectories of the shard need, each beside one of them."""
        seqs = self._entries["seq"].to_numpy()
        inputs = seqs >> SEQ_SHIFT
        needed: list[Needed] = []
        for number in np.unique(inputs):
            source = self._job.lookups.sources[int(number)]
            here = np.flatnonzero(inputs == number)
            input_seqs = seqs[here] - source.shift
            known = _tasks_of(source.tasks, input_seqs)
            needed += [
                Needed(place, *known[seq])
                for place, seq in zip(here.tolist(), input_seqs.tolist(), strict=True)
                if seq in known
            ]
        hung = list(places_of(sorted(needed)))
        results = [empty_table(TABLES["tasks"].schema)]
        for number, members in itertools.groupby(hung, lambda item: int(inputs[item.seq])):
            rows, places = zip(*((member.row, member.seq) for member in members), strict=True)
            table = store_rows(self._job.lookups.sources[number].root).numbered("tasks", rows)
            for name, column in (("seq", "position"), ("trajectory_id", "trajectory_id")):
                table = shards.put(table, name, pc.take(self._entries[column], pa.array(places)))
            results.append(table)
        full = pa.concat_tables(results).combine_chunks()
        return full.take(pc.sort_indices(full, [("seq", "ascending"), ("task_id", "ascending")]))

    def _shared_media(self) -> pa.Table:
        """Blobs, once a shard, hung from the first trajectory that needs them."""
        columns = (self._entries[name].to_pylist() for name in ("position", "trajectory_id"))
        names = dict(zip(*columns, strict=True))
        results = [empty_table(TABLES["media"].schema)]
        for number, wanted in sorted(self._media.items()):
            reader = store_rows(self._job.lookups.sources[number].root)
            rows = reader.media(pa.array([*wanted], pa.string()))
            seqs = [wanted[value] for value in rows["media_id"].to_pylist()]
            results.append(hung(rows, seqs, names))
        full = pa.concat_tables(results).combine_chunks()
        return full.take(pc.sort_indices(full, [("seq", "ascending"), ("media_id", "ascending")]))


def _entries_of(path: str, first: int, last: int) -> pa.Table:
    """The entries at some positions; an entry stands in the row of its position."""
    with pq.ParquetFile(path) as file:
        sizes = [file.metadata.row_group(group).num_rows for group in range(file.num_row_groups)]
        starts = np.cumsum([0, *sizes])
        begin, end = np.searchsorted(starts, [first, last], "right") - 1
        rows = file.read_row_groups(range(begin, end + 1), use_threads=False)
    return rows.slice(first - int(starts[begin]), last - first + 1).combine_chunks()


@cached_by_file
def _renamed(path: str) -> dict[str, pa.Array]:
    rows = pq.read_table(path).combine_chunks()
    return {name: rows[name].chunk(0) for name in ("old", "new")}


def _tasks_of(path: str, seqs: np.ndarray[Any, Any]) -> dict[int, tuple[Any, ...]]:
    """``seq`` -> the rest of `Needed`, of the trajectories in a range."""
    within = (pc.field("seq") >= int(seqs.min())) & (pc.field("seq") <= int(seqs.max()))
    rows = pq.read_table(path, filters=within)
    columns = (rows[name].to_pylist() for name in Needed._fields[1:])
    return dict(zip(rows["seq"].to_pylist(), zip(*columns, strict=True), strict=True))


@cached_by_file
def _steps_of(path: str) -> tuple[np.ndarray[Any, Any], pa.Table]:
    rows = pq.read_table(path).combine_chunks()
    return rows["seq"].to_numpy(), rows


def _by_step(
    path: str, column: str, seqs: pa.ChunkedArray, steps: pa.ChunkedArray
) -> pa.ChunkedArray:
    """The values of a column of a file for some steps; null where it has none."""
    known, rows = _steps_of(path)
    wanted = seqs.to_numpy()
    if not len(wanted):
        return pa.chunked_array([], rows.schema.field(column).type)
    start, end = np.searchsorted(known, [wanted.min(), wanted.max() + 1])
    part = rows.slice(int(start), int(end - start))
    numbers = part["step"].to_numpy()
    places = {
        key: place
        for place, key in enumerate(zip(known[start:end].tolist(), numbers.tolist(), strict=True))
    }
    keys = zip(wanted.tolist(), steps.to_pylist(), strict=True)
    indices = pa.array([places.get(key) for key in keys], pa.int64())
    return pc.take(part[column], indices)


def _as_table(rows: pa.Table, table: str) -> pa.Table:
    return rows.select(TABLES[table].schema.names).cast(TABLES[table].schema)
