"""The SQL views over the tables of a store, and what each of their columns means.

There is one view per table under the table's own name, and a few that answer the questions asked
most: what each call returned, what failed, how often each task was solved. The descriptions are
data, so the documentation is generated from them.

`adp_schema.gate` creates the views. The views over tables name their columns one by one and add
no expression of their own, so the engine can push filters and projections down to the Parquet
files; only `seq` of the second and later stores of a query over several is computed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from adp_schema.tables import TABLES, Table

SEQ_SHIFT = 50
"""With several stores, ``seq`` of store number i is raised by ``i << SEQ_SHIFT``."""

STORE_COLUMN = ("store", "Name of the store that the trajectory is in; only with named stores.")
"""Name and description of the column that named stores add to the trajectories' views."""

SHARDS = "{shards}"
"""The SQL of a view over a table, until the gate knows its files; see `shards_sql`."""


@dataclass(frozen=True)
class View:
    """One view.

    Attributes:
        name: name in SQL.
        description: what one row is, in a sentence.
        columns: description of every column, in order.
        sql: the SELECT behind the view, or `SHARDS`.
        table: the table whose files it shows; None when it reads other views.
    """

    name: str
    description: str
    columns: dict[str, str]
    sql: str
    table: str | None = None


_DUCKDB_TYPES: dict[pa.DataType, str] = {
    pa.string(): "VARCHAR",
    pa.int64(): "BIGINT",
    pa.int32(): "INTEGER",
    pa.float64(): "DOUBLE",
    pa.bool_(): "BOOLEAN",
    pa.binary(): "BLOB",
    pa.timestamp("us", tz="UTC"): "TIMESTAMP WITH TIME ZONE",
}


def duckdb_type(data_type: pa.DataType) -> str:
    """Return DuckDB's name for an Arrow type that a table may have.

    Raises:
        KeyError: the type is not one that tables use.
    """
    if pa.types.is_list(data_type):
        return f"{duckdb_type(data_type.value_type)}[]"
    return _DUCKDB_TYPES[data_type]


def quote_text(text: str) -> str:
    """Return the SQL string literal for a text."""
    return "'" + text.replace("'", "''") + "'"


def quote_name(name: str) -> str:
    """Return the quoted SQL identifier for a name."""
    return '"' + name.replace('"', '""') + '"'


def shards_sql(
    table: Table,
    paths: Sequence[str],
    *,
    seq_shift: int = 0,
    store: str | None = None,
    stored: Mapping[str, str | None] | None = None,
) -> str:
    """Return the SELECT that reads the shards of one table of one store.

    Args:
        table: the table.
        paths: its Parquet files, with glob characters escaped; none gives no rows.
        seq_shift: number that is added to ``seq``.
        store: name of the store, for the column `STORE_COLUMN`; None for no such column.
        stored: for files of an older version, what each column is called in them; None for one
            that they lack, which reads as null.
    """
    items = []
    for field in table.schema:
        name = quote_name(field.name)
        there = field.name if stored is None else stored[field.name]
        if not paths or there is None:
            items.append(f"CAST(NULL AS {duckdb_type(field.type)}) AS {name}")
        elif field.name == "seq" and seq_shift:
            items.append(f"{quote_name(there)} + {seq_shift} AS {name}")
        else:
            items.append(name if there == field.name else f"{quote_name(there)} AS {name}")
    if store is not None:
        items.append(f"{quote_text(store)} AS {quote_name(STORE_COLUMN[0])}")
    if not paths:
        return f"SELECT {', '.join(items)} WHERE false"
    files = ", ".join(quote_text(path) for path in paths)
    # A folder such as "dataset=x" above the store must not replace the column of that name.
    return f"SELECT {', '.join(items)} FROM read_parquet([{files}], hive_partitioning = false)"


def _table_columns(table: Table) -> dict[str, str]:
    """Return the descriptions of a table's columns."""
    return {field.name: field.metadata[b"description"].decode() for field in table.schema}


def _table_view(table: Table) -> View:
    """Return the view that shows one table as it is."""
    name = "all_trajectories" if table.name == "trajectories" else table.name
    summary = (table.row.__doc__ or "").strip().splitlines()[0]
    if table.name == "trajectories":
        summary = "Every trajectory, branches included: " + summary[0].lower() + summary[1:]
    return View(name, summary, _table_columns(table), SHARDS, table.name)


