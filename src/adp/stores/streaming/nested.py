"""Trajectories as nested rows of Arrow, without a Python object for each: offsets from sorted keys.

One row is one trajectory: its columns, ``steps`` with the ``calls`` and ``observations`` of each
step, and ``early_observations``, which arrived before the first step. It holds what
`adp_schema.reader.attach` hangs into a trajectory.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from adp_schema.errors import UsageError, unknown_name
from adp_schema.migrate import upgrade
from adp_schema.reader import ShardReader
from adp_schema.tables import TABLES

_PLACES = {
    "": "trajectories",
    "steps.": "steps",
    "steps.calls.": "tool_calls",
    "steps.observations.": "observations",
    "early_observations.": "observations",
}
"""Where the columns of a table stand in a nested row."""

_KEYS = {
    "trajectories": ("seq",),
    "steps": ("seq", "step"),
    "tool_calls": ("seq", "step"),
    "observations": ("seq", "step"),
}
_STEP_BITS = 32

Numbers = np.ndarray[Any, np.dtype[np.int64]]


@dataclass(frozen=True)
class NestedColumns:
    """The columns of nested rows.

    Attributes:
        places: place, such as ``steps.calls.`` -> names of the columns there.
    """

    places: Mapping[str, tuple[str, ...]]

    @classmethod
    def of(cls, names: Sequence[str] | None) -> NestedColumns:
        """The columns that names stand for; a name stands for all that is below it, too.

        Args:
            names: such as ``trajectory_id``, ``steps.text`` or ``steps.calls``; None means all.

        Raises:
            UsageError: there is no such column, or no name at all.
        """
        known = _known()
        wanted = list(known) if names is None else list(names)
        places: dict[str, dict[str, None]] = {place: {} for place in _PLACES}
        for text in wanted:
            below = [path for path in known if path == text or path.startswith(f"{text}.")]
            if not below:
                raise UsageError(unknown_name("column", text, list(known)))
            for path in below:
                place, name = known[path]
                places[place][name] = None
        if not wanted:
            raise UsageError("name at least one column, or leave columns out to get all")
        return cls({place: _in_order(_PLACES[place], there) for place, there in places.items()})

    def of_table(self, table: str) -> tuple[str, ...]:
        """The columns that are read of a table, its keys among them; none when it is not read."""
        chosen = [there for place, there in self.places.items() if _PLACES[place] == table]
        names = {name for there in chosen for name in there}
        needed = bool(names) or table == "trajectories"
        if table == "steps":
            needed = any(self.places[place] for place in _PLACES if place)
        return _in_order(table, {*names, *_KEYS[table]}) if needed else ()

    def schema(self) -> pa.Schema:
        """The schema of the rows."""
        fields = list(_fields("trajectories", self.places[""]))
        inside = list(_fields("steps", self.places["steps."]))
        for name, table in (("calls", "tool_calls"), ("observations", "observations")):
            if there := self.places[f"steps.{name}."]:
                inside.append(pa.field(name, pa.list_(pa.struct(_fields(table, there)))))
        if inside:
            fields.append(pa.field("steps", pa.list_(pa.struct(inside))))
        if there := self.places["early_observations."]:
            items = pa.struct(_fields("observations", there))
            fields.append(pa.field("early_observations", pa.list_(items)))
        return pa.schema(fields)


@functools.cache
def _known() -> dict[str, tuple[str, str]]:
    """The columns of a nested row by their paths: place and name."""
    return {
        place + name: (place, name)
        for place, table in _PLACES.items()
        for name in TABLES[table].own_columns
    }


def _in_order(table: str, names: Iterable[str]) -> tuple[str, ...]:
    chosen = set(names)
    return tuple(name for name in TABLES[table].schema.names if name in chosen)


def _fields(table: str, names: Iterable[str]) -> list[pa.Field]:
    return [TABLES[table].schema.field(name) for name in names]


def read_nested(
    shard: ShardReader, group: int, columns: NestedColumns, seqs: Numbers | None = None
) -> pa.RecordBatch:
    """The nested rows of one row group of trajectories.

    Args:
        shard: the shard.
        group: number of the row group.
        columns: what to read.
        seqs: only the trajectories with one of these ``seq``, which are sorted; None means all.
    """
    rows = _read(shard, "trajectories", [group], columns)
    if seqs is not None:
        rows = rows.filter(pa.array(np.isin(_numbers(rows, "seq"), seqs)))
    wanted = _numbers(rows, "seq")
    children = {
        table: _children(shard, table, wanted, columns)
        for table in ("steps", "tool_calls", "observations")
        if columns.of_table(table)
    }
    return nest(rows, children, columns)


def _read(
    shard: ShardReader, table: str, groups: Sequence[int], columns: NestedColumns
) -> pa.Table:
    """Some row groups of a table, of which only the columns that are needed are read."""
    names = columns.of_table(table)
    file = shard.file(table) if groups else None
    if file is None:
        return pa.Table.from_batches([], schema=pa.schema(_fields(table, names)))
    renamed = shard.renamed.get(table, {})
    stored = [name for name in file.schema_arrow.names if renamed.get(name, name) in names]
    parts = [file.read_row_group(group, columns=stored, use_threads=False) for group in groups]
    return upgrade(table, pa.concat_tables(parts), renamed).select(names).combine_chunks()


def _children(shard: ShardReader, table: str, seqs: Numbers, columns: NestedColumns) -> pa.Table:
    """The rows of a table that hang from some trajectories."""
    if not len(seqs):
        return _read(shard, table, [], columns)
    first, last = int(seqs[0]), int(seqs[-1])
    places = enumerate(shard.ranges(table))
    groups = [group for group, (low, high) in places if low <= last and high >= first]
    rows = _read(shard, table, groups, columns)
    seq = _numbers(rows, "seq")
    start, end = np.searchsorted(seq, [first, last + 1]).tolist()
    rows, seq = rows.slice(start, end - start), seq[start:end]
    there = seqs[np.minimum(np.searchsorted(seqs, seq), len(seqs) - 1)] == seq
    return rows if there.all() else rows.filter(pa.array(there))


def nest(
    rows: pa.Table, children: Mapping[str, pa.Table], columns: NestedColumns
) -> pa.RecordBatch:
    """Put nested rows together.

    Args:
        rows: rows of the table of trajectories, sorted by ``seq``.
        children: table -> the rows that hang from them, and from no others, in order.
        columns: the columns; those of a table are not looked at when it is none of ``children``.
    """
    seqs = _numbers(rows, "seq")
    arrays = [_column(rows, name) for name in columns.places[""]]
    if "steps" in children:
        steps = children["steps"]
        keys = _step_keys(steps, seqs)
        inside = [_column(steps, name) for name in columns.places["steps."]]
        if "tool_calls" in children:
            inside.append(_calls(children["tool_calls"], seqs, keys, columns))
        early = None
        if "observations" in children:
            late, early = _observations(children["observations"], seqs, keys, columns)
            inside += [late] if columns.places["steps.observations."] else []
        schema = columns.schema()
        if inside:
            kind = schema.field("steps").type.value_type
            items = pa.StructArray.from_arrays(inside, fields=list(kind))
            arrays.append(_lists(items, keys >> _STEP_BITS, len(seqs)))
        if early is not None and columns.places["early_observations."]:
            arrays.append(early)
    return pa.RecordBatch.from_arrays(arrays, schema=columns.schema())


def _calls(calls: pa.Table, seqs: Numbers, keys: Numbers, columns: NestedColumns) -> pa.Array:
    """The calls of each step: a call hangs from the step of its number."""
    place = _step_keys(calls, seqs)
    at = np.searchsorted(keys, place, "right") - 1
    there = (at >= 0) & (keys[at] == place) if len(keys) else np.zeros(len(at), dtype=bool)
    calls, at = _chosen(calls, at, there)
    return _lists(_struct(calls, columns.places["steps.calls."]), at, len(keys))


def _observations(
    rows: pa.Table, seqs: Numbers, keys: Numbers, columns: NestedColumns
) -> tuple[pa.Array, pa.Array]:
    """The observations of each step, and those of each trajectory from before its first step.

    An observation hangs from the last step that is not after its number.
    """
    place = _step_keys(rows, seqs)
    at = np.searchsorted(keys, place, "right") - 1
    if len(at):
        at = np.maximum.accumulate(at)
    trajectory = place >> _STEP_BITS
    late = (at >= 0) & (keys[at] >> _STEP_BITS == trajectory) if len(keys) else at >= 0
    after, steps = _chosen(rows, at, late)
    before, owners = _chosen(rows, trajectory, ~late)
    names = columns.places["steps.observations."], columns.places["early_observations."]
    return (
        _lists(_struct(after, names[0]), steps, len(keys)),
        _lists(_struct(before, names[1]), owners, len(seqs)),
    )


def _step_keys(rows: pa.Table, seqs: Numbers) -> Numbers:
    """A number for each row that sorts by trajectory and step."""
    step = _numbers(rows, "step")
    keys: Numbers = (np.searchsorted(seqs, _numbers(rows, "seq")) << _STEP_BITS) + step + 1
    return keys


def _chosen(rows: pa.Table, at: Numbers, there: Any) -> tuple[pa.Table, Numbers]:
    """The rows that hang from something, sorted by what they hang from."""
    if not there.all():
        rows, at = rows.filter(pa.array(there)), at[there]
    if len(at) and (np.diff(at) < 0).any():
        order = np.argsort(at, kind="stable")
        rows, at = rows.take(pa.array(order)), at[order]
    return rows, at


def _lists(items: pa.Array, owners: Numbers, count: int) -> pa.Array:
    """A list of items for each owner.

    Args:
        items: the items.
        owners: number of the owner of each, in order.
        count: number of the owners.
    """
    offsets = np.searchsorted(owners, np.arange(count + 1)).astype(np.int32)
    return pa.ListArray.from_arrays(pa.array(offsets), items)


def _struct(rows: pa.Table, names: Sequence[str]) -> pa.Array:
    if not names:  # nobody wants them
        return pa.nulls(rows.num_rows)
    fields = [rows.schema.field(name) for name in names]
    return pa.StructArray.from_arrays([_column(rows, name) for name in names], fields=fields)


def _column(rows: pa.Table, name: str) -> pa.Array:
    column = rows.column(name)
    if column.num_chunks == 1:
        return column.chunk(0)
    return column.combine_chunks() if column.num_chunks else pa.array([], column.type)


def _numbers(rows: pa.Table, name: str) -> Numbers:
    """A column of whole numbers; nulls count as 0."""
    column = _column(rows, name)
    values = column.fill_null(0) if column.null_count else column
    return np.asarray(np.from_dlpack(values) if len(values) else [], dtype=np.int64)
