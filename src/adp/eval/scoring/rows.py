"""One scorer on one trajectory, and the rows that it leaves in a score table."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from adp.eval.scorer import Item, Score
from adp.eval.scoring.choose import ChosenScorer
from adp.rendering.arguments import whole_text
from adp.rollouts.collecting.attempts import BROKEN
from adp.rollouts.tools import plain
from adp_schema.model import Trajectory

RAISED = "the scorer raised"
"""How the reason begins when a scorer has a bug."""


@dataclass(frozen=True)
class Given:
    """What a scorer gave for a trajectory.

    Attributes:
        scores: the scores.
        raised: the error that it raised instead; the names of its metrics are not known then.
    """

    scores: tuple[Score, ...] = ()
    raised: str | None = None


def broke(trajectory: Trajectory) -> str | None:
    """Why a trajectory broke, when that is not the agent's fault; else None."""
    if trajectory.error_type not in BROKEN:
        return None
    stop = trajectory.stop_reason
    more = f": {stop}" if stop and stop != trajectory.error_type else ""
    return f"{trajectory.error_type} failed{more}"


def score_one(chosen: ChosenScorer, item: Item) -> Given:
    """Let a scorer score a trajectory, and mend what it must not do.

    A trajectory that broke is unscored, whatever the scorer says. A number that is not finite is
    unscored too. A scorer that raises has a bug; that is said and stops nothing.
    """
    try:
        scores = tuple(chosen.scorer.score(item))
        given = tuple(_storable(score) for score in scores)
        raised = None
    except Exception as error:  # code of a plug-in
        given, raised = (), f"{RAISED} {type(error).__name__}: {error}"
    failed = broke(item.trajectory)
    if failed is None:
        return Given(given, raised)
    return Given(unscored(dict.fromkeys(score.metric for score in given), failed, broken=True))


def unscored(
    metrics: Sequence[str] | dict[str, Any], reason: str, *, broken: bool
) -> tuple[Score, ...]:
    """Scores without a number."""
    return tuple(Score(metric, None, reason, infrastructure=broken) for metric in metrics)


def _storable(score: Score) -> Score:
    if score.value is None:
        return score if score.reason else replace(score, reason="no reason is given")
    value = float(score.value)
    if not math.isfinite(value):
        return replace(score, value=None, reason=f"the number is {value}")
    return replace(score, value=value, reason=None, infrastructure=False)


def to_rows(
    chosen: ChosenScorer, trajectory: Trajectory, scores: Sequence[Score]
) -> list[dict[str, Any]]:
    """The rows of a score table for the scores of one trajectory."""
    shared = {
        "trajectory_id": trajectory.trajectory_id,
        "task_id": trajectory.task_id,
        "attempt": trajectory.attempt,
        "scorer": chosen.scorer.name,
        "version": chosen.scorer.version,
        "settings": chosen.settings,
        "settings_hash": chosen.settings_hash,
    }
    return [
        shared
        | {
            "metric": whole_text(score.metric),
            "value": score.value,
            "reason": None if score.reason is None else whole_text(score.reason),
            "evidence": _json(score.evidence) if score.evidence else None,
            "infrastructure": score.infrastructure,
        }
        for score in scores
    ]


def _json(value: Any) -> str:
    return json.dumps(plain(value), ensure_ascii=True, allow_nan=False)
