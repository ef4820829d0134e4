"""How the rows of a query leave: a table for people; CSV, JSON, JSON lines, Parquet for programs.

Rows are written as they come, so that a result may be larger than the memory.
"""

from __future__ import annotations

import base64
import json
import math
import re
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from datetime import date, datetime
from datetime import time as clock
from decimal import Decimal
from pathlib import Path
from typing import IO, Any

import pyarrow as pa
from rich.console import Console
from rich.table import Table
from rich.text import Text

from adp.cli.text import console, light_table, one_line
from adp.core.output_files import whole_file
from adp_schema.errors import OutputExistsError, QueryError
from adp_schema.plain_arrays import plain_values

CELL = 200
"""Characters of a cell in a table."""

LARGEST = 256 << 20
"""Bytes of values that are made Python values at one time."""

_PIECE = 16 << 20
"""Bytes of rows that are made Python values at one time, where there are several rows."""

COUNT_SECONDS = 2.0
"""How long to go on counting the rows that a table does not show."""

_FEW = 1 << 20
"""Bytes of a column that Python cuts sooner than `pyarrow.compute` is imported."""

_NARROW = 9
"""Room that a column needs, beside that for its name; with less, each row is a list of names and
values."""

# Control characters of C1 and marks of direction, which JSON allows and terminals obey.
_UNSAFE = re.compile("[\x7f-\x9f\u200e\u200f\u061c\u2028-\u202e\u2066-\u2069]")


def print_table(reader: pa.RecordBatchReader, limit: int) -> None:
    """Print the first rows for people, and say how many there are.

    Args:
        reader: the rows.
        limit: how many to show; 0 means all.
    """
    screen = console()
    shown: list[tuple[Any, ...]] = []
    count, full, deadline = 0, True, time.monotonic() + COUNT_SECONDS
    for batch in reader:
        room = batch.num_rows if not limit else min(limit - len(shown), batch.num_rows)
        shown += zip(*(_beginnings(column.slice(0, room)) for column in batch.columns), strict=True)
        count += batch.num_rows
        if len(shown) < count and time.monotonic() > deadline:
            full = False
            break
    names = unique_names(reader.schema.names)
    numbers = [_is_number(kind) for kind in reader.schema.types]
    footer = _footer(len(shown), count, exact=full)
    grid = _grid(screen.width, names, numbers, shown)
    if grid is None:
        _print_lists(screen, names, shown)
        if any(value is None for row in shown for value in row):
            footer += "; what is null is left out"
    else:
        screen.print(grid)
    screen.print(Text(footer, "dim"), soft_wrap=True)


def _beginnings(column: pa.Array) -> list[Any]:
    """Values for a table, of which it shows the beginning: no more of a long one becomes Python.

    Raises:
        QueryError: the values are too large for a table.
    """
    if column.nbytes <= _FEW:
        return [_beginning(value) for value in plain_values(column)]
    import pyarrow.compute as pc

    if pa.types.is_string(column.type):
        return pc.utf8_slice_codeunits(column, 0, CELL + 1).to_pylist()  # type: ignore[no-any-return]
    if pa.types.is_binary(column.type):
        return [None if n is None else Bytes(n) for n in pc.binary_length(column).to_pylist()]
    if pa.types.is_list(column.type):
        column = pc.list_slice(column, 0, CELL + 1)
    _check_size(column, "a table")
    return column.to_pylist()  # type: ignore[no-any-return]


def _beginning(value: Any) -> Any:
    if isinstance(value, bytes):
        return Bytes(len(value))
    return value[: CELL + 1] if isinstance(value, str | list) else value


def _check_size(values: pa.Array | pa.RecordBatch, form: str) -> None:
    """Python takes many times the memory of what it is given.

    Raises:
        QueryError: the values are too large for it.
    """
    if values.nbytes > LARGEST:
        raise QueryError(
            f"some values are too large for {form}: {values.nbytes >> 20:,} MiB together; select "
            "less of them, or write them to a file with -o FILE.parquet"
        )


class Bytes(int):
    """How many bytes a value has that is not shown."""


def _footer(shown: int, count: int, *, exact: bool) -> str:
    rows = "1 row" if count == 1 else f"{count:,} rows"
    if shown == count:
        return rows
    cut = f"{count - shown:,}" if exact else f"more than {count - shown:,}"
    return f"{shown:,} of {'' if exact else 'more than '}{rows}, {cut} cut; --limit 0 shows all"


