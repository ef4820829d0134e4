"""SQLite databases of others: opened for reading only, without trust in what is in them.

Nothing is written beside the database. While a log of changes (``-wal``) lies beside it, a copy of
both is read; else the file itself is, as one that nobody changes. Only tables are read, never
views or virtual tables, and no columns that are computed. A statement that takes more steps than
a sound database of that size is stopped.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from adp.converters.files.limits import ConvertLimits
from adp.core.input_files import open_file
from adp_schema.errors import RecordError
from adp_schema.scratch import ScratchFolder

MAGIC = b"SQLite format 3\x00"
LOG, INDEX = "-wal", "-shm"
"""What SQLite keeps beside a database: changes that are not in it yet, and where they are."""

TOO_MANY_STEPS = (
    "reading the SQLite database takes more steps than a sound one of its size; it is damaged, or "
    "made to"
)
_JOURNAL, _JOURNAL_MAGIC = "-journal", b"\xd9\xd5\x05\xf9\x20\xa1\x63\xd7"
_SCHEMA_BYTES = 16 << 20
_TICK = 1000
_STEPS_A_STATEMENT = 200
_STEPS, _STEPS_A_BYTE = 20_000_000, 200
_ROW_NAMES = ("rowid", "_rowid_", "oid")
_CHUNK = 4 << 20
_COPIES = 5


@dataclass(frozen=True)
class SqliteShape:
    """Where the sessions of a format lie in a database.

    A record is ``{root: {column: value}, child: [{...}, ...], ..., shared: [{...}, ...]}``.

    Attributes:
        root: the table with a row for each record.
        key: the column of it that names the record.
        children: the tables whose rows belong to a record, each with the column that names it.
            With a ``prefix``, any name with the keys of its rows, such as ``bubbleId:{id}:``: rows
            of the same table, whose keys begin so, or are so when nothing follows ``{id}``.
        order: columns to sort the rows of a child by, those that are there; the order of the file
            else.
        shared: tables that every record gets as a whole.
        needs: ``table.column`` of all that makes a database one of this format.
        prefix: of a table of keys and values: the rows with a key that begins so are the records,
            and the rest of the key is the id.
        through: for a child whose table does not name the record: its column that names a row of
            another child, and that child, whose rows have the column ``id``.
    """

    root: str
    key: str
    children: Mapping[str, str] = field(default_factory=dict)
    order: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    shared: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()
    prefix: str = ""
    through: Mapping[str, tuple[str, str]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Refuse keys without a beginning of their own.

        Raises:
            ValueError: a child of a table of keys and values has no ``{id}``, or begins with it.
        """
        for name, keys in self.children.items() if self.prefix else ():
            if keys.find("{id}") < 1:
                raise ValueError(f"the keys of {name} need a beginning, and {{id}} after it")

    def lacks(self, columns: Mapping[str, tuple[str, ...]]) -> list[str]:
        """What a database does not have of what this shape needs.

        Args:
            columns: the columns of its tables.
        """
        needs = [*self.needs, f"{self.root}.{self.key}"]
        present = {f"{table}.{name}" for table, names in columns.items() for name in names}
        return sorted(set(needs) - present)


@dataclass(frozen=True)
class SqliteTable:
    """A table that can be read.

    Attributes:
        name: its name.
        columns: the columns that are stored, in order.
        row_order: SQL of what its rows are sorted by when nothing else is asked for.
        row_name: what its row numbers are called in SQL; empty when it has none.
    """

    name: str
    columns: tuple[str, ...]
    row_order: str
    row_name: str

    @property
    def sql(self) -> str:
        """Its name as SQL."""
        return f"main.{quoted(self.name)}"


