"""Observations before the first step: a step of ATIF that only holds them, and says so.

ATIF has results only inside of steps. ``extra.adp.early`` tells the step that is made for them from
one that a source has.
"""

from __future__ import annotations

from typing import Any

from msgspec import Raw

from adp.converters.atif.column_values import same_json
from adp.converters.json_objects import members
from adp.converters.reading import BRACE, BRACKET
from adp_schema import jsontext
from adp_schema.model import Trajectory

_EXTRA = {"adp": {"early": True}}


def returns_early(run: Trajectory) -> bool:
    """Whether the observations before the first step come back as such, if there are any.

    One that refers to a subagent does not: its link needs a step.
    """
    return all(row.subagent is None for row in run.early_observations)


def early_step(results: list[Any], *, marked: bool) -> dict[str, Any]:
    """The step that holds results from before the first step.

    Args:
        results: the results.
        marked: whether `early_results` finds them again.
    """
    step = {
        "step_id": 1,
        "source": "agent",
        "message": "",
        "observation": {"results": results},
        "llm_call_count": 0,
    }
    return {**step, "extra": _EXTRA} if marked else step


def is_early(record: dict[str, Any]) -> bool:
    """Whether a record that is being written begins with an `early_step` that is marked."""
    steps = record.get("steps") or [{}]
    return steps[0].get("extra") is _EXTRA


def early_results(first: Raw) -> list[Raw]:
    """The results of the first step of a record, when it is what `early_step` writes and marks."""
    if b'"early"' not in bytes(first) or jsontext.first_byte(first) != BRACE:
        return []
    observation = members(jsontext.decode_object(first).get("observation")) or {}
    listed = observation.get("results", Raw())
    if jsontext.first_byte(listed) != BRACKET:
        return []
    results = jsontext.decode_array(listed)
    for result in results:
        if "subagent_trajectory_ref" in (members(result) or {"subagent_trajectory_ref": 0}):
            return []
    again = jsontext.encode(early_step(results, marked=True))
    return results if same_json(again, bytes(first)) else []
