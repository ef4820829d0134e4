"""From rows as dicts to Arrow tables."""

from __future__ import annotations

import functools
from operator import itemgetter
from typing import Any

import numpy as np
import pyarrow as pa

from adp_schema.errors import SchemaError
from adp_schema.model import Columns
from adp_schema.tables import ENUMS, TABLES, columns_of

Runs = list[tuple[int, str, int]]
"""Rows of one trajectory after another: (seq, trajectory_id, number of rows so far)."""


def make_table(name: str, rows: list[Columns], runs: Runs | None) -> pa.Table:
    """Build an Arrow table.

    Args:
        name: name of the table.
        rows: its rows.
        runs: for tables whose rows hang from trajectories, which rows hang from which.

    Raises:
        SchemaError: a value has the wrong type, or a column is unknown.
    """
    schema = TABLES[name].schema
    used = _used_columns(name, rows)
    keys = {} if runs is None else _key_columns(runs)
    arrays = [
        keys[column.name]
        if column.name in keys
        else _array(name, column, rows, used=column.name in used)
        for column in schema
    ]
    return pa.table(arrays, schema=schema)


def check_columns(name: str, rows: list[Columns]) -> None:
    """Check that a table can hold some rows, keys aside; cheaper than to build it.

    Raises:
        SchemaError: a value has the wrong type, or is none of the words that its column takes, or
            a column is unknown.
    """
    schema = TABLES[name].schema
    for column in sorted(_used_columns(name, rows)):
        _array(name, schema.field(column), rows, used=True)


def _used_columns(name: str, rows: list[Columns]) -> set[str]:
    """The columns that the rows have; all must be those of the table."""
    used: set[str] = set().union(*rows)
    if unknown := used - set(TABLES[name].schema.names):
        raise SchemaError(f"table {name} has no column {', '.join(sorted(unknown))}")
    return used


def _key_columns(runs: Runs) -> dict[str, pa.Array]:
    """seq and trajectory_id of a child table, from the lengths of its runs."""
    ends = np.array([end for _, _, end in runs], dtype=np.int64)
    lengths = np.diff(ends, prepend=0)
    seqs = np.array([seq for seq, _, _ in runs], dtype=np.int64)
    index = pa.array(np.repeat(np.arange(len(runs)), lengths))
    trajectory_ids = pa.array([run_id for _, run_id, _ in runs], pa.string())
    return {
        "seq": pa.array(np.repeat(seqs, lengths)),
        "trajectory_id": trajectory_ids.take(index),
    }


@functools.cache
def json_columns(table: str) -> frozenset[str]:
    """Names of the columns of a table that hold JSON text."""
    return frozenset(
        name
        for name, column in columns_of(TABLES[table].row).items()
        if (column.metadata or {}).get(b"content") == b"json"
    )


def _array(table: str, column: pa.Field, rows: list[Columns], *, used: bool) -> pa.Array:
    """One column of the rows, checked against the words that it may hold."""
    if not used:
        return pa.nulls(len(rows), column.type)
    name = column.name
    try:
        array = pa.array(_values(name, rows), column.type)
    except (pa.ArrowInvalid, pa.ArrowTypeError, UnicodeError, OverflowError) as error:
        raise SchemaError(f"column {table}.{name}: {error}") from error
    words = ENUMS.get((table, name))
    if words is not None:
        wrong = set(array.unique().to_pylist()) - words - {None}
        if wrong:
            raise SchemaError(
                f"column {table}.{name} holds {sorted(wrong)[0]!r}; it takes {sorted(words)}"
            )
    return array


def _values(name: str, rows: list[Columns]) -> list[Any]:
    """One column of the rows; most columns that are used are in every row."""
    try:
        return list(map(itemgetter(name), rows))
    except KeyError:
        return [row.get(name) for row in rows]
