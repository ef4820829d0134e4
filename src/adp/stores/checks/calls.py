"""Checks of the links between calls and their results."""

from __future__ import annotations

from adp.stores.checks import sql
from adp.stores.checks.model import Check, SqlCheck

_LATER_CALL = """
    SELECT 1 FROM tool_calls later
    WHERE later.seq = o.seq AND later.step > o.step
        AND coalesce(later.native_id, later.call_id) = coalesce(o.native_call_id, o.call_id)"""

CHECKS = (
    Check(
        "dangling-call",
        "warning",
        "A call has no result, although the run goes on. Calls that end the work, such as finish, "
        "are left out; for those of the last step see ends-on-call. When a user's step follows, "
        "the result may stand there.",
        "Add the result, or remove the call; see also environment-as-user.",
        SqlCheck(
            f"""
            SELECT c.seq, c.trajectory_id, c.step, c.call AS place, {sql.call_path()} AS path,
                {sql.call_words()} AS excerpt
            FROM tool_calls c
            ANTI JOIN ({sql.ANSWERED}) a ON a.seq = c.seq AND a.step = c.step AND a.call = c.call
            JOIN ({sql.LAST_STEP}) e ON e.seq = c.seq
            WHERE c.step < e.step AND c.kind <> 'message'
                AND NOT {sql.FINISHERS.format(name="c.name")}"""
        ),
    ),
    Check(
        "orphan-result",
        "warning",
        "The environment says something after the agent began, and it answers no call: the call "
        "was lost, or left in the text. Pages are left out.",
        "Parse the call that it answers, or link it by call_step and call.",
        SqlCheck(
            f"""
            SELECT o.seq, o.trajectory_id, o.step, o."order" AS place, {sql.result_path()} AS path,
                coalesce(o.text, '') AS excerpt
            FROM observations o
            JOIN (SELECT seq, min(step) AS step FROM steps WHERE source = 'agent' GROUP BY seq) b
                ON b.seq = o.seq AND o.step >= b.step
            WHERE o.call_step IS NULL AND o.call_id IS NULL AND o.native_call_id IS NULL
                AND coalesce(o.source, 'environment') = 'environment'
                AND o.html IS NULL AND o.axtree IS NULL AND o.url IS NULL
                AND o.content IS NULL"""
        ),
    ),
    Check(
        "unknown-call-id",
        "error",
        "A result names a call that is not in the trajectory.",
        "Correct the id, or add the call.",
        SqlCheck(
            f"""
            SELECT o.seq, o.trajectory_id, o.step, o."order" AS place,
                {sql.result_path()} || '.call_id' AS path,
                coalesce(o.native_call_id, o.call_id, 'step ' || o.call_step || ', call ' || o.call)
                AS excerpt
            FROM observations o
            ANTI JOIN tool_calls c
                ON c.seq = o.seq AND c.step = o.call_step AND c.call = o.call
            LEFT JOIN all_trajectories t ON t.seq = o.seq
            WHERE (o.call_step IS NOT NULL OR o.call_id IS NOT NULL OR o.native_call_id IS NOT NULL)
                AND NOT coalesce(t.parent_id IS NOT NULL AND o.call_step < t.parent_step, false)
                AND NOT EXISTS ({_LATER_CALL})"""
        ),
    ),
    Check(
        "result-before-call",
        "error",
        "A result stands before the call that it answers.",
        "Put the result behind its call.",
        SqlCheck(
            f"""
            SELECT o.seq, o.trajectory_id, o.step, o."order" AS place, {sql.result_path()} AS path,
                coalesce(o.native_call_id, o.call_id, '') || ' ' || left(coalesce(o.text, ''), 200)
                AS excerpt
            FROM observations o
            WHERE o.call_step > o.step OR (o.call_step IS NULL AND EXISTS ({_LATER_CALL}))"""
        ),
    ),
    Check(
        "several-results",
        "warning",
        "A call has more than one result. Most trainers' formats take exactly one. A result that "
        "was recorded in pieces looks the same.",
        "Join the pieces, or link each result to its own call.",
        SqlCheck(
            f"""
            SELECT c.seq, c.trajectory_id, c.step, c.call AS place, {sql.call_path()} AS path,
                r.n || ' results: ' || {sql.call_words()} AS excerpt
            FROM tool_calls c JOIN (
                SELECT seq, call_step, call, count(*) AS n FROM observations
                WHERE call_step IS NOT NULL GROUP BY ALL HAVING count(*) > 1
            ) r ON r.seq = c.seq AND r.call_step = c.step AND r.call = c.call"""
        ),
    ),
    Check(
        "duplicate-call-id",
        "warning",
        "Several calls of a trajectory come with the same id; the later ones are called #2, #3. "
        "Their results were linked by order.",
        "Give each call an id of its own, and look whether each result is with its call.",
        SqlCheck(
            f"""
            SELECT seq, trajectory_id, step, call AS place,
                {sql.call_path("c", ".call_id")} AS path,
                coalesce(native_id, call_id) || ' ' || coalesce(name, '') AS excerpt
            FROM (
                SELECT *, count(*) OVER (PARTITION BY seq, call_id) AS n FROM tool_calls
                WHERE call_id IS NOT NULL
            ) c
            WHERE n > 1 OR starts_with(call_id, native_id || '#')"""
        ),
    ),
    Check(
        "missing-call-id",
        "note",
        "A call has no id, so its result was linked by order. Some formats, such as ADP v1, have "
        "no ids.",
        "Nothing, if the format has none; else add the ids.",
        SqlCheck(
            f"""
            SELECT c.seq, c.trajectory_id, c.step, c.call AS place, {sql.call_path()} AS path,
                {sql.call_words()} AS excerpt
            FROM tool_calls c WHERE c.call_id IS NULL"""
        ),
    ),
    Check(
        "user-before-result",
        "warning",
        "A user's step stands between a call and its result, which chat templates refuse.",
        "Move the result to its call.",
        SqlCheck(
            f"""
            SELECT o.seq, o.trajectory_id, o.step, o."order" AS place, {sql.result_path()} AS path,
                'answers step ' || o.call_step || ': ' || left(coalesce(o.text, ''), 200) AS excerpt
            FROM observations o
            WHERE o.call_step < o.step AND EXISTS (
                SELECT 1 FROM steps s WHERE s.seq = o.seq AND s.source = 'user'
                    AND s.step > o.call_step AND s.step <= o.step AND s.{sql.SPOKEN})"""
        ),
    ),
    Check(
        "late-result",
        "note",
        "Other steps, none of the user, stand between a call and its result.",
        "Nothing, if the call ran in the background; else move the result to its call.",
        SqlCheck(
            f"""
            SELECT o.seq, o.trajectory_id, o.step, o."order" AS place, {sql.result_path()} AS path,
                'answers step ' || o.call_step || ': ' || left(coalesce(o.text, ''), 200) AS excerpt
            FROM observations o
            WHERE o.call_step < o.step AND EXISTS (
                SELECT 1 FROM steps s WHERE s.seq = o.seq AND s.step > o.call_step
                    AND s.step <= o.step AND s.{sql.SPOKEN}
            ) AND NOT EXISTS (
                SELECT 1 FROM steps s WHERE s.seq = o.seq AND s.source = 'user'
                    AND s.step > o.call_step AND s.step <= o.step AND s.{sql.SPOKEN})"""
        ),
    ),
)
