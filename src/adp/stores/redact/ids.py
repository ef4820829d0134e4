"""Ids that hold something to redact: they join tables, so they change alike everywhere.

Ids that were different stay different. The workers know the old ids by their hashes, so that no
file of an unfinished run names them.
"""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc

from adp.stores import shards
from adp.stores.merge import REFERENCES, base_of
from adp.stores.redact.finder import ValueFinder
from adp.stores.redact.rules import PLACEHOLDER
from adp_schema import ids
from adp_schema.store import Store
from adp_schema.tables import TABLES

SPACES: dict[tuple[str, str], str] = {
    ("trajectories", "session_id"): "session",
    ("links", "target_session_id"): "session",
    ("trajectories", "task_id"): "task",
    ("tasks", "task_id"): "task",
    ("pairs", "task_id"): "task",
    ("pairs", "pair_id"): "pair",
    ("trajectories", "source_file"): "file",
    ("rejects", "source_file"): "file",
    ("raw", "source_file"): "file",
    ("sources", "source_file"): "file",
    **{(table, column): "trajectory" for table, names in REFERENCES.items() for column in names},
    **{
        (name, "trajectory_id"): "trajectory"
        for name, table in TABLES.items()
        if "trajectory_id" in table.schema.names
    },
}
"""Columns of ids: which of them name the same things."""

COUNTED = frozenset({"trajectories", "tasks", "pairs", "rejects", "sources"})
"""Tables where a value in an id counts; in the others it is there again."""

_TRAJECTORY = ("seq", "trajectory_id", "source_id", "dataset", "source_hash")

Changes = dict[str, dict[str, str]]
"""Space -> hash of the old id -> new id."""


def plan(store: Store, finder: ValueFinder) -> Changes:
    """The ids of a store that change."""
    changes: Changes = {}
    for space in ("session", "task", "pair", "file"):
        result, every = _distinct(store, space, finder)
        if result:
            changes[space] = _apart(result, every)
    if changed := _trajectories(store, finder):
        changes["trajectory"] = changed
    return changes


def hash_of(name: str) -> str:
    """How the workers know an old id."""
    return ids.digest(name.encode("utf-8", "surrogatepass"))


def exchange(column: pa.ChunkedArray, changes: dict[str, str]) -> pa.ChunkedArray:
    """Put the new ids of a space into a column."""
    old = pc.unique(column.drop_null())
    new = [changes.get(hash_of(name)) for name in old.to_pylist()]
    if not any(new):
        return column
    return shards.exchange(column, old, pa.array(new, pa.string()))


def _tables(store: Store, table: str, columns: list[str]) -> Iterator[pa.Table]:
    if table == "sources":
        yield shards.source_rows(store).select(columns)
        return
    for reader in shards.readers(store):
        yield from shards.narrow(reader, table, columns)


def _distinct(store: Store, space: str, finder: ValueFinder) -> tuple[dict[str, str], set[str]]:
    """Ids of a space that hold something, with what they would become; and all others.

    The others are collected only when there are some of the first.
    """
    results: dict[str, str] = {}
    columns = [place for place, name in SPACES.items() if name == space]
    for table, column in columns:
        for rows in _tables(store, table, [column]):
            names = pc.unique(rows[column])
            for row, cleaned in finder.column(names).items():
                results[names[row].as_py()] = cleaned.text
    every: set[str] = set()
    if results:
        for table, column in columns:
            for rows in _tables(store, table, [column]):
                every.update(pc.unique(rows[column].drop_null()).to_pylist())
    return results, every - results.keys()


def _apart(fields: dict[str, str], taken: set[str]) -> dict[str, str]:
    """New ids of a space: as they are without the values, with a number where two would be one."""
    out: dict[str, str] = {}
    for old, new in fields.items():
        name, number = new, 1
        while name in taken:
            number += 1
            name = with_number(new, number)
        taken.add(name)
        out[hash_of(old)] = name
    return out


def with_number(name: str, number: int) -> str:
    """A name whose last placeholder has a number."""
    *_, last = PLACEHOLDER.finditer(name)
    return f"{name[: last.end() - 1]}-{number}{name[last.end() - 1 :]}"


def _trajectories(store: Store, finder: ValueFinder) -> dict[str, str]:
    """Trajectory ids that change. Each is what a conversion would have called it."""
    results: dict[str, str] = {}
    columns = list(_TRAJECTORY)
    for rows in _tables(store, "trajectories", columns):
        suspects: set[int] = set()
        for column in ("trajectory_id", "source_id", "dataset"):
            suspects |= finder.column(rows[column]).keys()
        for position in sorted(suspects):
            row = rows.slice(position, 1).to_pylist()[0]
            base = base_of(row)
            clean = {name: _clean(finder, row[name]) for name in ("dataset", "source_id")}
            bare = ids.base_id(row["dataset"] or "", row["source_id"], row["source_hash"] or "")
            if base.startswith(bare):
                new = ids.base_id(
                    clean["dataset"] or "", clean["source_id"], row["source_hash"] or ""
                )
                new = _clean(finder, new + base[len(bare) :]) or ""
            else:
                new = _clean(finder, row["trajectory_id"]) or ""
            if new != base or _clean(finder, row["trajectory_id"]) != row["trajectory_id"]:
                results[row["trajectory_id"]] = new
    if not results:
        return {}
    taken: set[str] = set()
    for rows in _tables(store, "trajectories", ["trajectory_id"]):
        taken.update(rows["trajectory_id"].to_pylist())
    taken -= results.keys()
    out: dict[str, str] = {}
    last: dict[str, int] = {}
    for old, new in results.items():
        number = last.get(new, 0) + 1
        while ids.numbered(new, number) in taken:
            number += 1
        last[new] = number
        taken.add(ids.numbered(new, number))
        out[hash_of(old)] = ids.numbered(new, number)
    return out


def _clean(finder: ValueFinder, text: str | None) -> str | None:
    cleaned = finder.text(text) if text else None
    return cleaned.text if cleaned else text
