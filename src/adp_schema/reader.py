"""From tables back to trajectories, streamed with constant memory.

The files of a shard are read side by side: for each row group of trajectories, the row groups
of the other tables that hold the same ``seq`` (known from their statistics).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from adp_schema import location
from adp_schema.migrate import upgrade
from adp_schema.model import Link, Media, Observation, RawRow, Row, Step, Task, ToolCall, Trajectory
from adp_schema.plain_arrays import plain_values
from adp_schema.tables import TABLES

RowType = TypeVar("RowType", bound=Row)

_CHILDREN = ("steps", "tool_calls", "observations", "links", "raw", "tasks")
_FIELDS_SET: dict[type[Row], set[str]] = {}
_DEFAULTS: dict[type[Row], dict[str, Any]] = {}


class ShardReader:
    """The files of one shard.

    Args:
        files: table -> address of its file; tables without rows may be missing.
        renamed: table -> {column in the file: column now}, from `migrate.column_names`.
        keep: hold the row group of each table that was read last, for one who asks for single
            trajectories that lie near each other.

    Attributes:
        media: the blobs of the shard.
        renamed: what was given.
        held: what must live as long as the files are read, such as the owner of scratch files.
    """

    def __init__(
        self,
        files: Mapping[str, str],
        renamed: Mapping[str, Mapping[str, str]],
        *,
        keep: bool = False,
    ) -> None:
        self._keep = keep
        self._last: dict[str, tuple[int, pa.Table]] = {}
        self._files = files
        self.renamed = renamed
        self._open: dict[str, pq.ParquetFile] = {}
        self._ranges: dict[str, list[tuple[int, int]]] = {}
        self.media = ShardMedia(self)
        self.held: object = None

    def file(self, table: str) -> pq.ParquetFile | None:
        """The open file of a table, or None when the shard has none."""
        if table not in self._files:
            return None
        if table not in self._open:
            self._open[table] = location.open_parquet(self._files[table])
        return self._open[table]

    def ranges(self, table: str) -> list[tuple[int, int]]:
        """First and last seq of each row group of a table."""
        if table not in self._ranges:
            file = self.file(table)
            self._ranges[table] = [] if file is None else _seq_ranges(file)
        return self._ranges[table]

    def group(self, table: str, index: int) -> pa.Table:
        """One row group of a table, in the present schema."""
        known = self._last.get(table)
        if known is not None and known[0] == index:
            return known[1]
        file = self.file(table)
        assert file is not None
        rows = file.read_row_group(index, use_threads=False)
        rows = upgrade(table, rows, self.renamed.get(table, {}))
        if self._keep and table != "media":
            self._last[table] = (index, rows)
        return rows

    def between(self, table: str, first: int, last: int) -> pa.Table:
        """Rows of a table with seq from first to last, both included."""
        wanted = [
            self.group(table, index)
            for index, (low, high) in enumerate(self.ranges(table))
            if low <= last and high >= first
        ]
        if not wanted:
            return pa.Table.from_batches([], schema=TABLES[table].schema)
        rows = pa.concat_tables(wanted)
        seq = _seq(rows)
        start, end = np.searchsorted(seq, first, "left"), np.searchsorted(seq, last, "right")
        return rows.slice(int(start), int(end - start))

    def trajectories(self) -> Iterator[Trajectory]:
        """All trajectories of the shard, in order."""
        for index, _ in enumerate(self.ranges("trajectories")):
            yield from self._assemble(self.group("trajectories", index))

    def get(self, seq: int) -> Trajectory | None:
        """The trajectory with this seq."""
        rows = self.between("trajectories", seq, seq)
        return next(iter(self._assemble(rows)), None)

    def some(self, seqs: np.ndarray[Any, Any]) -> Iterator[Trajectory]:
        """The trajectories whose seq is among some sorted ones, in order."""
        for index, (low, high) in enumerate(self.ranges("trajectories")):
            first, end = np.searchsorted(seqs, [low, high + 1])
            if first == end:
                continue
            # Not pa.array, which imports pandas where that is installed.
            buffer = pa.py_buffer(np.ascontiguousarray(seqs[first:end], dtype=np.int64))
            wanted = pa.Array.from_buffers(pa.int64(), end - first, [None, buffer])
            rows = _with_seq(self.group("trajectories", index), wanted)
            bounds = int(seqs[first]), int(seqs[end - 1])
            children = {name: _with_seq(self.between(name, *bounds), wanted) for name in _CHILDREN}
            yield from assemble(rows, children, self.media)

    def _assemble(self, rows: pa.Table) -> Iterator[Trajectory]:
        if not rows.num_rows:
            return
        seqs = _seq(rows)
        children = {name: self.between(name, int(seqs[0]), int(seqs[-1])) for name in _CHILDREN}
        yield from assemble(rows, children, self.media)

    def forget(self) -> None:
        """Let go of the row groups that were read last."""
        self._last.clear()

    def close(self) -> None:
        """Close the files."""
        for file in self._open.values():
            file.close()
        self._open.clear()
        self.forget()
        self.media.forget()


class ShardMedia(Mapping[str, Media]):
    """The blobs of a shard by id, read from disk when they are asked for."""

    def __init__(self, shard: ShardReader) -> None:
        self._shard = shard
        self._places: dict[str, tuple[int, int]] | None = None
        self._cached: tuple[int, pa.Table] | None = None

    def _index(self) -> dict[str, tuple[int, int]]:
        if self._places is None:
            self._places = {}
            file = self._shard.file("media")
            for group in range(file.num_row_groups if file else 0):
                assert file is not None
                names = file.read_row_group(group, columns=["media_id"])["media_id"].to_pylist()
                self._places.update({name: (group, row) for row, name in enumerate(names)})
        return self._places

    def forget(self) -> None:
        """Let go of the blobs that were read last."""
        self._cached = None

    def __getitem__(self, media_id: str) -> Media:
        group, row = self._index()[media_id]
        if self._cached is None or self._cached[0] != group:
            self._cached = (group, self._shard.group("media", group))
        values = self._cached[1].slice(row, 1).to_pylist()[0]
        return Media(**{name: values[name] for name in Media.model_fields})

    def __iter__(self) -> Iterator[str]:
        return iter(self._index())

    def __len__(self) -> int:
        return len(self._index())


def _seq(rows: pa.Table) -> np.ndarray[Any, Any]:
    """The column ``seq``. Arrow's ``to_numpy`` would import pandas where it is installed."""
    if not rows.num_rows:
        return np.empty(0, dtype=np.int64)
    return np.from_dlpack(rows["seq"].combine_chunks())


