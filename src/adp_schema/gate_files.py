"""The files behind a query gate: which ones its engine may read, and the views over them."""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from adp_schema import location, verification
from adp_schema.errors import HubError, StoreError, unknown_name
from adp_schema.sql_statement import plain
from adp_schema.tables import TABLES, Table
from adp_schema.views import SEQ_SHIFT, View, quote_name, quote_text, shards_sql

if TYPE_CHECKING:
    import duckdb

Tables = Mapping[str, Sequence[str]]
"""Table -> its Parquet files: local paths or URLs that fsspec can open."""

Renamed = Mapping[str, Mapping[str, str]]
"""Table -> {column in the files: column now}, for files of an older schema version."""

NONE_RENAMED: Renamed = MappingProxyType({})


class StoreFiles(NamedTuple):
    """The files of one of several stores.

    Attributes:
        name: name of the store, which the column ``store`` shows.
        tables: its files.
        renamed: how columns are called in them.
        held: what must live as long as the gate, such as the owner of scratch files.
    """

    name: str
    tables: Tables
    renamed: Renamed = NONE_RENAMED
    held: object = None


class ExtraView(NamedTuple):
    """A view besides those of the stores.

    Attributes:
        name: its name in SQL.
        path: the local Parquet file that it shows; None when it reads other views.
        sql: the SELECT behind it, which is trusted; None when it shows a file.
        files: what stands for lists of local Parquet files in the SELECT -> the files.
    """

    name: str
    path: str | None = None
    sql: str | None = None
    files: Mapping[str, Sequence[str]] = MappingProxyType({})


def open_files(
    con: duckdb.DuckDBPyConnection,
    given: Sequence[StoreFiles],
    views: Sequence[View],
    extra: Sequence[ExtraView],
    *,
    named: bool,
) -> tuple[ViewMaker, dict[str, list[str]]]:
    """Let the engine read exactly the shards, create the further views, and lock the configuration.

    Args:
        con: the engine.
        given: the files of the stores.
        views: the views over them.
        extra: further views.
        named: whether the column ``store`` is there.

    Returns:
        What creates the views, and the columns of the further views.

    Raises:
        StoreError: there is no such table, or a further view cannot be read.
    """
    unknown = next((name for store in given for name in store.tables if name not in TABLES), None)
    if unknown is not None:
        raise StoreError(unknown_name("table", unknown, TABLES))
    address = _Addresses(con)
    stores = [
        store._replace(
            tables={name: [address(path) for path in paths] for name, paths in store.tables.items()}
        )
        for store in given
    ]
    paths = [path for store in stores for files in store.tables.values() for path in files]
    paths += [address(view.path) for view in extra if view.path is not None]
    paths += [address(path) for view in extra for group in view.files.values() for path in group]
    # DuckDB checks both what a query names, which is a pattern, and the file that it finds.
    allowed = sorted({form for path in paths for form in (path, _as_pattern(path))})
    con.execute(
        # GLOBAL, or the cursors of the single queries would not have it.
        "SET GLOBAL TimeZone = 'UTC'; SET GLOBAL parquet_metadata_cache = true; "
        f"SET allowed_paths = [{', '.join(map(quote_text, allowed))}]; "
        "SET enable_external_access = false"
    )
    maker = ViewMaker(stores, views, named=named)
    columns = {}
    for more in extra:
        maker.ensure(con, [more.name, *words_of(more.sql)])
        columns[more.name] = _create_extra_view(con, more, address)
    con.execute("SET lock_configuration = true")
    return maker, columns


class ViewMaker:
    """Creates the views of a gate when they are first named.

    The engine binds a view as it is created, which takes 1 to 16 ms: for all of them, longer than
    most queries. A view needs no more rights later than in the beginning: it reads files that are
    allowed, and its SQL is that of `adp_schema.views`.

    Args:
        stores: the files of the stores, as the engine spells their addresses.
        views: the views, in the order in which they have to be created.
        named: whether the column ``store`` is there.
    """

    def __init__(self, stores: Sequence[StoreFiles], views: Sequence[View], *, named: bool) -> None:
        self._stores = stores
        self._named = named
        self._views = {view.name: (place, view) for place, view in enumerate(views)}
        self._made: set[str] = set()
        self._lock = threading.Lock()

    def ensure(self, con: duckdb.DuckDBPyConnection, names: Iterable[str] | None) -> None:
        """Create some views, with those that they read, if they are not there.

        Args:
            con: a connection to the engine.
            names: their names in lower case, perhaps among other words; None for all.

        Raises:
            StoreError: a file is missing, or is no Parquet file of its table.
            HubError: the Hub refuses one.
        """
        if len(self._made) == len(self._views):
            return
        with self._lock:
            for name in self._views if names is None else names:
                self._create(con, name, len(self._views))

    def _create(self, con: duckdb.DuckDBPyConnection, name: str, end: int) -> None:
        """Create a view that stands before a place in the order, if it is not there."""
        place, view = self._views.get(name, (end, None))
        if view is None or place >= end or name in self._made:
            return
        if view.table is None:
            for word in words_of(view.sql):
                self._create(con, word, place)
            con.execute(f"CREATE OR REPLACE VIEW {quote_name(name)} AS {view.sql}")
        else:
            _create_table_view(con, view, TABLES[view.table], self._stores, named=self._named)
        self._made.add(name)


def words_of(sql: str | None) -> list[str]:
    """The words of trusted SQL in lower case, the names of views that it reads among them."""
    return re.findall(r"\w+", (sql or "").lower())


