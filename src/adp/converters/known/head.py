"""The head of a file, decoded as far as it goes: what signatures look at.

Only the first part of a file is read, whatever its size. JSON that ends in the middle is closed
where it is cut, so that the first keys and items of a large document can be seen.
"""

from __future__ import annotations

import contextlib
import gzip
import json
import re
import sqlite3
import zipfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from adp.core.input_files import open_file

HEAD_BYTES = 1 << 18
HEAD_RECORDS = 20
_SQLITE_BYTES = 16 << 20

_TOKEN = re.compile(
    r'"[^"\\]*(?:\\.[^"\\]*)*(?:"|\\?\Z)'  # a string, perhaps cut at the end
    r'|[{}\[\],:]|[^\s{}\[\],:"]+',
    re.DOTALL,
)
_TEXT_SUFFIXES = {".md", ".txt", ".rst"}
_YAML_SUFFIXES = {".yaml", ".yml"}


@dataclass
class Head:
    """What was seen of a file.

    Attributes:
        name: name of the file.
        container: ``object`` (one JSON object), ``array`` (one JSON array), ``lines`` (a JSON
            value a line), ``parquet``, ``zip``, ``sqlite``, ``text``, ``yaml``, ``empty`` or
            ``unknown``.
        records: the first records: the object itself, or the first items, lines or rows.
        members: names of the members of a zip file; ``table.column`` of an SQLite file.
        broken: lines among the first that are no JSON.
    """

    name: str
    container: str
    records: list[Any] = field(default_factory=list)
    members: frozenset[str] = frozenset()
    broken: int = 0

    @cached_property
    def rows(self) -> list[dict[str, Any]]:
        """The records that are JSON objects."""
        return [record for record in self.records if isinstance(record, dict)]


def read_head(path: Path, name: str = "") -> Head:
    """Look at the first part of a file.

    Args:
        path: the file: absolute, and without links.
        name: what it is called, if not by its path.

    Raises:
        OSError: it cannot be read.
    """
    name = name or path.name
    with open_file(path) as file:
        data = file.read(HEAD_BYTES)
        cut = bool(file.read(1))
    if data.startswith(b"\x1f\x8b"):
        data, cut = _unzipped(path)
        name = name.removesuffix(".gz")
    if not data:
        return Head(name, "empty")
    if data.startswith(b"PK\x03\x04"):
        return _zip_head(path, name)
    if data.startswith(b"SQLite format 3\x00"):
        return _sqlite_head(path, name)
    if data.startswith(b"PAR1"):
        return _parquet_head(path, name)
    return text_head(name, data, cut)


def text_head(name: str, data: bytes, cut: bool) -> Head:
    """The head of a text file.

    Args:
        name: name of the file.
        data: its first bytes.
        cut: whether there is more.
    """
    suffix = Path(name).suffix.lower()
    if suffix in _TEXT_SUFFIXES:
        return Head(name, "text")
    if suffix in _YAML_SUFFIXES:
        return Head(name, "yaml")
    text = data.decode("utf-8", "replace").removeprefix("\ufeff").strip()
    if suffix not in (".jsonl", ".ndjson") and text[:1] in ("{", "["):
        try:
            return _document(name, json.loads(text))
        except (ValueError, RecursionError):
            lines = _lines(name, text, cut)
            if lines and not lines.broken and len(lines.records) > 1:
                return lines
            return _document(name, closed(text)) if cut else Head(name, "unknown")
    return _lines(name, text, cut) or Head(name, "unknown")


def _document(name: str, value: Any) -> Head:
    if isinstance(value, list):
        return Head(name, "array", value[:HEAD_RECORDS])
    return Head(name, "object", [value]) if isinstance(value, dict) else Head(name, "unknown")


def _lines(name: str, text: str, cut: bool) -> Head | None:
    """A file of JSON values, one a line; None when no line is an object or array."""
    records: list[Any] = []
    broken = 0
    lines = [line for line in text.split("\n") if line.strip()]
    for number, line in enumerate(lines[: 2 * HEAD_RECORDS]):
        try:
            value = json.loads(line)
        except (ValueError, RecursionError):
            if cut and number == len(lines) - 1:
                value = closed(line)
            else:
                broken += 1
                continue
        if isinstance(value, dict | list):
            records.append(value)
        if len(records) == HEAD_RECORDS:
            break
    return Head(name, "lines", records, broken=broken) if records else None


def closed(text: str) -> Any:
    """Decode JSON that is cut at the end; None when that does not help.

    The last value that is whole, or begun and a list or object, is the last one kept; a key whose
    value is not there gets null.
    """
    stack: list[str] = []
    end, ending, expects_key = 0, "", False
    for match in _TOKEN.finditer(text):
        token = match.group()
        if token in "{[":
            stack.append("}" if token == "{" else "]")
            expects_key = token == "{"
        elif token in "}]":
            if stack:
                stack.pop()
        elif token == ":":
            end, ending, expects_key = match.end(), "null", False
            continue
        elif token == ",":
            expects_key = bool(stack) and stack[-1] == "}"
            continue
        elif expects_key or match.end() == len(text):
            continue
        end, ending = match.end(), ""
    try:
        return json.loads(text[:end] + ending + "".join(reversed(stack))) if end else None
    except (ValueError, RecursionError):
        return None


def _unzipped(path: Path) -> tuple[bytes, bool]:
    """The first bytes of a gzip file; what can be read of a damaged one."""
    try:
        with open_file(path) as packed, gzip.open(packed, "rb") as file:
            data = file.read(HEAD_BYTES)
            return data, bool(file.read(1))
    except (OSError, EOFError, zlib.error):
        return b"", False


def _zip_head(path: Path, name: str) -> Head:
    try:
        with open_file(path) as data, zipfile.ZipFile(data) as file:
            return Head(name, "zip", members=frozenset(file.namelist()))
    except (zipfile.BadZipFile, NotImplementedError, ValueError):
        return Head(name, "unknown")


def _sqlite_head(path: Path, name: str) -> Head:
    """Tables and columns, of a copy of the first part in memory: nothing is locked or written."""
    with open_file(path) as file:
        data = bytearray(file.read(_SQLITE_BYTES))
    page = int.from_bytes(data[16:18], "big")
    page = 1 << 16 if page == 1 else max(page, 512)
    del data[len(data) // page * page :]
    data[18:20] = b"\1\1"  # as if no log were kept beside it: memory has no place for one
    try:
        with contextlib.closing(sqlite3.connect(":memory:")) as connection:
            connection.deserialize(bytes(data))
            connection.execute("PRAGMA writable_schema = ON")  # opens a file that is cut
            return Head(name, "sqlite", members=frozenset(_columns(connection)))
    except sqlite3.Error:
        return Head(name, "unknown")


def _columns(connection: sqlite3.Connection) -> Iterator[str]:
    query = (
        "SELECT m.name, c.name FROM sqlite_master AS m, pragma_table_info(m.name) AS c "
        "WHERE m.type = 'table'"
    )
    for table, column in connection.execute(query):
        yield f"{table}.{column}"


def _parquet_head(path: Path, name: str) -> Head:
    """The first rows of a Parquet file."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with open_file(path) as data, pq.ParquetFile(data) as file:
            batch = next(file.iter_batches(HEAD_RECORDS), None)
        rows = batch.to_pylist() if batch is not None else []
    except (pa.ArrowException, OSError, ValueError):
        return Head(name, "unknown")
    return Head(name, "parquet", rows)
