"""The tokens that branches have in common, and how often the loss counts them.

A branch begins with tokens that its parent wrote. ARPO trains full rows: such a token counts once
for each row that it is in, with the advantage of each. To count it as one decision of the model,
weigh it 1/k, which gives it the mean advantage of its k rows, or train it in the first row alone.
Two attempts that wrote the same by chance share nothing: each of them decided it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from adp.trainers.rollouts.sequence import TokenSequence, episode_tokens
from adp_schema.model import Trajectory

SharedPrefix = Literal["full", "share", "once"]
"""How often a token counts that is in k rows: k times, once in all (1/k in each), or in the first
row alone."""


@dataclass(frozen=True, slots=True)
class BranchRow:
    """One row of a group, and what it has of another one.

    Attributes:
        sequence: its tokens.
        parent: the row that it branched from, by its place in the group, which is before it; None:
            it began at the beginning.
        shared: tokens of its response that it took over from that row, from the first one on.
    """

    sequence: TokenSequence
    parent: int | None = None
    shared: int = 0


def shared_prefix_masks(
    rows: Sequence[BranchRow], mode: SharedPrefix = "share"
) -> list[list[float]]:
    """How much each token of each response counts in the loss; 0 where the model did not write.

    Args:
        rows: all rows of a group. A row whose mask is empty takes no part.
        mode: how often a token counts that is in several rows.
    """
    origins = [_origins(rows, place) for place in range(len(rows))]
    holders: dict[tuple[int, int], list[int]] = {}
    for place, row in enumerate(rows):
        for origin, written in zip(origins[place], row.sequence.response_mask, strict=True):
            if written:
                holders.setdefault(origin, []).append(place)

    def weight(place: int, origin: tuple[int, int]) -> float:
        known = holders[origin]
        return {"full": 1.0, "share": 1 / len(known), "once": float(known[0] == place)}[mode]

    return [
        [
            weight(place, origin) if written else 0.0
            for origin, written in zip(origins[place], row.sequence.response_mask, strict=True)
        ]
        for place, row in enumerate(rows)
    ]


def _origins(rows: Sequence[BranchRow], place: int) -> list[tuple[int, int]]:
    """For each token of a response, the row that wrote it first, and where."""
    results = []
    for index in range(len(rows[place].sequence.response_ids)):
        row = place
        while (parent := rows[row].parent) is not None and index < rows[row].shared:
            row = parent
        results.append((row, index))
    return results


def link_rows(episodes: Sequence[tuple[Trajectory, TokenSequence]]) -> list[BranchRow]:
    """Rows of a group of attempts, with what each has of its parent's.

    Args:
        episodes: attempts with all of their steps, a parent before its branches, each with one of
            its rows; an attempt may be there with several.
    """
    places: dict[tuple[str | None, int], int] = {}
    rows = []
    for place, (trajectory, sequence) in enumerate(episodes):
        taken = _taken_over(trajectory, sequence)
        first = sequence.steps[0] if sequence.steps else -1
        parent = places.get((trajectory.parent_id, first)) if taken else None
        shared = 0 if parent is None else _end_of(trajectory, sequence, taken[-1])
        places[trajectory.trajectory_id, first] = place
        rows.append(BranchRow(sequence, parent, shared))
    return rows


def branch_rows(trajectories: Sequence[Trajectory]) -> list[BranchRow]:
    """All rows of a group of attempts, with what branches have of their parents.

    An attempt whose history was rewritten makes several rows. One that a branch took over as a
    whole has all of its tokens in the parent's row, and weighs what each of its holders does.

    Args:
        trajectories: attempts with all of their steps, a parent before its branches; steps without
            token ids have no row.
    """
    return link_rows(
        [
            (trajectory, sequence)
            for trajectory in trajectories
            for sequence in episode_tokens(trajectory).sequences
        ]
    )


def _taken_over(trajectory: Trajectory, sequence: TokenSequence) -> list[int]:
    """Steps of a row that a branch has from its parent."""
    kept = trajectory.parent_step or 0 if trajectory.parent_id is not None else 0
    return [step for step in sequence.steps if step < kept]


def _end_of(trajectory: Trajectory, sequence: TokenSequence, number: int) -> int:
    """Where in the response of a row the turn of a step ends."""
    step = next(step for step in trajectory.steps if step.step == number)
    ids = len(step.prompt_token_ids or ()) + len(step.completion_token_ids or ())
    return ids - len(sequence.prompt_ids)