def _with_seq(rows: pa.Table, wanted: pa.Array) -> pa.Table:
    import pyarrow.compute as pc  # a twentieth of a second, which one trajectory does not need

    return rows.filter(pc.is_in(rows["seq"], value_set=wanted.cast(rows["seq"].type)))


def _seq_ranges(file: pq.ParquetFile) -> list[tuple[int, int]]:
    column = file.schema_arrow.get_field_index("seq")
    ranges: list[tuple[int, int]] = []
    for index in range(file.num_row_groups):
        statistics = file.metadata.row_group(index).column(column).statistics
        if statistics is None or not statistics.has_min_max:
            seq = file.read_row_group(index, columns=["seq"])["seq"]
            values = seq.to_numpy()
            ranges.append((int(values.min()), int(values.max())))
        else:
            ranges.append((statistics.min, statistics.max))
    return ranges


def assemble(
    rows: pa.Table, children: Mapping[str, pa.Table], media: Mapping[str, Media]
) -> Iterator[Trajectory]:
    """Put trajectories together from rows that are sorted by seq.

    Args:
        rows: rows of the table trajectories.
        children: table -> rows that belong to them, perhaps among others.
        media: blobs by id; given to every trajectory.
    """
    seqs = _seq(rows)
    models: dict[str, list[Any]] = {
        "steps": to_models(children["steps"], Step),
        "tool_calls": to_models(children["tool_calls"], ToolCall),
        "observations": to_models(children["observations"], Observation),
        "links": to_models(children["links"], Link),
        "raw": to_models(children["raw"], RawRow),
        "tasks": to_models(children["tasks"], Task),
    }
    cut = {name: _Cut(children[name], seqs) for name in models}
    for index, trajectory in enumerate(to_models(rows, Trajectory)):
        columns: dict[str, list[Any]] = {
            name: model[cut[name].start(index) : cut[name].end(index)]
            for name, model in models.items()
        }
        yield attach(trajectory, columns, media)


