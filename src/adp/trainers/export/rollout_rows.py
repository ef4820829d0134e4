"""Rollouts as token rows with their rewards: what every exporter of rollouts writes in its shape.

A rollout whose steps have the ids that the engine read and wrote gives exactly these. One without
them is rendered, when a model is named; then nobody knows with which probability its tokens were
drawn.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from adp.core.json_values import json_or_none
from adp.rendering.render import TokenRow
from adp.trainers.rollouts.sequence import TokenSequence, episode_tokens
from adp_schema.model import Step, Trajectory

MADE_UP = "steps that the model did not write: they stand in later prompts, and are not trained"
WEIGHTLESS = "steps with the weight 0: their tokens are not under the mask"
WEIGHTS = "weights between 0 and 1 or above, written as 1"


@dataclass(frozen=True)
class Rollout:
    """One rollout with its token rows.

    Attributes:
        trajectory: the run, with its parent's steps and its task.
        group: the same for all attempts at one task.
        dataset: the data set of its task, or the environment.
        rows: the token rows; more than one where a later prompt rewrites history.
        recorded: whether the ids are those of the engine; else they were rendered.
        reward: its reward; None when it was not judged.
        advantage: the advantage that was kept with it.
    """

    trajectory: Trajectory
    group: str
    dataset: str
    rows: tuple[TokenSequence, ...]
    recorded: bool
    reward: float | None
    advantage: float | None

    @property
    def calls(self) -> int:
        """Calls of tools that the agent made."""
        return sum(len(step.calls) for step in self.trajectory.steps if step.source == "agent")

    @property
    def turns(self) -> int:
        """Steps of the agent."""
        return sum(map(is_turn, self.trajectory.steps))

    @property
    def truncated(self) -> bool:
        """Whether a limit cut it."""
        return bool(self.trajectory.truncated)

    def facts(self) -> dict[str, Any]:
        """What every shape has a place for, as plain values."""
        run = self.trajectory
        rewards = json_or_none(run.rewards)
        return {
            "trajectory_id": run.trajectory_id,
            "group": self.group,
            "task_id": run.task_id,
            "dataset": self.dataset,
            "attempt": run.attempt,
            "recorded": self.recorded,
            "reward": self.reward,
            "rewards": rewards if isinstance(rewards, dict) else {},
            "advantage": self.advantage,
            "success": run.success,
            "truncated": self.truncated,
            "turns": self.turns,
            "calls": self.calls,
        }


def recorded_rows(trajectory: Trajectory, context: int, notes: Counter[str]) -> Any:
    """The rows of the ids that the engine read and wrote; None when steps lack them.

    Args:
        trajectory: with its parent's steps.
        context: steps with a smaller number are not trained.
        notes: counts what is not under the mask.
    """
    tokens = episode_tokens(trajectory)
    places = {_place(number, step): step for number, step in enumerate(trajectory.steps)}
    unwritten = [place for place in tokens.without if not _is_models(places[place])]
    if len(unwritten) < len(tokens.without) or not tokens.sequences:
        return None
    masked = trajectory.model_copy(
        update={"steps": [_masked(step, n, context, notes) for n, step in _numbered(trajectory)]}
    )
    notes[MADE_UP] += len(unwritten)
    return [row for row in episode_tokens(masked).sequences if row.written]


def rendered_rows(rows: Iterable[TokenRow]) -> list[TokenSequence]:
    """Rows of the renderer in the same form, without log probabilities."""
    return [_sequence(row) for row in rows if (row.loss_weights > 0).any()]


def reward_of(trajectory: Trajectory, name: str | None) -> float | None:
    """The reward of a run; without one 1 for success and 0 for failure.

    Args:
        trajectory: the run.
        name: a named reward instead.
    """
    if name is not None:
        rewards = json_or_none(trajectory.rewards)
        return _number(rewards, name)
    if trajectory.reward is not None:
        return None if trajectory.reward != trajectory.reward else float(trajectory.reward)
    return None if trajectory.success is None else float(trajectory.success)


def advantage_of(trajectory: Trajectory) -> float | None:
    """The advantage that a training kept with a run."""
    return _number(_training(trajectory), "advantage")


def group_of(trajectory: Trajectory, dataset: str) -> str:
    """What all attempts at one task have in common; a run without a task is alone.

    A training (``extra.grpo``) keeps the name of the group, and its step: the same task comes again
    in a later step, and is another group then.
    """
    kept = _training(trajectory)
    group, step = kept.get("group"), kept.get("step")
    if isinstance(group, str) and group:
        return group if step is None else f"{group}/step-{step}"
    if trajectory.task_id is None:
        return str(trajectory.trajectory_id)
    return f"{dataset}/{trajectory.task_id}"


def _training(trajectory: Trajectory) -> Mapping[str, Any]:
    """What a training kept with a rollout: ``extra.grpo``, or the same keys in ``extra``."""
    extra = json_or_none(trajectory.extra)
    if not isinstance(extra, Mapping):
        return {}
    kept = extra.get("grpo")
    return kept if isinstance(kept, Mapping) else extra


def is_turn(step: Step) -> bool:
    """Whether a step is a turn that the agent took itself."""
    return step.source == "agent" and step.kind == "llm_turn" and not step.is_copied_context


def _is_models(step: Step) -> bool:
    """Whether the model that is trained had to write a step."""
    return step.llm_call_count != 0 and step.actor in (None, "agent") and not step.synthetic


def _place(number: int, step: Step) -> int:
    return number if step.step is None else step.step


def _numbered(trajectory: Trajectory) -> Iterable[tuple[int, Step]]:
    return ((_place(number, step), step) for number, step in enumerate(trajectory.steps))


def _masked(step: Step, place: int, context: int, notes: Counter[str]) -> Step:
    """A step whose tokens are out of the mask when it is context, or has no weight."""
    if not is_turn(step) or step.completion_token_ids is None:
        return step
    weight = step.loss_weight
    if place >= context and (weight is None or weight > 0):
        notes[WEIGHTS] += weight not in (None, 1)
        return step
    notes[WEIGHTLESS] += place >= context
    return step.model_copy(update={"token_mask": [0] * len(step.completion_token_ids)})


def _sequence(row: TokenRow) -> TokenSequence:
    trained = row.loss_weights > 0
    places = np.flatnonzero(trained)
    first, end = int(places[0]), int(places[-1]) + 1
    ids = row.input_ids.tolist()
    numbers = row.step_index[first:end]
    steps = [int(step) for step in dict.fromkeys(numbers[trained[first:end]].tolist())]
    places_of_steps = [np.flatnonzero(numbers == step) for step in steps]
    return TokenSequence(
        prompt_ids=tuple(ids[:first]),
        response_ids=tuple(ids[first:end]),
        response_mask=tuple(trained[first:end].tolist()),
        logprobs=None,
        steps=tuple(steps),
        spans=tuple((int(at[0]), int(at[-1]) + 1) for at in places_of_steps),
    )


def _number(values: Any, name: str) -> float | None:
    value = values.get(name) if isinstance(values, Mapping) else None
    if isinstance(value, bool) or not isinstance(value, int | float) or value != value:
        return None
    return float(value)
