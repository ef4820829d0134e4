"""The one query gate: SQL over stores that can read their tables and do nothing else.

The command line, recipes and the viewer all run SQL that somebody else may have written. The gate
answers it with an in-memory DuckDB that holds the views of `adp_schema.views`, behind two walls:

- A statement is read before it runs, and only one that merely reads passes
  (`adp_schema.sql_statement`).
- The engine is shut: external access is off but for exactly the shards; extensions, stored
  secrets and Python variables as tables are off; the configuration is locked.

The paths of the shards are no secret: DuckDB's own catalogue shows them to a query.
"""

from __future__ import annotations

import shutil
import tempfile
import threading
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self

import pyarrow as pa

from adp_schema import verification
from adp_schema.errors import AdpError, QueryError
from adp_schema.gate_engine import (
    SECONDS_VARIABLE,
    Engine,
    QueryLimits,
    machine_memory,
    memory_bytes,
    unfinished,
    user_seconds,
)
from adp_schema.gate_files import (
    NONE_RENAMED,
    ExtraView,
    Renamed,
    StoreFiles,
    Tables,
    hub_error,
    open_files,
    words_of,
)
from adp_schema.sql_statement import Checked, check, plain, sentence
from adp_schema.views import VIEWS

if TYPE_CHECKING:
    import duckdb

MEMORY_LIMIT = "4GB"
"""How much memory the engine may use unless the caller says otherwise; less on a small machine."""

_SHARE = 0.5
"""How much of a small machine's memory, and of the free room for temporary files, it may use."""

CHECKED_LIMIT = 512
"""How many statements are remembered as checked."""

CHECKED_LENGTH = 32_768
"""Longer statements, in characters, are checked each time: what is remembered stays small."""

BATCH_ROWS = 4096
"""Rows a batch. A column of a batch holds 2 GiB of text at most, so long texts need few rows."""

Parameters = Sequence[object] | Mapping[str, object]
"""Values of ``?`` in order, or of ``$name`` by name."""


