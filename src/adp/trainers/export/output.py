"""The folder of an export: staged beside its place, and renamed when it is whole."""

from __future__ import annotations

import json
import re
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from hashlib import blake2b
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from adp_schema.errors import OutputExistsError
from adp_schema.jsontext import replace_surrogates
from adp_schema.verification import cannot_write

_GROUP_ROWS = 2_000
_GROUP_BYTES = 32 << 20
_BIG = re.compile(rb"\d{19}")
_LARGEST = 2**63


class UnwritableError(ValueError):
    """A row holds something that the file cannot; the message is the reason."""


@contextmanager
def staged(out: str) -> Iterator[Path]:
    """A folder to write into, which gets its name when everything is there; else it is removed.

    Args:
        out: the folder that is to be; absent or empty.

    Raises:
        OutputExistsError: it holds something, or cannot be written.
    """
    folder = Path(out)
    try:
        if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
            raise OutputExistsError(f"{folder} is there and not empty; choose another -o")
        folder.parent.mkdir(parents=True, exist_ok=True)
        path = Path(tempfile.mkdtemp(prefix=f".{folder.name}.", dir=folder.parent))
    except OSError as error:
        raise OutputExistsError(f"cannot write to {folder}: {error.strerror}") from error
    try:
        yield path
        path.chmod(0o755)
        path.replace(folder)
    except OSError as error:
        raise cannot_write(folder, error) from error
    finally:
        shutil.rmtree(path, ignore_errors=True)


def encode(row: Mapping[str, Any]) -> bytes:
    """A row as JSON in one line.

    Raises:
        UnwritableError: it holds what JSON, or the readers of the trainers, cannot hold.
    """
    try:
        text = json.dumps(row, ensure_ascii=False, allow_nan=False, separators=(", ", ": "))
    except ValueError:
        raise UnwritableError("a number that JSON does not have (NaN or infinite)") from None
    except RecursionError:
        raise UnwritableError("arguments or tools are nested too deep") from None
    line = replace_surrogates(text).encode("utf-8")
    if _BIG.search(line) and _has_big(row):
        raise UnwritableError("a whole number of more than 64 bits, which datasets cannot read")
    return line


def _has_big(value: Any) -> bool:
    pending = [value]
    while pending:
        result = pending.pop()
        if isinstance(result, Mapping):
            pending += result.values()
        elif isinstance(result, list | tuple):
            pending += result
        elif isinstance(result, int) and not -_LARGEST <= result < _LARGEST:
            return True
    return False


class RowFile:
    """The data file: a row a line, one JSON array, or Parquet, by the ending of its name.

    Args:
        path: the file.
        schema: Arrow schema of a Parquet file.
        unique: whether a row that was written before is left out.
        mix: column by whose values the rows are mixed; None keeps their order.

    Attributes:
        rows: rows written.
    """

    def __init__(self, path: Path, schema: Any, *, unique: bool, mix: str | None) -> None:
        self.rows = 0
        self._path = path
        self._unique: set[bytes] | None = set() if unique else None
        self._mix = mix
        self._places: list[tuple[bool, int, int]] = []
        self._table = _Table(path, schema) if path.suffix == ".parquet" else None
        self._array = path.suffix == ".json"
        self._file: BinaryIO | None = None if self._table else path.open("wb")
        self._at = 0

    def add(self, rows: Sequence[Mapping[str, Any]]) -> bool:
        """Write the rows of one item, all or none. Returns False when they were written before.

        Raises:
            UnwritableError: one holds what the file cannot.
        """
        lines = (
            [encode(row) for row in rows] if self._table is None or self._unique is not None else []
        )
        if self._unique is not None and lines:
            key = blake2b(b"\n".join(lines), digest_size=16).digest()
            if key in self._unique:
                return False
            self._unique.add(key)
        if self._table is not None:
            for row in rows:
                self._table.add(row)
            self.rows += len(rows)
            return True
        for line, row in zip(lines, rows, strict=True):
            self._line(line, row)
        return True

    def _line(self, line: bytes, row: Mapping[str, Any]) -> None:
        assert self._file is not None
        if self._array:
            line = (b",\n" if self.rows else b"[\n") + line
        else:
            line += b"\n"
        if self._mix is not None:
            self._places.append((bool(row[self._mix]), self._at, len(line)))
        self._file.write(line)
        self._at += len(line)
        self.rows += 1

    def close(self) -> None:
        """End the file."""
        if self._table is not None:
            self._table.close()
        if self._file is None:
            return
        if self._array:
            self._file.write(b"\n]\n" if self.rows else b"[]\n")
        self._file.close()
        if self._mix is not None:
            self._reorder()

    def _reorder(self) -> None:
        """Write the lines anew in an order that mixes them."""
        apart = self._path.with_name(f"{self._path.name}.apart")
        self._path.replace(apart)
        with apart.open("rb") as read, self._path.open("wb") as write:
            for number in mixed([value for value, _, _ in self._places]):
                _, at, length = self._places[number]
                read.seek(at)
                write.write(read.read(length))
        apart.unlink()


def mixed(values: list[bool]) -> list[int]:
    """An order of rows in which neighbours are strangers and both values are spread evenly.

    The rows of one value are put in an order that only their numbers decide (by the
    numbers of splitmix64). Then the k-th of n rows of a value stands at the share (k + 1/2) / n
    of the whole: every batch gets both values as often as the whole has them.

    Args:
        values: the value of each row.

    Returns:
        Numbers of the rows in their new order.
    """
    order = np.argsort(_splitmix(len(values)), kind="stable")
    given = np.asarray(values, dtype=bool)[order]
    share = np.empty(len(values))
    for value in (True, False):
        same = given == value
        count = int(same.sum())
        share[same] = (np.arange(count) + 0.5) / max(count, 1)
    place = np.lexsort((given, share))
    return [int(number) for number in order[place]]


def _splitmix(count: int) -> np.ndarray[Any, np.dtype[np.uint64]]:
    """The first numbers of splitmix64 (Steele, Lea and Flood 2014, section 4)."""
    with np.errstate(over="ignore"):
        value = np.arange(1, count + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        value = (value ^ (value >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        value = (value ^ (value >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return value ^ (value >> np.uint64(31))


class _Table:
    """A Parquet file; row groups are bounded by bytes and rows."""

    def __init__(self, path: Path, schema: pa.Schema) -> None:
        self._schema = schema
        self._writer = pq.ParquetWriter(path, schema, compression="zstd", compression_level=3)
        self._held: list[Mapping[str, Any]] = []
        self._bytes = 0

    def add(self, row: Mapping[str, Any]) -> None:
        self._held.append(row)
        self._bytes += sum(getattr(value, "nbytes", 0) for value in row.values())
        if len(self._held) >= _GROUP_ROWS or self._bytes >= _GROUP_BYTES:
            self._flush()

    def _flush(self) -> None:
        if self._held:
            columns = [
                pa.array([row[field.name] for row in self._held], field.type)
                for field in self._schema
            ]
            self._writer.write_table(pa.Table.from_arrays(columns, schema=self._schema))
        self._held, self._bytes = [], 0

    def close(self) -> None:
        self._flush()
        self._writer.close()
