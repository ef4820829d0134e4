"""Checks of who says what."""

from __future__ import annotations

from adp.stores.checks.model import Check, SqlCheck
from adp.stores.checks.sql import ANSWERED, SPOKEN, step_path
from adp.stores.checks.text_marks import ACTS, OUTPUT_BEGINS

_ROLE = "CASE WHEN json_valid(extra) THEN json_extract_string(extra, '$.\"$shape\".role') END"
_CALL_ROLES = "('function_call', 'tool_call', 'tool_use', 'tool_calls', 'function_calls', 'action')"

CHECKS = (
    Check(
        "environment-as-user",
        "warning",
        "A step of the user is output of a tool: it follows an act or a marked answer of the agent "
        "and begins like one (OBSERVATION:, <tool_response>, ...), or every call of the "
        "trajectory, three at least, has no result and is followed by a step of the user.",
        "Store the text as the observation of the call before it.",
        SqlCheck(
            f"""
            WITH said AS (
                SELECT seq, step, source, lag(step) OVER w AS before, lag(source) OVER w AS who,
                    lead(step) OVER w AS after
                FROM steps WHERE {SPOKEN}
                WINDOW w AS (PARTITION BY seq ORDER BY step)
            ),
            turns AS (SELECT * FROM said WHERE source = 'user' AND who = 'agent'),
            acted AS (
                SELECT c.seq, c.step, bool_or(a.seq IS NOT NULL) AS answered
                FROM tool_calls c LEFT JOIN ({ANSWERED}) a
                    ON a.seq = c.seq AND a.step = c.step AND a.call = c.call
                GROUP BY c.seq, c.step
            ),
            after_call AS (
                SELECT t.*, a.answered FROM turns t
                LEFT JOIN acted a ON a.seq = t.seq AND a.step = t.before
            ),
            never AS (
                SELECT seq FROM acted GROUP BY seq HAVING NOT bool_or(answered)
                INTERSECT
                SELECT seq FROM after_call WHERE NOT answered GROUP BY seq HAVING count(*) >= 3
            ),
            output AS (
                SELECT seq, step FROM steps
                WHERE source = 'user' AND regexp_matches(left(text, 400), '{OUTPUT_BEGINS}')
            ),
            wrote AS (
                SELECT t.seq, t.step FROM turns t
                JOIN output o ON o.seq = t.seq AND o.step = t.step
                JOIN steps b ON b.seq = t.seq AND b.step = t.before
                WHERE regexp_matches(b.text, '{ACTS}')
            ),
            praised AS (SELECT seq, step FROM steps WHERE starts_with(text, '<finish>')),
            found AS (
                SELECT a.seq, a.step FROM after_call a
                JOIN output o ON o.seq = a.seq AND o.step = a.step WHERE NOT a.answered
                UNION SELECT * FROM wrote
                UNION SELECT a.seq, a.step FROM after_call a
                SEMI JOIN never n ON n.seq = a.seq
                ANTI JOIN praised p ON p.seq = a.seq AND p.step = a.after
                WHERE NOT a.answered
            )
            SELECT s.seq, s.trajectory_id, s.step, 0 AS place, {step_path("s.step")} AS path,
                left(s.text, 400) AS excerpt
            FROM steps s JOIN found f ON f.seq = s.seq AND f.step = s.step"""
        ),
    ),
    Check(
        "unknown-role",
        "warning",
        "A message has a role that is not known, so it counts as one of the environment; the role "
        "is kept in extra.$shape.role.",
        "Give it one of the usual roles.",
        SqlCheck(
            f"""
            SELECT seq, trajectory_id, step, 0 AS place, {step_path("step", ".source")} AS path,
                {_ROLE} || ': ' || left(coalesce(text, ''), 200) AS excerpt
            FROM steps
            WHERE source = 'environment' AND contains(extra, '"role"') AND {_ROLE} IS NOT NULL"""
        ),
    ),
    Check(
        "text-in-call-turn",
        "warning",
        "A turn whose role says that it is a call, such as function_call, holds no call.",
        "Give the text to the agent as a message, or parse the call.",
        SqlCheck(
            f"""
            SELECT s.seq, s.trajectory_id, s.step, 0 AS place, {step_path("s.step")} AS path,
                left(coalesce(s.text, ''), 200) AS excerpt
            FROM steps s
            WHERE contains(s.extra, '"role"') AND {_ROLE} IN {_CALL_ROLES}
                AND NOT EXISTS (
                    SELECT 1 FROM tool_calls c WHERE c.seq = s.seq AND c.step = s.step)"""
        ),
    ),
    Check(
        "same-source-twice",
        "note",
        "Two steps of the user, or two of the agent, follow each other with nothing between them. "
        "Many chat templates want them to alternate.",
        "Join them if they are one turn.",
        SqlCheck(
            f"""
            WITH said AS (
                SELECT seq, trajectory_id, step, source,
                    lag(source) OVER w AS who, lag(step) OVER w AS before
                FROM steps WHERE {SPOKEN}
                WINDOW w AS (PARTITION BY seq ORDER BY step)
            ),
            found AS (
                SELECT * FROM said s ANTI JOIN observations o ON o.seq = s.seq AND o.step = s.before
                WHERE s.source = s.who AND s.source IN ('user', 'agent')
            )
            SELECT s.seq, s.trajectory_id, s.step, 0 AS place, {step_path("s.step")} AS path,
                s.source || ': ' || left(coalesce(s.text, ''), 200) AS excerpt
            FROM steps s SEMI JOIN found f ON f.seq = s.seq AND f.step = s.step"""
        ),
    ),
    Check(
        "copied-context",
        "note",
        "A step of the agent repeats earlier context. It is never trained from a store, but it "
        "would be from a format that cannot mark it.",
        "Leave the step out when exporting to such a format, or set its loss weight to 0.",
        SqlCheck(
            f"""
            SELECT seq, trajectory_id, step, 0 AS place, {step_path()} AS path,
                coalesce(text, '') AS excerpt
            FROM steps
            WHERE is_copied_context AND source = 'agent' AND coalesce(loss_weight, 1) > 0"""
        ),
    ),
)