class QueryGate:
    """Runs SQL that only reads, over one or several stores.

    A gate may be used for any number of queries, from several threads at once. Over several
    stores each view shows the rows of all of them; ``seq`` of store number i is raised by
    ``i << 50``, so that joins on ``seq`` stay right. From the second store on, a filter on
    ``seq`` is therefore slow; one on ``trajectory_id`` is fast everywhere.

    Args:
        tables: the files of one store; or a list of `StoreFiles` or (name, files), which adds
            the column ``store`` to the views of trajectories.
        renamed: how columns are called in the files of the one store.
        threads: threads of the engine; None means one a core.
        memory_limit: memory that the engine may use, such as ``"4GB"``.
        temp_directory: an existing folder for what does not fit in memory; the gate makes a
            folder of its own in it, which takes half of the free room at most, and removes that
            when closed. With None, a query that needs more than the memory fails.
        extra: further views, in the order in which they are to be created.
        store_views: whether there are the views of stores; without them the further views are
            all that a query finds.

    Attributes:
        memory: memory that the engine may use, in bytes.
        held: what must live as long as the gate, such as the owner of scratch files.

    Raises:
        StoreError: there is no such table, or a further view cannot be read. A file of a store
            that is missing, or is no Parquet file of its table, is an error of the first query
            that reads its table.
        QueryError: an option is not valid.
    """

    def __init__(
        self,
        tables: Tables | Sequence[StoreFiles | tuple[str, Tables]],
        *,
        renamed: Renamed = NONE_RENAMED,
        threads: int | None = None,
        memory_limit: str = MEMORY_LIMIT,
        temp_directory: str | None = None,
        extra: Sequence[ExtraView] = (),
        store_views: bool = True,
    ) -> None:
        named = not isinstance(tables, Mapping)
        stores = (
            [StoreFiles("", tables, renamed)]
            if isinstance(tables, Mapping)
            else [StoreFiles(*store) for store in tables] or [StoreFiles("", {})]
        )
        self._memory_limit = memory_limit
        self._lock = threading.Lock()
        self._con: duckdb.DuckDBPyConnection | None = None
        self.held: object = [store.held for store in stores]
        self._columns: dict[str, Collection[str]] = {}
        self._files = [
            path for store in stores for paths in store.tables.values() for path in paths
        ]
        self._spill = _spill_folder(temp_directory)
        try:
            self._con = _connect(threads, memory_limit, self._spill.name if self._spill else "")
            self.memory = memory_bytes(self._con)
            views = list(VIEWS.values()) if store_views else []
            self._views, further = open_files(self._con, stores, views, extra, named=named)
            self._columns = {**{view.name: view.columns for view in views}, **further}
        except BaseException:
            self.close()
            raise

    def query(self, sql: str, parameters: Parameters | None = None) -> pa.Table:
        """Run one statement and return all its rows.

        Args:
            sql: one SELECT, DESCRIBE, SHOW, SUMMARIZE or EXPLAIN of a SELECT.
            parameters: values of ``?`` in order, or of ``$name`` by name.

        Raises:
            QueryError: the statement is not allowed, not valid, or fails.
        """
        return self.batches(sql, parameters).read_all()

    def batches(
        self,
        sql: str,
        parameters: Parameters | None = None,
        *,
        seconds: float | None = None,
        analyze: bool = True,
        watch: bool = False,
        advice: str = "",
    ) -> pa.RecordBatchReader:
        """Run one statement and return a reader that yields its rows as they are made.

        The reader knows the schema before the first batch. Faults of the statement are raised
        here, those of the running query when its batches are read.

        Args:
            sql: one SELECT, DESCRIBE, SHOW, SUMMARIZE or EXPLAIN of a SELECT.
            parameters: values of ``?`` in order, or of ``$name`` by name.
            seconds: how long the engine may work for all of it; None sets no limit.
            analyze: whether EXPLAIN ANALYZE is allowed, which runs what it explains.
            watch: whether the query is also stopped when this process grows past the memory
                limit, of which the engine counts only most. Nothing else may need much memory
                in this process at the same time.
            advice: what to say when the time is up, behind what happened.

        Raises:
            QueryError: the statement is not allowed, not valid, fails, or takes too long.
            StoreError: a file of the store is missing or damaged.
        """
        cursor = self._cursor()
        memory = self.memory if watch else None
        engine = Engine(cursor, QueryLimits(seconds, memory, self._memory_limit, advice))
        tables: frozenset[str] = frozenset()
        try:
            checked = engine.call(_check, cursor, sql)
            tables = checked.tables
            if checked.analyzes and not analyze:
                raise QueryError("EXPLAIN ANALYZE is not allowed here; write EXPLAIN")
            engine.call(self._views.ensure, cursor, self._named_views(checked))
            relation = engine.call(lambda: cursor.sql(checked.text, params=parameters))
            reader = engine.call(relation.to_arrow_reader, BATCH_ROWS)
        except Exception as error:
            engine.close()
            raise self._as_query_error(error, sql, tables) from None

        def rows() -> Iterator[pa.RecordBatch]:
            try:
                while (batch := engine.call(next, reader, None)) is not None:
                    yield batch
            except Exception as error:
                raise self._as_query_error(error, sql, tables) from None
            finally:
                if not engine.stuck:
                    reader.close()
                engine.close()

        return pa.RecordBatchReader.from_batches(reader.schema, rows())

    def of_user(
        self, sql: str, parameters: Parameters | None = None, *, seconds: float | None = None
    ) -> pa.RecordBatchReader:
        """Like `batches`, for SQL that a user wrote: it ends, and within the memory.

        Args:
            sql: one SELECT, DESCRIBE, SHOW, SUMMARIZE or EXPLAIN of a SELECT.
            parameters: values of ``?`` in order, or of ``$name`` by name.
            seconds: how long the engine may work, 0 for no limit; None: what the environment
                variable ``ADP_QUERY_SECONDS`` says, else 600.

        Raises:
            QueryError: see `batches`.
        """
        allowed = user_seconds() if seconds is None else seconds or None
        more = f"the environment variable {SECONDS_VARIABLE}" if seconds is None else "--seconds"
        advice = f"; ask for less, or give it more time with {more} (in seconds; 0: no limit)"
        return self.batches(sql, parameters, seconds=allowed, watch=True, advice=advice)

    def trusted(self, sql: str) -> list[dict[str, Any]]:
        """Run one SELECT that no user wrote, and return its rows, which have to be few.

        The statement is not checked and is bound once, which `query` does twice: for a small
        store both take longer than its work. The engine is as shut as ever.

        Args:
            sql: one SELECT, over the views of stores.

        Raises:
            QueryError: the statement is not valid, or fails.
            StoreError: a file of the store is missing or damaged.
        """
        cursor = self._cursor()
        engine = Engine(cursor, QueryLimits())
        words = frozenset(words_of(sql))

        def rows() -> list[dict[str, Any]]:
            self._views.ensure(cursor, words)
            done = cursor.execute(sql)
            names = [column[0] for column in done.description]
            return [dict(zip(names, row, strict=True)) for row in done.fetchall()]

        try:
            result: list[dict[str, Any]] = engine.call(rows)
        except Exception as error:
            raise self._as_query_error(error, sql, words) from None
        finally:
            engine.close()
        return result

    def close(self) -> None:
        """Close the gate and remove its temporary files. Closing it twice does nothing."""
        with self._lock:
            if self._con is not None:
                # A query that did not stop would be waited for.
                if not unfinished():
                    self._con.close()
                self._con = None
            if self._spill is not None:
                self._spill.cleanup()
                self._spill = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _cursor(self) -> duckdb.DuckDBPyConnection:
        """A connection of its own for one query, to the same engine."""
        with self._lock:
            if self._con is None:
                raise QueryError("this query gate is closed")
            return self._con.cursor()

    def _named_views(self, checked: Checked) -> Collection[str] | None:
        """The views that a statement reads; None: it may be any, so all have to be there."""
        others = checked.tables - checked.ctes - self._columns.keys()
        return None if checked.looks or others else checked.tables

    def _as_query_error(self, error: Exception, sql: str, tables: frozenset[str]) -> Exception:
        """The error of a query as one sentence; an error of another kind as it is."""
        import duckdb

        if isinstance(error, AdpError):
            return error
        if isinstance(error, duckdb.OutOfMemoryException | MemoryError):
            if "max_temp_directory_size" in str(error):
                return QueryError(
                    "the query needs more room for temporary files than half of what is free there;"
                    " select fewer rows or columns, or give another folder"
                )
            return QueryError(
                f"the query needs more memory than {self._memory_limit}; select fewer rows or "
                "columns, raise the memory limit, or give a folder for temporary files"
            )
        if isinstance(error, duckdb.InterruptException):
            return QueryError("the query was interrupted")
        # What fails while batches are made comes out of Arrow as OSError; text that has no UTF-8
        # form, or a parameter of a wrong kind, as ValueError, TypeError or RuntimeError.
        if hub_fault := hub_error(error):
            return hub_fault
        if not _is_about_sql(error) and (damaged := verification.explain(self._files)):
            return damaged
        kinds = (duckdb.Error, pa.ArrowException, OSError, ValueError, TypeError, RuntimeError)
        return (
            QueryError(sentence(str(error), sql, tables, self._columns))
            if isinstance(error, kinds)
            else error
        )


