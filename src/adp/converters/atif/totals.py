"""The final metrics of a record, and the columns that they fill."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Raw

from adp.converters.atif import keys as k
from adp.converters.json_objects import JsonObject, integer, members
from adp.converters.reading import BRACE
from adp_schema import jsontext
from adp_schema.model import Columns


def take_totals(top: JsonObject, columns: Columns) -> None:
    """The final metrics as written, and those that have columns."""
    if top.first("final_metrics") == BRACE:
        text = jsontext.one_line(top.take("final_metrics"))
        columns["final_metrics"] = text
        columns.update(total_columns(jsontext.decode_object(text.encode("utf-8"))))


def total_columns(metrics: Mapping[str, Raw]) -> Columns:
    """The columns that final metrics fill."""
    out: Columns = {}
    extra_keys = members(metrics.get("extra")) or {}
    for key, column in k.TOTAL_COLUMNS.items():
        raw = metrics.get(key)
        if raw is None and key == "reward":
            raw = extra_keys.get(key)
        if raw is None or jsontext.first_byte(raw) not in b"-0123456789":
            continue
        text = bytes(raw).decode("ascii")
        value = integer(text) if column.startswith("total_tokens") else float(text)
        if value is not None and abs(value) != float("inf"):
            out[column] = value
    return out
