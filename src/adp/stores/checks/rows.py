"""Checks of the rows of a store: keys, order, words, JSON, and ids."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from adp.stores.checks.model import Check, Finding, FunctionCheck, SqlCheck
from adp.stores.checks.scope import Scope
from adp_schema import jsontext
from adp_schema.arrow import json_columns
from adp_schema.tables import CHILD_TABLES, ENUMS, TABLES
from adp_schema.views import quote_text

_VIEWS = {"trajectories": "all_trajectories"}


def _place(table: str) -> tuple[str, str, str]:
    """SQL for trajectory_id, step and the place in the step of a table's rows."""
    names = TABLES[table].schema.names
    place = {"tool_calls": "call", "observations": '"order"'}.get(table, "0")
    return (
        "trajectory_id" if "trajectory_id" in names else "NULL::VARCHAR",
        "step" if "step" in names else "NULL::INTEGER",
        f"coalesce({place}, -1)",
    )


def _select(table: str, column: str, where: str) -> str:
    """SELECT of the rows of a table of which a column fulfils a condition."""
    trajectory, step, place = _place(table)
    seq = "seq" if "seq" in TABLES[table].schema.names else "0::BIGINT"
    return f"""
        SELECT {seq} AS seq, {trajectory} AS trajectory_id, {step} AS step, {place} AS place,
            '{table}.{column}' || CASE WHEN {step} IS NULL THEN '' ELSE '[' || {step} || ']' END
            AS path, "{column}" AS excerpt
        FROM {_VIEWS.get(table, table)} WHERE {where}"""


def _unknown_words() -> str:
    parts = []
    for (table, column), words in sorted(ENUMS.items()):
        allowed = ", ".join(quote_text(word) for word in sorted(words))
        parts.append(_select(table, column, f'"{column}" NOT IN ({allowed})'))
    required = (("steps", "source"), ("tool_calls", "kind"))
    for table, column in required:
        parts.append(_select(table, column, f'"{column}" IS NULL'))
    return " UNION ALL ".join(parts)


def _doubtful_json() -> str:
    """SELECT of the texts that may be no JSON, of all tables: one statement is planned once."""
    parts: list[str] = []
    for table in TABLES:
        for column in sorted(json_columns(table)):
            doubtful = (
                f'NOT json_valid("{column}") OR contains("{column}", \'NaN\') '
                f"OR contains(\"{column}\", 'Infinity') "
                f"OR regexp_matches(\"{column}\", '\\\\u[dD][89a-fA-F]')"
            )
            sql = _select(table, column, f'"{column}" IS NOT NULL AND ({doubtful})')
            parts.append(f"SELECT {len(parts)} AS number, * FROM ({sql})")
    return f"{' UNION ALL '.join(parts)} ORDER BY number, seq, step, place"


def _invalid_json(scope: Scope) -> Iterator[Finding]:
    """The engine finds candidates: it takes NaN and half characters for JSON, readers do not."""
    for batch in scope.gate.batches(_doubtful_json()):
        for row in batch.to_pylist():
            if not jsontext.is_valid(row["excerpt"]):
                yield Finding.at(row)


def _orphans() -> str:
    parts = [
        f"""
        SELECT c.seq, c.trajectory_id, {_step(table)} AS step, 0 AS place, '{table}' AS path,
            'no trajectory has this seq and this id' AS excerpt
        FROM {table} c ANTI JOIN all_trajectories t
            ON t.seq = c.seq AND t.trajectory_id = c.trajectory_id"""
        for table in CHILD_TABLES
    ]
    parts += [
        f"""
        SELECT NULL::BIGINT, NULL::VARCHAR, NULL::INTEGER, 0, '{table}.{column}', 'a key is null'
        FROM {_VIEWS.get(table, table)} WHERE {column} IS NULL"""
        for table, column in (
            *(("trajectories", "seq"), ("trajectories", "trajectory_id")),
            *(("steps", "step"), ("tool_calls", "step"), ("tool_calls", "call")),
            *(("observations", "step"), ("observations", '"order"')),
        )
    ]
    return " UNION ALL ".join(parts)


def _step(table: str) -> str:
    return "c.step" if "step" in TABLES[table].schema.names else "NULL::INTEGER"


_SORTED = {
    "trajectories": ("seq",),
    "steps": ("seq", "step"),
    "tool_calls": ("seq", "step", "call"),
    "observations": ("seq", "step", "order"),
}


def _misordered_rows(scope: Scope) -> Iterator[Finding]:
    for table, keys in _SORTED.items():
        before: tuple[int, ...] | None = None
        for batch in scope.batches(table, ("trajectory_id", *keys)):
            columns = [
                column.fill_null(-2).to_numpy(zero_copy_only=False) for column in batch.columns[1:]
            ]
            for row in _not_ascending(columns, before):
                step = int(columns[1][row]) if len(keys) > 1 else None
                key = ", ".join(f"{k} {c[row]}" for k, c in zip(keys, columns, strict=True))
                name = batch.column(0)[row].as_py()
                yield Finding(name, step, table, f"out of order or repeated: {key}")
            if batch.num_rows:
                before = tuple(int(column[-1]) for column in columns)