class _Cut:
    """Where the rows of each trajectory begin and end in a child table."""

    def __init__(self, table: pa.Table, seqs: np.ndarray[Any, Any]) -> None:
        seq = _seq(table)
        self._starts = np.searchsorted(seq, seqs, "left").tolist()
        self._ends = np.searchsorted(seq, seqs, "right").tolist()

    def start(self, index: int) -> int:
        return int(self._starts[index])

    def end(self, index: int) -> int:
        return int(self._ends[index])


def attach(
    trajectory: Trajectory, items: Mapping[str, list[Any]], media: Mapping[str, Media]
) -> Trajectory:
    """Hang steps, calls, observations and the rest into a trajectory.

    Rows need not be dense: an observation whose step is gone hangs from the step before it.
    """
    steps: list[Step] = items["steps"]
    by_index = {step.step: step for step in steps}
    for call in items["tool_calls"]:
        if call.step in by_index:
            by_index[call.step].calls.append(call)
    early: list[Observation] = []
    position = -1
    for observation in items["observations"]:
        while position + 1 < len(steps) and (steps[position + 1].step or 0) <= observation.step:
            position += 1
        (steps[position].observations if position >= 0 else early).append(observation)
    values = trajectory.__dict__
    values["steps"], values["early_observations"] = steps, early
    values["links"], values["raw"], values["media"] = items["links"], items["raw"], media
    task_id = trajectory.task_id
    values["task"] = next((task for task in items["tasks"] if task.task_id == task_id), None)
    return trajectory


def to_models(rows: pa.Table, row_type: type[RowType]) -> list[RowType]:
    """Make one model a row, without validation: a store holds only what its schema allows."""
    count = rows.num_rows
    if not count:
        return []
    columns: list[list[Any]] = []
    names: list[str] = []
    fields = row_type.model_fields
    for index, name in enumerate(rows.column_names):
        if name in fields:
            column = rows.column(index)
            if column.null_count < count:
                names.append(name)
                columns.append(plain_values(column))
    defaults = _defaults(row_type)
    lists = [name for name, default in defaults.items() if isinstance(default, list)]
    fields_set = _FIELDS_SET[row_type]
    models: list[RowType] = []
    new, put = object.__new__, object.__setattr__
    for values in zip(*columns, strict=True) if columns else [()] * count:
        model = new(row_type)
        content = dict(defaults)
        content.update(zip(names, values, strict=True))
        for name in lists:
            content[name] = []
        put(model, "__dict__", content)
        put(model, "__pydantic_fields_set__", fields_set)
        put(model, "__pydantic_extra__", None)
        put(model, "__pydantic_private__", None)
        models.append(model)
    return models


def _defaults(row_type: type[Row]) -> dict[str, Any]:
    if row_type not in _DEFAULTS:
        _DEFAULTS[row_type] = {
            name: info.get_default(call_default_factory=True)
            for name, info in row_type.model_fields.items()
        }
        _FIELDS_SET[row_type] = set(row_type.model_fields)
    return _DEFAULTS[row_type]
