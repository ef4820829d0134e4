"""What becomes of each column of the store in each format: found out by trying, from the schema.

A small store has a row in every table that hangs from trajectories. Each column of each of its
rows is filled, or changed, in turn, and the store is written in every format before and after.
What makes no difference in a record must be reported as lost there, or be bookkeeping, for which
there is a reason. A column that is none of these is an error here, and so is a table that the small
store does not know.
"""

from __future__ import annotations

import functools
import pickle
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa

from adp.converters.leaves import covers
from adp.converters.pairs import RecordPairs
from adp.converters.records import RecordWriter
from adp.converters.row_differences import Place, Rows, hub_paths
from adp.converters.unwritten_columns import BOOKKEEPING, DEFAULTS
from adp_schema import jsontext
from adp_schema.arrow import make_table
from adp_schema.builder import Origin, RowBuilder
from adp_schema.losses import Losses
from adp_schema.media import media_of_bytes
from adp_schema.model import Media
from adp_schema.parts import Parts
from adp_schema.protocols import Converter
from adp_schema.reader import assemble, to_models
from adp_schema.table_rows import TableRows
from adp_schema.tables import ENUMS, TABLES
from tools.tables.field_table import SilentLossError

WRITTEN, REPORTED, NO_LOSS = "written", "reported", "no loss"

NO_CONTENT = {
    "raw": "records of the source, which were kept on request",
    "rejects": "records that became no trajectory; the conversion reported them",
    "sources": "the input files of the store",
}
"""Tables of which no export writes a row -> why that is no loss."""

_JSON = {
    "tools": '[{"type": "function", "function": {"name": "other"}}]',
    "annotations": '[{"box": 1}]',
    "subagent": '[{"trajectory_id": "other"}]',
}
_TRIED = (None, "alternate", "subagent")
"""Kinds of branches whose rows are changed: one that becomes no record, and one that does."""
_TIME = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


def column_table(converters: Mapping[str, Converter]) -> dict[str, dict[str, str]]:
    """Try every column of the schema.

    Args:
        converters: the formats by name.

    Returns:
        ``table.column`` -> format -> `WRITTEN`, `REPORTED`, both, or `NO_LOSS`.

    Raises:
        SilentLossError: a column makes no difference in a format, and no report says so.
    """
    base = small_store()
    trials = {name: _Trial(converter) for name, converter in converters.items()}
    out: dict[str, dict[str, str]] = {}
    for table in TABLES:
        if table in NO_CONTENT:
            continue
        if not base[table]:
            raise SilentLossError(f"nothing accounts for the table {table}: it has no row here")
        for column in TABLES[table].own_columns:
            results: dict[str, set[str]] = {name: set() for name in converters}
            for place, changed in column_changes(base, table, column):
                store = StoredRows(column_tables(changed, table))
                for name, trial in trials.items():
                    results[name] |= trial.verdict(place, changed, store)
            verdicts = {
                name: ", ".join(sorted(words, reverse=True)) for name, words in results.items()
            }
            out[f"{table}.{column}"] = {name: word or NO_LOSS for name, word in verdicts.items()}
    return out


class StoredRows:
    """The trajectories and pairs of the small store, read once and written in every format."""

    def __init__(self, tables: dict[str, pa.Table]) -> None:
        media = {blob.media_id or "": blob for blob in to_models(tables["media"], Media)}
        # Copied once a format: pickle takes a fifth of the time of deepcopy.
        self._trajectories = pickle.dumps(list(assemble(tables["trajectories"], tables, media)))
        self._pairs = tables["pairs"]

    def records(self, writer: Callable[[RecordPairs], RecordWriter]) -> list[bytes]:
        """The records that a writer makes, which may change the trajectories it gets."""
        made = writer(RecordPairs(self._pairs))
        runs = made.records(pickle.loads(self._trajectories))
        records = [jsontext.encode(record) for _, record in runs if record is not None]
        made.finish()
        return records


class _Trial:
    """Writes the small store in one format, before and after a change."""

    def __init__(self, converter: Converter) -> None:
        self._converter = converter
        self._before, self._losses = self._written(StoredRows(_base_tables()))

    def verdict(self, place: Place, changed: Rows, store: StoredRows) -> set[str]:
        """What the format makes of a change.

        Raises:
            SilentLossError: nothing at all, and it does not say so.
        """
        after, losses = self._written(store)
        paths = hub_paths(changed, place)
        reported = any(covers(path, paths) for path in (*self._losses, *losses))
        if self._before == after and not reported:
            table, index, column = place
            raise SilentLossError(
                f"{table}.{column} = {changed[table][index][column]!r} of row {index} is not in "
                f"{self._converter.name}, and no report says so; expected one at "
                f"{' or '.join(paths)}"
            )
        written = self._before != after
        return {word for word, holds in ((WRITTEN, written), (REPORTED, reported)) if holds}

    def _written(self, store: StoredRows) -> tuple[list[bytes], list[str]]:
        """The records of the small store in a format, and the paths of what was lost."""
        losses = Losses()
        records = store.records(lambda pairs: RecordWriter(self._converter, losses, pairs=pairs))
        return records, [item["path"] for item in losses.items]


def column_changes(base: Rows, table: str, column: str) -> Iterator[tuple[Place, Rows]]:
    """Each way to fill a column; none for bookkeeping."""
    tried = {row["seq"] for row in base["trajectories"] if row["branch_kind"] in _TRIED}
    for index, row in enumerate(base[table] if column not in BOOKKEEPING else ()):
        if row.get("seq", min(tried)) not in tried:
            continue
        for value in _values(table, column, row):
            columns = {column: value, **_siblings(column, row)}
            yield (table, index, column), _changed(base, table, index, columns)


