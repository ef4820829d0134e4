"""Writing one shard of an output: what a worker of `adp.curation.write` does.

Rows are read row group by row group from the shards of the inputs and cut into new row groups by
what they hold, so that the bytes do not depend on how the inputs were cut.
"""

from __future__ import annotations

import functools
import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from adp.core import shards
from adp.core.drop_shard import id_places
from adp.core.merge import NO_FILE, REFERENCES
from adp.core.staged import Written, place_all
from adp.curation.inputs import stamp, store_stamp
from adp_schema.builder import ROW_GROUP_BYTES, ROW_GROUP_ROWS
from adp_schema.protocols import general_path
from adp_schema.reader import ShardReader
from adp_schema.store import Store
from adp_schema.tables import TABLES
from adp_schema.views import SEQ_SHIFT
from adp_schema.writer import ShardWriter

_KEYED = ("trajectories", "steps", "tool_calls", "observations", "links", "raw")


@dataclass(frozen=True)
class Source:
    """An input.

    Attributes:
        root: path or URL of the store.
        shift: what is added to ``seq`` in the pool.
        renamed: file of ids that change (old, new); empty for none.
        prefix: folder that is put before file names; empty for none.
    """

    root: str
    shift: int
    renamed: str
    prefix: str


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
        sources: the inputs.
        weights: file of loss weights; empty for none.
        edits: file of repaired texts; empty for none.
        pairs: file of the output's pairs, for its first shard; else empty.
        buffer: whether the output is a replay buffer, which keeps neither weights nor splits.
    """

    index: int
    size: int
    out: str
    entries: str
    first: int
    last: int
    sources: tuple[Source, ...]
    weights: str
    edits: str
    pairs: str
    buffer: bool


def write_shard(job: ShardJob) -> Written:
    """Write one shard."""
    shard = _Shard(job)
    writer = ShardWriter(Path(job.out) / ".run" / f"part-{job.index:05d}")
    for table, rows in shard.rows():
        writer.write(table, rows)
    tables = place_all(writer, Path(job.out), job.index)
    return Written(job.index, tables, shard.facts())


class _Shard:
    """The rows of a shard, chunk by chunk."""

    def __init__(self, job: ShardJob) -> None:
        self._job = job
        entries = pq.read_table(job.entries).slice(job.first, job.last - job.first + 1)
        self._entries = entries.combine_chunks()
        self._counts: dict[str, Counter[str]] = {
            name: Counter() for name in ("datasets", "losses", "files")
        }
        self._tasks: dict[int, dict[str, int]] = {}
        self._media: dict[int, dict[str, int]] = {}

    def facts(self) -> dict[str, Any]:
        """What the manifest counts."""
        return dict(self._counts)

    def rows(self) -> Iterator[tuple[str, pa.Table]]:
        """Table and row group, row group after row group."""
        for start, end in self._chunks():
            chunk = self._entries.slice(start, end - start)
            for table in _KEYED:
                rows = self._chunk(table, chunk)
                if table == "trajectories":
                    self._tally(rows, chunk)
                self._look_for_media(rows, chunk)
                yield table, rows
        yield "tasks", self._owned("tasks", "task_id", self._tasks)
        yield "media", self._owned("media", "media_id", self._media)
        if self._job.pairs:
            yield "pairs", _as_table(pq.read_table(self._job.pairs), "pairs")

    def _chunks(self) -> Iterator[tuple[int, int]]:
        """Cut the entries into row groups."""
        start = size = rows = 0
        sizes = self._entries["size"].to_pylist()
        counts = self._entries["rows"].to_pylist()
        for index, (own, count) in enumerate(zip(sizes, counts, strict=True)):
            full = size + own > ROW_GROUP_BYTES or rows + count > ROW_GROUP_ROWS
            if index > start and full:
                yield start, index
                start, size, rows = index, 0, 0
            size, rows = size + own, rows + count
        if start < len(sizes):
            yield start, len(sizes)

    def _chunk(self, table: str, chunk: pa.Table) -> pa.Table:
        """Rows of a table of some entries, as the new store holds them."""
        found = [TABLES[table].schema.empty_table()]
        inputs = chunk["seq"].to_numpy() >> SEQ_SHIFT
        for number in np.unique(inputs):
            source = self._job.sources[int(number)]
            own = chunk.filter(pa.array(inputs == number))
            seqs = pc.subtract(own["seq"], source.shift).combine_chunks()
            for rows in _reader(source.root).rows(table, seqs):
                found.append(self._changed(table, rows, source, own, seqs))
        return pa.concat_tables(found)

    def _changed(
        self, table: str, rows: pa.Table, source: Source, own: pa.Table, seqs: pa.Array
    ) -> pa.Table:
        """What changes in the rows of one input."""
        places = pc.index_in(rows["seq"], value_set=seqs)

        def of(name: str) -> pa.ChunkedArray:
            return pc.take(own[name], places)

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
            empty = NO_FILE if table == "trajectories" else None
            files = pc.coalesce(rows["source_file"], pa.scalar(empty, pa.string()))
            joined = pc.binary_join_element_wise(pa.scalar(source.prefix), files, "/")
            rows = shards.put(rows, "source_file", joined)
        return rows

    def _steps(self, rows: pa.Table, seqs: pa.ChunkedArray) -> pa.Table:
        """Put in the loss weights and the repaired texts."""
        if self._job.weights:
            weights = _by_step(self._job.weights, "loss_weight", seqs, rows["step"])
            rows = shards.put(rows, "loss_weight", pc.coalesce(weights, rows["loss_weight"]))
        if self._job.edits:
            texts = _by_step(self._job.edits, "text", seqs, rows["step"])
            changed = pc.is_valid(texts)
            ops = _by_step(self._job.edits, "made_by", seqs, rows["step"])
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

    def _tally(self, rows: pa.Table, chunk: pa.Table) -> None:
        """Count trajectories, and note which tasks are needed."""
        inputs = (chunk["seq"].to_numpy() >> SEQ_SHIFT).tolist()
        for number, row in zip(
            inputs,
            rows.select(["seq", "dataset", "task_id", "losses", "source_file"]).to_pylist(),
            strict=True,
        ):
            self._counts["datasets"][row["dataset"] or ""] += 1
            self._counts["files"][row["source_file"] or ""] += 1
            for loss in json.loads(row["losses"] or "[]"):
                self._counts["losses"][f"{general_path(loss['path'])}: {loss['reason']}"] += 1
            if row["task_id"] is not None:
                self._tasks.setdefault(number, {}).setdefault(row["task_id"], row["seq"])

    def _look_for_media(self, rows: pa.Table, chunk: pa.Table) -> None:
        """Note the first trajectory that mentions each blob of its input."""
        inputs = np.unique(chunk["seq"].to_numpy() >> SEQ_SHIFT)
        for number in inputs:
            wanted = _reader(self._job.sources[int(number)].root).media_ids
            if not wanted:
                continue
            found = self._media.setdefault(int(number), {})
            seqs = rows["seq"].to_numpy()
            for column in rows.columns:
                if pa.types.is_string(column.type):
                    for place, name in id_places(column, wanted):
                        seq = int(seqs[place])
                        found[name] = min(found.get(name, seq), seq)

    def _owned(self, table: str, key: str, owners: dict[int, dict[str, int]]) -> pa.Table:
        """Rows that are stored once a shard, hung from the first trajectory that needs them."""
        names = dict(
            zip(
                self._entries["position"].to_pylist(),
                self._entries["trajectory_id"].to_pylist(),
                strict=True,
            )
        )
        found = [TABLES[table].schema.empty_table()]
        for number, wanted in sorted(owners.items()):
            reader = _reader(self._job.sources[number].root)
            rows = reader.matching(table, key, pa.array([*wanted], pa.string()))
            seqs = [wanted[value] for value in rows[key].to_pylist()]
            rows = shards.put(rows, "seq", pa.array(seqs, pa.int64()))
            ids = pa.array([names[seq] for seq in seqs], pa.string())
            found.append(shards.put(rows, "trajectory_id", ids))
        whole = pa.concat_tables(found).combine_chunks()
        return whole.take(pc.sort_indices(whole, [("seq", "ascending"), (key, "ascending")]))


class _StoreRows:
    """The rows of a store, read row group by row group; the last groups are kept."""

    def __init__(self, root: str) -> None:
        store = Store.open(root)
        self._readers = [
            ShardReader(files, store.renamed) for files, _ in shards.shard_files(store)
        ]
        self._last: dict[str, tuple[int, int, pa.Table]] = {}
        self.media_ids = self._media_ids()

    def _media_ids(self) -> dict[bytes, str]:
        found: dict[bytes, str] = {}
        for reader in self._readers:
            file = reader.file("media")
            if file is None:
                continue
            for index in range(file.num_row_groups):
                rows = file.read_row_group(index, columns=["media_id"])
                found.update((name.encode(), name) for name in rows["media_id"].to_pylist())
        return found

    def rows(self, table: str, seqs: pa.Array) -> Iterator[pa.Table]:
        """Rows of a table with some ``seq``, which go upwards."""
        first, last = seqs[0].as_py(), seqs[-1].as_py()
        values = seqs.to_numpy()
        for number, reader in enumerate(self._readers):
            for index, (low, high) in enumerate(reader.ranges(table)):
                if low > last or high < first:
                    continue
                start, end = np.searchsorted(values, [low, high + 1])
                if start < end:
                    rows = self._group(table, number, index)
                    yield rows.filter(pc.is_in(rows["seq"], value_set=seqs))

    def matching(self, table: str, key: str, wanted: pa.Array) -> pa.Table:
        """The first row for each of some values of a key, in the order of the store."""
        found = [TABLES[table].schema.empty_table()]
        seen: set[tuple[Any, ...]] = set()
        for reader in self._readers:
            for rows in shards.groups(reader, table):
                rows = rows.filter(pc.is_in(rows[key], value_set=wanted))
                keep = []
                same = ("media_id", "mime", "uri") if table == "media" else (key,)
                for values in zip(*(rows[name].to_pylist() for name in same), strict=True):
                    keep.append(values not in seen)
                    seen.add(values)
                found.append(rows.filter(pa.array(keep, pa.bool_())))
        return pa.concat_tables(found)

    def _group(self, table: str, number: int, index: int) -> pa.Table:
        known = self._last.get(table)
        if known is None or known[:2] != (number, index):
            known = (number, index, self._readers[number].group(table, index))
            self._last[table] = known
        return known[2]


def _reader(root: str) -> _StoreRows:
    return _reader_of(root, store_stamp(root))


@functools.lru_cache(maxsize=8)
def _reader_of(root: str, _: tuple[int, ...]) -> _StoreRows:
    return _StoreRows(root)


def _renamed(path: str) -> dict[str, pa.Array]:
    return _renamed_of(path, stamp(path))


@functools.lru_cache(maxsize=8)
def _renamed_of(path: str, _: tuple[int, ...]) -> dict[str, pa.Array]:
    rows = pq.read_table(path).combine_chunks()
    return {name: rows[name].chunk(0) for name in ("old", "new")}


def _steps_of(path: str) -> tuple[np.ndarray[Any, Any], pa.Table]:
    return _steps_read(path, stamp(path))


@functools.lru_cache(maxsize=4)
def _steps_read(path: str, _: tuple[int, ...]) -> tuple[np.ndarray[Any, Any], pa.Table]:
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
    own = rows.slice(int(start), int(end - start))
    numbers = own["step"].to_numpy()
    places = {
        key: place
        for place, key in enumerate(zip(known[start:end].tolist(), numbers.tolist(), strict=True))
    }
    keys = zip(wanted.tolist(), steps.to_pylist(), strict=True)
    indices = pa.array([places.get(key) for key in keys], pa.int64())
    return pc.take(own[column], indices)


def _as_table(rows: pa.Table, table: str) -> pa.Table:
    return rows.select(TABLES[table].schema.names).cast(TABLES[table].schema)
