"""Checks of what is known about a trajectory."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import msgspec

from adp.stores.checks.model import Check, Finding, FunctionCheck, SqlCheck
from adp.stores.checks.scope import Scope

_NUMBER = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?")
_NAMES = re.compile(
    r"(?:^|_)(?:id|ids|uuid|hash|sha|commit|version|date|time|timestamp|year|phone|zip|code|port|"
    r"number|no|name|title|text|label|answer|prompt|response|output)(?:$|_)|Id$|ID$",
    re.IGNORECASE,
)
"""Names of values that are no quantities, even when they look like numbers."""

_PLAIN = (
    "agent_name IS NULL AND agent_model IS NULL AND coalesce(tools, '[]') = '[]' "
    "AND success IS NULL AND reward IS NULL AND rewards IS NULL AND task_id IS NULL "
    "AND split IS NULL AND tags IS NULL AND final_answer IS NULL AND stop_reason IS NULL "
    "AND source_url IS NULL AND notes IS NULL"
)
_VALUE = "json_extract_string(extra, '$.\"' || replace(key, '\"', '') || '\"')"
_SAYS_SOMETHING = (
    "list_filter(json_keys(extra), lambda key: NOT starts_with(key, '$') "
    f"AND coalesce({_VALUE}, '') NOT IN ('', '{{}}', '[]', 'null'))"
)
_NO_EXTRA = (
    "(CASE WHEN extra IS NULL THEN true WHEN NOT json_valid(extra) THEN false "
    f"ELSE len({_SAYS_SOMETHING}) = 0 END)"
)


def _numbers_as_strings(scope: Scope) -> Iterator[Finding]:
    for name, text in scope.rows("trajectories", ("trajectory_id", "extra")):
        if text is not None and '":' in text:
            for path, value in _strings(text):
                yield Finding(name, None, path, f'"{value}"')


def _strings(text: str) -> Iterator[tuple[str, str]]:
    """Strings of the first two levels that are numbers."""
    try:
        extra = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):
        return
    for path, key, value in _values(extra):
        if isinstance(value, str) and _NUMBER.fullmatch(value) and not _NAMES.search(key):
            yield path, value


def _values(extra: dict[str, Any]) -> Iterator[tuple[str, str, Any]]:
    for key, value in extra.items():
        if key.startswith("$"):
            continue
        yield f"$.extra.{key}", key, value
        if isinstance(value, dict):
            for child, deeper in value.items():
                yield f"$.extra.{key}.{child}", child, deeper


CHECKS = (
    Check(
        "no-metadata",
        "note",
        "Nothing is known about a trajectory but its steps: no agent, model, task, tools, outcome, "
        "tags or details.",
        "Add what is known: at least the model and the outcome.",
        SqlCheck(
            f"""
            SELECT seq, trajectory_id, NULL::INTEGER AS step, 0 AS place, '$.extra' AS path,
                coalesce(extra, '') AS excerpt
            FROM trajectories WHERE {_PLAIN} AND {_NO_EXTRA}"""
        ),
    ),
    Check(
        "number-as-string",
        "note",
        "A number among the details is written as a string. Names that look like an id, a date or "
        "a version are left out.",
        "Write it as a number.",
        FunctionCheck(_numbers_as_strings),
    ),
    Check(
        "no-license",
        "note",
        "The license of a trajectory is not known.",
        "Convert with --license, once you know that the data may be used.",
        SqlCheck(
            """
            SELECT seq, trajectory_id, NULL::INTEGER AS step, 0 AS place, '$.license' AS path,
                coalesce(source_file, '') AS excerpt
            FROM all_trajectories WHERE license IS NULL"""
        ),
    ),
)