def _create_extra_view(
    con: duckdb.DuckDBPyConnection, view: ExtraView, address: _Addresses
) -> list[str]:
    """Create a view besides those of the stores, and return its columns."""
    import duckdb

    sql = view.sql
    if view.path is not None:
        file = quote_text(_as_pattern(address(view.path)))
        sql = f"SELECT * FROM read_parquet([{file}], hive_partitioning = false)"
    for place, paths in view.files.items():
        listed = ", ".join(quote_text(_as_pattern(address(path))) for path in paths)
        sql = (sql or "").replace(place, listed)
    try:
        con.execute(f"CREATE OR REPLACE VIEW {quote_name(view.name)} AS {sql}")
        description = con.execute(f"SELECT * FROM {quote_name(view.name)} LIMIT 0").description
    except duckdb.Error as error:
        raise StoreError(
            f"cannot read {view.path or view.name}, which the view '{view.name}' shows: "
            f"{plain(str(error))}"
        ) from None
    return [column[0] for column in description]


def _create_table_view(
    con: duckdb.DuckDBPyConnection,
    view: View,
    table: Table,
    stores: Sequence[StoreFiles],
    *,
    named: bool,
) -> None:
    """Create the view over one table of all stores."""
    import duckdb

    def create(*, look: bool) -> None:
        selects = []
        for index, store in enumerate(stores):
            files = [_as_pattern(path) for path in store.tables.get(table.name, ())]
            renamed = store.renamed.get(table.name, {})
            select = shards_sql(
                table,
                files,
                seq_shift=index << SEQ_SHIFT,
                store=store.name if named and table.name == "trajectories" else None,
                stored=_stored_columns(con, table, files, renamed) if look and files else None,
            )
            selects.append(select)
        con.execute(
            f"CREATE OR REPLACE VIEW {quote_name(view.name)} AS {' UNION ALL '.join(selects)}"
        )

    try:
        try:
            create(look=any(table.name in store.renamed for store in stores))
        except duckdb.BinderException:
            # Shards of an older version lack columns. Looking for that first would cost time.
            create(look=True)
    except duckdb.Error as error:
        if message := hub_error(error):
            raise message from None
        files = [path for store in stores for path in store.tables.get(table.name, ())]
        if damaged := verification.explain(files):
            raise damaged from None
        missing = [path for path in files if "://" not in path and not Path(path).exists()]
        reason = f"{missing[0]} is missing" if missing else plain(str(error))
        raise StoreError(f"cannot read the table '{table.name}': {reason}") from None


def hub_error(error: Exception) -> HubError | None:
    """The Hub's refusal that an error of the engine is about: a traceback stands in its text."""
    matches = re.findall(r"^(?:[\w.]+\.)?HubError: (.+)$", str(error), re.MULTILINE)
    return HubError(matches[-1]) if matches else None


def _stored_columns(
    con: duckdb.DuckDBPyConnection, table: Table, files: Sequence[str], renamed: Mapping[str, str]
) -> dict[str, str | None]:
    """What each column of a table is called in its files; None for one that they lack."""
    sql = f"SELECT * FROM read_parquet([{quote_text(files[0])}], hive_partitioning = false) LIMIT 0"
    present = {column[0] for column in con.execute(sql).description}
    earlier = {now: former for former, now in renamed.items() if former in present}
    return {name: name if name in present else earlier.get(name) for name in table.schema.names}


class _Addresses:
    """Spells the addresses of files as the engine does, and gives it their file systems."""

    def __init__(self, con: duckdb.DuckDBPyConnection) -> None:
        self._con = con
        self._known: dict[str, Any] = {}

    def __call__(self, path: str) -> str:
        local = path.removeprefix("file://")
        if "://" not in local:
            # Path.resolve would follow links, and errors name files that nobody has heard of.
            return os.path.abspath(local)  # noqa: PTH100
        protocol = path.split("://")[0]
        try:
            if protocol not in self._known:
                self._known[protocol] = location.file_system(path)
                self._con.register_filesystem(self._known[protocol])
            result = self._known[protocol]
            return str(result.unstrip_protocol(result._strip_protocol(path)))
        except (ImportError, ValueError, OSError) as error:
            raise StoreError(f"cannot open {path}: {plain(str(error))}") from None


def _as_pattern(path: str) -> str:
    """The glob pattern that matches exactly one local path: a folder's name may hold ``*``."""
    return path if "://" in path else re.sub(r"([\[*?])", r"[\1]", path)


RECORD = "curation"
"""Folder of a curated store, or beside it, that holds the record of how it was made."""

_NO_STEPS = "SELECT NULL::BIGINT AS seq, NULL::INTEGER AS step WHERE false"


def record_views(root: str) -> list[ExtraView]:
    """The views over the record of a curation: ``ledger``, ``annotations``, ``step_columns``.

    Where no op said anything of steps, ``step_columns`` has no rows.

    Args:
        root: path of a store; a URL has none.
    """
    if "://" in root:
        return []
    for folder in (Path(root), Path(root).absolute().parent):
        record = folder / RECORD
        if (record / "ledger.parquet").is_file():
            names = ("ledger", "annotations", "step_columns")
            files = [(name, record / f"{name}.parquet") for name in names]
            views = [ExtraView(name, str(path)) for name, path in files if path.is_file()]
            if not files[-1][1].is_file():
                views.append(ExtraView(names[-1], sql=_NO_STEPS))
            return views
    return []
