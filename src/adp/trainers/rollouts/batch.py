"""The episodes of one batch of a training: from rows to jobs, played, and made rows to train on."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import PurePath
from typing import Any

from adp.core.json_values import json_object
from adp.rollouts.collecting.counts import Episode, Streak
from adp.rollouts.collecting.plan import episode_seed
from adp.rollouts.collecting.recorder import About
from adp.rollouts.policy import Policy
from adp.trainers.config import TrainConfig
from adp.trainers.rollouts.acting import ActingPlace, branching_of, section_of
from adp.trainers.rollouts.play import RolloutJob, RolloutPlayer
from adp.trainers.rollouts.reward import FinishedRollout
from adp.trainers.rollouts.rollout_store import DATASET
from adp.trainers.rollouts.shared_prefix import link_rows, shared_prefix_masks
from adp.trainers.rollouts.trainer_row import (
    BROKEN,
    TrainerRow,
    finished,
    trained_sequence,
    trainer_row,
)
from adp_schema.model import Task, Trajectory

_ADVICE = "mend the cause, and go on with the same call and --resume"


@dataclass(frozen=True)
class PlayedBatch:
    """Episodes that were played, with what a trainer takes of them.

    Attributes:
        step: steps of the optimiser that were done.
        training: whether they are trained on.
        rollouts: the episodes, as rewards see them.
        rows: their rows.
        weights: how much each token of them counts; None: as the masks of the rows say.
    """

    step: int
    training: bool
    rollouts: list[FinishedRollout]
    rows: list[TrainerRow]
    weights: list[list[float]] | None = None

    def facts(self, place: int) -> dict[str, Any]:
        """What a store says of an episode besides its columns."""
        row, rollout = self.rows[place], self.rollouts[place]
        return {
            "step": self.step,
            "training": self.training,
            "group": rollout.group,
            "in_loss": sum(row.mask),
            "left_out": row.left_out,
            "rows": row.rows,
            "tokens_left_out": row.tokens_left_out,
            **({} if self.weights is None else {"weight": math.fsum(self.weights[place])}),
        }

    def metrics(self) -> dict[str, list[float]]:
        """Numbers about the episodes by name, one for each that it is about."""
        results: dict[str, list[float]] = {}
        for rollout, row in zip(self.rollouts, self.rows, strict=True):
            for name, value in _numbers(rollout.trajectory, row).items():
                results.setdefault(f"rollouts/{name}", []).append(float(value))
        return results


def _numbers(trajectory: Trajectory, row: TrainerRow) -> dict[str, float]:
    if row.left_out == BROKEN:
        return {"broken": 1}
    turns = [step for step in trajectory.steps if step.source == "agent"]
    calls = sum(len(step.calls) for step in turns)
    failed = sum(bool(seen.error_type) for step in turns for seen in step.observations)
    numbers: dict[str, float] = {
        "broken": 0,
        "turns": len(turns),
        "calls": calls,
        "errors": failed,
        "truncated": trajectory.truncated is True,
        "in_loss": sum(row.mask),
        "rewritten": row.rows > 1,
        "tokens_left_out": row.tokens_left_out,
    }
    if "branching" in json_object(trajectory.extra):
        numbers["branches"] = trajectory.parent_id is not None
    if trajectory.success is not None:
        numbers["success"] = trajectory.success
    return numbers


class RolloutMaker:
    """Plays batches of episodes.

    Args:
        config: the run.
        place: where the model acts.
        filler: id of a token for rows that have none.
    """

    def __init__(self, config: TrainConfig, place: ActingPlace, filler: int) -> None:
        section = section_of(config)
        self._config, self._place, self._filler = config, place, filler
        self._player = RolloutPlayer(place.make, place.limits, section.concurrency)
        self._streak = Streak(section.max_failures, section.concurrency, _ADVICE)
        self._step: tuple[int, bool] = (-1, True)
        self._seen: Counter[str] = Counter()

    def play(
        self,
        rows: Sequence[Mapping[str, Any]],
        step: int,
        policy: Callable[[], Policy],
        *,
        training: bool = True,
    ) -> PlayedBatch:
        """Play an episode for each row; rows of one task that follow each other are a group.

        Args:
            rows: with the column ``task``.
            step: steps of the optimiser that are done.
            policy: makes who acts.
            training: whether they are trained on.

        Raises:
            UsageError: the environment or the model cannot be used like this.
            RolloutError: too many in a row broke.
            TrainingError: an episode makes several rows, and that is to be refused.
        """
        jobs = self._jobs(rows, step, training)
        section = section_of(self._config)
        branching = branching_of(section) if training else None
        batch = PlayedBatch(step, training, [], [])
        pairs = []
        for job, trajectory in zip(jobs, self._player.play(jobs, policy, branching), strict=True):
            _rename(trajectory, step, self._group(training), training)
            row, tokens = trainer_row(
                trajectory,
                self._filler,
                truncated=section.truncated,
                rewritten=section.rewritten,
            )
            batch.rows.append(row)
            batch.rollouts.append(finished(job.group, trajectory, tokens))
            pairs.append((trajectory, trained_sequence(row, tokens)))
        for rollout in batch.rollouts:
            self._streak.add(Episode.of(rollout.trajectory))
        if branching is None:
            return batch
        # Ids differ between groups, so all groups of a batch can be looked at together.
        weights = shared_prefix_masks(link_rows(pairs), section.shared_tokens)
        return replace(batch, weights=weights)

    def _group(self, training: bool) -> int:
        """Episodes of a task in one step."""
        other = self._config.training.other.get("num_generations_eval")
        return self._config.grpo.num_generations if training or not other else int(other)

    def _jobs(
        self, rows: Sequence[Mapping[str, Any]], step: int, training: bool
    ) -> list[RolloutJob]:
        if (step, training) != self._step:
            self._step, self._seen = (step, training), Counter()
        return [self._job(row, step, training) for row in rows]

    def _job(self, row: Mapping[str, Any], step: int, training: bool) -> RolloutJob:
        task = Task.model_validate_json(row["task"])
        name = str(task.task_id)
        attempt = self._seen[name]
        self._seen[name] += 1
        world = attempt // self._group(training)
        seed, place = self._config.training.seed, f"{_step_name(step, training)}/{name}"
        about = About(
            dataset=DATASET,
            attempt=attempt,
            task=task,
            policy=PurePath(self._config.model.model_name_or_path).name,
            environment=self._place.kind.name,
            seed=episode_seed(seed, f"{place}/world", world),
            # Times would make an episode that is played again another one.
            timed=False,
        )
        group = name if not world else f"{name}#{world + 1}"
        return RolloutJob(about, episode_seed(seed, place, attempt), group)


def _step_name(step: int, training: bool) -> str:
    return f"{'' if training else 'eval-'}step-{step:06d}"


def _rename(trajectory: Trajectory, step: int, group: int, training: bool) -> None:
    """Give an episode the id and the attempt that tell it from those of other steps."""
    attempt, name = trajectory.attempt or 0, _step_name(step, training)
    if trajectory.parent_id is not None:
        parent = trajectory.parent_id.removeprefix(f"{trajectory.dataset}/")
        trajectory.parent_id = f"{trajectory.dataset}/{name}/{parent}"
    trajectory.source_id = f"{name}/{trajectory.source_id}"
    trajectory.trajectory_id = f"{trajectory.dataset}/{trajectory.source_id}"
    trajectory.attempt = step * group + attempt
