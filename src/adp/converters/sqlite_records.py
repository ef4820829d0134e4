"""The records of an SQLite database: a session with the rows that belong to it, as JSON.

Texts are strings, numbers are numbers, null is null. What is no text is ``{"$base64": "..."}``, and
so is a text that is not valid UTF-8. What is not read is counted: tables that the format does not
know, and rows that belong to no session.
"""

from __future__ import annotations

import base64
import math
from collections import Counter
from collections.abc import Callable, Generator, Iterator
from typing import Any

import msgspec

from adp.converters.files.limits import BOMB_BYTES, BOMB_RATIO, ConvertLimits, Gathered
from adp.converters.files.sqlite import (
    TOO_MANY_STEPS,
    SqliteDatabase,
    SqliteShape,
    SqliteTable,
    quoted,
)
from adp.converters.frames import Frame
from adp_schema.errors import RecordError

_SHARED_BYTES = 16 << 20
_INFINITY = {True: msgspec.Raw(b"Infinity"), False: msgspec.Raw(b"-Infinity")}


def database_frames(
    path: str, log: str | None, shape: SqliteShape, limits: ConvertLimits
) -> Iterator[Frame]:
    """The records of a database, in the order of the rows of its root table, then what is not read.

    Args:
        path: the file, without links.
        log: the file of its changes, if there is one.
        shape: where the sessions lie.
        limits: limits of the conversion.

    Raises:
        OSError: it cannot be opened or copied.
    """
    number = 0
    try:
        with SqliteDatabase(path, limits, log) as database:
            for frame in _Reader(database, shape, limits).frames():
                number += 1
                frame.number, frame.offset = number, number - 1
                yield frame
    except RecordError as error:
        yield Frame(b"", number + 1, number, 0, error.reason)


class _Rows:
    """Rows of a child: which table, and which of its rows."""

    def __init__(self, table: SqliteTable, where: str, order: str) -> None:
        self.table = table
        self.where = where
        self.sql = f"{_select(table)} WHERE {where} ORDER BY {order}"


