"""Tables that are asked in SQL, read-only, through the query gate.

Three styles of tools over the same tables:

- ``sql``: ``list_tables``, ``describe_table``, ``run_sql``.
- ``slot_filling``: steps with the operation in the arguments, such as ``filter_data(data, column,
  condition, value)``. Each names its result, which the next one takes; ``retrieve_data`` shows it.
- ``selection``: the same with one tool for each operation, such as ``filter_equal_to(data, column,
  value)``.

The last two are in the manner of M3's tools that are derived from SQL queries (reference data
with the subdomains slot_filling and selection).
"""

from __future__ import annotations

from collections.abc import Sequence

from adp.rollouts.environment import EnvironmentKind
from adp.rollouts.environments.sql_settings import SqlSettings
from adp.rollouts.environments.sql_steps import SqlSteps
from adp.rollouts.environments.sql_tables import Tables
from adp.rollouts.tool_environment import ToolEnvironment
from adp.rollouts.tools import FunctionTool, arguments_schema

_NOTHING = arguments_schema({})
_TABLE = arguments_schema({"table": {"type": "string", "description": "Name of a table."}})
_SQL = arguments_schema(
    {"query": {"type": "string", "description": "One SELECT, in the dialect of DuckDB."}}
)


class SqlEnvironment(ToolEnvironment):
    """Tools over tables. Nothing can be written, so calls do no harm on the side.

    Args:
        settings: tables and limits.

    Raises:
        InputError: a table cannot be read.
        UsageError: there is none.
    """

    blocking = True

    def __init__(self, settings: SqlSettings) -> None:
        super().__init__()
        self._settings = settings
        self._tables = Tables.open(settings.tables, settings.memory)
        self._steps = SqlSteps(self._tables, settings)

    def offered(self) -> Sequence[FunctionTool]:
        """The tools of the style."""
        tables, settings = self._tables, self._settings
        look = [
            FunctionTool(
                "list_tables", "Names of all tables.", _NOTHING, tables.names, read_only=True
            ),
            FunctionTool(
                "describe_table",
                "Columns of a table and their types.",
                _TABLE,
                lambda table: tables.columns(self._steps.source(table)),
                read_only=True,
            ),
        ]
        if settings.style != "sql":
            return [*look, *self._steps.tools(settings.style)]
        run = FunctionTool(
            "run_sql",
            f"Run one SELECT and show up to {settings.rows} rows.",
            _SQL,
            lambda query: tables.rows(query, settings),
            read_only=True,
        )
        return [*look, run]

    def fork(self) -> SqlEnvironment:
        """A copy with the same named results; the tables are shared, since nobody changes them."""
        other = SqlEnvironment.__new__(SqlEnvironment)
        other.__dict__.update(self.__dict__)
        other._steps = self._steps.copy()
        return other


KIND = EnvironmentKind(
    name="sql",
    about="Tables that are asked in SQL, read-only; or by steps in the manner of M3.",
    settings=SqlSettings,
    make=SqlEnvironment,
)
