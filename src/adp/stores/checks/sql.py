"""Pieces of SQL that several checks use."""

from __future__ import annotations

SPOKEN = "kind IN ('message', 'llm_turn')"
"""Steps that are words or acts, not events of the log."""

FINISHERS = (
    "lower(coalesce({name}, '')) IN ('finish', 'submit', 'stop', 'exit', 'end', 'done', "
    "'final_answer', 'task_complete', 'complete_task', 'attempt_completion', 'finished', "
    "'mark_task_complete', 'answer', 'send_msg_to_user', 'report_infeasible', "
    "'terminate', 'complete')"
)
"""Whether a call of this name ends the work; such a call needs no result."""

ANSWERED = """
    SELECT DISTINCT seq, call_step AS step, call FROM observations WHERE call_step IS NOT NULL"""
"""The calls that have a result."""

LAST_STEP = f"SELECT seq, max(step) AS step FROM steps WHERE {SPOKEN} GROUP BY seq"
"""The last step of each trajectory."""


def step_path(step: str = "step", below: str = "") -> str:
    """SQL for the path of a step, and what stands below it."""
    return f"'$.steps[' || {step} || ']{below}'"


def call_path(table: str = "c", below: str = "") -> str:
    """SQL for the path of a call."""
    return f"'$.steps[' || {table}.step || '].calls[' || {table}.call || ']{below}'"


def result_path(table: str = "o") -> str:
    """SQL for the path of an observation."""
    return (
        f"CASE WHEN {table}.step < 0 THEN '$.early_observations[' "
        f"ELSE '$.steps[' || {table}.step || '].observations[' END || {table}.\"order\" || ']'"
    )


def call_words(table: str = "c") -> str:
    """SQL for a call in a few words."""
    return (
        f"coalesce({table}.name, '?') || ' ' || "
        f"left(coalesce({table}.arguments, {table}.arguments_raw, ''), 200)"
    )


def around(text: str, pattern: str) -> str:
    """SQL for a text from a little before the place that a pattern finds."""
    result = f"strpos({text}, regexp_extract({text}, '{pattern}'))"
    return f"substr({text}, greatest({result} - 20, 1), 400)"