class _Reader:
    def __init__(self, database: SqliteDatabase, shape: SqliteShape, limits: ConvertLimits) -> None:
        self._database, self._shape, self._limits = database, shape, limits
        tables, self._virtual = database.names()
        self._root = database.table(shape.root)
        self._names = tables
        self._children = self._child_rows()
        database.protect()
        self._shared, self._too_large = b"", set[str]()
        self._delivered: Counter[str] = Counter()
        self._all_whole = True

    def frames(self) -> Iterator[Frame]:
        """The sessions; then what is not read, as records that are skipped or rejected."""
        total = 0
        largest = max(BOMB_BYTES, BOMB_RATIO * self._database.size)
        self._shared = self._shared_tables()
        for frame in self._sessions():
            total += frame.size
            if total > min(largest, self._limits.file_bytes):
                yield _failed(f"more than {total - frame.size:,} bytes come out of the database")
                return
            yield frame
        if self._database.is_cut:
            yield _failed("the SQLite database is cut: the end of its last page is not there")
        if not self._database.spent:
            yield from self._not_read()
        if not self._database.spent and self._all_whole:
            yield from self._damaged()

    def _damaged(self) -> Iterator[Frame]:
        """Tables that are damaged although all of their rows that are found can be read."""
        children = (rows.table.name for rows in self._children.values())
        for name in sorted({self._shape.root, *children, *self._shape.shared} & set(self._names)):
            try:
                words = self._database.damage_of(name)
            except RecordError as error:
                words = error.reason
            if words:
                yield _failed(f"the table {name} is damaged, and rows may be missing ({words})")

    def _sessions(self) -> Iterator[Frame]:
        root, shape, values = self._root, self._shape, ()
        where = ""
        if shape.prefix:
            condition, values = _key_range(shape.key, shape.prefix)
            where = f" WHERE {condition}"
        head = f"typeof({quoted(shape.key)}), {quoted(shape.key)}"
        # Each row is looked at, so that an index that is damaged hides none.
        sql = f"{_select(root, head)} NOT INDEXED{where} ORDER BY {root.row_order}"
        try:
            for kind, key, *cells in self._database.execute(sql, values):
                frame = self._session(_row(root, cells), kind, key)
                self._all_whole &= not frame.error and not frame.hash
                yield frame
                if self._database.spent:
                    raise RecordError(TOO_MANY_STEPS)
        except RecordError as error:
            self._all_whole = False
            yield _failed(f"{error.reason}; the sessions from here on are not read")

    def _session(self, row: bytes, kind: str, key: Any) -> Frame:
        """One session; a rejected record when its rows cannot be read."""
        start = b"{" + _text(self._root.name) + b":" + row
        text = Gathered(self._limits.record_bytes)
        text.add(start)
        try:
            for name, rows in self._children.items():
                text.add(b"," + _text(name) + b":[")
                between = b""
                for data in self._child(rows, self._child_values(name, kind, key)):
                    text.add(between + data)
                    between = b","
                    self._delivered[name] += 1
                    if text.size > self._limits.record_bytes:
                        # What is over the limit is not needed, and may have no end.
                        return Frame(text.data(), 0, 0, text.size, hash=text.hash())
                text.add(b"]")
            text.add(self._shared + b"}")
        except RecordError as error:
            return Frame(start + b"}", 0, 0, len(start) + 1, error.reason)
        return Frame(text.data(), 0, 0, text.size, hash=text.hash())

    def _child(self, rows: _Rows, values: tuple[Any, ...] | None) -> Iterator[bytes]:
        if values is not None:
            for cells in self._database.execute(rows.sql, values):
                yield _row(rows.table, list(cells))

    def _child_values(self, name: str, kind: str, key: Any) -> tuple[Any, ...] | None:
        """What stands for the question marks of a child; None when it can have no rows."""
        shape = self._shape
        if not shape.prefix:
            # A text that is no valid UTF-8 is bytes here, and a text again in the statement.
            return None if key is None else (key, kind == "text")
        if not isinstance(key, str):
            return None
        keys = shape.children[name].replace("{id}", key[len(shape.prefix) :])
        if shape.children[name].endswith("{id}"):
            return (keys,)
        return _key_range(shape.key, keys)[1]

    def _child_rows(self) -> dict[str, _Rows]:
        """The children that the database has, with the statements that read them."""
        shape, results = self._shape, dict[str, _Rows]()
        for name, keys in shape.children.items():
            if shape.prefix:
                table = self._root
                where = f"{quoted(shape.key)} = ?"
                if not keys.endswith("{id}"):
                    where = _key_range(shape.key, keys)[0]
            elif name not in self._names:
                continue
            else:
                table = self._database.table(name)
                where = self._condition(name, table, self._indexed)
                if not where:
                    continue
            order = [quoted(word) for word in shape.order.get(name, ()) if word in table.columns]
            results[name] = _Rows(table, where, ", ".join([*order, table.row_order]))
        return results

    def _condition(
        self, name: str, table: SqliteTable, match: Callable[[SqliteTable, str], str]
    ) -> str:
        """Which rows of a child are meant; empty when the database does not say whose they are.

        Args:
            name: the child.
            table: its table.
            match: the condition for the rows of a table that name a session in a column.
        """
        column = self._shape.children[name]
        if column in table.columns:
            return match(table, column)
        link_column, owner = self._shape.through.get(name, ("", ""))
        if link_column not in table.columns or owner not in self._names:
            return ""
        above = self._database.table(owner)
        column = self._shape.children[owner]
        if not {column, "id"} <= set(above.columns):
            return ""
        return f"{quoted(link_column)} IN (SELECT id FROM {above.sql} WHERE {match(above, column)})"

    def _indexed(self, table: SqliteTable, column: str) -> str:
        """The condition for the rows of one session; it never reads the whole table for each."""
        value = "CASE WHEN ?2 THEN CAST(?1 AS TEXT) ELSE ?1 END"
        where = f"{quoted(column)} = {value}"
        plan = f"EXPLAIN QUERY PLAN SELECT 1 FROM {table.sql} WHERE {where}"
        is_searched = all("SEARCH" in str(row[3]) for row in self._database.execute(plan, ("", 1)))
        if is_searched or not table.row_name:
            return where
        index = quoted(f"adp {table.name}")
        try:
            for statement in (
                f"CREATE TEMP TABLE {index} AS SELECT {quoted(column)} AS named, "
                f"{table.row_name} AS place FROM {table.sql}",
                f"CREATE INDEX temp.{quoted(f'adp index {table.name}')} ON {index} (named)",
            ):
                list(self._database.execute(statement))
        except RecordError:  # the sessions that have damaged rows say so
            return where
        places = f"SELECT place FROM temp.{index} WHERE named = {value}"
        return f"{table.row_name} IN ({places})"

    def _shared_tables(self) -> bytes:
        """What every record ends with: the tables that all sessions share."""
        parts: list[bytes] = []
        for name in self._shape.shared:
            rows: list[bytes] = []
            size = 0
            if name in self._names:
                table = self._database.table(name)
                sql = f"{_select(table)} ORDER BY {table.row_order}"
                for cells in self._database.execute(sql):
                    rows.append(_row(table, list(cells)))
                    size += len(rows[-1])
                    if size > min(_SHARED_BYTES, self._limits.record_bytes):
                        rows = []
                        self._too_large.add(name)
                        break
            parts.append(b"," + _text(name) + b":[" + b",".join(rows) + b"]")
        return b"".join(parts)

    def _not_read(self) -> Iterator[Frame]:
        """Rows and tables that are in no record, as one record each that is not used."""
        shape = self._shape
        for name, rows in self._children.items():
            sql, values = self._orphans(name, rows.table)
            what = f"rows of {name} belong to no row of {shape.root}"
            if shape.prefix:
                what = f"rows of {shape.root} with keys of {name} belong to no session"
            orphans = yield from self._counted(sql, values, f"{{:,}} {what}", name)
            if self._all_whole and orphans is not None:
                yield from self._check_delivered(name, rows, orphans)
        if shape.prefix:
            sql, values = _further(shape, self._root)
            yield from self._counted(
                sql, values, f"{{:,}} further rows of {shape.root} have keys that are not read", ""
            )
        used = {shape.root, *(rows.table.name for rows in self._children.values()), *shape.shared}
        for name in self._names:
            if name in used - self._too_large:
                continue
            why = "is not read"
            if name in self._too_large:
                why = "is too large to go with every session"
            # Counting by a condition takes steps, which are limited, also in a damaged table.
            sql = f"SELECT count(*) FROM main.{quoted(name)} NOT INDEXED WHERE abs(1) = 1"
            yield from self._counted(sql, (), f"the table {name} ({{:,}} rows) {why}", name)
        for name in self._virtual:
            yield _skipped(f"the table {name} is virtual and is not read", name, None)

    def _orphans(self, name: str, table: SqliteTable) -> tuple[str, tuple[Any, ...]]:
        """The statement that counts the rows of a child that belong to no session."""
        shape = self._shape
        if shape.prefix:
            return _orphan_keys(shape, name, table)
        key, root = quoted(shape.key), f"main.{quoted(shape.root)}"
        where = self._condition(
            name,
            table,
            lambda _, column: (
                f"{quoted(column)} IN (SELECT {key} FROM {root} WHERE {key} IS NOT NULL)"
            ),
        )
        return f"SELECT count(*) FROM {table.sql} NOT INDEXED WHERE NOT coalesce({where}, 0)", ()

    def _check_delivered(self, name: str, rows: _Rows, orphans: int) -> Iterator[Frame]:
        """Say so when a damaged index hid rows from their sessions."""
        condition, values = "abs(1) = 1", ()
        if self._shape.prefix:
            head = self._shape.children[name].partition("{id}")[0]
            condition, values = _key_range(self._shape.key, head)
        sql = f"SELECT count(*) FROM {rows.table.sql} NOT INDEXED WHERE {condition}"
        missing = self._database.number(sql, values) - orphans - self._delivered[name]
        if missing > 0:
            yield _failed(
                f"{missing:,} rows of {name} were not found by their sessions: an index of the "
                "SQLite database is damaged"
            )

    def _counted(
        self, sql: str, values: tuple[Any, ...], reason: str, name: str
    ) -> Generator[Frame, None, int | None]:
        """Count rows that are not read; returns their number, None when that fails."""
        try:
            count = self._database.number(sql, values)
        except RecordError as error:
            table = name or self._shape.root
            yield _failed(f"the table {table} cannot be counted: {error.reason}")
            return None
        if count:
            yield _skipped(reason.format(count), name or self._shape.root, count)
        return count


