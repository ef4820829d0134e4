"""Checks of where a task begins and ends. They guess; their texts say so."""

from __future__ import annotations

from adp.core.checks.model import Check, Sql
from adp.core.checks.sql import LAST_STEP, SAID, step_path

_NEW_TASK = (
    r"(?i)\b(?:start|begin|starting|here is|here''s|move on to|next is|now)\b[^.\n]{0,30}"
    r"\b(?:new|next|another) (?:problem|task|question|objective|goal|game|episode)\b"
)
_FINISH = "(text LIKE '<finish>%' OR text LIKE '%</finish>%')"
_PRAISE = (
    r"(?i)\b(?:congratulations|well done|great (?:job|work)|good (?:job|work)|nicely done|"
    r"verified|solved|satisfies|completed|correct|success)"
)

CHECKS = (
    Check(
        "two-tasks",
        "warning",
        "A guess: a second task begins in the middle. The user says so, or repeats the first "
        "prompt; the system prompt is there again; or the agent finishes, the user speaks, and the "
        "agent goes on. A user who asks for more looks the same.",
        "Cut the trajectory in two, or drop the first task if it is a demonstration.",
        Sql(
            f"""
            WITH said AS (
                SELECT seq, trajectory_id, step, source, left(text, 300) AS text,
                    CASE WHEN source IN ('user', 'system') THEN md5(text) END AS words,
                    length(text) AS size,
                    source = 'agent' AND coalesce({_FINISH}, false) AS finishes,
                    lag(step) OVER (PARTITION BY seq ORDER BY step) AS before
                FROM steps WHERE {SAID}
            ),
            ends AS (
                SELECT seq, step FROM said WHERE finishes
                UNION SELECT c.seq, c.step FROM tool_calls c
                WHERE lower(coalesce(c.name, '')) IN ('finish', 'submit', 'final_answer',
                    'attempt_completion', 'task_complete', 'complete_task')
            ),
            facts AS (
                SELECT seq, min(step) FILTER (source = 'user') AS user_step,
                    arg_min(words, step) FILTER (source = 'user') AS user_words,
                    min(step) FILTER (source = 'system') AS system_step,
                    arg_min(words, step) FILTER (source = 'system') AS system_words,
                    min(step) FILTER (source = 'agent') AS agent_step,
                    max(step) FILTER (source = 'agent' AND NOT finishes) AS goes_on
                FROM said GROUP BY seq
            ),
            again AS (
                SELECT s.*, CASE
                    WHEN s.source = 'user' AND s.step > f.agent_step
                        AND regexp_matches(left(s.text, 200), '{_NEW_TASK}')
                        THEN 'the user begins a new task: '
                    WHEN s.source = 'user' AND s.step > f.agent_step AND s.size >= 80
                        AND s.words = f.user_words THEN 'the first prompt again: '
                    WHEN s.source = 'system' AND s.step > f.agent_step
                        AND s.words = f.system_words THEN 'the system prompt again: '
                    WHEN s.source = 'user' AND e.step IS NOT NULL AND f.goes_on > s.step
                        THEN 'after the agent finished: '
                    END AS why
                FROM said s JOIN facts f ON f.seq = s.seq
                LEFT JOIN ends e ON e.seq = s.seq AND e.step = s.before
                JOIN trajectories t ON t.seq = s.seq
                WHERE s.source IN ('user', 'system')
            )
            SELECT seq, trajectory_id, step, 0 AS place, {step_path()} AS path,
                why || coalesce(text, '') AS excerpt
            FROM again WHERE why IS NOT NULL
            QUALIFY row_number() OVER (PARTITION BY seq, why ORDER BY step) = 1"""
        ),
    ),
    Check(
        "synthetic-ending",
        "note",
        "A guess: a converter made the ending up. The user praises in a few words, and the agent "
        "answers with <finish>, as conversions to ADP v1 write it.",
        "Leave the last two steps out of training.",
        Sql(
            f"""
            SELECT u.seq, u.trajectory_id, u.step, 0 AS place, {step_path("u.step")} AS path,
                u.text || ' … ' || left(a.text, 100) AS excerpt
            FROM steps a
            JOIN ({LAST_STEP}) e ON e.seq = a.seq AND e.step = a.step
            JOIN steps u ON u.seq = a.seq AND u.step = a.step - 1
            WHERE a.source = 'agent' AND a.text LIKE '<finish>%' AND length(a.text) < 120
                AND u.source = 'user' AND length(u.text) < 80 AND NOT contains(u.text, '?')
                AND regexp_matches(u.text, '{_PRAISE}')"""
        ),
    ),
)