def table_rows(rows: Iterable[dict[str, Any]]) -> TableRows:
    """Rows as a table is built of them."""
    made = TableRows()
    for row in rows:
        made.append(dict(row))
    return made


@functools.cache
def _base_tables() -> dict[str, pa.Table]:
    rows = small_store()
    return {name: make_table(name, table_rows(rows[name]), None) for name in rows}


def column_tables(changed: Rows, table: str) -> dict[str, pa.Table]:
    """The tables of the small store, with the rows of one table changed."""
    tables = {
        name: make_table(name, table_rows(changed[name]), None) for name in {table, "trajectories"}
    }
    return {**_base_tables(), **tables}


def _siblings(column: str, row: dict[str, Any]) -> dict[str, Any]:
    """What else changes with a column, so that the row makes sense."""
    if column == "arguments_raw":
        return {"arguments": None, "arguments_kind": "invalid"}
    return {"data": None} if column == "uri" else {}


def _changed(base: Rows, table: str, index: int, columns: dict[str, Any]) -> Rows:
    changed_rows = {name: [dict(row) for row in base[name]] for name in {table, "trajectories"}}
    rows = {**base, **changed_rows}
    rows[table][index] |= columns
    if table == "tasks" and "task_id" in columns:
        rows["trajectories"][0]["task_id"] = columns["task_id"]
    return rows


def _values(table: str, column: str, row: dict[str, Any]) -> Iterator[Any]:
    """What else may stand in a cell, and says something."""
    now, text = row[column], row.get("text")
    if column == "call_id" and (row.get("native_id") or row.get("native_call_id")):
        return  # The store made it; the source's own is the other one.
    if column == "kind" and table == "steps":
        yield from ("context_edit", "event")  # The others follow from the source.
        return
    if column == "content":
        if text is not None:
            full = [_span(0, 2), _span(2, len(text))] if now is None else [_span(0, len(text))]
            yield jsontext.text_of(full)
        return
    field = TABLES[table].schema.field(column)
    words = ENUMS.get((table, column))
    if words is not None:
        yield from sorted(words - {now, DEFAULTS.get(column)})
    elif (field.metadata or {}).get(b"content") == b"json":
        yield _JSON.get(column, '{"key": "value"}')
    elif pa.types.is_boolean(field.type):
        yield now is None and DEFAULTS.get(column) is not True
    else:
        yield _other(field.type, now)


def _span(start: int, end: int) -> dict[str, Any]:
    return {"type": "text", "span": [start, end]}


def _other(kind: pa.DataType, now: Any) -> Any:
    if pa.types.is_string(kind):
        return "other" if now is None else f"{now} other"
    if pa.types.is_binary(kind):
        return b"other"
    if pa.types.is_timestamp(kind):
        return _TIME
    if pa.types.is_list(kind):
        return ["other"] if pa.types.is_string(kind.value_type) else [1]
    return (now or 0) + 1


@functools.cache
def small_store() -> Rows:
    """Rows of every table, with what is easily forgotten among them."""
    builder = RowBuilder()
    builder.begin(Origin(0, "d", {"source_file": "f", "source_records": [1]}))
    builder.trajectory({"source_id": "run", "task_id": "t", "tools": "[]"})
    builder.task({"task_id": "t", "instruction": "Do it."})
    parts = Parts()
    parts.text("Look at this.")
    parts.media(builder.media(media_of_bytes(b"\x89PNG", "image/png")))
    builder.step({"source": "system", "kind": "message", "text": "Be brief."})
    builder.step({"source": "user", "kind": "message", **parts.columns()})
    _turn(builder, {"text": "I look.", "reasoning": "Think.", "is_copied_context": True})
    _turn(builder, {"text": "Again.", "reasoning": "Think."})
    builder.step({"source": "agent", "kind": "llm_turn", "text": "Done."})
    builder.link({"kind": "subagent", "step": 3, "target_id": "elsewhere"})
    main = builder.finish()
    others: dict[str, str] = {}
    for kind in sorted(ENUMS["trajectories", "branch_kind"]):
        columns = {"source_id": kind, "parent_id": main, "parent_step": 4, "branch_kind": kind}
        builder.trajectory(columns)
        builder.step({"source": "agent", "kind": "llm_turn", "text": f"Text of {kind}."})
        others[kind] = builder.finish()
    builder.pair(
        {
            **{"pair_id": "p", "context_id": main, "context_up_to": 4, "level": "step"},
            **{"chosen_id": main, "chosen_from": 4, "chosen_to": 5},
            **{"rejected_id": others["alternate"], "rejected_from": 4, "rejected_to": 5},
        }
    )
    tables = builder.tables()
    return {name: table.to_pylist() for name, table in tables.items()}


def _turn(builder: RowBuilder, columns: dict[str, Any]) -> None:
    """A step with a call, whose id is used again, and a result of two texts."""
    builder.step({"source": "agent", "kind": "llm_turn", **columns})
    call = {"call_id": "c", "kind": "function", "name": "f", "arguments_kind": "object"}
    builder.call({**call, "arguments": '{"a": 1}'})
    parts = Parts()
    parts.text("one")
    parts.text("two")
    builder.observation({"source": "environment", **parts.columns()}, answers="c")
