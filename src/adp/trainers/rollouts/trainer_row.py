"""From an episode to the row that a trainer of reinforcement learning takes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from adp.trainers.rollouts.reward import FinishedRollout
from adp.trainers.rollouts.sequence import EpisodeTokens, TokenSequence, episode_tokens
from adp_schema.errors import TrainingError
from adp_schema.model import Trajectory

BROKEN, NOTHING_WRITTEN, TRUNCATED = "broken", "nothing written", "truncated"
"""Why no token of an episode is in the loss."""


@dataclass(frozen=True, slots=True)
class TrainerRow:
    """One row: a prompt, what follows it, and which tokens of that are trained.

    Attributes:
        prompt_ids: ids of the prompt.
        completion_ids: ids of what follows.
        mask: for each of these 1 when it is under the loss, else 0.
        logprobs: for each of these its log probability when it was drawn, 0.0 where the model did
            not write, None where it is not known.
        left_out: why nothing is trained; None when something is.
        rows: rows that the turns of the episode make; more than 1 where history is rewritten.
        tokens_left_out: written tokens that are in no row but an earlier one.
    """

    prompt_ids: list[int]
    completion_ids: list[int]
    mask: list[int]
    logprobs: list[float | None]
    left_out: str | None = None
    rows: int = 1
    tokens_left_out: int = 0


def trainer_row(
    trajectory: Trajectory,
    filler: int,
    *,
    truncated: Literal["keep", "mask", "zero"] = "keep",
    rewritten: Literal["last", "refuse"] = "last",
) -> tuple[TrainerRow, EpisodeTokens]:
    """The row of an episode.

    Args:
        trajectory: the episode, with the ids that the policy kept.
        filler: id of a token for a row that has none of its own.
        truncated: what becomes of an episode that a budget cut.
        rewritten: what becomes of an episode that makes several rows.

    Raises:
        TrainingError: it makes several rows, and that is to be refused.
    """
    tokens = episode_tokens(trajectory)
    if len(tokens.sequences) > 1 and rewritten == "refuse":
        raise TrainingError(
            f"the episode {trajectory.source_id} makes {len(tokens.sequences)} rows, because the "
            "chat template or the environment rewrites what was said; keep all reasoning "
            "(render.reasoning, render.template_options), take another template, or set "
            "grpo.environment.rewritten: last"
        )
    reason = _left_out(trajectory, tokens, truncated)
    if not tokens.sequences:
        return TrainerRow([filler], [filler], [0], [0.0], reason, 0), tokens
    last = tokens.sequences[-1]
    mask = [int(value) and not reason for value in last.response_mask]
    left = sum(sequence.written for sequence in tokens.sequences[:-1])
    return TrainerRow(
        list(last.prompt_ids),
        list(last.response_ids) or [filler],
        [int(value) for value in mask] or [0],
        _logprobs(last) or [0.0],
        reason,
        len(tokens.sequences),
        left,
    ), tokens


def trained_sequence(row: TrainerRow, tokens: EpisodeTokens) -> TokenSequence:
    """The sequence of a row, with the mask that it is trained with.

    Args:
        row: what `trainer_row` made of an episode.
        tokens: the tokens of that episode.
    """
    mask = tuple(bool(value) for value in row.mask)
    if not tokens.sequences or len(tokens.sequences[-1].response_ids) != len(mask):
        return TokenSequence(tuple(row.prompt_ids), tuple(row.completion_ids), mask, None, ())
    return replace(tokens.sequences[-1], response_mask=mask)


def _left_out(trajectory: Trajectory, tokens: EpisodeTokens, truncated: str) -> str | None:
    if trajectory.error_type is not None:
        return BROKEN
    if not any(sequence.written for sequence in tokens.sequences[-1:]):
        return NOTHING_WRITTEN
    return TRUNCATED if truncated == "mask" and trajectory.truncated else None


def _logprobs(sequence: TokenSequence) -> list[float | None]:
    if sequence.logprobs is not None:
        return list(sequence.logprobs)
    return [None if written else 0.0 for written in sequence.response_mask]


def finished(group: str, trajectory: Trajectory, tokens: EpisodeTokens) -> FinishedRollout:
    """An episode as rewards see it.

    Args:
        group: the same for all episodes of one world.
        trajectory: the episode.
        tokens: its tokens.
    """
    return FinishedRollout(
        group=group,
        trajectory=trajectory,
        response_tokens=sum(len(sequence.response_ids) for sequence in tokens.sequences),
        written_tokens=sum(sequence.written for sequence in tokens.sequences),
    )