def _pick(columns: Mapping[str, str], *names: str) -> dict[str, str]:
    """Return the descriptions of some columns, in the order given."""
    return {name: columns[name] for name in names}


_TRAJECTORY = _table_columns(TABLES["trajectories"])
_CALL = _table_columns(TABLES["tool_calls"])
_OBSERVATION = _table_columns(TABLES["observations"])

_MAIN_LINES = View(
    "trajectories",
    "The main lines: every trajectory that is not a branch of another one.",
    _TRAJECTORY,
    "SELECT * FROM all_trajectories WHERE parent_id IS NULL",
)

_CALLS = View(
    "calls",
    "A shorter name for tool_calls.",
    _CALL,
    "SELECT * FROM tool_calls",
)

_CALLS_WITH_RESULTS = View(
    "calls_with_results",
    "One pair of a call and a result; a call without a result is there once, with nulls.",
    {
        **_pick(_CALL, "seq", "trajectory_id"),
        **_pick(_TRAJECTORY, "dataset", "task_id"),
        **_pick(_CALL, "step", "call", "call_id", "kind", "name", "arguments", "arguments_raw"),
        "status": _CALL["status"],
        "result": "Text of the result, whole; null when there is none.",
        "visible_result": "What the model saw of the result, where that differs.",
        **_pick(_OBSERVATION, "is_error", "error_type", "exit_code", "truncated"),
        "result_step": "Step after which the result arrived; null when there is none.",
        "result_order": "Order of the result among those that arrived after that step.",
        "latency_ms": "Recorded time until the result, else of the call, in milliseconds.",
        **_pick(_TRAJECTORY, "success", "reward"),
    },
    """
    SELECT c.seq, c.trajectory_id, t.dataset, t.task_id, c.step, c.call, c.call_id, c.kind,
        c.name, c.arguments, c.arguments_raw, c.status, o.text AS result,
        o.visible_text AS visible_result, o.is_error, o.error_type, o.exit_code, o.truncated,
        o.step AS result_step, o."order" AS result_order,
        coalesce(o.duration_ms, c.duration_ms) AS latency_ms, t.success, t.reward
    FROM tool_calls c
    LEFT JOIN observations o ON o.seq = c.seq AND o.call_step = c.step AND o.call = c.call
    LEFT JOIN all_trajectories t ON t.seq = c.seq
    """,
)

_ERRORS = View(
    "errors",
    "Everything that failed: results that are errors, and trajectories that ended in one.",
    {
        **_pick(_OBSERVATION, "seq", "trajectory_id"),
        "dataset": _TRAJECTORY["dataset"],
        "level": "What failed: observation or trajectory.",
        "step": "Step after which the error arrived; null for a trajectory.",
        "call_step": "Step of the call that failed; null when the error answers none.",
        "call": "Index, within that step, of the call that failed.",
        "name": "Name of the tool, else of the sender; null for a trajectory.",
        "error_type": "Type of the error.",
        "exit_code": _OBSERVATION["exit_code"],
        "text": "Text of the result, or message of the error that ended the run.",
    },
    """
    SELECT o.seq, o.trajectory_id, t.dataset, 'observation' AS level, o.step, o.call_step,
        o.call, coalesce(c.name, o.name) AS name, o.error_type, o.exit_code, o.text
    FROM observations o
    LEFT JOIN tool_calls c ON c.seq = o.seq AND c.step = o.call_step AND c.call = o.call
    LEFT JOIN all_trajectories t ON t.seq = o.seq
    WHERE o.is_error OR o.exit_code <> 0 OR o.error_type IS NOT NULL
    UNION ALL
    SELECT seq, trajectory_id, dataset, 'trajectory', NULL, NULL, NULL, NULL, error_type, NULL,
        error_message
    FROM all_trajectories
    WHERE error_type IS NOT NULL OR error_message IS NOT NULL
    """,
)

