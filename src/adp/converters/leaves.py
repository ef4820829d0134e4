"""The leaves of a record, one changed at a time, and the rows that are read of it.

So `adp.converters.conformance`, and the tables of the documentation, find out what becomes of
a value.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pyarrow as pa

from adp.converters.row_differences import Rows
from adp_schema.builder import Origin, RowBuilder
from adp_schema.losses import Losses
from adp_schema.model import Media, Trajectory
from adp_schema.protocols import Converter, RawRecord
from adp_schema.reader import assemble, to_models


@dataclass
class Reading:
    """Records as the store has them; models are made only of those that are written again."""

    tables: dict[str, pa.Table]
    rows: Rows
    losses: list[dict[str, str]]

    @cached_property
    def trajectories(self) -> list[Trajectory]:
        """The trajectories, each with its steps."""
        blobs = {blob.media_id or "": blob for blob in to_models(self.tables["media"], Media)}
        return list(assemble(self.tables["trajectories"], self.tables, blobs))


@dataclass
class Leaf:
    """A value of a record: its keys from the top, its name in the table, itself."""

    keys: tuple[str | int, ...]
    path: str
    value: Any


def read_records(
    converter: Converter,
    records: list[bytes],
    *,
    marked: bool = False,
    side_files: Mapping[str, bytes] | None = None,
) -> Reading:
    """Read records as the runner does: through the tables.

    Args:
        converter: their format.
        records: JSON texts.
        marked: whether they went through `jsontext.sanitise`.
        side_files: contents of the files that belong to them, by their path.

    Raises:
        RecordError: a record is wrong; a converter may raise any other exception, too.
    """
    builder, losses, items = RowBuilder(), Losses(), []
    for number, data in enumerate(records):
        columns = {"source_format": converter.name, "source_hash": "0" * 32}
        builder.begin(Origin(number << 20, "probe", columns, size=len(data), marked=marked))
        record = RawRecord(
            data, "probe", number + 1, 0, len(data), marked=marked, side_files=side_files or {}
        )
        converter.read(record, builder, losses)
        items += losses.items
        builder.close_record(losses)
    tables = builder.tables()
    rows = {table: _rows(content) for table, content in tables.items()}
    return Reading(tables, rows, items)


def _rows(table: pa.Table) -> list[dict[str, Any]]:
    """What ``table.to_pylist()`` gives; most columns of a record's rows hold nothing."""
    count = table.num_rows
    if not count:
        return []
    columns = [
        [None] * count if column.null_count == count else column.to_pylist()
        for column in table.columns
    ]
    names = table.column_names
    return [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]


def covers(text: str, expected: list[str]) -> bool:
    """Whether a report names one of the expected places, what holds it, or what is in it."""
    return any(
        place == text
        or place.startswith((f"{text}.", f"{text}["))
        or text.startswith((f"{place}.", f"{place}["))
        for place in expected
    )


def encode_record(record: Any) -> bytes:
    """A record as JSON text."""
    return json.dumps(record, ensure_ascii=False).encode("utf-8")


def with_value(record: Any, keys: tuple[str | int, ...], value: Any) -> Any:
    """A copy of a record with another value in one place; what lies beside it is shared."""
    if not keys:
        return value
    changed = copy.copy(record)
    changed[keys[0]] = with_value(record[keys[0]], keys[1:], value)
    return changed


def source_path(keys: tuple[str | int, ...]) -> str:
    """The JSON path of a place in a record."""
    return "$" + "".join(f"[{key}]" if isinstance(key, int) else f".{key}" for key in keys)