class SqliteDatabase:
    """An open database; a context manager.

    Args:
        path: the file, without links.
        limits: limits of the conversion.
        log: the file of its changes; None when there is none, or it is not to be read.

    Attributes:
        size: bytes on disk.

    Raises:
        OSError: it cannot be opened or copied.
        RecordError: it is damaged, or changes all the time.
    """

    def __init__(self, path: str, limits: ConvertLimits, log: str | None = None) -> None:
        self._limits = limits
        self._scratch: ScratchFolder | None = None
        self.size = sum(Path(name).lstat().st_size for name in (path, log) if name)
        self._file_size = Path(path).lstat().st_size
        self._steps = _STEPS + _STEPS_A_BYTE * self.size
        try:
            address = self._copied(path, log) if log else _untouched(path)
            with self.explained():
                self._connection = sqlite3.connect(
                    address, uri=True, isolation_level=None, check_same_thread=False
                )
        except BaseException:
            self._clean()
            raise
        try:
            with self.explained():
                self._guard()
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> SqliteDatabase:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def is_cut(self) -> bool:
        """Whether the file ends inside a page; SQLite takes zeros for the rest of it."""
        return bool(self._file_size % self.number("PRAGMA page_size"))

    def close(self) -> None:
        """Close it, and remove the copy."""
        self._connection.close()
        self._clean()

    def _clean(self) -> None:
        if self._scratch is not None:
            self._scratch.close()

    def _copied(self, path: str, log: str) -> str:
        """Copy a database and its log, and return the address of the copy.

        Whoever writes to them meanwhile may tear the copy, so it is made anew until it is sound.
        """
        self._scratch = ScratchFolder("sqlite")
        target = self._scratch.path / "database"
        for _ in range(_COPIES):
            before = _states(path, log)
            for source, suffix in ((path, ""), (log, LOG)):
                with (
                    open_file(source) as file,
                    target.with_name(target.name + suffix).open("wb") as out,
                ):
                    shutil.copyfileobj(file, out, _CHUNK)
            if _states(path, log) == before:
                return f"{target.as_uri()}?mode=rw"
        raise RecordError("the SQLite database changes faster than it can be copied")

    def _guard(self) -> None:
        connection = self._connection
        connection.text_factory = _text
        connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _SCHEMA_BYTES)
        connection.setlimit(sqlite3.SQLITE_LIMIT_ATTACHED, 0)
        connection.set_progress_handler(self._tick, _TICK)
        for setting in ("trusted_schema = OFF", "cell_size_check = ON", "mmap_size = 0"):
            connection.execute(f"PRAGMA {setting}")
        connection.execute("SELECT count(*) FROM main.sqlite_master").fetchone()

    def _tick(self) -> bool:
        self._steps -= _TICK
        return self.spent

    @property
    def spent(self) -> bool:
        """Whether its statements took too many steps; no further one will end."""
        return self._steps < 0

    @contextmanager
    def explained(self) -> Iterator[None]:
        """Make a rejected record of what SQLite says.

        Raises:
            RecordError: the database is damaged, hostile, or has a value over the limit.
        """
        try:
            yield
        except sqlite3.DataError as error:
            self._limits.check_size(self._limits.record_bytes + 1)
            raise AssertionError from error
        except (sqlite3.Error, ValueError, MemoryError) as error:
            if self.spent:
                raise RecordError(TOO_MANY_STEPS) from error
            words = (str(error).splitlines() or [type(error).__name__])[0][:200]
            raise RecordError(f"the SQLite database is damaged ({words})") from error

    def protect(self) -> None:
        """Refuse all changes from now on, and values that are larger than a record may be."""
        with self.explained():
            self._connection.execute("PRAGMA ignore_check_constraints = ON")
            self._connection.execute("PRAGMA query_only = ON")
            limit = min(max(self._limits.record_bytes, 4096), 1 << 30)
            self._connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, limit)

    def execute(self, sql: str, values: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
        """The rows of a statement.

        Args:
            sql: the statement.
            values: what stands for its question marks.

        Raises:
            RecordError: as `explained`.
        """
        with self.explained():
            # Statements that end before the first tick are no steps otherwise.
            self._steps -= _STEPS_A_STATEMENT
            cursor = self._connection.execute(sql, values)
            try:
                yield from cursor
            finally:
                cursor.close()

    def number(self, sql: str, values: tuple[Any, ...] = ()) -> int:
        """The one number that a statement gives.

        Args:
            sql: the statement.
            values: what stands for its question marks.

        Raises:
            RecordError: as `explained`.
        """
        return int(next(self.execute(sql, values))[0])

    def damage_of(self, name: str) -> str:
        """What is wrong with the pages of a table; empty when nothing is.

        A table with computed columns is not looked at, since that would compute them.

        Args:
            name: its name.

        Raises:
            RecordError: as `explained`.
        """
        computed = "SELECT count(*) FROM pragma_table_xinfo(?) WHERE hidden <> 0"
        if self.number(computed, (name,)):
            return ""
        for (words,) in self.execute(f"PRAGMA main.quick_check({quoted(name)})"):
            if str(words).startswith("***"):  # others are about values that a table should not have
                return str(words).splitlines()[-1][:200]
        return ""

    def names(self) -> tuple[list[str], list[str]]:
        """The tables, sorted, and the virtual ones, which are not read.

        Raises:
            RecordError: as `explained`.
        """
        listing = "SELECT name, rootpage FROM main.sqlite_master WHERE type = 'table' ORDER BY name"
        tables: dict[bool, list[str]] = {True: [], False: []}
        for name, page in self.execute(listing):
            if not isinstance(name, str):
                raise RecordError("the SQLite database has a table whose name is no text")
            if not name.lower().startswith("sqlite_"):
                tables[isinstance(page, int) and page > 0].append(name)
        return tables[True], tables[False]

    def columns(self) -> dict[str, tuple[str, ...]]:
        """The columns of all tables that can be read.

        Raises:
            RecordError: as `explained`.
        """
        return {name: tuple(self._columns(name)) for name in self.names()[0]}

    def _columns(self, name: str) -> dict[str, int]:
        """The stored columns of a table, each with its place in the primary key, from 1."""
        listing = "SELECT name, pk FROM pragma_table_xinfo(?) WHERE hidden = 0"
        columns = dict(self.execute(listing, (name,)))
        if not all(isinstance(column, str) for column in columns):
            raise RecordError("the SQLite database has a column whose name is no text")
        return columns

    def table(self, name: str) -> SqliteTable:
        """What is needed to read a table.

        Args:
            name: its name.

        Raises:
            RecordError: as `explained`.
        """
        columns = self._columns(name)
        taken = {column.lower() for column in columns}
        row_name = next((word for word in _ROW_NAMES if word not in taken), "")
        try:
            self._connection.execute(f"SELECT {row_name} FROM main.{quoted(name)} LIMIT 0")
        except sqlite3.Error:
            row_name = ""
        keys = sorted((place, column) for column, place in columns.items() if place)
        order = row_name or ", ".join(quoted(column) for _, column in keys) or "1"
        return SqliteTable(name, tuple(columns), order, row_name)


def _states(*paths: str) -> list[tuple[int, int, int]]:
    """What changes when files are written to."""
    stats = [Path(path).lstat() for path in paths]
    return [(stat.st_ino, stat.st_size, stat.st_mtime_ns) for stat in stats]


def quoted(name: str) -> str:
    """A name as SQL."""
    return '"' + name.replace('"', '""') + '"'


def _text(data: bytes) -> str | bytes:
    """A text; the bytes of one that is not valid UTF-8."""
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return data


def _untouched(path: str) -> str:
    """The address of a file that is read as it is."""
    open_file(path).close()  # a link or a pipe that was put there meanwhile is refused
    return f"{Path(path).as_uri()}?mode=ro&immutable=1"


def neighbour_status(path: str, suffix: str) -> os.stat_result | None:
    """The status of a file beside a database; None when there is none.

    Args:
        path: the database, without links.
        suffix: `LOG` or `INDEX`.

    Raises:
        OSError: it is no regular file.
    """
    try:
        status = Path(path + suffix).lstat()
    except FileNotFoundError:
        return None
    if not stat.S_ISREG(status.st_mode):
        raise OSError(None, f"its {suffix} file is a link or no file")
    return status


def is_unfinished(path: str) -> bool:
    """Whether a journal says that a change of a database was not finished.

    Args:
        path: the database, without links.

    Raises:
        OSError: the journal cannot be read.
    """
    if neighbour_status(path, _JOURNAL) is None:
        return False
    with open_file(path + _JOURNAL) as file:
        return file.read(len(_JOURNAL_MAGIC)) == _JOURNAL_MAGIC
