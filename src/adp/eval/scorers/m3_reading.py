"""What M3's figures are made of: the steps of a run, of M3's own and of rollouts alike."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from adp.rendering.arguments import whole_text
from adp.rollouts.experts import labels as category
from adp_schema.model import Observation, Step, Trajectory

KINDS = ("API", "RETRIEVE", "FINAL", "OTHER")
VALID = (
    *("REWARD_SUCCESS_API_CALL", "REWARD_SUCCESS_RETRIEVAL_CALL"),
    *(category.MATCH, category.NO_MATCH),
)
"""Categories that end a streak of errors in M3; the category of a good call is not among them."""

LONGEST_NAME = 80
"""Characters of the name of an error; a text without a colon is one name in M3."""

_SCENARIO = re.compile(
    r"(?:(?:both|neither)_api_rag|only_(?:api|rag))(?:-(?:api_before_rag|rag_before_api))?"
)


@dataclass(frozen=True)
class M3Action:
    """One step of a run.

    Attributes:
        kind: one of `KINDS`.
        valid: whether it ends a streak of errors.
        errors: observations that are errors, by their mark or by their first word.
        prefixes: for each observation that begins with the name of an error, that name.
        types: the type of each error.
        by_expert: whether the expert acted.
    """

    kind: str
    valid: bool
    errors: int
    prefixes: tuple[str, ...]
    types: tuple[str, ...]
    by_expert: bool


def actions_of(
    run: Trajectory, retrievers: Collection[str], *, calls_are_valid: bool = True
) -> list[M3Action]:
    """The steps of agent and expert, in order.

    What an environment copied into the conversation is none of them.

    Args:
        run: the run.
        retrievers: names of tools that retrieve documents.
        calls_are_valid: whether a good call ends a streak of errors; M3's code says no.
    """
    return [
        M3Action(
            kind=_kind(step, retrievers),
            valid=_is_valid(step, calls_are_valid=calls_are_valid),
            errors=sum(_is_error(seen) for seen in step.observations),
            prefixes=tuple(filter(None, map(_prefix, step.observations))),
            types=tuple(
                _name(seen.error_type or "untyped")
                for seen in step.observations
                if _is_marked(seen)
            ),
            by_expert=step.actor == "expert",
        )
        for step in run.steps
        if step.source == "agent"
        and step.kind in (None, "llm_turn")
        and not step.is_copied_context
        and not step.synthetic
    ]


def _kind(step: Step, retrievers: Collection[str]) -> str:
    extra = fields(step.extra)
    metadata = extra.get("metadata")
    if isinstance(metadata, Mapping) and "action" in metadata:
        return str(metadata["action"]) if metadata["action"] in KINDS else "OTHER"
    if step.calls:
        return "RETRIEVE" if all(call.name in retrievers for call in step.calls) else "API"
    return "OTHER" if "malformed" in extra else "FINAL"


def _is_valid(step: Step, *, calls_are_valid: bool) -> bool:
    """Whether a step is one of those that M3 calls valid; by its results where it has no label."""
    labels = [label for label in step.labels or [] if "REWARD_" in label]
    names = (*VALID, category.SUCCESS_TOOL_CALL) if calls_are_valid else VALID
    if labels:
        return any(name in label for label in labels for name in names)
    if not step.calls:
        return "malformed" not in fields(step.extra)
    seen = step.observations
    return calls_are_valid and bool(seen) and not any(map(_is_marked, seen))


def _prefix(seen: Observation) -> str | None:
    """The name of an error that an observation begins with."""
    head = (seen.text or "").split(":")[0]
    return _name(head) if "error" in head.lower() else None


def _name(text: str) -> str:
    return whole_text(text[:LONGEST_NAME])


def _is_marked(seen: Observation) -> bool:
    return bool(seen.is_error or seen.error_type)


def _is_error(seen: Observation) -> bool:
    return _is_marked(seen) or _prefix(seen) is not None


def recoveries(actions: Sequence[M3Action]) -> list[int]:
    """Length of each streak of steps that are not valid and that a valid one ends."""
    result, streak = [], 0
    for action in actions:
        if not action.valid:
            streak += 1
        elif streak:
            result.append(streak)
            streak = 0
    return result


def tracker_of(run: Trajectory, actions: Sequence[M3Action]) -> tuple[list[int] | None, str]:
    """Who acted at each step (1: the expert), and where that stands; None: nobody helps here."""
    metadata = fields(run.extra).get("run_metadata")
    about = metadata.get("expert_assistance") if isinstance(metadata, Mapping) else None
    tracker = about.get("tracker") if isinstance(about, Mapping) else None
    if isinstance(tracker, list) and all(type(item) is int and item in (0, 1) for item in tracker):
        return list(tracker), "tracker"
    if any(action.by_expert for action in actions):
        return [int(action.by_expert) for action in actions], "actors"
    return None, "it is not known who acted"


def unaided(tracker: Sequence[int]) -> list[int]:
    """Lengths of the stretches without help."""
    return [len(list(group)) for helped, group in groupby(tracker) if not helped]


def scenario_of(run: Trajectory) -> str | None:
    """The scenario of a run: as the rollout says it, else as the folder of an M3 run is named."""
    scenario = fields(run.extra).get("scenario")
    if isinstance(scenario, str):
        return _name(scenario)
    parts = [run.dataset or ""]
    for path in (run.source_id, run.source_file):
        parts += (path or "").split("/")[:-1]
    for part in parts:
        if _SCENARIO.fullmatch(part):
            return part
    return None if run.policy_tool_availability is None else _name(run.policy_tool_availability)


def fields(text: str | None) -> Mapping[str, Any]:
    """A column with JSON as an object; empty when it is none."""
    try:
        value = json.loads(text) if text else {}
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}
