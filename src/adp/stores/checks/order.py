"""Checks of the beginning, the middle and the end of a trajectory."""

from __future__ import annotations

from adp.stores.checks import sql
from adp.stores.checks.model import Check, SqlCheck

_CUT = "('length', 'max_tokens', 'max_output_tokens', 'MAX_TOKENS', 'model_length', 'token_limit')"


def _without(source: str) -> str:
    """SELECT of the main lines that have steps, but none of a source."""
    return f"""
        WITH bare AS (
            SELECT seq FROM trajectories
            EXCEPT SELECT seq FROM steps WHERE source = '{source}'
        )
        SELECT s.seq, any_value(s.trajectory_id) AS trajectory_id, NULL::INTEGER AS step,
            0 AS place, '$.steps' AS path, arg_min(left(s.text, 200), s.step) AS excerpt
        FROM steps s SEMI JOIN bare b ON b.seq = s.seq GROUP BY s.seq"""


CHECKS = (
    Check(
        "empty-trajectory",
        "error",
        "A trajectory has no steps.",
        "Remove it, or look in the source for what was not read.",
        SqlCheck(
            """
            SELECT seq, trajectory_id, NULL::INTEGER AS step, 0 AS place, '$.steps' AS path,
                '' AS excerpt
            FROM trajectories t
            WHERE NOT EXISTS (SELECT 1 FROM steps s WHERE s.seq = t.seq)"""
        ),
    ),
    Check(
        "no-agent-step",
        "error",
        "The agent says and does nothing in a trajectory.",
        "Remove it, or correct the roles.",
        SqlCheck(_without("agent")),
    ),
    Check(
        "no-user-step",
        "warning",
        "No step of a trajectory is from a user. The task may be in a step of the system or, "
        "wrongly, of the agent.",
        "Give the step that holds the task to the user.",
        SqlCheck(_without("user")),
    ),
    Check(
        "early-result",
        "note",
        "Something of the environment stands before the first step.",
        "Nothing, if the environment speaks first; else move it behind the step that it belongs "
        "to.",
        SqlCheck(
            f"""
            SELECT o.seq, o.trajectory_id, o.step, o."order" AS place, {sql.result_path()} AS path,
                coalesce(o.text, o.url, '') AS excerpt
            FROM observations o WHERE o.step < 0"""
        ),
    ),
    Check(
        "agent-begins",
        "warning",
        "The first step, after those of the system, is the agent's. It may be the task with a "
        "wrong role.",
        "Give it to the user if it is the task.",
        SqlCheck(
            f"""
            SELECT s.seq, s.trajectory_id, s.step, 0 AS place, {sql.step_path("s.step")} AS path,
                coalesce(s.text, s.reasoning, '') AS excerpt
            FROM steps s
            JOIN (
                SELECT seq, min(step) AS step FROM steps
                WHERE {sql.SPOKEN} AND source <> 'system' GROUP BY seq
            ) f ON f.seq = s.seq AND f.step = s.step
            JOIN trajectories t ON t.seq = s.seq
            WHERE s.source = 'agent'
                AND NOT EXISTS (
                    SELECT 1 FROM observations o WHERE o.seq = s.seq AND o.step < s.step)"""
        ),
    ),
    Check(
        "ends-on-call",
        "warning",
        "A trajectory ends with a call that has no result: it was cut in the middle of an act. "
        "Calls that end the work, such as finish, are left out.",
        "Remove the last step from training, or find the rest of the run.",
        SqlCheck(
            f"""
            SELECT c.seq, c.trajectory_id, c.step, c.call AS place, {sql.call_path()} AS path,
                {sql.call_words()} AS excerpt
            FROM tool_calls c
            JOIN ({sql.LAST_STEP}) e ON e.seq = c.seq AND e.step = c.step
            ANTI JOIN ({sql.ANSWERED}) a ON a.seq = c.seq AND a.step = c.step AND a.call = c.call
            WHERE c.kind <> 'message' AND NOT {sql.FINISHERS.format(name="c.name")}"""
        ),
    ),
    Check(
        "ends-on-result",
        "note",
        "A trajectory ends with what the environment said: the agent gives no answer. Calls that "
        "end the work, such as finish, are left out.",
        "Nothing, if the result ends the episode; else find the rest of the run.",
        SqlCheck(
            f"""
            SELECT o.seq, o.trajectory_id, o.step, o."order" AS place, {sql.result_path()} AS path,
                coalesce(o.text, o.url, '') AS excerpt
            FROM observations o JOIN ({sql.LAST_STEP}) e ON e.seq = o.seq AND o.step = e.step
            WHERE NOT EXISTS (
                SELECT 1 FROM tool_calls c WHERE c.seq = o.seq AND c.step = o.step
                    AND {sql.FINISHERS.format(name="c.name")})
            QUALIFY row_number() OVER (PARTITION BY o.seq ORDER BY o."order" DESC) = 1"""
        ),
    ),
    Check(
        "ends-on-user",
        "warning",
        "A trajectory ends with a step of the user: the answer is missing.",
        "Remove the last step, or find the rest of the run.",
        SqlCheck(
            f"""
            SELECT s.seq, s.trajectory_id, s.step, 0 AS place, {sql.step_path("s.step")} AS path,
                coalesce(s.text, '') AS excerpt
            FROM steps s JOIN ({sql.LAST_STEP}) e ON e.seq = s.seq AND e.step = s.step
            JOIN trajectories t ON t.seq = s.seq
            WHERE s.source = 'user'
                AND EXISTS (SELECT 1 FROM steps a WHERE a.seq = s.seq AND a.source = 'agent')"""
        ),
    ),
    Check(
        "cut-turn",
        "warning",
        "The model stopped because a limit of tokens was reached: the turn is not whole.",
        "Leave the step out of training.",
        SqlCheck(
            f"""
            SELECT seq, trajectory_id, step, 0 AS place,
                {sql.step_path("step", ".stop_reason")} AS path,
                stop_reason || ' … ' || right(coalesce(text, ''), 100) AS excerpt
            FROM steps WHERE stop_reason IN {_CUT}"""
        ),
    ),
    Check(
        "cut-run",
        "note",
        "A limit of steps, time or tokens ended the run before the agent did.",
        "Leave it out where only whole runs are wanted.",
        SqlCheck(
            f"""
            SELECT seq, trajectory_id, NULL::INTEGER AS step, 0 AS place, '$.truncated' AS path,
                coalesce(stop_reason, 'truncated') AS excerpt
            FROM all_trajectories WHERE truncated OR stop_reason IN {_CUT}"""
        ),
    ),
    Check(
        "cut-result",
        "note",
        "The source says that a result was cut.",
        "Nothing, if the model saw the same; else get the whole text.",
        SqlCheck(
            f"""
            SELECT o.seq, o.trajectory_id, o.step, o."order" AS place, {sql.result_path()} AS path,
                '… ' || right(coalesce(o.text, ''), 100) AS excerpt
            FROM observations o WHERE o.truncated"""
        ),
    ),
    Check(
        "empty-step",
        "note",
        "A step holds nothing: no text, no reasoning, no parts, no call, and nothing came after "
        "it.",
        "Look into its column extra, where keys are that no format understood; else remove it.",
        SqlCheck(
            f"""
            SELECT s.seq, s.trajectory_id, s.step, 0 AS place, {sql.step_path("s.step")} AS path,
                s.source AS excerpt
            FROM steps s
            WHERE coalesce(s.text, '') = '' AND coalesce(s.reasoning, '') = ''
                AND coalesce(s.content, '[]') = '[]' AND s.{sql.SPOKEN}
                AND NOT EXISTS (
                    SELECT 1 FROM tool_calls c WHERE c.seq = s.seq AND c.step = s.step)
                AND NOT EXISTS (
                    SELECT 1 FROM observations o WHERE o.seq = s.seq AND o.step = s.step)"""
        ),
    ),
    Check(
        "observation-only-step",
        "note",
        "A step of the agent without words and calls is there only to carry an observation.",
        "Leave the step out of training; the model wrote nothing in it.",
        SqlCheck(
            f"""
            SELECT s.seq, s.trajectory_id, s.step, 0 AS place, {sql.step_path("s.step")} AS path,
                coalesce(s.text, '') AS excerpt
            FROM steps s
            WHERE s.source = 'agent' AND coalesce(s.text, '') = ''
                AND coalesce(s.reasoning, '') = '' AND coalesce(s.content, '[]') = '[]'
                AND NOT EXISTS (
                    SELECT 1 FROM tool_calls c WHERE c.seq = s.seq AND c.step = s.step)
                AND EXISTS (
                    SELECT 1 FROM observations o WHERE o.seq = s.seq AND o.step = s.step)"""
        ),
    ),
)
