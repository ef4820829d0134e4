"""The episodes of a training, kept as a growing store.

An episode is named ``grpo/step-000012/TASK/attempt-3``. A training that was killed goes on from its
last checkpoint and makes the steps after it again. With the same weights and seeds these
episodes are the same, and stand in the store once; where they differ, the new one has the id
``...#2``, and is what the model was trained on.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from adp.core.json_values import json_or_none
from adp.rollouts.collecting.output_store import is_sealed, unstorable
from adp_schema.errors import SchemaError, SealedError
from adp_schema.growing import GROWING, GrowingStore, seal
from adp_schema.model import Trajectory

FOLDER = "rollouts"
"""Folder of the store in that of the run."""

DATASET = "grpo"


@dataclass(frozen=True, slots=True)
class TrainedRollout:
    """An episode and what the training made of it.

    Attributes:
        trajectory: the episode.
        facts: what is known of it besides; keys of ``extra.grpo``.
        rewards: rewards by name; None where one does not apply.
        advantage: what its tokens are weighed with; None when it was only measured.
    """

    trajectory: Trajectory
    facts: Mapping[str, Any]
    rewards: Mapping[str, float | None]
    advantage: float | None

    def stored(self) -> Trajectory:
        """The trajectory with columns and keys that say what the training made of it."""
        extra = json_or_none(self.trajectory.extra)
        known = json_or_none(self.trajectory.rewards)
        given = {name: value for name, value in self.rewards.items() if value is not None}
        rewards = {**given, **(known if isinstance(known, dict) else {})}
        facts = {**self.facts, "rewards": dict(self.rewards), "advantage": self.advantage}
        plain = {**(extra if isinstance(extra, dict) else {}), "grpo": facts}
        branch = self.trajectory.parent_id, self.trajectory.parent_step
        if branch[0] is not None:
            plain["branching"] = {
                **plain.get("branching", {}),
                "parent": branch[0],
                "shared": branch[1],
            }
        return self.trajectory.model_copy(
            update={
                "trajectory_id": None,
                # An episode that is made again may get another id, so none names its parent.
                **dict.fromkeys(("parent_id", "parent_step", "branch_kind")),
                "rewards": json.dumps(rewards) if rewards else None,
                "extra": json.dumps(plain, ensure_ascii=False),
            }
        )


class RolloutStore:
    """Keeps the episodes of a training; several processes may keep theirs at once.

    Args:
        run: folder of the run.
    """

    def __init__(self, run: Path) -> None:
        self.root = run / FOLDER
        # A run that was killed at its very end has all of its episodes.
        self._store = None if is_sealed(self.root) else GrowingStore(self.root)

    def keep(self, rollouts: Iterable[TrainedRollout]) -> None:
        """Keep episodes; when this returns, they are safe on the disk.

        Raises:
            StoreError: they cannot be written.
        """
        if self._store is None:
            return
        results = [rollout.stored() for rollout in rollouts]
        try:
            self._store.extend(results)
        except SealedError:
            self._store = None
        except SchemaError:
            for result in results:
                self._keep_what_fits(result)

    def _keep_what_fits(self, trajectory: Trajectory) -> None:
        assert self._store is not None
        try:
            self._store.append(trajectory)
        except SchemaError as error:
            self._store.append(unstorable(trajectory, error))


def seal_rollouts(run: Path) -> None:
    """End the store of a training that is done, where there is one.

    Args:
        run: folder of the run.
    """
    if (run / FOLDER / GROWING).exists():
        seal(run / FOLDER)
