"""Trajectories as exact tokens for KTO: a prompt, what follows it, and whether it is good."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from adp.core.render.render import Renderer, Row
from adp.trainers.config_methods import KtoSection
from adp.trainers.preference_rows import Ints, PairRenderer, Side, Tally
from adp_schema.model import Trajectory
from adp_schema.store import Store


@dataclass(frozen=True, slots=True)
class KtoRow:
    """One row.

    Attributes:
        source_id: id of the trajectory, or of the pair and the side.
        task: id of its task, or of the trajectory.
        prompt: token ids before the first trained one.
        completion: what follows; results of tools in it are not in the loss.
        label: whether it is good.
    """

    source_id: str
    task: str
    prompt: Ints
    completion: Side
    label: bool


def kto_rows(
    store: Store, renderer: Renderer, options: KtoSection, tally: Tally
) -> Iterator[KtoRow]:
    """The rows of a store.

    Args:
        store: the trajectories, and the pairs for ``rows: pairs``.
        renderer: of the model; its windows hold here.
        options: what says which rows are good.
        tally: counts rows, and trajectories that give none.
    """
    found = (
        _from_pairs(store, renderer, tally)
        if options.rows == "pairs"
        else _from_trajectories(store, renderer, options, tally)
    )
    for row in found:
        trained = int(row.completion.mask.sum())
        tally.add(len(row.prompt) + len(row.completion.ids), trained)
        yield row


def _from_pairs(store: Store, renderer: Renderer, tally: Tally) -> Iterator[KtoRow]:
    # Counted here as rows of KTO, so the counts of pairs are kept apart.
    pairs = Tally(left_out=tally.left_out, notes=tally.notes)
    for pair in PairRenderer(renderer).rows(store, pairs):
        for name, side, good in (("chosen", pair.chosen, True), ("rejected", pair.rejected, False)):
            yield KtoRow(f"{pair.pair_id}#{name}", pair.task, pair.prompt, side, good)


def _from_trajectories(
    store: Store, renderer: Renderer, options: KtoSection, tally: Tally
) -> Iterator[KtoRow]:
    wanted = renderer.options.branches
    for trajectory in store.trajectories():
        kind = trajectory.branch_kind
        if trajectory.parent_id is not None and "all" not in wanted and kind not in wanted:
            continue
        label = _label(trajectory, options)
        if label is None:
            tally.left_out[f"its {options.rows} is unknown"] += 1
            continue
        found = renderer.trajectory(store.resolve(trajectory))
        tally.notes += found.notes
        if found.lost:
            tally.notes["steps that are in no row"] += found.lost.total()
        if not found.rows:
            reason = f"refused: {found.rejected}" if found.rejected else "no step of it is trained"
            tally.left_out["; ".join(found.lost) or reason] += 1
        for row in found.rows:
            made = _row(row, trajectory.task_id or row.trajectory_id, label)
            if made is None:
                tally.left_out["its first token is trained, so there is no prompt"] += 1
            else:
                yield made


def _label(trajectory: Trajectory, options: KtoSection) -> bool | None:
    if options.rows == "reward":
        reward = trajectory.reward
        return None if reward is None or np.isnan(reward) else reward >= options.reward_threshold
    return trajectory.success


def _row(row: Row, task: str, label: bool) -> KtoRow | None:
    first = int(np.argmax(row.labels >= 0))
    if first == 0:
        return None
    side = Side(row.input_ids[first:], row.labels[first:] >= 0)
    return KtoRow(row.trajectory_id, task, row.input_ids[:first], side, label)


def rotate(indices: np.ndarray[Any, Any], batch_size: int) -> np.ndarray[Any, Any]:
    """For each row, the row of its batch whose completion stands beside it.

    KTO estimates the divergence from prompts with completions that do not belong to them (section
    4.1 of Ethayarajh et al. 2024, arXiv 2402.01306); TRL takes those of the same batch in turn. A
    last batch of one row takes that of the row before it.

    Args:
        indices: the rows in the order in which they are trained.
        batch_size: rows of one process at once; more than 1.
    """
    found = np.empty_like(indices)
    for start in range(0, len(indices), batch_size):
        batch = indices[start : start + batch_size]
        found[start : start + len(batch)] = np.roll(batch, 1)
    if len(indices) % batch_size == 1 and len(indices) > 1:
        found[-1] = indices[-2]
    return found
