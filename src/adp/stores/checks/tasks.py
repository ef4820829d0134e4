"""Checks of where a task begins and ends. They guess; their texts say so."""

from __future__ import annotations

from adp.stores.checks.model import Check, SqlCheck
from adp.stores.checks.sql import LAST_STEP, SPOKEN, step_path

_NEW_TASK = (
    r"(?i)\b(?:start|begin|starting|here is|here''s|move on to|next is|now)\b[^.\n]{0,30}"
    r"\b(?:new|next|another) (?:problem|task|question|objective|goal|game|episode)\b"
)
_FINISH = "(starts_with(text, '<finish>') OR contains(text, '</finish>'))"
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
        SqlCheck(
            f"""
            WITH said AS (
                SELECT seq, trajectory_id, step, source,
                    CASE WHEN source IN ('user', 'system') THEN left(text, 300) END AS words,
                    CASE WHEN source IN ('user', 'system') THEN length(text) END AS size,
                    CASE WHEN source = 'agent' THEN coalesce({_FINISH}, false) END AS finishes,
                    lag(step) OVER (PARTITION BY seq ORDER BY step) AS before
                FROM steps WHERE {SPOKEN}
            ),
            ends AS (
                SELECT seq, step FROM said WHERE finishes
                UNION SELECT c.seq, c.step FROM tool_calls c
                WHERE lower(coalesce(c.name, '')) IN ('finish', 'submit', 'final_answer',
                    'attempt_completion', 'task_complete', 'complete_task')
            ),
            agents AS (
                SELECT seq, min(step) AS first, max(step) FILTER (NOT finishes) AS last
                FROM said WHERE source = 'agent' GROUP BY seq
            ),
            prompts AS (
                SELECT * FROM said WHERE source IN ('user', 'system')
                QUALIFY row_number() OVER (PARTITION BY seq, source ORDER BY step) = 1
            ),
            again AS (
                SELECT s.*, CASE
                    WHEN s.source = 'user' AND regexp_matches(left(s.words, 200), '{_NEW_TASK}')
                        THEN 'the user begins a new task: '
                    WHEN s.step > p.step AND s.words = p.words AND s.size = p.size
                        AND (s.source = 'system' OR s.size >= 80) THEN 'the first prompt again: '
                    WHEN s.source = 'user' AND e.step IS NOT NULL AND a.last > s.step
                        THEN 'after the agent finished: '
                    END AS why
                FROM said s
                JOIN agents a ON a.seq = s.seq AND s.step > a.first
                JOIN prompts p ON p.seq = s.seq AND p.source = s.source
                LEFT JOIN ends e ON e.seq = s.seq AND e.step = s.before
                SEMI JOIN trajectories t ON t.seq = s.seq
                WHERE s.source IN ('user', 'system')
            )
            SELECT seq, trajectory_id, step, 0 AS place, {step_path()} AS path,
                why || coalesce(words, '') AS excerpt
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
        SqlCheck(
            f"""
            WITH finished AS (
                SELECT seq, step, text FROM steps
                WHERE source = 'agent' AND starts_with(text, '<finish>') AND length(text) < 120
            ),
            praised AS (
                SELECT seq, trajectory_id, step, text FROM steps
                WHERE source = 'user' AND length(text) < 80 AND NOT contains(text, '?')
                    AND regexp_matches(text, '{_PRAISE}')
            )
            SELECT u.seq, u.trajectory_id, u.step, 0 AS place, {step_path("u.step")} AS path,
                u.text || ' … ' || left(a.text, 100) AS excerpt
            FROM praised u
            JOIN finished a ON a.seq = u.seq AND a.step = u.step + 1
            SEMI JOIN ({LAST_STEP}) e ON e.seq = a.seq AND e.step = a.step"""
        ),
    ),
)
