"""Cleaning the columns of a table, and saying where something was."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from adp.stores import shards
from adp.stores.redact import ids
from adp.stores.redact.finder import FoundValue, ValueFinder
from adp.stores.redact.findings import Findings
from adp.stores.redact.rules import Rule
from adp_schema import jsontext
from adp_schema.arrow import json_columns
from adp_schema.tables import ENUMS

_BYTES = frozenset({("rejects", "data"), ("raw", "data")})
"""Columns of bytes that hold the text of records."""

_OURS = frozenset(
    {"source_format", "converter", "converter_version", "framing", "mime", "media_id",
     "source_hash", "fingerprint"}
)  # fmt: skip
"""Columns that hold no words of the source: a user may be called like a format."""

_CALL_IDS = frozenset(
    {("tool_calls", "call_id"), ("observations", "call_id"), ("tool_calls", "native_id"),
     ("observations", "native_call_id")}
)  # fmt: skip


@dataclass(frozen=True)
class Cell:
    """A place in a table.

    Attributes:
        table: the table.
        column: its column.
        rows: rows of the table.
        row: number of the row.
        blob: id of a blob in the new store.
    """

    table: str
    column: str
    rows: pa.Table
    row: int
    blob: str = ""

    def value(self, column: str) -> Any:
        """Another value of the row."""
        return self.rows[column][self.row].as_py()

    def path(self) -> str:
        """Where it is, such as ``$.steps[3].observations[0].text``."""
        table = self.table
        if table in ("steps", "tool_calls", "observations"):
            step = self.value("step")
            here = f"$.steps[{step}]"
            if table == "tool_calls":
                here += f".calls[{self.value('call')}]"
            elif table == "observations":
                here = "$.early" if (step or 0) < 0 else here
                here += f".observations[{self.value('order')}]"
            return f"{here}.{self.column}"
        child = {
            "trajectories": "$", "tasks": "$.task", "links": "$.links", "raw": "$.raw",
            "media": f"$.media[{self.blob}]", "pairs": "pairs", "sources": "sources",
        }  # fmt: skip
        if table == "rejects":
            return f"rejects[{self.value('seq')}].{self.column}"
        return f"{child[table]}.{self.column}"


class Cleaner:
    """Cleans columns.

    Args:
        rules: what to look for.
        changes: ids that change; see `ids.plan`.
        findings: counts.
        places: how many places to keep.

    Attributes:
        finder: finds values in texts.
        seqs: ``seq`` of the trajectories where something was found.
    """

    def __init__(
        self, rules: Sequence[Rule], changes: ids.Changes, findings: Findings, places: int
    ) -> None:
        self.finder = ValueFinder(rules)
        self.seqs: set[int] = set()
        self._changes = changes
        self._findings = findings
        self._places = places
        self._calls: dict[tuple[int, str], str] = {}
        self._taken: set[tuple[int, str]] = set()

    def note(self, cell: Cell, found_values: Sequence[FoundValue]) -> None:
        """Count values."""
        names = cell.rows.schema.names
        name = None
        if "seq" in names and cell.table != "rejects":
            self.seqs.add(cell.value("seq"))
        if "trajectory_id" in names:
            name = cell.value("trajectory_id")
            name = self._changes.get("trajectory", {}).get(ids.hash_of(name), name)
        where = (name, cell.path())
        for item in found_values:
            self._findings.note(f"{cell.table}.{cell.column}", where, item, self._places)

    def columns(self, table: str, rows: pa.Table, *, leave: Collection[str] = ()) -> pa.Table:
        """Clean all columns of some rows but those to leave.

        Places are named by the old rows, but for their trajectory.
        """
        out = rows
        for field in rows.schema:
            name = field.name
            if name in leave or name in _OURS or (table, name) in ENUMS:
                continue
            column: pa.ChunkedArray | None = None
            if (table, name) in ids.SPACES:
                column = self._ids(table, name, rows)
            elif pa.types.is_string(field.type):
                column = self._texts(table, name, rows)
            elif pa.types.is_binary(field.type) and (table, name) in _BYTES:
                column = self._bytes(table, name, rows)
            elif pa.types.is_list(field.type) and pa.types.is_string(field.type.value_type):
                column = self._lists(table, name, rows)
            if column is not None:
                out = shards.put(out, name, column)
        return out

    def _texts(self, table: str, name: str, rows: pa.Table) -> pa.Array | None:
        column = self.finder.column(rows[name], is_json=name in json_columns(table))
        if not column:
            return None
        values = rows[name].to_pylist()
        for row, cleaned in column.items():
            cell = Cell(table, name, rows, row)
            self.note(cell, cleaned.values)
            is_call = (table, name) in _CALL_IDS
            values[row] = (
                self._call_id(cell, values[row], cleaned.text) if is_call else cleaned.text
            )
        return pa.array(values, rows[name].type)

    def _call_id(self, cell: Cell, old: str, new: str) -> str:
        """The new id of a call: the same for its results, another one for another call."""
        seq = cell.value("seq")
        known = self._calls.get((seq, old))
        if known is None:
            known, number = new, 1
            while (seq, known) in self._taken:
                number += 1
                known = ids.with_number(new, number)
            self._taken.add((seq, known))
            self._calls[seq, old] = known
        return known

    def _ids(self, table: str, name: str, rows: pa.Table) -> pa.ChunkedArray:
        column = rows[name]
        changes = dict(self._changes.get(ids.SPACES[table, name], {}))
        if table in ids.COUNTED or name != "trajectory_id":
            for row, cleaned in self.finder.column(column).items():
                if table in ids.COUNTED:
                    self.note(Cell(table, name, rows, row), cleaned.values)
                # An id without an entry names something that is not in the store.
                changes.setdefault(ids.hash_of(column[row].as_py()), cleaned.text)
        return ids.exchange(column, changes) if changes else column

    def _lists(self, table: str, name: str, rows: pa.Table) -> pa.Array | None:
        column = rows[name]
        if column.null_count == len(column):
            return None
        values = column.to_pylist()
        places = [
            (row, place)
            for row, words in enumerate(values)
            for place, word in enumerate(words or ())
            if word is not None
        ]
        texts = self.finder.texts([values[row][place] for row, place in places])
        changed = False
        for (row, place), cleaned in zip(places, texts, strict=True):
            if cleaned is not None:
                self.note(Cell(table, name, rows, row), cleaned.values)
                values[row][place] = cleaned.text
                changed = True
        return pa.array(values, column.type) if changed else None

    def _bytes(self, table: str, name: str, rows: pa.Table) -> pa.Array | None:
        """Records as they were read; bytes that are no UTF-8 keep what they are."""
        values = rows[name].to_pylist()
        known = [row for row, data in enumerate(values) if data]
        changed = False
        for is_json in (True, False):
            chosen = [row for row in known if jsontext.is_valid(values[row]) == is_json]
            texts = [values[row].decode("utf-8", "surrogateescape") for row in chosen]
            for row, cleaned in zip(chosen, self.finder.texts(texts, is_json=is_json), strict=True):
                if cleaned is not None:
                    self.note(Cell(table, name, rows, row), cleaned.values)
                    values[row] = cleaned.text.encode("utf-8", "surrogateescape")
                    changed = True
        return pa.array(values, rows[name].type) if changed else None
