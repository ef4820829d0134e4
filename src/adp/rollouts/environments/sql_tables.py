"""Tables of files, asked through the query gate in processes of their own."""

from __future__ import annotations

import sqlite3
import weakref
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from adp.core.input_files import check_inside
from adp.rollouts.csv_delimiters import delimiter_of
from adp.rollouts.environments.sql_settings import SqlSettings
from adp.rollouts.environments.sql_workers import QueryRequest, SqlWorkers
from adp_schema.errors import InputError, UsageError
from adp_schema.scratch import ScratchFolder

_LOOKED_AT = 1 << 16
"""Characters of a CSV file that say what stands between its cells."""
_SQLITE = (".sqlite", ".sqlite3", ".db")
_READ = (".parquet", ".csv", ".tsv", ".json", ".jsonl", ".ndjson", *_SQLITE)


@dataclass
class Tables:
    """Tables that can be read and not written.

    Attributes:
        workers: processes that answer queries.
        scratch: Parquet files of tables that came in another form.
    """

    workers: SqlWorkers
    scratch: ScratchFolder
    _names: tuple[str, ...] = field(default=())

    @classmethod
    def open(cls, path: Path, memory: str) -> Tables:
        """The tables of a folder or a file; opened once in a process.

        Raises:
            InputError: a file cannot be read as a table.
            UsageError: there is no table, or two have one name.
        """
        return _open(path.resolve(), memory)

    def names(self) -> list[str]:
        """Names of the tables."""
        return list(self._names)

    def columns(self, source: str) -> dict[str, str]:
        """Names and types of the columns of a SELECT."""
        question = QueryRequest(f"DESCRIBE {source}", rows=100_000, cell=100_000, seconds=10.0)
        return {row[0]: row[1] for row in self.workers.ask(question)["rows"]}

    def rows(self, query: str, shown: SqlSettings) -> dict[str, Any]:
        """Columns, the first rows of an answer, and whether there are more."""
        answer = self.workers.ask(QueryRequest(query, shown.rows, shown.cell, shown.seconds))
        rows = answer["rows"]
        results: dict[str, Any] = {"columns": answer["columns"], "rows": rows[: shown.rows]}
        if len(rows) > shown.rows:
            results["note"] = f"only the first {shown.rows} rows are shown"
        return results


@lru_cache(maxsize=16)
def _open(path: Path, memory: str) -> Tables:
    if not path.exists():
        raise InputError(f"{path} is not there; name a folder of tables, or one file")
    scratch = ScratchFolder("tables")
    try:
        tables = _read(path, memory, scratch)
    except BaseException:
        scratch.close()
        raise
    weakref.finalize(tables, tables.workers.close)
    return tables


def _read(path: Path, memory: str, scratch: ScratchFolder) -> Tables:
    files = [path] if path.is_file() else sorted(path.iterdir())
    views: dict[str, Path] = {}
    for file in files:
        if file.suffix.lower() not in _READ:
            continue
        if file != path:
            check_inside(file, path)
        for name, source in _parquet(file, scratch.path):
            if name in views:
                raise UsageError(f"two tables are named '{name}'; rename one of the files")
            views[name] = source
    if not views:
        raise UsageError(f"{path} holds no table; it needs one of {', '.join(_READ)}")
    workers = SqlWorkers([(name, str(file)) for name, file in views.items()], memory)
    workers.start()
    return Tables(workers, scratch, tuple(views))


def _parquet(file: Path, scratch: Path) -> list[tuple[str, Path]]:
    """The tables of a file as Parquet files."""
    if file.suffix.lower() == ".parquet":
        return [(file.stem, file)]
    try:
        if file.suffix.lower() in _SQLITE:
            return _sqlite(file, scratch)
        target = scratch / f"{file.stem}.parquet"
        _frame(file).write_parquet(target)
    except Exception as error:
        raise InputError(f"{file} cannot be read as a table: {error}") from error
    return [(file.stem, target)]


def _frame(file: Path) -> pl.DataFrame:
    kind = file.suffix.lower()
    if kind in (".csv", ".tsv"):
        separator = "\t" if kind == ".tsv" else _separator(file)
        return pl.read_csv(file, separator=separator, infer_schema_length=None)
    if kind == ".json":
        return pl.read_json(file)
    return pl.read_ndjson(file)


def _separator(file: Path) -> str:
    with file.open(encoding="utf-8-sig", errors="replace") as opened:
        return delimiter_of(opened.read(_LOOKED_AT))


def _sqlite(file: Path, scratch: Path) -> list[tuple[str, Path]]:
    sqlite: list[tuple[str, Path]] = []
    with sqlite3.connect(f"{file.as_uri()}?mode=ro", uri=True) as connection:
        listing = "SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name"
        for (name,) in connection.execute(listing).fetchall():
            quoted = name.replace('"', '""')
            cursor = connection.execute(f'SELECT * FROM "{quoted}"')
            columns = [column[0] for column in cursor.description]
            values = list(zip(*cursor.fetchall(), strict=True)) or [()] * len(columns)
            arrays = [_array(list(column)) for column in values]
            target = scratch / f"{len(sqlite):05d}-{file.stem}.parquet"
            pq.write_table(pa.Table.from_arrays(arrays, names=columns), target)
            sqlite.append((name, target))
    return sqlite


def _array(values: list[Any]) -> pa.Array:
    """A column of SQLite may hold several types; then it is text."""
    try:
        return pa.array(values)
    except (pa.ArrowInvalid, pa.ArrowTypeError):
        return pa.array([None if value is None else str(value) for value in values])