_ATTEMPTS = View(
    "attempts",
    "One task of a data set, with the outcomes of its attempts; main lines with a task_id only.",
    {
        **_pick(_TRAJECTORY, "dataset", "task_id"),
        "attempts": "Number of attempts.",
        "successes": "Attempts with success true.",
        "failures": "Attempts with success false.",
        "unscored": "Attempts with success null: nobody knows.",
        "success_rate": "successes / (successes + failures); null when every one is unscored.",
        "best_reward": "Highest reward of an attempt.",
        "mean_reward": "Mean reward of the attempts that have one.",
        "first_success": "Place of the first success among the attempts, from 1; null for none.",
        "first_success_id": "trajectory_id of that attempt.",
    },
    """
    SELECT dataset, task_id, count(*) AS attempts,
        count(*) FILTER (WHERE success) AS successes,
        count(*) FILTER (WHERE NOT success) AS failures,
        count(*) FILTER (WHERE success IS NULL) AS unscored,
        avg(CASE WHEN success THEN 1.0 WHEN NOT success THEN 0.0 END) AS success_rate,
        max(reward) AS best_reward, avg(reward) AS mean_reward,
        min(place) FILTER (WHERE success) AS first_success,
        arg_min(trajectory_id, place) FILTER (WHERE success) AS first_success_id
    FROM (
        SELECT dataset, task_id, trajectory_id, success, reward, row_number() OVER (
            PARTITION BY dataset, task_id ORDER BY attempt NULLS LAST, seq) AS place
        FROM trajectories
        WHERE task_id IS NOT NULL
    )
    GROUP BY dataset, task_id
    """,
)

_TRANSCRIPT = View(
    "transcript",
    "Steps, calls and observations in one table, to read by: ORDER BY step, rank, place.",
    {
        **_pick(_CALL, "seq", "trajectory_id"),
        "step": "Step that the row is, belongs to, or arrived after; -1 before the first.",
        "rank": "0 for a step, 1 for a call, 2 for an observation.",
        "place": "Order among the rows of the same step and rank.",
        "type": "step, call or observation.",
        "source": "Who speaks: system, user, agent or environment.",
        "name": "Name of the tool, else of the sender.",
        "text": "Text of the step or of the observation.",
        "reasoning": "Reasoning of the step.",
        **_pick(_CALL, "call_id", "arguments", "arguments_raw"),
        "is_error": _OBSERVATION["is_error"],
    },
    """
    SELECT seq, trajectory_id, step, 0 AS rank, 0 AS place, 'step' AS type, source,
        actor AS name, text, reasoning, NULL AS call_id, NULL AS arguments,
        NULL AS arguments_raw, NULL AS is_error
    FROM steps
    UNION ALL
    SELECT seq, trajectory_id, step, 1, call, 'call', coalesce(requestor, 'agent'), name, NULL,
        NULL, call_id, arguments, arguments_raw, NULL
    FROM tool_calls
    UNION ALL
    SELECT seq, trajectory_id, step, 2, "order", 'observation', source, name, text, NULL, call_id,
        NULL, NULL, is_error
    FROM observations
    """,
)

