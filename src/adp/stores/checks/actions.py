"""Checks of how calls are written: left in the text, without a name, without tools."""

from __future__ import annotations

from collections.abc import Iterator

from adp.stores.checks.model import Check, Finding, FunctionCheck, SqlCheck, excerpt
from adp.stores.checks.scope import Scope
from adp.stores.checks.sql import LAST_STEP, around, call_path, step_path
from adp.stores.checks.text_marks import CALL_IN_TEXT, IN_SHELL
from adp.stores.checks.tool_schema import read_tools

_LEFT = "json_extract_string(extra, '$.\"$parsed\".left')"
"""Why `adp parse`, or a conversion, left in a text what looks like an action."""


def _unreadable_tools(scope: Scope) -> Iterator[Finding]:
    for name, text in _offers(scope):
        tools = read_tools(text)
        if tools is None:
            yield Finding(name, None, "$.tools", excerpt(f"no JSON: {text}"))
        elif tools.nameless:
            yield Finding(name, None, "$.tools", f"{tools.nameless} entries name no tool")
        elif tools.repeated:
            words = ", ".join(tools.repeated)
            yield Finding(name, None, "$.tools", excerpt(f"listed twice: {words}"))


def _undescribed_tools(scope: Scope) -> Iterator[Finding]:
    for name, text in _offers(scope):
        tools = read_tools(text)
        for tool in tools.by_name.values() if tools else ():
            if not (tool.description or "").strip():
                yield Finding(name, None, "$.tools", excerpt(tool.name))


def _offers(scope: Scope) -> Iterator[tuple[str, str]]:
    rows = scope.rows("trajectories", ("trajectory_id", "tools"))
    return ((name, text) for name, text in rows if text is not None)


CHECKS = (
    Check(
        "call-left-in-text",
        "warning",
        "A text of the agent holds a call that was not parsed: <function=...>, <tool_call>, "
        "Action: ..., a JSON object with name and arguments, [tool(x=1)], ```click [12]```; or "
        "the step is not the last one and ends with a shell block; or the text was parsed, and "
        "what looks like a call was left in it for the reason that is shown. An answer that quotes "
        "a call or shows a command looks the same.",
        "Read calls out of texts: adp parse STORE -o OUT, with --dialect NAME when none is found.",
        SqlCheck(
            f"""
            WITH kept AS (
                SELECT seq, trajectory_id, step, text, {_LEFT} AS reason FROM steps
                WHERE source = 'agent' AND contains(extra, '"$parsed"') AND {_LEFT} IS NOT NULL
            ),
            said AS (
                SELECT seq, trajectory_id, step, text FROM steps s
                ANTI JOIN tool_calls c ON c.seq = s.seq AND c.step = s.step
                ANTI JOIN kept k ON k.seq = s.seq AND k.step = s.step
                WHERE s.source = 'agent'
            )
            SELECT s.seq, s.trajectory_id, s.step, 0 AS place,
                {step_path("s.step", ".text")} AS path,
                {around("s.text", CALL_IN_TEXT + "|" + IN_SHELL)} AS excerpt
            FROM said s JOIN ({LAST_STEP}) e ON e.seq = s.seq
            WHERE regexp_matches(s.text, '{CALL_IN_TEXT}')
                OR (s.step < e.step AND regexp_matches(s.text, '{IN_SHELL}'))
            UNION ALL
            SELECT seq, trajectory_id, step, 0 AS place, {step_path("step", ".text")} AS path,
                reason || ': ' || {around("text", CALL_IN_TEXT)} AS excerpt
            FROM kept"""
        ),
    ),
    Check(
        "nameless-call",
        "error",
        "A call names no tool.",
        "Add the name, or remove the call.",
        SqlCheck(
            f"""
            SELECT c.seq, c.trajectory_id, c.step, c.call AS place,
                {call_path("c", ".name")} AS path,
                coalesce(c.arguments, c.arguments_raw, '') AS excerpt
            FROM tool_calls c
            WHERE coalesce(c.name, '') = '' AND c.kind IN ('function', 'mcp', 'gui')"""
        ),
    ),
    Check(
        "calls-without-tools",
        "note",
        "A trajectory calls tools, but does not list the tools that it had.",
        "Add the tools, so that a model is trained with the same list as it is used with.",
        SqlCheck(
            """
            SELECT t.seq, t.trajectory_id, NULL::INTEGER AS step, 0 AS place, '$.tools' AS path,
                c.names AS excerpt
            FROM all_trajectories t JOIN (
                SELECT seq, min(name)
                    || CASE WHEN max(name) <> min(name) THEN ' … ' || max(name) ELSE '' END AS names
                FROM tool_calls WHERE kind IN ('function', 'mcp', 'gui') GROUP BY seq
            ) c ON c.seq = t.seq
            WHERE coalesce(t.tools, '[]') = '[]'"""
        ),
    ),
    Check(
        "unreadable-tools",
        "warning",
        "The list of tools is no JSON, or an entry of it has no name, or a name is there twice.",
        "Mend the list; calls cannot be compared with it.",
        FunctionCheck(_unreadable_tools),
    ),
    Check(
        "undescribed-tool",
        "note",
        "A tool of a trajectory has no description.",
        "Describe it; a model learns the tool from its description.",
        FunctionCheck(_undescribed_tools),
    ),
)
