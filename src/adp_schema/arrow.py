"""From rows to Arrow tables."""

from __future__ import annotations

import functools
from datetime import datetime
from typing import Any

import numpy as np
import pyarrow as pa

from adp_schema.errors import SchemaError
from adp_schema.model import Columns
from adp_schema.plain_arrays import plain_array, repeated
from adp_schema.table_rows import TableRows, column_of
from adp_schema.tables import ENUMS, TABLES, columns_of

Runs = list[tuple[int, str, int]]
"""Rows of one trajectory after another: (seq, trajectory_id, number of rows so far)."""


def make_table(name: str, rows: TableRows, runs: Runs | None) -> pa.Table:
    """Build an Arrow table.

    Args:
        name: name of the table.
        rows: its rows.
        runs: for tables whose rows hang from trajectories, which rows hang from which.

    Raises:
        SchemaError: a value has the wrong type, or a column is unknown.
    """
    schema = TABLES[name].schema
    if not len(rows):
        return _empty_table(name)
    used = rows.names()
    _check_names(name, used)
    arrays = {} if runs is None else _key_columns(runs)
    columns = rows.columns(used - arrays.keys())
    for column in schema:
        if column.name in arrays:
            continue
        if column.name in used:
            arrays[column.name] = _array(name, column, columns.pop(column.name))
        else:
            arrays[column.name] = _nulls(len(rows), column.type)
    return pa.table([arrays[column] for column in schema.names], schema=schema)


def _nulls(count: int, data_type: pa.DataType) -> pa.Array:
    """A column that holds nothing."""
    return _few_nulls(count, data_type) if count <= _FEW else pa.nulls(count, data_type)


_FEW = 64
"""Rows of a table of which columns of nulls are kept: those of a record that is read alone."""


@functools.cache
def _few_nulls(count: int, data_type: pa.DataType) -> pa.Array:
    return pa.nulls(count, data_type)


@functools.cache
def _empty_table(name: str) -> pa.Table:
    schema = TABLES[name].schema
    return pa.table([pa.nulls(0, column.type) for column in schema], schema=schema)


def check_columns(name: str, rows: list[Columns]) -> None:
    """Check that a table can hold some rows, keys aside; cheaper than to build it.

    Raises:
        SchemaError: a value has the wrong type, or is none of the words that its column takes, or
            a column is unknown.
    """
    schema = TABLES[name].schema
    used: set[str] = set().union(*rows)
    _check_names(name, used)
    for column in sorted(used):
        _array(name, schema.field(column), column_of(column, rows))


def _check_names(name: str, used: set[str]) -> None:
    """The columns that rows have must all be those of the table."""
    if unknown := used - set(TABLES[name].schema.names):
        raise SchemaError(f"table {name} has no column {', '.join(sorted(unknown))}")


def _key_columns(runs: Runs) -> dict[str, pa.Array]:
    """seq and trajectory_id of a child table, from the lengths of its runs."""
    ends = np.array([end for _, _, end in runs], dtype=np.int64)
    lengths = np.diff(ends, prepend=0)
    seqs = np.repeat(np.array([seq for seq, _, _ in runs], dtype=np.int64), lengths)
    return {
        "seq": pa.Array.from_buffers(pa.int64(), len(seqs), [None, pa.py_buffer(seqs)], 0),
        "trajectory_id": repeated([run_id for _, run_id, _ in runs], lengths),
    }


@functools.cache
def json_columns(table: str) -> frozenset[str]:
    """Names of the columns of a table that hold JSON text."""
    return frozenset(
        name
        for name, column in columns_of(TABLES[table].row).items()
        if (column.metadata or {}).get(b"content") == b"json"
    )


_KINDS: dict[pa.DataType, tuple[str, tuple[type, ...]]] = {
    pa.string(): ("a text", (str, bytes)),
    pa.binary(): ("bytes", (bytes, str)),
    pa.bool_(): ("True or False", (bool,)),
    pa.int32(): ("a whole number", (int, float)),
    pa.int64(): ("a whole number", (int, float)),
    pa.float64(): ("a number", (int, float)),
    pa.timestamp("us", tz="UTC"): (
        "a time (a datetime, or whole microseconds since 1970 in UTC)",
        (datetime, int),
    ),
}
"""Type of a column -> what it takes, and the types of values that may be that."""


def _misfit(table: str, column: pa.Field, values: list[Any]) -> str | None:
    """The sentence for a value of a wrong type; None when its type is not what is wrong."""
    takes, kinds = _KINDS.get(column.type, ("a list", (list, tuple)))
    wrong = next((value for value in values if not isinstance(value, (*kinds, type(None)))), None)
    if wrong is None:
        return None
    hint = ""
    if column.name in json_columns(table):
        takes, hint = "JSON text", "; use json.dumps"
    elif datetime in kinds and isinstance(wrong, str):
        hint = "; datetime.fromisoformat makes one of ISO 8601"
    return f"column {table}.{column.name} takes {takes}, not {type(wrong).__name__}{hint}"


def _array(table: str, column: pa.Field, values: list[Any]) -> pa.Array:
    """A column, checked against the words that it may hold."""
    name = column.name
    if pa.types.is_list(column.type) and any(isinstance(value, str) for value in values):
        # Arrow would make a list of its characters.
        raise SchemaError(f"column {table}.{name} takes a list, not str")
    try:
        array = plain_array(values, column.type)
    except (pa.ArrowInvalid, pa.ArrowTypeError, UnicodeError, OverflowError) as error:
        raise SchemaError(
            _misfit(table, column, values) or f"column {table}.{name}: {error}"
        ) from error
    words = ENUMS.get((table, name))
    if words is not None:
        wrong = set(values) - words - {None}
        if wrong:
            raise SchemaError(
                f"column {table}.{name} holds {sorted(wrong)[0]!r}; it takes {sorted(words)}"
            )
    return array
