"""The one query gate: SQL over stores that can read their tables and do nothing else.

The command line, recipes and the viewer all run SQL that somebody else may have written. The gate
answers it with an in-memory DuckDB that holds views over the shards, behind two walls:

*The statement is read before it runs.* Only one SELECT (VALUES, FROM, DESCRIBE, SHOW, SUMMARIZE
are SELECTs too), or EXPLAIN of one, passes. The type that the parser reports is not enough:
``WITH x AS (COPY ... TO 'file') SELECT 1`` is a SELECT to it and writes the file. So the syntax
tree is walked: every query in it must be a plain query, and every table function one of
`TABLE_FUNCTIONS`, none of which touches a file, an address, a pointer or other SQL text.

*The engine is shut.* External access is off but for exactly the shards, extensions and stored
secrets are off, Python variables cannot be read as tables, and the configuration is locked.

The names of the shards are not secret: DuckDB's own catalogue shows them.
"""

from __future__ import annotations

import json
import os
import re
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self

import pyarrow as pa

from adp_schema.errors import MissingExtraError, QueryError, StoreError, unknown_name
from adp_schema.tables import TABLES, Table
from adp_schema.views import SEQ_SHIFT, SHARDS, STORE_COLUMN, VIEWS, View, quote_text, shards_sql

if TYPE_CHECKING:
    import duckdb

MEMORY_LIMIT = "4GB"
"""How much memory the engine may use unless the caller says otherwise."""

BATCH_ROWS = 4096
"""Rows a batch. A column of a batch holds 2 GiB of text at most, so long texts need few rows."""

TABLE_FUNCTIONS = frozenset(
    {
        "duckdb_columns",
        "duckdb_functions",
        "duckdb_keywords",
        "duckdb_types",
        "generate_series",
        "histogram",
        "histogram_values",
        "json_each",
        "json_tree",
        "range",
        "repeat",
        "repeat_row",
        "unnest",
    }
)
"""The functions that may stand where a table stands."""

_QUERY_NODES = frozenset({"SELECT_NODE", "SET_OPERATION_NODE", "RECURSIVE_CTE_NODE", "CTE_NODE"})
_ALLOWED = "a query is one SELECT, DESCRIBE, SHOW, SUMMARIZE or EXPLAIN of a SELECT"
_SKIP = r"(?:\s|--[^\n]*(?:\n|$)|/\*.*?\*/)"
_EXPLAIN = re.compile(rf"{_SKIP}*explain\b({_SKIP}+analyze\b)?", re.IGNORECASE | re.DOTALL)

Tables = Mapping[str, Sequence[str]]
Parameters = Sequence[object] | Mapping[str, object]


class QueryGate:
    """Runs read-only SQL over one or several stores.

    A gate may be used for any number of queries and from several threads at once. The views are
    those of `adp_schema.views.VIEWS`. Over several stores each view shows the rows of all of
    them; ``seq`` of store i is raised by ``i << 50``, so that joins on ``seq`` stay right.

    Args:
        tables: for one store, the Parquet files of each table (local paths or fsspec URLs); for
            named stores, a list of (name, such a mapping), which adds the column ``store`` to
            the views of trajectories.
        threads: threads of the engine; None means one per core.
        memory_limit: memory that the engine may use, such as ``"4GB"``.
        temp_directory: an existing folder for what does not fit in memory; the gate makes a
            folder of its own in it and removes that when closed. None means a query that needs
            more than the memory fails.

    Raises:
        StoreError: a shard is missing or is no Parquet file of its table.
        QueryError: an option is not valid.
        MissingExtraError: DuckDB is not installed.
    """

    def __init__(
        self,
        tables: Tables | Sequence[tuple[str, Tables]],
        *,
        threads: int | None = None,
        memory_limit: str = MEMORY_LIMIT,
        temp_directory: str | None = None,
    ) -> None:
        named = not isinstance(tables, Mapping)
        stores = tables if not isinstance(tables, Mapping) else [("", tables)]
        self._memory_limit = memory_limit
        self._lock = threading.Lock()
        self._spill = _spill_folder(temp_directory)
        try:
            self._con = _connect(threads, memory_limit, self._spill.name if self._spill else "")
            try:
                self._columns = _open(self._con, stores, named=named)
            except BaseException:
                self._con.close()
                raise
        except BaseException:
            if self._spill:
                self._spill.cleanup()
            raise

    def query(self, sql: str, parameters: Parameters | None = None) -> pa.Table:
        """Run one statement and return all its rows.

        Args:
            sql: one SELECT, DESCRIBE, SHOW, SUMMARIZE or EXPLAIN of a SELECT.
            parameters: values of ``?`` in order, or of ``$name`` by name.

        Raises:
            QueryError: the statement is not allowed, not valid, or fails.
        """
        with self.batches(sql, parameters) as reader:
            return reader.read_all()

    def batches(self, sql: str, parameters: Parameters | None = None) -> pa.RecordBatchReader:
        """Run one statement and return a reader that yields its rows as they are made.

        The reader knows the schema before the first batch. Errors of the statement are raised
        here; those of the running query when its batches are read.

        Args:
            sql: one SELECT, DESCRIBE, SHOW, SUMMARIZE or EXPLAIN of a SELECT.
            parameters: values of ``?`` in order, or of ``$name`` by name.

        Raises:
            QueryError: the statement is not allowed, not valid, or fails.
        """
        with self._lock:
            if self._con is None:
                raise QueryError("this query gate is closed")
            cursor = self._con.cursor()
        names: set[str] = set()
        try:
            checked = _check(cursor, sql, names)
            relation = cursor.sql(checked, params=parameters)
            reader = relation.to_arrow_reader(BATCH_ROWS)
        except BaseException as error:
            cursor.close()
            raise self._as_query_error(error, sql, names) from None
        rows = self._stream(cursor, reader, sql, names)
        return pa.RecordBatchReader.from_batches(reader.schema, rows)

    def close(self) -> None:
        """Close the gate and remove its temporary files. Closing twice does nothing."""
        with self._lock:
            if self._con is not None:
                self._con.close()
                self._con = None
            if self._spill:
                self._spill.cleanup()
                self._spill = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
