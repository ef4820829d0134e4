"""Reading stores of older schema versions.

A store is never rewritten in place. Each `Migration` says how the columns of one version follow
from those of the version before; a reader applies the chain to what it reads, in memory. Only
renamed and added columns are needed, and a change that needs more is a new major version.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import pyarrow as pa

from adp_schema.errors import StoreVersionError
from adp_schema.tables import SCHEMA_VERSION, TABLES


@dataclass(frozen=True)
class Migration:
    """One step from a schema version to the next.

    Attributes:
        source: version that it starts from.
        target: version that it leads to.
        renamed: table -> {old column: new column}. Columns that are new need no entry: they
            are null in older stores.
    """

    source: str
    target: str
    renamed: Mapping[str, Mapping[str, str]] = field(default_factory=dict)


MIGRATIONS: tuple[Migration, ...] = (
    Migration(
        source="0.9",
        target="1.0",
        renamed={
            "trajectories": {"model": "agent_model"},
            "tool_calls": {"args": "arguments", "args_raw": "arguments_raw"},
        },
    ),
)


def column_names(version: str) -> dict[str, dict[str, str]]:
    """How the columns of an older version are called now.

    Args:
        version: schema version of the store.

    Returns:
        table -> {column in the store: column now}; empty for the present version.

    Raises:
        StoreVersionError: the version is newer than this package, or unknown.
    """
    names: dict[str, dict[str, str]] = {}
    at = version
    while at != SCHEMA_VERSION:
        step = next((migration for migration in MIGRATIONS if migration.source == at), None)
        if step is None:
            raise StoreVersionError(_explain(version))
        for table, renamed in step.renamed.items():
            known = names.setdefault(table, {})
            for old, new in renamed.items():
                first = next((name for name, now in known.items() if now == old), old)
                known[first] = new
        at = step.target
    return names


def _explain(version: str) -> str:
    newer = _key(version) > _key(SCHEMA_VERSION)
    advice = "upgrade adp to read it" if newer else "no migration leads from it"
    return f"the store has schema version {version}, this adp knows {SCHEMA_VERSION}; {advice}"


def _key(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split(".") if part.isdigit())


def upgrade(table: str, rows: pa.Table, names: Mapping[str, str]) -> pa.Table:
    """Give rows of an older version the columns of the present one.

    Args:
        table: name of the table.
        rows: rows as stored, possibly only some of the columns.
        names: {column in the store: column now}.
    """
    if names:
        rows = rows.rename_columns([names.get(name, name) for name in rows.column_names])
    schema = TABLES[table].schema
    present = set(rows.column_names)
    arrays = []
    for column in schema:
        if column.name not in present:
            arrays.append(pa.nulls(rows.num_rows, column.type))
        elif (values := rows[column.name]).type == column.type:
            arrays.append(values)  # a cast would import all functions of Arrow
        else:
            arrays.append(values.cast(column.type))
    return pa.table(arrays, schema=schema)
