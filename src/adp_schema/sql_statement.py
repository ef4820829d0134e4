"""What SQL may do: read the statement before it runs, and say in one sentence what is wrong.

The type of a statement that DuckDB's parser reports is not enough:
``WITH x AS (COPY ... TO 'file') SELECT 1`` is a SELECT to it, and writes the file. So the syntax
tree is walked. Every query in it must be a plain query, and every function that stands where a
table stands must be one of `TABLE_FUNCTIONS`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from adp_schema.errors import QueryError, unknown_name

if TYPE_CHECKING:
    import duckdb

TABLE_FUNCTIONS = frozenset(
    {
        "duckdb_columns",
        "duckdb_functions",
        "duckdb_keywords",
        "duckdb_types",
        "generate_series",
        "histogram",
        "histogram_values",
        "json_each",
        "json_tree",
        "range",
        "repeat",
        "repeat_row",
        "unnest",
    }
)
"""Functions to select from. None takes a path, an address, a pointer or SQL text."""

_OF_VALUES = frozenset(
    {"generate_series", "json_each", "json_tree", "range", "repeat", "repeat_row", "unnest"}
)
"""Those of them that are given values, and no table."""

_QUERY_NODES = frozenset({"SELECT_NODE", "SET_OPERATION_NODE", "RECURSIVE_CTE_NODE", "CTE_NODE"})
_ALLOWED = "a query is one SELECT, DESCRIBE, SHOW, SUMMARIZE or EXPLAIN of a SELECT"
_SKIP = r"(?:\s|--[^\n]*(?:\n|$)|/\*.*?\*/)"
_EXPLAIN = re.compile(rf"{_SKIP}*explain\b({_SKIP}+analyze\b)?", re.IGNORECASE | re.DOTALL)


class Checked(NamedTuple):
    """A statement that only reads.

    Attributes:
        text: what to run.
        tables: the tables that it names, in lower case.
        analyzes: whether it is EXPLAIN ANALYZE, which runs what it explains.
        looks: whether it may look at which tables there are, or name them elsewhere.
        ctes: names that its WITH clauses give, in lower case.
    """

    text: str
    tables: frozenset[str]
    analyzes: bool = False
    looks: bool = True
    ctes: frozenset[str] = frozenset()


def check(con: duckdb.DuckDBPyConnection, sql: str) -> Checked:
    """Read a statement without running it.

    Args:
        con: a connection, whose parser is used.
        sql: the SQL text.

    Raises:
        QueryError: it is not exactly one statement that only reads.
        duckdb.Error: it is not valid SQL.
    """
    try:
        sql.encode()
    except UnicodeEncodeError as error:
        raise QueryError(f"the query has half a character at position {error.start + 1}") from None
    statements = con.extract_statements(sql)
    if len(statements) != 1:
        raise QueryError(f"{_ALLOWED}, not {len(statements) or 'no'} statements")
    try:
        kind = statements[0].type.name
    except ValueError:  # a kind that this version of the binding has no name for
        kind = "OTHER"
    text, prefix, analyzes = statements[0].query, "", False
    if kind == "EXPLAIN" and (explain := _EXPLAIN.match(text)):
        # What runs is put together anew around the part that is checked.
        text = text[explain.end() :]
        analyzes = explain[1] is not None
        prefix = "EXPLAIN ANALYZE " if analyzes else "EXPLAIN "
    elif kind == "MULTI":
        raise QueryError(
            f"{_ALLOWED}; write PIVOT as: FROM t PIVOT (count(*) FOR column IN ('a', 'b'))"
        )
    elif kind != "SELECT":
        raise QueryError(f"{_ALLOWED}, not {kind.replace('_', ' ')}")
    names = _check_tree(syntax_tree(con, text))
    tables, ctes = frozenset(names.tables), frozenset(names.ctes)
    return Checked(prefix + text, tables, analyzes, names.looks, ctes)


def syntax_tree(con: duckdb.DuckDBPyConnection, text: str) -> Any:
    """Return the syntax tree of one SELECT."""
    rows = con.execute("SELECT json_serialize_sql($1)", [text]).fetchall()
    try:
        tree: Any = json.loads(rows[0][0])
    except RecursionError:
        raise QueryError("the query nests expressions too deeply; split it up by WITH") from None
    if tree["error"]:
        # Only SELECTs have a tree: this was EXPLAIN of something else, or with options.
        raise QueryError(f"{_ALLOWED}, without options")
    if len(tree["statements"]) != 1:
        raise QueryError(f"{_ALLOWED}, not {len(tree['statements'])} statements")
    return tree


@dataclass
class _Names:
    """What a tree names; see `Checked`."""

    tables: set[str] = field(default_factory=set)
    ctes: set[str] = field(default_factory=set)
    looks: bool = False


def _check_tree(tree: Any) -> _Names:
    """Return the names in a tree; raise QueryError when it does more than read tables."""
    names = _Names()
    pending = [tree]
    while pending:
        node = pending.pop()
        if isinstance(node, list):
            pending.extend(node)
        elif isinstance(node, dict):
            pending.extend(node.values())
            kind = str(node.get("type"))
            if ("cte_map" in node or kind.endswith("_NODE")) and kind not in _QUERY_NODES:
                raise QueryError(f"{_ALLOWED}, not {kind.split('_')[0]} inside of one")
            if kind == "BASE_TABLE":
                names.tables.add(str(node.get("table_name")).lower())
                names.looks |= bool(node.get("schema_name") or node.get("catalog_name"))
            elif kind == "TABLE_FUNCTION":
                function = str(node.get("function", {}).get("function_name")).lower()
                _check_function(function)
                names.looks |= function not in _OF_VALUES
            elif kind == "SHOW_REF":
                names.looks |= node.get("show_type") not in ("DESCRIBE", "SUMMARY")
            elif "cte_map" in node:
                names.ctes.update(str(it["key"]).lower() for it in node["cte_map"].get("map", ()))
    return names


def _check_function(name: str) -> None:
    if name not in TABLE_FUNCTIONS:
        known = ", ".join(sorted(TABLE_FUNCTIONS))
        raise QueryError(f"a query may not read from {name}(); besides tables, it may from {known}")


_UNKNOWN_COLUMN = re.compile(
    r'Referenced column "(.+)" not found in FROM clause'
    r'|.*does not have a column named "(.+)"'
    r'|Column "(.+)" does not exist'
)
_UNKNOWN_TABLE = re.compile(r'Table with name "?(.+?)"? does not exist')


def sentence(
    text: str,
    sql: str,
    tables: Collection[str],
    views: Mapping[str, Collection[str]],
) -> str:
    """Turn a message of the engine into one sentence.

    An unknown table or column comes with the nearest names, an error in the syntax with its
    place.

    Args:
        text: message of the engine.
        sql: the statement.
        tables: the tables that the statement names.
        views: the views that there are, and their columns.
    """
    message = plain(text)
    if match := _UNKNOWN_TABLE.match(message):
        return unknown_name("table", match[1], views)
    if match := _UNKNOWN_COLUMN.match(message):
        named = [views[name] for name in tables if name in views]
        known = {column for columns in named or views.values() for column in columns}
        return unknown_name("column", match[1] or match[2] or match[3], known)
    return message + _position(text, sql)


def plain(text: str) -> str:
    """Return the first line of an engine's message, without the name of its class.

    Of a traceback, which the engine passes on from a file system, it is the last line.
    """
    first, *rest = text.strip().splitlines() or ["unknown error"]
    if first.startswith("Traceback"):
        lines = (line for line in rest if re.match(r"[\w.]*(?:Error|Exception)\b", line))
        first = next(lines, first)
    if rest and rest[0].startswith("Did you mean"):
        first = f"{first.rstrip('!.')}; did you mean{rest[0].removeprefix('Did you mean')}"
    return re.sub(r"^[A-Z][\w -]* Error: ", "", first).strip()


def _position(text: str, sql: str) -> str:
    """Return the place that the excerpt below an engine's message points at with a caret."""
    excerpt = re.search(r"^LINE (\d+): (.*)\n( *)\^", text, re.MULTILINE)
    if excerpt is None:
        return ""
    line, lines = int(excerpt[1]), sql.splitlines()
    column = len(excerpt[3]) - len(f"LINE {line}: ") + 1
    # Of a long line, the excerpt shows only a part, and its columns count from there.
    full = line <= len(lines) and lines[line - 1].startswith(excerpt[2].removesuffix("..."))
    return f" (line {line}, column {column})" if full else f" (line {line})"
