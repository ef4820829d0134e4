"""The tables of a store as Arrow schemas, derived from the classes in `adp_schema.model`.

Tables that hang from a trajectory begin with ``seq`` and ``trajectory_id``: ``seq`` is the sort
and join key everywhere, the id is there for people.
"""

from __future__ import annotations

import types
import typing
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import pyarrow as pa

from adp_schema import model

MANIFEST = "adp.json"
"""Name of the file that makes a folder a store."""

SCHEMA_VERSION = "1.0"

_SCALARS: dict[Any, pa.DataType] = {
    str: pa.string(),
    int: pa.int64(),
    float: pa.float64(),
    bool: pa.bool_(),
    bytes: pa.binary(),
    datetime: pa.timestamp("us", tz="UTC"),
}

_SEQ = pa.field(
    "seq",
    pa.int64(),
    metadata={"description": "Input order; sort and join key of all tables; ordered, not dense."},
)
_TRAJECTORY_ID = pa.field(
    "trajectory_id", pa.string(), metadata={"description": "Trajectory that the row belongs to."}
)


@dataclass(frozen=True)
class Table:
    """One table of a store.

    Attributes:
        name: folder name in the store.
        row: the class that documents its columns.
        schema: its Arrow schema; every field carries ``description`` in its metadata.
        sort: the columns that order its rows.
        bloom: columns with a Bloom filter.
        required: False when the folder is there only if it has rows.
    """

    name: str
    row: type[model.Row]
    schema: pa.Schema
    sort: tuple[str, ...]
    bloom: tuple[str, ...]
    required: bool

    @property
    def own_columns(self) -> list[str]:
        """Names of the columns that the row class declares."""
        return list(columns_of(self.row))


def columns_of(row: type[model.Row]) -> dict[str, pa.Field]:
    """Return the columns of a row class, in declaration order.

    Fields that hold child rows are not columns.
    """
    fields: dict[str, pa.Field] = {}
    for name, info in row.model_fields.items():
        if info.exclude:
            continue
        # What pydantic made of the annotation; to evaluate them anew takes 10 ms at each start.
        data_type, is_json = _arrow_type(info.annotation)
        metadata = {"description": info.description or ""}
        if is_json:
            metadata["content"] = "json"
        fields[name] = pa.field(name, data_type, metadata=metadata)
    return fields


def _arrow_type(hint: Any) -> tuple[pa.DataType, bool]:
    """Map an annotation to an Arrow type; the flag says whether the column holds JSON text."""
    if isinstance(hint, types.UnionType) or typing.get_origin(hint) is typing.Union:
        (hint,) = [arg for arg in typing.get_args(hint) if arg is not type(None)]
    if typing.get_origin(hint) is typing.Annotated:
        base, marker = typing.get_args(hint)[:2]
        return (pa.int32(), False) if marker == "int32" else (_SCALARS[base], marker == "json")
    if typing.get_origin(hint) is list:
        (item,) = typing.get_args(hint)
        return pa.list_(_arrow_type(item)[0]), False
    return _SCALARS[hint], False


def _table(
    name: str,
    row: type[model.Row],
    sort: tuple[str, ...],
    *,
    keyed: bool = True,
    bloom: tuple[str, ...] = (),
    required: bool = False,
) -> Table:
    """Build a table; a keyed one begins with seq and trajectory_id."""
    prefix = [_SEQ, _TRAJECTORY_ID] if keyed else []
    schema = pa.schema([*prefix, *columns_of(row).values()])
    return Table(name, row, schema, sort, bloom, required)


_ID = ("trajectory_id",)

TABLES: dict[str, Table] = {
    table.name: table
    for table in (
        _table("trajectories", model.Trajectory, ("seq",), keyed=False, bloom=_ID, required=True),
        _table("steps", model.Step, ("seq", "step"), bloom=_ID, required=True),
        _table("tool_calls", model.ToolCall, ("seq", "step", "call"), bloom=_ID, required=True),
        _table(
            "observations", model.Observation, ("seq", "step", "order"), bloom=_ID, required=True
        ),
        _table("tasks", model.Task, ("seq",), bloom=("task_id",)),
        _table("media", model.Media, ("seq", "media_id"), bloom=("media_id",)),
        _table("links", model.Link, ("seq", "step", "call")),
        _table("pairs", model.Pair, ("pair_id",), keyed=False, bloom=("pair_id",)),
        _table("rejects", model.Reject, ("seq",), keyed=False),
        _table("raw", model.RawRow, ("seq", "record")),
        _table("sources", model.SourceFile, ("source_file",), keyed=False, required=True),
    )
}

CHILD_TABLES = ("steps", "tool_calls", "observations", "links", "raw")
"""Tables whose rows hang from one trajectory each."""

SHARDED_TABLES = tuple(name for name in TABLES if name != "sources")
"""Tables that every shard may have a file of; ``sources`` is written once, at the end."""

ENUMS: dict[tuple[str, str], frozenset[str]] = {
    ("steps", "source"): frozenset({"system", "user", "agent", "environment"}),
    ("steps", "kind"): frozenset({"message", "llm_turn", "context_edit", "event"}),
    ("steps", "visibility"): frozenset({"llm", "user", "both", "none"}),
    ("steps", "edit_boundary"): frozenset({"replace", "append", "truncate"}),
    ("tool_calls", "kind"): frozenset({"function", "code", "message", "gui", "mcp"}),
    ("tool_calls", "arguments_kind"): frozenset(
        {"object", "json_string", "python_literal", "dsl", "text", "invalid"}
    ),
    ("tool_calls", "requestor"): frozenset({"agent", "user"}),
    ("tool_calls", "origin"): frozenset({"structured", "parsed_from_text"}),
    ("observations", "source"): frozenset({"environment", "user", "agent"}),
    ("trajectories", "tools_origin"): frozenset({"recorded", "parsed", "inferred", "builtin"}),
    ("trajectories", "branch_kind"): frozenset(
        {"alternate", "attempt", "subagent", "continuation", "fork", "rewind", "revision"}
    ),
    ("links", "kind"): frozenset({"subagent", "continuation", "fork", "compaction"}),
    ("pairs", "level"): frozenset({"trajectory", "step", "turn"}),
    ("rejects", "status"): frozenset({"rejected", "skipped"}),
}
"""Columns that take one of a few words."""