def _select(table: SqliteTable, *more: str) -> str:
    words = [*more, *map(quoted, table.columns)]
    return f"SELECT {', '.join(words)} FROM {table.sql}"


def _key_range(column: str, beginning: str) -> tuple[str, tuple[Any, ...]]:
    """The condition for keys that begin so, and its values: an index finds them."""
    after = ord(beginning[-1]) + 1
    end = beginning[:-1] + chr(0xE000 if after == 0xD800 else min(after, 0x10FFFF))
    name = quoted(column)
    where = f"({name} >= ? AND {name} < ? AND substr({name}, 1, ?) = ?)"
    return where, (beginning, end, len(beginning), beginning)


def _orphan_keys(shape: SqliteShape, name: str, table: SqliteTable) -> tuple[str, tuple[Any, ...]]:
    """The statement that counts the rows whose keys are of a child, and that no session has."""
    key, keys = quoted(shape.key), shape.children[name]
    root = f"main.{quoted(shape.root)}"
    head, _, tail = keys.partition("{id}")
    inside, values = _key_range(shape.key, head)
    roots, more = _key_range(shape.key, shape.prefix)
    rest = f"substr({key}, {len(head) + 1})"
    if tail:
        # An id ends where the tail begins for the first time.
        rest = f"substr({rest}, 1, instr({rest}, ?) - 1)"
        inside = f"{inside} AND (instr(substr({key}, {len(head) + 1}), ?) = 0 OR {rest}"
        values = (*values, tail, tail)
    else:
        inside = f"{inside} AND ({rest}"
    ids = f"SELECT substr({key}, {len(shape.prefix) + 1}) FROM {root} WHERE {roots}"
    return f"SELECT count(*) FROM {table.sql} NOT INDEXED WHERE {inside} NOT IN ({ids}))", (
        *values,
        *more,
    )


