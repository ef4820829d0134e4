"""Checks of what a source did not record, or recorded elsewhere."""

from __future__ import annotations

from adp.stores.checks.model import Check, SqlCheck


def _check(where: str, words: str) -> SqlCheck:
    """One finding a trajectory of the view ``completeness``."""
    return SqlCheck(
        f"""
        SELECT seq, trajectory_id, NULL AS step, 0 AS place, '$' AS path, {words} AS excerpt
        FROM completeness WHERE {where}""",
        whole_store=True,
    )


CHECKS = (
    Check(
        "missing-subagent",
        "warning",
        "A run refers to runs of subagents that are not in the store; their calls and tokens are "
        "not counted.",
        "Convert the folder of the session with the folders below it.",
        _check("subagents_missing > 0", "coalesce(missing, '')"),
    ),
    Check(
        "history-cut",
        "warning",
        "A run continues another one that is not in the store, so its beginning is missing.",
        "Convert the file that it continues, too; its name is the example.",
        _check("history = 'cut'", "coalesce(missing, '')"),
    ),
    Check(
        "contents-not-captured",
        "warning",
        "Turns of the model say nothing: the source recorded that they took place, not what was "
        "written.",
        "Turn the capture of contents on where the traces are made; drop these runs for training.",
        _check(
            "contents <> 'captured'",
            "empty_turns || ' of ' || turns || ' turns of the model have no content'",
        ),
    ),
)
