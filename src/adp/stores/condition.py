"""A condition in SQL: what a user writes after WHERE, and nothing else.

The condition is put between parentheses of ours. It must not end them early, hide them behind a
comment, or bring a second statement. So the engine's own tokens of it are looked at, and in the
syntax tree of the whole nothing but the WHERE may differ from that of a harmless condition.
"""

from __future__ import annotations

import re
from typing import Any

import duckdb

from adp_schema.errors import QueryError
from adp_schema.sql_statement import sentence, syntax_tree

_EXAMPLE = "write one condition, such as: license = 'cc-by-nc-4.0'"


def check_condition(sql: str) -> None:
    """Check that a text is one closed expression; whether it is valid SQL shows when it runs.

    Raises:
        QueryError: it is empty, has a comment or a second statement, or its parentheses do not
            match.
    """
    try:
        data = sql.encode()
    except UnicodeEncodeError as error:
        raise QueryError(
            f"the condition has half a character at position {error.start + 1}"
        ) from None
    depth = 0
    words = duckdb.tokenize(sql)
    if not words:
        raise QueryError(f"the condition is empty; {_EXAMPLE}")
    for place, kind in words:
        first = data[place : place + 1]
        if kind == duckdb.token_type.comment or data[place : place + 2] in (b"--", b"/*"):
            raise QueryError(f"a condition has no comments; {_EXAMPLE}")
        if first == b";":
            raise QueryError(f"a condition has no ';' in it; {_EXAMPLE}")
        depth += {b"(": 1, b")": -1}.get(first, 0)
        if depth < 0:
            raise QueryError(f"the condition closes a parenthesis that it did not open; {_EXAMPLE}")
    if depth:
        raise QueryError(f"the condition opens a parenthesis that it does not close; {_EXAMPLE}")


def select_where(columns: str, condition: str) -> str:
    """The query for the trajectories that meet a condition, branches included.

    Args:
        columns: what to select, as SQL.
        condition: the condition.

    Raises:
        QueryError: see `check_condition`.
    """
    check_condition(condition)
    start = f"SELECT {columns} FROM all_trajectories WHERE"
    query = f"{start} (\n{condition}\n)"
    rest = _around_where(query)
    if rest is not None and rest != _around_where(f"{start} (\ntrue\n)"):
        raise QueryError(f"the condition is more than a condition; {_EXAMPLE}")
    return query


def condition_columns(condition: str) -> list[str]:
    """The columns that a condition names, without running it.

    Of a condition with a query or a function in it (a subquery, a lambda) it is none: there a name
    may be another table's, or an argument.

    Raises:
        QueryError: see `check_condition`; or it is not valid SQL.
    """
    check_condition(condition)
    query = f"SELECT 1 FROM pool WHERE (\n{condition}\n)"
    with duckdb.connect(":memory:") as con:
        try:
            con.extract_statements(query)
        except duckdb.Error as error:
            raise QueryError(own_lines(sentence(str(error), query, (), {}))) from None
        pending: list[Any] = [syntax_tree(con, query)["statements"][0]["node"]["where_clause"]]
    names: dict[str, None] = {}
    while pending:
        node = pending.pop()
        if isinstance(node, dict):
            if node.get("class") in ("SUBQUERY", "LAMBDA"):
                return []
            if node.get("class") == "COLUMN_REF":
                first, *rest = node["column_names"]
                names[rest[0] if first.lower() == "pool" and rest else first] = None
            pending.extend(node.values())
        elif isinstance(node, list):
            pending.extend(reversed(node))
    return list(names)


def own_lines(message: str) -> str:
    """A message about such a query, with the lines counted from the condition's first one."""
    return re.sub(r"\(line (\d+)", lambda item: f"(line {max(int(item[1]) - 1, 1)}", message)


def _around_where(query: str) -> Any:
    """The syntax tree of a query without its condition; None when it is not valid SQL."""
    with duckdb.connect(":memory:") as con:
        try:
            node = syntax_tree(con, query)["statements"][0]["node"]
        except QueryError:
            return None  # the gate, which runs the query, says what is wrong with it
    return {name: value for name, value in node.items() if name != "where_clause"}