def _further(shape: SqliteShape, table: SqliteTable) -> tuple[str, tuple[Any, ...]]:
    """The statement that counts the rows of a table of keys and values that are no part of any."""
    beginnings = [shape.prefix, *(keys.partition("{id}")[0] for keys in shape.children.values())]
    ranges = [_key_range(shape.key, beginning) for beginning in beginnings]
    inside = " OR ".join(where for where, _ in ranges)
    values = tuple(value for _, values in ranges for value in values)
    return f"SELECT count(*) FROM {table.sql} NOT INDEXED WHERE NOT coalesce({inside}, 0)", values


def _row(table: SqliteTable, cells: list[Any]) -> bytes:
    """A row as a JSON object."""
    return msgspec.json.encode(dict(zip(table.columns, map(_cell, cells), strict=True)))


def _cell(value: Any) -> Any:
    if isinstance(value, bytes):
        return {"$base64": base64.b64encode(value).decode("ascii")}
    if isinstance(value, float) and not math.isfinite(value):
        return _INFINITY[value > 0]  # SQLite stores no NaN
    return value


def _text(name: str) -> bytes:
    return msgspec.json.encode(name)


def _failed(reason: str) -> Frame:
    return Frame(b"", 0, 0, 0, reason)


def _skipped(reason: str, table: str, rows: int | None) -> Frame:
    """A record that is skipped: of a table that is not read its name and its number of rows."""
    data = msgspec.json.encode({"table": table, "rows": rows})
    return Frame(data, 0, 0, len(data), skip=reason)
