"""Where a trajectory of a buffer comes from: the key ``evolving`` of its column ``extra``.

| member | what it is |
|---|---|
| operator | who made it; ``initial`` for what the buffer begins with |
| round | the round, from 1; 0 for the beginning |
| parent | id of the trajectory that it was made of |
| step | number of the parent's turn from which on it differs, from 1 |
| correct, quality | whether it is right, and how right |
| calls, failed_results, well_formed | calls, results that are errors, whether its form is valid |
| verdict | who said that it is right, and in which words |
| words | what refiner and analyser said |
| bad_answers | the answers that could not be used: who, why, and the text |
| hint | of a hint: ``step``, the step whose thought it opened, and ``message``, what the policy \
read before it as the user's last message, which is no step |
| kept_turns, same_results | turns of the parent that it begins with, and whether they brought the \
same again |
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from adp.core.json_values import json_object
from adp.rollouts.evolving.asking import Asking
from adp.rollouts.evolving.continuing import hint_message
from adp.rollouts.evolving.correctness import Correctness
from adp.rollouts.evolving.operator import Change, ParentRun
from adp.rollouts.evolving.recorded import (
    agent_steps,
    count_calls,
    failed_results,
    is_well_formed,
)
from adp_schema.model import Link, Trajectory

KEY = "evolving"
INITIAL = "initial"

NOT_MADE = "not_made"
"""The ``error_type`` of an entry that says why no trajectory was made; it has no steps."""

UNCHANGED = "unchanged"
"""Its ``stop_reason`` when there was nothing to change."""


@dataclass(frozen=True)
class Derivation:
    """Where a trajectory comes from.

    Attributes:
        operator: who made it.
        round: the round.
        parent: id of its parent; None without one.
        step: number of the parent's turn from which on it differs.
        more: further members.
    """

    operator: str
    round: int
    parent: str | None = None
    step: int | None = None
    more: Mapping[str, Any] = field(default_factory=dict)

    def members(self) -> dict[str, Any]:
        """As members of ``evolving``."""
        return {
            "operator": self.operator,
            "round": self.round,
            "parent": self.parent,
            "step": self.step,
            **self.more,
        }


def mark(
    trajectory: Trajectory, origin: Derivation, asking: Asking, verdict: Correctness | None = None
) -> None:
    """Write down where a trajectory comes from and how it was judged.

    Args:
        trajectory: it is changed. Where the environment did not judge it, ``success`` is the
            verdict, and what the environment said is kept in ``evolving``.
        origin: where it comes from.
        asking: what was asked for it.
        verdict: whether it is right; None: it was not judged, for it broke.
    """
    members = origin.members()
    if verdict is not None:
        members |= {
            "correct": verdict.correct,
            "quality": verdict.quality,
            "calls": count_calls(trajectory),
            "failed_results": failed_results(trajectory),
            "well_formed": is_well_formed(trajectory),
            "verdict": verdict.facts,
        }
        if verdict.facts.get("rule") != "environment":
            members["environment_success"] = trajectory.success
            trajectory.success = verdict.correct
    words = {name: text for name, text in asking.words.items() if name != "judge_math"}
    members |= {"words": words} if words else {}
    members |= {"bad_answers": asking.bad} if asking.bad else {}
    extra = json_object(trajectory.extra)
    trajectory.extra = json.dumps({**extra, KEY: members}, ensure_ascii=True)
    if origin.parent is not None:
        trajectory.links = [Link(kind="fork", step=_link_step(trajectory), target_id=origin.parent)]


def note_kept(trajectory: Trajectory, parent: ParentRun, change: Change, operator: str) -> bool:
    """Say of each turn that was carried out again where it comes from.

    Returns:
        Whether these turns brought the same results again.
    """
    steps = agent_steps(trajectory)
    before = agent_steps(parent.trajectory)
    for step, other in zip(steps[: change.kept], before, strict=False):
        step.made_from_trajectory = parent.trajectory.trajectory_id
        step.made_from_step = other.step
        step.made_by = operator
    for step in steps[change.kept : len(change.turns)]:
        step.made_by = operator
    again = [tuple(seen.text or "" for seen in step.observations) for step in steps[: change.kept]]
    results = [step.results for step in parent.steps[: change.kept]]
    return len(again) == change.kept and again == results


def hint_of(trajectory: Trajectory, change: Change) -> dict[str, Any]:
    """Where the hint of a change stood, and its message; empty when the policy read none."""
    after = agent_steps(trajectory)[len(change.turns) :]
    if change.opening is None or not after:
        return {}
    return {"hint": {"step": after[0].step, "message": hint_message(change.opening)}}


def _link_step(trajectory: Trajectory) -> int | None:
    kept = [step.step for step in agent_steps(trajectory) if step.made_from_trajectory]
    return kept[-1] if kept else None


def lineage_of(extra: str | None) -> dict[str, Any]:
    """The member ``evolving`` of the column ``extra``; empty without it."""
    value = json_object(extra).get(KEY)
    return value if isinstance(value, dict) else {}
