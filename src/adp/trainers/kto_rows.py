"""Trajectories as exact tokens for KTO: a prompt, what follows it, and whether it is good."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from adp.rendering.render import Renderer, TokenRow
from adp.trainers.config_methods import KtoSection
from adp.trainers.preference_rows import Ints, PairCounts, SideTokens, pair_rows
from adp.trainers.store_parts import Part, StoreParts
from adp_schema.model import Trajectory
from adp_schema.store import Store


@dataclass(frozen=True, slots=True)
class KtoRow:
    """One row.

    Attributes:
        source_id: id of the trajectory, or of the pair and the side.
        prompt: token ids before the first trained one.
        completion: what follows; results of tools in it are not in the loss.
        label: whether it is good.
    """

    source_id: str
    prompt: Ints
    completion: SideTokens
    label: bool


def kto_rows(
    store: Store, renderer: Renderer, parts: StoreParts, tally: PairCounts, options: KtoSection
) -> Iterator[tuple[Part, KtoRow]]:
    """The rows of a store, and what each is for.

    Args:
        store: the trajectories, and the pairs for ``rows: pairs``.
        renderer: of the model; its windows hold here.
        parts: what each trajectory is for.
        tally: counts trajectories that give no row.
        options: what says which rows are good.
    """
    if options.rows == "pairs":
        yield from _from_pairs(store, renderer, parts, tally)
    else:
        yield from _from_trajectories(store, renderer, parts, tally, options)


def _from_pairs(
    store: Store, renderer: Renderer, parts: StoreParts, tally: PairCounts
) -> Iterator[tuple[Part, KtoRow]]:
    for part, row in pair_rows(store, renderer, parts, tally):
        for name, side, good in (("chosen", row.chosen, True), ("rejected", row.rejected, False)):
            yield part, KtoRow(f"{row.pair_id}#{name}", row.prompt, side, good)


def _from_trajectories(
    store: Store, renderer: Renderer, parts: StoreParts, tally: PairCounts, options: KtoSection
) -> Iterator[tuple[Part, KtoRow]]:
    wanted = renderer.options.branches
    for trajectory in store.trajectories():
        kind = trajectory.branch_kind
        if trajectory.parent_id is not None and "all" not in wanted and kind not in wanted:
            continue
        part = parts.of(trajectory.trajectory_id or "")
        if part is None:
            continue
        label = _label(trajectory, options)
        if label is None:
            tally.left_out[f"its {options.rows} is unknown"] += 1
            continue
        for row in _rendered(renderer, store.resolve(trajectory), tally):
            made = _row(row, label)
            if made is None:
                tally.left_out["its first token is trained, so there is no prompt"] += 1
            else:
                yield part, made


def _rendered(renderer: Renderer, trajectory: Trajectory, tally: PairCounts) -> list[TokenRow]:
    """The rows of a trajectory; why there is none is counted."""
    result = renderer.trajectory(trajectory)
    tally.notes += result.notes
    if not result.rows:
        tally.left_out["; ".join(result.lost) or "no step of it is trained"] += 1
    elif result.lost:
        tally.notes["steps that are in no row"] += result.lost.total()
    if any(((row.loss_weights > 0) & (row.loss_weights != 1)).any() for row in result.rows):
        tally.notes["trajectories with weights between 0 and 1, taken as 1"] += 1
    return result.rows


def _label(trajectory: Trajectory, options: KtoSection) -> bool | None:
    if options.rows == "reward":
        reward = trajectory.reward
        return None if reward is None or np.isnan(reward) else reward >= options.reward_threshold
    return trajectory.success


def _row(row: TokenRow, label: bool) -> KtoRow | None:
    first = int(np.argmax(row.labels >= 0))
    if first == 0:
        return None
    side = SideTokens(row.input_ids[first:], row.labels[first:] >= 0)
    return KtoRow(row.trajectory_id, row.input_ids[:first], side, label)


def rotate(indices: np.ndarray[Any, Any], batch_size: int) -> np.ndarray[Any, Any]:
    """For each row, the row of its batch whose completion stands beside it.

    KTO estimates the divergence from prompts with completions that do not belong to them (section
    4.1 of Ethayarajh et al. 2024, arXiv 2402.01306); TRL takes those of the same batch in turn. A
    last batch of one row takes that of the row before it.

    Args:
        indices: the rows in the order in which they are trained.
        batch_size: rows of one process at once; more than 1.
    """
    partners = np.empty_like(indices)
    for start in range(0, len(indices), batch_size):
        batch = indices[start : start + batch_size]
        partners[start : start + len(batch)] = np.roll(batch, 1)
    if len(indices) % batch_size == 1 and len(indices) > 1:
        partners[-1] = indices[-2]
    return partners
