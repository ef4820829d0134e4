"""Which columns of the store come back through a format that others go through: found by trying.

Each column of a small store is filled or changed in turn, as in `tools.tables.column_table`; the
store is written and read back. What differs then must be reported as lost by the export, or stand
in `OTHERWISE` with a reason. Anything else is an error here.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from adp.converters.leaves import covers
from adp.converters.records import RecordWriter
from adp.converters.row_differences import Place, Rows, hub_paths
from adp.converters.unwritten_columns import BOOKKEEPING, DEFAULTS
from adp_schema import extra_column
from adp_schema.builder import Origin, RowBuilder
from adp_schema.losses import Losses
from adp_schema.protocols import Converter, RawRecord
from adp_schema.tables import TABLES
from tools.tables.column_table import NO_CONTENT, column_changes, column_tables, small_store
from tools.tables.column_table import StoredRows as Stored
from tools.tables.field_table import SilentLossError

_STEPS = (None, 1, 2)
"""Steps that are changed: one of the user, one of the agent with a call and its result."""

_MAY_BE_EMPTY = ("steps", "tool_calls", "observations")
_NEVER_EMPTY = frozenset({"source", "kind", "seq", "step", "call", "call_step"})
"""Columns that a row cannot be without, and those that say which row it is."""

BACK = "comes back"
REPORTED = "reported as lost"

_ID = "an id that is used again gets a number in the store, made again on reading"
_PARTS = "a list of one text is a text, and one beside an image without a text an empty text"
OTHERWISE = {
    "trajectories.final_metrics": "made of the totals where it was empty; other keys stand in its "
    "`extra`",
    **dict.fromkeys(("tool_calls.call_id", "tool_calls.native_id"), _ID),
    **dict.fromkeys(("observations.call_id", "observations.native_call_id"), _ID),
    **dict.fromkeys(("steps.text", "steps.content", "observations.content"), _PARTS),
    "media.*": "a blob comes back when a text or a list of parts names it",
}
"""``table.column`` -> why it may come back otherwise without a report."""


def hop_table(converter: Converter, *, thorough: bool = False) -> dict[str, str]:
    """Try every column of the schema.

    Args:
        converter: the format that a store goes through.
        thorough: change every row, not those of `_STEPS` alone.

    Returns:
        ``table.column`` -> `BACK`, or `REPORTED` and reasons in `OTHERWISE` as far as they hold;
        bookkeeping is left out.

    Raises:
        SilentLossError: a column comes back otherwise, and nothing says so.
    """
    base = small_store()
    for run in base["trajectories"]:
        run["source_format"] = "openai_chat"
    back, losses = _back(converter, base, "steps")
    usual = _Usual(set(_differences(base, back)), frozenset(losses))
    results: dict[str, set[str]] = {}
    for table in (name for name in TABLES if name not in NO_CONTENT):
        for column in TABLES[table].own_columns:
            if column not in BOOKKEEPING:
                results.setdefault(f"{table}.{column}", set())
            for place, changed in [
                *column_changes(base, table, column),
                *_emptied(base, table, column),
            ]:
                row = changed[table][place[1]]
                chosen = row.get("seq", 0) == 0 and (table == "links" or row.get("step") in _STEPS)
                if thorough or chosen:
                    _try(converter, place, changed, usual, results)
    return {name: "; ".join(sorted(words or {BACK})) for name, words in results.items()}


def _emptied(base: Rows, table: str, column: str) -> Iterator[tuple[Place, Rows]]:
    """Each way to empty a cell of a column."""
    if table not in _MAY_BE_EMPTY or column in _NEVER_EMPTY or column in BOOKKEEPING:
        return
    for index, row in enumerate(base[table]):
        if row[column] is not None:
            rows = [dict(other) for other in base[table]]
            rows[index][column] = None
            yield (table, index, column), {**base, table: rows}


@dataclass(frozen=True)
class _Usual:
    """What holds of the small store without a change: its differences, and what is reported."""

    places: set[Place]
    losses: frozenset[str]


def _try(
    converter: Converter, place: Place, changed: Rows, usual: _Usual, fields: dict[str, set[str]]
) -> None:
    """Note what becomes of one change."""
    back, losses = _back(converter, changed, place[0])
    of_row = _paths(changed, (*place[:2], "*"))
    follows = any(covers(path, of_row) for path in losses if path not in usual.losses)
    for other in _differences(changed, back):
        name = f"{other[0]}.{other[2]}"
        paths = _paths(changed, other)
        if any(covers(path, paths) for path in losses) or (
            follows and _of_step(changed, other, place)
        ):
            word = REPORTED
        elif other in usual.places and other != place:
            continue
        elif name in OTHERWISE:
            word = OTHERWISE[name]
        else:
            raise SilentLossError(
                f"{'.'.join(map(str, other))} does not come back through {converter.name} after a "
                f"change of {'.'.join(map(str, place))}, and no report says so"
            )
        at = f"{place[0]}.{place[2]}" if other[2] == "*" else name
        if other[2] != "*" or other[0] == place[0]:
            fields.setdefault(at, set()).add(word)


def _of_step(rows: Rows, other: Place, changed: Place) -> bool:
    """Whether a place is another one of the step that was changed, or its table has other rows."""
    first, second = (rows[table][index] for table, index, _ in (other, changed))
    same = all(first.get(key) == second.get(key) for key in ("seq", "step"))
    return other != changed and (same or other[2] == "*")


def _paths(rows: Rows, place: Place) -> list[str]:
    """Where reports may name a place; ``*`` stands for the whole row."""
    return [path.removesuffix(".*") for path in hub_paths(rows, place)]


def _back(converter: Converter, rows: Rows, table: str) -> tuple[Rows, list[str]]:
    """The rows after they were written and read, and the paths of what was lost."""
    losses, builder = Losses(), RowBuilder()
    stored = Stored(column_tables(rows, table))
    records = stored.records(lambda pairs: RecordWriter(converter, losses, pairs=pairs))
    for number, data in enumerate(records):
        builder.begin(Origin(number, "d", {"source_file": "f", "source_records": [1]}))
        reading = Losses()
        converter.read(RawRecord(data, "f", 1, 0, len(data)), builder, reading)
        builder.close_record(reading)
    tables = {name: table.to_pylist() for name, table in builder.tables().items()}
    return tables, [item["path"] for item in losses.items]


def _differences(first: Rows, second: Rows) -> list[Place]:
    """Where rows differ in more than bookkeeping; all places of a row that is not there."""
    out: list[Place] = []
    for table in (name for name in first if name not in NO_CONTENT):
        for index, row in enumerate(first[table]):
            if len(second[table]) != len(first[table]):
                out.append((table, index, "*"))
                continue
            other = second[table][index]
            out += [
                (table, index, column)
                for column, value in row.items()
                if value != other[column]
                and column not in BOOKKEEPING
                and not _same(column, _plain(value, first), _plain(other[column], second))
            ]
    return out


def _same(column: str, before: Any, after: Any) -> bool:
    """Whether a value is the same, or says the same."""
    if column == "extra":
        kept = {} if after is None else after
        fields = extra_column.unpack(None if before is None else json.dumps(before)).fields
        return all(name in kept for name in fields)
    default = DEFAULTS.get(column)
    return (default if before is None else before) == (default if after is None else after)


def _plain(value: Any, rows: Rows) -> Any:
    """A value with numbers for ids of trajectories and blobs, and JSON decoded."""
    if not isinstance(value, str):
        return value
    for table, key in (("trajectories", "trajectory_id"), ("media", "media_id")):
        for number, row in enumerate(rows[table]):
            if row[key] in value:
                value = value.replace(row[key], f"{table} {number}")
    return json.loads(value) if value[:1] in ("{", "[") else value