def _not_ascending(columns: list[np.ndarray], before: tuple[int, ...] | None) -> list[int]:
    """Rows whose key is not greater than that of the row before."""
    first = before if before is not None else tuple(int(c[0]) - 1 for c in columns if len(c))
    if not len(columns[0]):
        return []
    greater = np.zeros(len(columns[0]), dtype=bool)
    for column, last in reversed(list(zip(columns, first, strict=True))):
        previous = np.concatenate(([last], column[:-1]))
        greater = (column > previous) | ((column == previous) & greater)
    return [int(row) for row in np.flatnonzero(~greater)]


CHECKS = (
    Check(
        "unknown-word",
        "error",
        "A column that takes one of a few words, such as steps.source, holds another one or none.",
        "Set it to one of the words that docs/schema.md lists.",
        SqlCheck(_unknown_words()),
    ),
    Check(
        "invalid-json",
        "error",
        "A column of JSON text holds something that is not JSON, such as NaN.",
        "Mend the text; arguments that are no JSON belong into arguments_raw.",
        FunctionCheck(_invalid_json),
    ),
    Check(
        "orphan-row",
        "error",
        "A step, call, observation, link or raw record belongs to no trajectory, or a key is null.",
        "Remove the row, or write it with the seq and the id of its trajectory.",
        SqlCheck(_orphans()),
    ),
    Check(
        "call-without-step",
        "error",
        "A call belongs to a step that is not there; readers leave it out.",
        "Remove the calls of a step together with the step.",
        SqlCheck(
            """
            SELECT c.seq, c.trajectory_id, c.step, c.call AS place,
                '$.steps[' || c.step || '].calls[' || c.call || ']' AS path,
                coalesce(c.name, '') AS excerpt
            FROM tool_calls c ANTI JOIN steps s ON s.seq = c.seq AND s.step = c.step"""
        ),
    ),
    Check(
        "misordered-rows",
        "error",
        "Rows are not sorted by seq, step and place, or two have the same key: steps do not "
        "ascend.",
        "Sort the table by its key, and number the steps anew where one number is there twice.",
        FunctionCheck(_misordered_rows),
    ),
    Check(
        "duplicate-trajectory-id",
        "error",
        "Two trajectories have the same id.",
        "Convert the sources in one run: adp numbers repeats.",
        SqlCheck(
            """
            SELECT seq, trajectory_id, NULL::INTEGER AS step, 0 AS place,
                '$.trajectory_id' AS path, trajectory_id AS excerpt
            FROM all_trajectories
            QUALIFY row_number() OVER (PARTITION BY trajectory_id ORDER BY seq) > 1""",
            whole_store=True,
        ),
    ),
    Check(
        "repeated-source-id",
        "note",
        "Several trajectories of a data set come with the same id; the later ones are called #2, "
        "#3. They may be attempts at one task, or parts of one run.",
        "Set task_id and attempt if they are attempts; join them if they are parts.",
        SqlCheck(
            """
            SELECT seq, trajectory_id, NULL::INTEGER AS step, 0 AS place, '$.source_id' AS path,
                source_id AS excerpt
            FROM trajectories WHERE source_id IS NOT NULL
            QUALIFY row_number() OVER (PARTITION BY dataset, source_id ORDER BY seq) > 1""",
            whole_store=True,
        ),
    ),
    Check(
        "duplicate-record",
        "warning",
        "Two trajectories were made from records with the same bytes.",
        "Keep one of them.",
        SqlCheck(
            """
            SELECT seq, trajectory_id, NULL::INTEGER AS step, 0 AS place, '$' AS path,
                'the same as ' || first AS excerpt
            FROM (
                SELECT seq, trajectory_id, first_value(trajectory_id) OVER w AS first,
                    first_value(source_records) OVER w AS records,
                    first_value(source_file) OVER w AS file, source_records, source_file,
                    row_number() OVER w AS number
                FROM trajectories WHERE source_hash IS NOT NULL
                WINDOW w AS (PARTITION BY source_hash ORDER BY seq)
            )
            WHERE number > 1
                AND (source_file IS DISTINCT FROM file OR source_records IS DISTINCT FROM records)
            """,
            whole_store=True,
        ),
    ),
    Check(
        "missing-parent",
        "error",
        "A branch starts from a trajectory that is not in the store.",
        "Keep the parent beside its branches, or store the branch with all its steps.",
        SqlCheck(
            """
            SELECT b.seq, b.trajectory_id, NULL::INTEGER AS step, 0 AS place,
                '$.parent_id' AS path, b.parent_id AS excerpt
            FROM all_trajectories b ANTI JOIN all_trajectories p ON p.trajectory_id = b.parent_id
            WHERE b.parent_id IS NOT NULL""",
            whole_store=True,
        ),
    ),
)