def _grid(
    width: int, names: Sequence[str], numbers: Sequence[bool], rows: list[tuple[Any, ...]]
) -> Table | None:
    """A row a line; None when there is too little room for that.

    Widths are given out here: rich makes columns vanish when none may wrap and all are too wide.
    """
    heads = [one_line(name, CELL) or " " for name in names]
    lines = [list(map(cell, row)) for row in rows]
    wide = [
        max([len(head), *(line[place].cell_len for line in lines)])
        for place, head in enumerate(heads)
    ]
    room = width - 2 * len(heads)
    least = [
        full if number else min(full, max(len(head), _NARROW - 2))
        for full, number, head in zip(wide, numbers, heads, strict=True)
    ]
    if sum(least) > room:
        return None
    for place in sorted(range(len(heads)), key=lambda place: wide[place] - least[place]):
        left = sum(wide[other] > least[other] for other in range(len(heads)))
        more = (room - sum(least)) // max(left, 1)
        least[place] = min(wide[place], least[place] + more)
    right = [head for head, number in zip(heads, numbers, strict=True) if number]
    table = light_table(*heads, right=right)
    for column, given in zip(table.columns, least, strict=True):
        column.width = given
    for line in lines:
        table.add_row(*line)
    return table


def _print_lists(screen: Console, names: Sequence[str], rows: list[tuple[Any, ...]]) -> None:
    """Print each row as a list of its values; nulls are left out."""
    longest = max((len(one_line(name, CELL)) for name in names), default=0)
    for number, row in enumerate(rows, start=1):
        screen.print(Text(f"row {number}", "bold"))
        table = light_table("", "")
        table.show_header = False
        table.columns[0].min_width = min(longest, screen.width // 2)
        for name, value in zip(names, row, strict=True):
            if value is not None:
                table.add_row(Text(one_line(name, CELL), "cyan"), cell(value))
        screen.print(table)


def cell(value: Any) -> Text:
    """A value as one line of a table: cut, and harmless on a terminal."""
    if value is None:
        return Text("null", "dim")
    if isinstance(value, Bytes):
        return Text(f"{value:,} bytes", "dim")
    if isinstance(value, float):
        return Text(f"{value:.6g}")
    plain_value = plain(value)
    text = plain_value if isinstance(plain_value, str) else json_text(plain_value)
    return Text(one_line(text, CELL))


def plain(value: Any) -> Any:
    """A value as JSON has it: times in ISO form, bytes in base64, no number as null."""
    match value:
        case None | bool() | int() | str():
            return value
        case float():
            return value if math.isfinite(value) else None
        case Decimal():
            return int(value) if value == value.to_integral_value() else float(value)
        case datetime() | date() | clock():
            return value.isoformat()
        case bytes():
            return base64.b64encode(value).decode()
        case dict():
            return {str(key): plain(item) for key, item in value.items()}
        case list() | tuple():
            return [plain(item) for item in value]
    return str(value)


def json_text(value: Any) -> str:
    """A plain value as JSON in one line, harmless on a terminal."""
    text = json.dumps(value, ensure_ascii=False)
    return _UNSAFE.sub(lambda item: f"\\u{ord(item[0]):04x}", text)


def unique_names(names: Sequence[str]) -> list[str]:
    """Column names with ``_2``, ``_3`` on repeats: programs need them apart."""
    taken: set[str] = set()
    unique = []
    for name in names:
        number, candidate = 1, name
        while candidate in taken:
            number += 1
            candidate = f"{name}_{number}"
        taken.add(candidate)
        unique.append(candidate)
    return unique


def write_rows(reader: pa.RecordBatchReader, form: str, out: Path | None) -> int:
    """Write all rows and return their number.

    A file appears only when it is complete.

    Args:
        reader: the rows.
        form: one of `WRITERS`.
        out: the file; None means standard output.

    Raises:
        OutputExistsError: the file is there already.
    """
    names = unique_names(reader.schema.names)
    schema = pa.schema(
        [kind.with_name(name) for kind, name in zip(reader.schema, names, strict=True)]
    )
    batches = (pa.RecordBatch.from_arrays(batch.columns, schema=schema) for batch in reader)
    if out is None:
        sys.stdout.flush()
        return WRITERS[form](schema, batches, sys.stdout.buffer)
    if out.exists():
        raise OutputExistsError(f"{out} is there already; choose another name")
    with whole_file(out) as part, part.open("wb") as file:
        count = WRITERS[form](schema, batches, file)
    return count


def _write_csv(schema: pa.Schema, batches: Iterator[pa.RecordBatch], file: IO[bytes]) -> int:
    """CSV with a header; a list or a blob is written as JSON."""
    from pyarrow import csv

    count = 0
    flat = pa.schema([field.with_type(_csv_type(field.type)) for field in schema])
    with csv.CSVWriter(file, flat) as writer:
        for batch in batches:
            columns = [
                column if column.type == field.type else _as_text(column)
                for column, field in zip(batch.columns, flat, strict=True)
            ]
            writer.write_batch(pa.RecordBatch.from_arrays(columns, schema=flat))
            count += batch.num_rows
    return count


def _csv_type(kind: pa.DataType) -> pa.DataType:
    """What a column is written as: what CSV has no form for becomes text."""
    known = (pa.types.is_boolean, pa.types.is_string, pa.types.is_temporal, pa.types.is_null)
    fits = _is_number(kind) or any(test(kind) for test in known)
    return kind if fits and not pa.types.is_interval(kind) else pa.string()


def _is_number(kind: pa.DataType) -> bool:
    return bool(
        pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)
    )