def _is_about_sql(error: Exception) -> bool:
    """Whether an error of the engine is about the statement or its values, not about a file."""
    kinds = ("Binder", "Catalog", "Constraint", "Conversion", "Not implemented", "Out of Range",
             "Parser", "Permission", "Syntax")  # fmt: skip
    return str(error).startswith(tuple(f"{kind} Error" for kind in kinds))


_CHECKED: dict[str, Checked] = {}
"""What was found of statements by the gates of this process."""


def _check(cursor: duckdb.DuckDBPyConnection, sql: str) -> Checked:
    """Check a statement; what was found of a text is true in every gate, so it is remembered."""
    value = _CHECKED.get(sql)
    if value is None:
        value = check(cursor, sql)
        if len(sql) <= CHECKED_LENGTH:
            if len(_CHECKED) >= CHECKED_LIMIT:
                _CHECKED.clear()
            _CHECKED[sql] = value
    return value


def _spill_folder(temp_directory: str | None) -> tempfile.TemporaryDirectory[str] | None:
    """Make a private folder inside the given one: the engine may read all of its folder."""
    if temp_directory is None:
        return None
    try:
        return tempfile.TemporaryDirectory(prefix="adp-query-", dir=temp_directory)
    except OSError as error:
        raise QueryError(
            f"cannot use {temp_directory} for temporary files: {error.strerror}"
        ) from None


def _connect(threads: int | None, memory_limit: str, spill: str) -> duckdb.DuckDBPyConnection:
    """Open an in-memory engine with everything that is not needed switched off."""
    import duckdb

    config: dict[str, Any] = {
        "memory_limit": memory_limit,
        # Never left out: the default is a folder in the working directory, readable as a whole.
        "temp_directory": spill,
        "autoload_known_extensions": False,
        "autoinstall_known_extensions": False,
        "allow_community_extensions": False,
        "allow_persistent_secrets": False,
        "python_enable_replacements": False,
    }
    if threads is not None:
        config["threads"] = threads
    if spill:
        config["max_temp_directory_size"] = f"{int(shutil.disk_usage(spill).free * _SHARE)}B"
    if memory_limit == MEMORY_LIMIT and (there := machine_memory()):
        config["memory_limit"] = f"{min(4_000_000_000, int(there * _SHARE))}B"
    try:
        return duckdb.connect(":memory:", config=config)
    except duckdb.Error as error:
        raise QueryError(f"the query engine does not start: {plain(str(error))}") from None
