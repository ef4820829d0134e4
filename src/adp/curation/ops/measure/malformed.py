"""Calls that do not fit: no JSON, a tool that is not on offer, arguments against its schema.

Only calls of tools are looked at, not code, messages or text commands. The schema is that of the
trajectory's own list of tools, read as the checks of ``adp validate`` read it; without a list, only
the JSON is judged. Arguments that are a JSON string which holds an object are taken for that
object: how they were written down is the source's doing.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any

import msgspec
import polars as pl

from adp.curation.ops.measure.rows import PartitionRows
from adp.stores.checks import tool_schema
from adp.stores.checks.tool_schema import ArgumentSchemas

_TOOL_KINDS = frozenset({"function", "mcp", "gui", None})
_NO_JSON_KINDS = frozenset({"text", "dsl", "python_literal"})
_INVALID = object()

UNKNOWN_TOOL = "unknown tool"


def find(rows: PartitionRows) -> pl.DataFrame:
    """``seq``, ``step``, ``call`` and ``fault`` of the calls that do not fit."""
    tools = dict(rows.trajectories.select("seq", "tools").iter_rows())
    columns = ("seq", "step", "call", "kind", "name", "arguments", "arguments_raw")
    results = []
    for seq, step, call, kind, name, arguments, raw, form in rows.calls.select(
        *columns, "arguments_kind"
    ).iter_rows():
        if kind in _TOOL_KINDS:
            offered = _tools(tools.get(seq) or "")
            fault = fault_of(name, arguments, raw, form, offered)
            if fault is not None:
                results.append((seq, step, call, fault))
    schema = {"seq": pl.Int64, "step": pl.Int32, "call": pl.Int32, "fault": pl.String}
    return pl.DataFrame(results, schema=schema, orient="row")


def measure(rows: PartitionRows, frame: pl.DataFrame) -> pl.DataFrame:
    """Malformed calls of each trajectory."""
    counted = frame.group_by("seq").agg(
        pl.len().cast(pl.Int64).alias("malformed_calls"),
        (pl.col("fault") == UNKNOWN_TOOL).sum().cast(pl.Int64).alias("unknown_tool_calls"),
    )
    return rows.seqs.join(counted, on="seq", how="left").fill_null(0)


@functools.lru_cache(maxsize=256)
def _tools(text: str) -> ArgumentSchemas | None:
    return tool_schema.read_tools(text) if text else None


def fault_of(
    name: str | None,
    arguments: str | None,
    raw: str | None,
    form: str | None,
    tools: ArgumentSchemas | None,
) -> str | None:
    """What is wrong with a call of a tool; None when nothing is.

    Args:
        name: the tool.
        arguments: the column ``arguments``.
        raw: the column ``arguments_raw``.
        form: the column ``arguments_kind``.
        tools: what is on offer; None when nobody knows.
    """
    return next(_faults(name, arguments, raw, form, tools), None)


def _faults(
    name: str | None,
    arguments: str | None,
    raw: str | None,
    form: str | None,
    tools: ArgumentSchemas | None,
) -> Iterator[str]:
    if form == "invalid" or (arguments is None and raw is not None and form not in _NO_JSON_KINDS):
        yield "no JSON"
    value = _value(arguments)
    if value is not _INVALID and not isinstance(value, dict):
        yield "no object"
    if tools is None or not tools.by_name:
        return
    tool = tools.by_name.get(name or "")
    if tool is None:
        yield UNKNOWN_TOOL
    elif isinstance(value, dict):
        if tool_schema.missing(tool, value):
            yield "missing argument"
        if tool_schema.unknown(tool, value):
            yield "unknown argument"
        if tool_schema.misfits(tool, value):
            yield "unfit argument"


def _value(arguments: str | None) -> Any:
    """The arguments; `_INVALID` when there are none that are JSON."""
    if arguments is None:
        return _INVALID
    try:
        value = msgspec.json.decode(arguments)
        return msgspec.json.decode(value) if isinstance(value, str) and value else value
    except (msgspec.DecodeError, RecursionError, UnicodeError):
        return _INVALID
