"""Tables of files, behind the query gate."""

from __future__ import annotations

import shutil
import sqlite3
import tempfile
import weakref
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import pyarrow as pa
import pyarrow.parquet as pq

from adp.core.delimiters import delimiter_of
from adp.eval.tools import ToolError
from adp.eval.turns import ErrorType
from adp_schema.errors import InputError, QueryError, QueryTimeoutError, UsageError
from adp_schema.gate import QueryGate
from adp_schema.gate_files import ExtraView

if TYPE_CHECKING:
    import polars as pl

_LOOKED_AT = 1 << 16
"""Characters of a CSV file that say what stands between its cells."""
_SQLITE = (".sqlite", ".sqlite3", ".db")
_READ = (".parquet", ".csv", ".tsv", ".json", ".jsonl", ".ndjson", *_SQLITE)


class Shown(Protocol):
    """How much of an answer is shown."""

    rows: int
    cell: int
    seconds: float


@dataclass
class Tables:
    """Tables that can be read and not written.

    Attributes:
        gate: the query gate.
        scratch: Parquet files of tables that came in another form; it lives as long as the gate.
    """

    gate: QueryGate
    scratch: Path
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
        found = self._run(f"DESCRIBE {source}", 10.0)
        return dict(zip(found["column_name"], found["column_type"], strict=True))

    def rows(self, query: str, shown: Shown) -> dict[str, Any]:
        """Columns, the first rows of an answer, and whether there are more."""
        try:
            reader = self.gate.batches(query, seconds=shown.seconds)
            rows: list[list[Any]] = []
            for batch in reader:
                rows += [list(row.values()) for row in batch.to_pylist()]
                if len(rows) > shown.rows:
                    break
            reader.close()
        except QueryError as error:
            raise _told(error) from None
        kept = [[_cut(value, shown.cell) for value in row] for row in rows[: shown.rows]]
        found: dict[str, Any] = {"columns": reader.schema.names, "rows": kept}
        if len(rows) > shown.rows:
            found["note"] = f"only the first {shown.rows} rows are shown"
        return found

    def _run(self, query: str, seconds: float) -> dict[str, list[Any]]:
        try:
            table = self.gate.batches(query, seconds=seconds).read_all()
        except QueryError as error:
            raise _told(error) from None
        found: dict[str, list[Any]] = table.to_pydict()
        return found


def _told(error: QueryError) -> ToolError:
    late = isinstance(error, QueryTimeoutError)
    return ToolError(str(error), ErrorType.TIMEOUT if late else ErrorType.EXECUTION)


def _cut(value: Any, length: int) -> Any:
    if value is None or isinstance(value, bool | int | float):
        return value
    text = value if isinstance(value, str) else str(value)
    return text if len(text) <= length else text[:length] + "..."


@lru_cache(maxsize=16)
def _open(path: Path, memory: str) -> Tables:
    if not path.exists():
        raise InputError(f"{path} is not there; name a folder of tables, or one file")
    scratch = Path(tempfile.mkdtemp(prefix="adp-tables-"))
    try:
        tables = _read(path, memory, scratch)
    except BaseException:
        shutil.rmtree(scratch, ignore_errors=True)
        raise
    weakref.finalize(tables, shutil.rmtree, scratch, ignore_errors=True)
    return tables


def _read(path: Path, memory: str, scratch: Path) -> Tables:
    files = [path] if path.is_file() else sorted(path.iterdir())
    views: dict[str, ExtraView] = {}
    for file in files:
        if file.suffix.lower() not in _READ:
            continue
        for name, source in _parquet(file, scratch):
            if name in views:
                raise UsageError(f"two tables are named '{name}'; rename one of the files")
            views[name] = ExtraView(name, str(source))
    if not views:
        raise UsageError(f"{path} holds no table; it needs one of {', '.join(_READ)}")
    gate = QueryGate({}, extra=list(views.values()), memory_limit=memory, threads=1)
    return Tables(gate, scratch, tuple(views))


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
    import polars as pl

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
    found: list[tuple[str, Path]] = []
    with sqlite3.connect(f"{file.as_uri()}?mode=ro", uri=True) as connection:
        listing = "SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name"
        for (name,) in connection.execute(listing).fetchall():
            quoted = name.replace('"', '""')
            cursor = connection.execute(f'SELECT * FROM "{quoted}"')
            columns = [column[0] for column in cursor.description]
            values = list(zip(*cursor.fetchall(), strict=True)) or [()] * len(columns)
            arrays = [_array(list(column)) for column in values]
            target = scratch / f"{len(found):05d}-{file.stem}.parquet"
            pq.write_table(pa.Table.from_arrays(arrays, names=columns), target)
            found.append((name, target))
    return found


def _array(values: list[Any]) -> pa.Array:
    """A column of SQLite may hold several types; then it is text."""
    try:
        return pa.array(values)
    except (pa.ArrowInvalid, pa.ArrowTypeError):
        return pa.array([None if value is None else str(value) for value in values])
