"""Parquet rows as JSON records, and JSON records as Parquet rows of the same schema.

A row becomes a JSON object with all its columns. What JSON cannot say goes as a string that the
column's type turns back: bytes as base64, times, dates and decimals as Arrow writes them, NaN
and infinities by name.
"""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Iterator
from datetime import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from adp.core.input_files import open_file

_BATCH = 256
_BATCH_BYTES = 32 << 20
_NUMBERS = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}


def row_ranges(path: str, size: int) -> list[tuple[int, int, int]]:
    """Ranges of rows of about that many bytes: start, end, and number of the first row."""
    with open_file(path) as data, pq.ParquetFile(data) as file:
        metadata = file.metadata
        rows = metadata.num_rows
        groups = range(metadata.num_row_groups)
        whole = sum(metadata.row_group(group).total_byte_size for group in groups)
    step = max(1, rows * size // max(whole, 1))
    bounds = [*range(0, rows, step), rows] if rows else [0, 0]
    return list(zip(bounds, bounds[1:], (bound + 1 for bound in bounds), strict=False))


def rows_as_json(path: str, start: int, end: int) -> Iterator[tuple[int, bytes, str]]:
    """Rows from start to end (excluded): number, from 0, JSON text, and why there is none.

    Raises:
        pa.ArrowException: the file is damaged; so does OSError.
    """
    with open_file(path) as data, pq.ParquetFile(data) as file:
        schema = file.schema_arrow
        first = 0
        for group in range(file.num_row_groups):
            metadata = file.metadata.row_group(group)
            count = metadata.num_rows
            if first + count > start and first < end:
                row = first
                average = metadata.total_byte_size // max(count, 1) + 1
                size = max(1, min(_BATCH, _BATCH_BYTES // average))
                for batch in file.iter_batches(size, row_groups=[group], use_threads=False):
                    for text, error in _batch(batch, schema):
                        if start <= row < end:
                            yield row, text, error
                        row += 1
            first += count


def _batch(batch: pa.RecordBatch, schema: pa.Schema) -> Iterator[tuple[bytes, str]]:
    try:
        rows = batch.to_pylist()
    except UnicodeDecodeError:
        if batch.num_rows == 1:
            yield b"", "a text in this row is not valid UTF-8"
            return
        for index in range(batch.num_rows):
            yield from _batch(batch.slice(index, 1), schema)
        return
    for values in rows:
        yield _encode(values, schema), ""


def _encode(values: dict[str, Any], schema: pa.Schema) -> bytes:
    plain = {field.name: _to_json(values[field.name], field.type) for field in schema}
    return json.dumps(plain, ensure_ascii=False).encode("utf-8")


def _to_json(value: Any, kind: pa.DataType) -> Any:
    if value is None or pa.types.is_boolean(kind) or pa.types.is_integer(kind):
        return value
    if pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        return value
    if pa.types.is_floating(kind):
        return float(value) if math.isfinite(value) else json.dumps(float(value))
    if pa.types.is_struct(kind):
        return {field.name: _to_json(value[field.name], field.type) for field in kind}
    if _is_list(kind):
        return [_to_json(item, kind.value_type) for item in value]
    if pa.types.is_map(kind):
        return [
            {"key": _to_json(k, kind.key_type), "value": _to_json(v, kind.item_type)}
            for k, v in value
        ]
    if isinstance(value, bytes):
        return base64.b64encode(value).decode("ascii")
    if pa.types.is_null(kind):
        return None
    if pa.types.is_duration(kind):
        return pa.scalar(value, kind).cast(pa.int64()).as_py()
    if isinstance(kind, pa.BaseExtensionType):
        return _to_json(value, kind.storage_type)
    return pa.scalar(value, kind).cast(pa.string()).as_py()


def _is_list(kind: pa.DataType) -> bool:
    return bool(
        pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind)
    )


def _from_json(value: Any, kind: pa.DataType) -> Any:
    if value is None:
        return None
    if pa.types.is_struct(kind):
        return {field.name: _from_json(value.get(field.name), field.type) for field in kind}
    if _is_list(kind):
        return [_from_json(item, kind.value_type) for item in value]
    if pa.types.is_map(kind):
        return [
            (_from_json(item["key"], kind.key_type), _from_json(item["value"], kind.item_type))
            for item in value
        ]
    if pa.types.is_floating(kind):
        return _NUMBERS.get(value, value) if isinstance(value, str) else value
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        return base64.b64decode(value)
    if pa.types.is_duration(kind):
        return pa.scalar(value, pa.int64()).cast(kind).as_py()
    if isinstance(value, str) and pa.types.is_time(kind):
        return time.fromisoformat(value)
    if isinstance(value, str) and (pa.types.is_temporal(kind) or pa.types.is_decimal(kind)):
        return pa.scalar(value).cast(kind).as_py()
    return value


def schema_text(path: str) -> str:
    """The Arrow schema of a Parquet file as base64 text."""
    with open_file(path) as file:
        schema = pq.read_schema(file)
    return base64.b64encode(schema.serialize().to_pybytes()).decode("ascii")


def write_rows(path: Path, records: Iterator[bytes], schema: str | None) -> int:
    """Write JSON records as a Parquet file and return their number.

    Args:
        path: the file.
        records: JSON objects.
        schema: from `schema_text`. Records that do not fit it (edited ones may not), or all
            when it is None, get a schema of text columns, with structure as JSON text.
    """
    rows = [json.loads(record) for record in records]
    table = None
    if schema is not None:
        arrow = pa.ipc.read_schema(pa.py_buffer(base64.b64decode(schema)))
        table = _fit(rows, arrow)
    if table is None:
        table = _as_text(rows)
    pq.write_table(table, path, compression="zstd")
    return len(rows)


def _fit(rows: list[dict[str, Any]], schema: pa.Schema) -> pa.Table | None:
    if any(set(row) - set(schema.names) for row in rows):
        return None
    try:
        typed = [
            {field.name: _from_json(row.get(field.name), field.type) for field in schema}
            for row in rows
        ]
        return pa.Table.from_pylist(typed, schema=schema)
    except (pa.ArrowException, AttributeError, TypeError, ValueError, KeyError):
        return None


def _as_text(rows: list[dict[str, Any]]) -> pa.Table:
    names = list(dict.fromkeys(name for row in rows for name in row))
    columns = []
    for name in names:
        values = [row.get(name) for row in rows]
        if (
            any(isinstance(value, (dict, list)) for value in values)
            or len({type(value) for value in values if value is not None}) > 1
        ):
            values = [
                None if value is None else json.dumps(value, ensure_ascii=False) for value in values
            ]
        columns.append(pa.array(values))
    return pa.table(columns, names=names)
