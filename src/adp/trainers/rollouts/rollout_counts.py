"""What became of the episodes of a training, counted in the store that kept them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from adp.core.json_values import json_object
from adp.rollouts.collecting.counts import COLUMNS, Episode, EpisodeCounts
from adp.trainers.rollouts.rollout_store import DATASET, FOLDER
from adp_schema.store import Store


def rollout_counts(run: Path) -> dict[str, Any] | None:
    """Counts of the episodes that a training kept; None where it kept none.

    Args:
        run: folder of the run.
    """
    if not (run / FOLDER).exists():
        return None
    columns = [*COLUMNS, "source_id", "extra"]
    frame = Store.open(str(run / FOLDER)).scan("trajectories").select(columns).collect()
    # Of an episode that was made again after a kill the last one is what was trained on.
    latest: dict[str, tuple[int, Episode, str | None]] = {}
    for *values, source_id, extra in frame.iter_rows():
        episode = Episode(*values)
        suffix = episode.trajectory_id.removeprefix(f"{DATASET}/{source_id}").removeprefix("#")
        number = int(suffix) if suffix.isdecimal() else 1
        if number >= latest.get(source_id, (0,))[0]:
            latest[source_id] = (number, episode, extra)
    counts, unrewarded = EpisodeCounts(), 0
    for _, episode, extra in latest.values():
        counts.add(episode)
        unrewarded += episode.error_type is None and not _has_reward(extra)
    return {
        "episodes": counts.episodes,
        "broken": counts.broken,
        "errors": dict(counts.errors.most_common()),
        "error_messages": counts.commonest(),
        "without_reward": unrewarded,
    }


def _has_reward(extra: str | None) -> bool:
    facts = json_object(extra).get("grpo")
    rewards = facts.get("rewards") if isinstance(facts, dict) else None
    return isinstance(rewards, dict) and any(value is not None for value in rewards.values())
