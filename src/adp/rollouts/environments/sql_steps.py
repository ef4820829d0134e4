"""Tables that are asked by steps: filter, join, sort, aggregate, select, retrieve.

Each step is a SELECT over an earlier one. Names are quoted and values written as literals, and what
comes out goes through the query gate like any other SQL.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from adp.rollouts.environments.sql_settings import SqlSettings
from adp.rollouts.environments.sql_tables import Tables
from adp.rollouts.tools import FunctionTool, ToolError, arguments_schema
from adp.rollouts.turns import ErrorType

_CONDITIONS = {
    "equal_to": "=",
    "not_equal_to": "<>",
    "greater_than": ">",
    "greater_or_equal": ">=",
    "less_than": "<",
    "less_or_equal": "<=",
    "contains": "contains",
    "like": "LIKE",
}
_FUNCTIONS = {
    "count": "count({})",
    "count_distinct": "count(DISTINCT {})",
    "sum": "sum({})",
    "mean": "avg({})",
    "min": "min({})",
    "max": "max({})",
    "std": "stddev_samp({})",
}
_TEXT = {"type": "string"}
_DATA = {"type": "string", "description": "A table, or the name of an earlier result."}
_COLUMN = {"type": "string", "description": "Name of a column."}
_VALUE = {"type": ["string", "number", "boolean"], "description": "The value to compare with."}
_COLUMNS = {"type": "array", "items": _TEXT, "minItems": 1}
_GROUPS = {"type": "array", "items": _TEXT, "description": "Columns to group by."}

DEEPEST = 64
"""Steps on top of each other."""


class SqlSteps:
    """Named results, each a SELECT.

    Args:
        tables: the tables.
        settings: how much is shown.
    """

    def __init__(self, tables: Tables, settings: SqlSettings) -> None:
        self._tables = tables
        self._settings = settings
        self._results: dict[str, tuple[str, int]] = {}

    def copy(self) -> SqlSteps:
        """The same results, independent from now on."""
        other = SqlSteps(self._tables, self._settings)
        other._results = dict(self._results)
        return other

    def source(self, data: str) -> str:
        """The SELECT of a table or of a result."""
        return self._source(data)[0]

    def _source(self, data: str) -> tuple[str, int]:
        if data in self._results:
            return self._results[data]
        if data in self._tables.names():
            return f"SELECT * FROM {_name(data)}", 0
        known = ", ".join([*self._tables.names(), *self._results])
        raise ToolError(f"there is no data '{data}'; there is: {known}", ErrorType.INVALID_ARGS)

    def _keep(self, sql: str, *below: int) -> dict[str, Any]:
        """Name a result. Its columns are asked for, so that what is wrong with it shows now."""
        depth = max(below) + 1
        if depth > DEEPEST:
            raise ToolError(f"more than {DEEPEST} steps stand on top of each other")
        columns = self._tables.columns(sql)
        name = f"result_{len(self._results) + 1}"
        self._results[name] = (sql, depth)
        return {"data": name, "columns": columns}

    def filter(self, data: str, column: str, condition: str, value: Any) -> dict[str, Any]:
        """Rows for which a condition holds."""
        source, depth = self._source(data)
        left, operator, right = _name(column), _CONDITIONS[condition], _literal(value)
        if operator == "contains":
            test = f"contains(CAST({left} AS VARCHAR), CAST({right} AS VARCHAR))"
        else:
            test = f"{left} {operator} {right}"
        return self._keep(f"SELECT * FROM ({source}) WHERE {test}", depth)

    def join(self, left: str, right: str, left_column: str, right_column: str) -> dict[str, Any]:
        """Rows of two that agree in a column."""
        (result, first), (other, second) = self._source(left), self._source(right)
        test = f"l.{_name(left_column)} = r.{_name(right_column)}"
        sql = f"SELECT * FROM ({result}) AS l JOIN ({other}) AS r ON {test}"
        return self._keep(sql, first, second)

    def sort(self, data: str, column: str, descending: bool = False) -> dict[str, Any]:
        """Rows in the order of a column."""
        source, depth = self._source(data)
        order = f"{_name(column)} {'DESC' if descending else 'ASC'} NULLS LAST"
        return self._keep(f"SELECT * FROM ({source}) ORDER BY {order}", depth)

    def aggregate(
        self, data: str, function: str, column: str, group_by: Sequence[str] = ()
    ) -> dict[str, Any]:
        """One number for all rows, or for each group."""
        source, depth = self._source(data)
        groups = ", ".join(map(_name, group_by))
        number = f"{_FUNCTIONS[function].format(_name(column))} AS {_name(f'{function}_{column}')}"
        tail = f" GROUP BY {groups} ORDER BY {groups}" if groups else ""
        head = f"{groups}, {number}" if groups else number
        return self._keep(f"SELECT {head} FROM ({source}){tail}", depth)

    def select(self, data: str, columns: Sequence[str], distinct: bool = False) -> dict[str, Any]:
        """Some columns."""
        source, depth = self._source(data)
        names = ", ".join(map(_name, columns))
        return self._keep(f"SELECT {'DISTINCT ' if distinct else ''}{names} FROM ({source})", depth)

    def retrieve(self, data: str, limit: int = 50) -> dict[str, Any]:
        """The first rows."""
        return self._tables.rows(
            f"SELECT * FROM ({self.source(data)}) LIMIT {limit}", self._settings
        )

    def tools(self, style: str) -> list[FunctionTool]:
        """The tools of a style."""
        result = self._filters(style) + self._sorts(style) + self._aggregates(style)
        join = {"left": _DATA, "right": _DATA, "left_column": _COLUMN, "right_column": _COLUMN}
        limit = {"type": "integer", "minimum": 1, "maximum": self._settings.rows}
        return [
            *result,
            _tool("join_data", "Join two tables where two columns agree.", join, self.join),
            _tool(
                "select_columns",
                "Keep some columns.",
                {"data": _DATA, "columns": _COLUMNS, "distinct": {"type": "boolean"}},
                self.select,
                optional=("distinct",),
            ),
            _tool(
                "retrieve_data",
                "Show the first rows.",
                {"data": _DATA, "limit": limit},
                self.retrieve,
                optional=("limit",),
            ),
        ]

    def _filters(self, style: str) -> list[FunctionTool]:
        base = {"data": _DATA, "column": _COLUMN, "value": _VALUE}
        if style == "slot_filling":
            condition = {"type": "string", "enum": list(_CONDITIONS)}
            named = {**base, "condition": condition}
            return [_tool("filter_data", "Keep rows that meet a condition.", named, self.filter)]
        return [
            _tool(
                f"filter_{name}",
                f"Keep rows whose value is {name.replace('_', ' ')} the given one.",
                base,
                _with(self.filter, condition=name),
            )
            for name in _CONDITIONS
        ]

    def _sorts(self, style: str) -> list[FunctionTool]:
        base = {"data": _DATA, "column": _COLUMN}
        if style == "slot_filling":
            named = {**base, "descending": {"type": "boolean"}}
            optional = ("descending",)
            return [_tool("sort_data", "Sort rows.", named, self.sort, optional=optional)]
        return [
            _tool(f"sort_{name}", f"Sort rows, {name}.", base, _with(self.sort, descending=down))
            for name, down in (("ascending", False), ("descending", True))
        ]

    def _aggregates(self, style: str) -> list[FunctionTool]:
        base = {"data": _DATA, "column": _COLUMN, "group_by": _GROUPS}
        optional = ("group_by",)
        if style == "slot_filling":
            named = {**base, "function": {"type": "string", "enum": list(_FUNCTIONS)}}
            about = "Compute one number over all rows or groups."
            return [_tool("aggregate_data", about, named, self.aggregate, optional=optional)]
        return [
            _tool(
                f"compute_{name}",
                f"Compute {name.replace('_', ' ')} over all rows or groups.",
                base,
                _with(self.aggregate, function=name),
                optional=optional,
            )
            for name in _FUNCTIONS
        ]


def _tool(
    name: str,
    about: str,
    properties: Mapping[str, Any],
    run: Callable[..., Any],
    *,
    optional: Sequence[str] = (),
) -> FunctionTool:
    return FunctionTool(name, about, arguments_schema(properties, optional), run)


def _with(method: Callable[..., Any], **fixed: Any) -> Callable[..., Any]:
    return lambda **arguments: method(**arguments, **fixed)


def _name(text: str) -> str:
    return '"' + text.replace('"', '""') + '"'


def _literal(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).upper()
    if isinstance(value, int | float):
        return repr(value)
    return "'" + str(value).replace("'", "''") + "'"