_COMPLETENESS = View(
    "completeness",
    "What of each trajectory the source recorded, and what is missing; branches included.",
    {
        **_pick(_TRAJECTORY, "seq", "trajectory_id", "dataset", "source_format"),
        "system_prompt": "recorded, inferred or missing.",
        "tool_schemas": "recorded, parsed, inferred, builtin or missing.",
        "history": "whole, compacted, or cut: it continues something that is not in the store.",
        "contents": "captured, partly or missing: turns of the model that say what was written.",
        "turns": "How many turns of the model there are.",
        "empty_turns": "Of these, those without content or calls that were not aborted or refused, "
        "and those that were made up to hold calls.",
        "calls": "Calls of tools.",
        "calls_without_results": "Calls that no observation answers.",
        "results_without_calls": "Results that name the id of a call that is not there.",
        "truncated_results": "Results that the source says were cut.",
        "subagents": "Runs of subagents that it refers to.",
        "subagents_missing": "Of these, those that are not in the store.",
        "missing": "Where the missing runs would be: ids or paths, as the source has them.",
    },
    """
    WITH names AS (
        SELECT source_id AS name FROM all_trajectories WHERE source_id IS NOT NULL
        UNION SELECT trajectory_id FROM all_trajectories
        UNION SELECT session_id FROM all_trajectories WHERE session_id IS NOT NULL
        UNION SELECT source_file FROM all_trajectories WHERE source_file IS NOT NULL
    ), referred AS (
        SELECT l.seq, l.kind, coalesce(l.target_id, l.target_session_id, l.target_path) AS name,
            coalesce(i.name, s.name, p.name) IS NULL AS lacking
        FROM links l JOIN all_trajectories t ON t.seq = l.seq
        LEFT JOIN names i ON i.name = l.target_id
        LEFT JOIN names s ON s.name = l.target_session_id
        LEFT JOIN names p
            ON p.name = regexp_replace(t.source_file, '[^/]*$', '') || l.target_path
    ), linked AS (
        SELECT seq, count(DISTINCT name) FILTER (WHERE kind = 'subagent') AS subagents,
            count(DISTINCT name) FILTER (WHERE kind = 'subagent' AND lacking) AS lacking,
            coalesce(bool_or(lacking AND kind IN ('continuation', 'fork', 'compaction')), false)
                AS cut,
            string_agg(DISTINCT name, ', ' ORDER BY name) FILTER (WHERE lacking) AS missing
        FROM referred GROUP BY seq
    ), called AS (
        SELECT c.seq, count(*) AS calls, count(*) FILTER (WHERE o.seq IS NULL) AS unanswered
        FROM tool_calls c
        LEFT JOIN (SELECT DISTINCT seq, call_step, call FROM observations) o
            ON o.seq = c.seq AND o.call_step = c.step AND o.call = c.call
        GROUP BY c.seq
    ), observed AS (
        SELECT seq, count(*) FILTER (WHERE call IS NULL AND native_call_id IS NOT NULL) AS lonely,
            count(*) FILTER (WHERE truncated) AS truncated
        FROM observations GROUP BY seq
    ), calling AS (SELECT DISTINCT seq, step FROM tool_calls), told AS (
        SELECT s.seq, count(*) FILTER (WHERE s.kind = 'llm_turn') AS turns,
            count(*) FILTER (WHERE s.kind = 'llm_turn' AND s.text IS NULL AND s.reasoning IS NULL
                AND s.content IS NULL AND (c.seq IS NULL OR s.synthetic)
                AND coalesce(s.tokens_out, 1) > 0
                AND coalesce(s.stop_reason, '') NOT IN ('aborted', 'error', 'refusal')) AS hollow,
            bool_or(s.source = 'system' AND s.kind = 'message' AND s.synthetic IS NOT TRUE)
                AS prompt,
            bool_or(s.source = 'system' AND s.kind = 'message') AS any_prompt,
            bool_or(s.kind = 'context_edit') AS edited
        FROM steps s LEFT JOIN calling c ON c.seq = s.seq AND c.step = s.step
        GROUP BY s.seq
    )
    SELECT t.seq, t.trajectory_id, t.dataset, t.source_format,
        CASE WHEN w.prompt THEN 'recorded' WHEN w.any_prompt THEN 'inferred' ELSE 'missing' END
            AS system_prompt,
        coalesce(t.tools_origin, CASE WHEN t.tools IS NULL THEN 'missing' ELSE 'recorded' END)
            AS tool_schemas,
        CASE WHEN k.cut THEN 'cut' WHEN w.edited THEN 'compacted' ELSE 'whole' END AS history,
        CASE WHEN coalesce(w.hollow, 0) = 0 THEN 'captured' WHEN w.hollow < w.turns THEN 'partly'
            ELSE 'missing' END AS contents,
        coalesce(w.turns, 0) AS turns, coalesce(w.hollow, 0) AS empty_turns,
        coalesce(c.calls, 0) AS calls, coalesce(c.unanswered, 0) AS calls_without_results,
        coalesce(o.lonely, 0) AS results_without_calls,
        coalesce(o.truncated, 0) AS truncated_results,
        coalesce(k.subagents, 0) AS subagents, coalesce(k.lacking, 0) AS subagents_missing,
        k.missing
    FROM all_trajectories t
    LEFT JOIN told w USING (seq) LEFT JOIN called c USING (seq) LEFT JOIN observed o USING (seq)
    LEFT JOIN linked k USING (seq)
    """,
)

VIEWS: dict[str, View] = {
    view.name: view
    for view in (
        *(_table_view(table) for table in TABLES.values()),
        _MAIN_LINES,
        _CALLS,
        _CALLS_WITH_RESULTS,
        _ERRORS,
        _ATTEMPTS,
        _TRANSCRIPT,
        _COMPLETENESS,
    )
}
"""Every view by name, in the order in which they have to be created."""