def _as_text(column: pa.Array) -> pa.Array:
    _check_size(column, "CSV")
    texts = []
    for value in map(plain, column.to_pylist()):
        texts.append(value if value is None or isinstance(value, str) else json_text(value))
    return pa.array(texts, pa.string())


def _python_rows(batch: pa.RecordBatch, form: str) -> Iterator[tuple[Any, ...]]:
    """The rows of a batch as Python values; a few at a time when they are large."""
    step = max(batch.num_rows * _PIECE // max(batch.nbytes, 1), 1)
    for start in range(0, batch.num_rows, step):
        piece = batch.slice(start, step)
        _check_size(piece, form)
        yield from zip(*map(plain_values, piece.columns), strict=True)


def _json_rows(schema: pa.Schema, batches: Iterator[pa.RecordBatch]) -> Iterator[bytes]:
    """Each row as a JSON object in one line."""
    for batch in batches:
        for row in _python_rows(batch, "JSON"):
            yield json_text(dict(zip(schema.names, map(plain, row), strict=True))).encode()


def _write_jsonl(schema: pa.Schema, batches: Iterator[pa.RecordBatch], file: IO[bytes]) -> int:
    """One object a line."""
    count = 0
    for row in _json_rows(schema, batches):
        file.write(row + b"\n")
        count += 1
    return count


def _write_json(schema: pa.Schema, batches: Iterator[pa.RecordBatch], file: IO[bytes]) -> int:
    """One array of objects."""
    count = 0
    file.write(b"[")
    for row in _json_rows(schema, batches):
        file.write((b",\n" if count else b"\n") + row)
        count += 1
    file.write(b"\n]\n")
    return count


def _write_object(schema: pa.Schema, batches: Iterator[pa.RecordBatch], file: IO[bytes]) -> int:
    """One object: the columns with their types, the rows, and how many these are."""
    columns = {field.name: str(field.type) for field in schema}
    file.write(b'{"columns": ' + json_text(columns).encode() + b',\n"rows": ')
    count = _write_json(schema, batches, file)
    file.write(f',"count": {count}}}\n'.encode())
    return count


def _write_parquet(schema: pa.Schema, batches: Iterator[pa.RecordBatch], file: IO[bytes]) -> int:
    """Parquet in row groups of many batches."""
    import pyarrow.parquet as pq

    count = 0
    with pq.ParquetWriter(file, schema, compression="zstd") as writer:
        pending: list[pa.RecordBatch] = []
        size = 0
        for batch in batches:
            pending.append(batch)
            size += batch.nbytes
            count += batch.num_rows
            if size > _ROW_GROUP_BYTES:
                writer.write_table(pa.Table.from_batches(pending, schema))
                pending, size = [], 0
        if pending:
            writer.write_table(pa.Table.from_batches(pending, schema))
    return count


_ROW_GROUP_BYTES = 64 << 20

Writer = Callable[[pa.Schema, Iterator[pa.RecordBatch], IO[bytes]], int]

WRITERS: dict[str, Writer] = {
    "object": _write_object,
    "csv": _write_csv,
    "json": _write_json,
    "jsonl": _write_jsonl,
    "parquet": _write_parquet,
}
"""Format -> what writes it."""
