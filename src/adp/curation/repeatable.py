"""SQL in a recipe must say the same every time: no chance, no clock."""

from __future__ import annotations

import functools
from typing import Any

import duckdb

from adp_schema.errors import QueryError
from adp_schema.sql_statement import syntax_tree


@functools.lru_cache(maxsize=256)
def check_repeatable(sql: str) -> None:
    """Refuse a statement whose result is another one in the next run.

    What is no valid SELECT passes: the query gate, which runs it, says what is wrong with it.

    Raises:
        QueryError: it calls a function such as ``random()`` or ``now()``, or takes a sample
            without a seed.
    """
    with duckdb.connect(":memory:") as con:
        try:
            pending: list[Any] = [syntax_tree(con, sql)]
        except (QueryError, duckdb.Error):
            return
    while pending:
        node = pending.pop()
        if isinstance(node, list):
            pending.extend(node)
        elif isinstance(node, dict):
            pending.extend(node.values())
            name = str(node.get("function_name", "")).lower()
            if name in _changing():
                raise QueryError(
                    f"{name}() gives another result each time, and a recipe has to give the same; "
                    "for chance use the ops coreset, mix or split, which have a seed"
                )
            sample = node.get("sample")
            if isinstance(sample, dict) and sample.get("seed") in (None, -1):
                raise QueryError("a sample in a recipe needs REPEATABLE (seed)")


@functools.cache
def _changing() -> frozenset[str]:
    """Functions that depend on more than their arguments."""
    with duckdb.connect(":memory:") as con:
        rows = con.execute(
            "SELECT DISTINCT function_name FROM duckdb_functions() WHERE stability <> 'CONSISTENT'"
        ).fetchall()
    return frozenset(str(name).lower() for (name,) in rows)
