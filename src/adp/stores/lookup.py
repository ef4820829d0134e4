"""Trajectories in one line each: the first ones, or an unchanging sample."""

from __future__ import annotations

import hashlib
import heapq
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

import numpy as np

from adp_schema.location import open_parquet
from adp_schema.model import Trajectory
from adp_schema.store import Store

WORDS = 400
"""Characters kept of the first words."""


@dataclass(frozen=True)
class Summary:
    """One trajectory in one line.

    Attributes:
        errors: its results that are errors; None when it has none that says whether it is one.
    """

    trajectory_id: str
    steps: int
    calls: int
    errors: int | None
    success: bool | None
    first_words: str | None


def head(store: Store, count: int) -> list[Summary]:
    """The first trajectories in input order, branches aside.

    Args:
        store: the store.
        count: how many.
    """
    return _summaries(store, [seq for seq, _ in islice(_main_trajectories(store), count)])


def sample(store: Store, count: int, seed: int = 0) -> list[Summary]:
    """Trajectories drawn by a hash of seed and id: the same ones on every machine.

    Args:
        store: the store.
        count: how many.
        seed: another seed draws others.
    """
    places = _main_trajectories(store)
    drawn = heapq.nsmallest(count, places, key=lambda place: (_key(seed, place[1]), place[1]))
    return _summaries(store, sorted(seq for seq, _ in drawn))


def _key(seed: int, trajectory_id: str) -> bytes:
    data = f"{seed}\0{trajectory_id}".encode()
    return hashlib.blake2b(data, digest_size=16).digest()


def _main_trajectories(store: Store) -> Iterator[tuple[int, str]]:
    """``seq`` and id of each trajectory that is no branch, in input order."""
    columns = ["seq", "trajectory_id", "parent_id"]
    for address in store.files("trajectories"):
        for rows in open_parquet(address).iter_batches(columns=columns):
            values = (rows[name].to_pylist() for name in columns)
            for seq, trajectory_id, parent_id in zip(*values, strict=True):
                if parent_id is None:
                    yield seq, trajectory_id


def _summaries(store: Store, seqs: list[int]) -> list[Summary]:
    return [_summary(trajectory) for trajectory in store.some(np.array(seqs, dtype=np.int64))]


def _summary(trajectory: Trajectory) -> Summary:
    results = [*trajectory.early_observations]
    for step in trajectory.steps:
        results += step.observations
    marked = [
        result.is_error or result.exit_code
        for result in results
        if result.is_error is not None or result.exit_code is not None
    ]
    texts = (step.text for step in trajectory.steps if step.source == "user" and step.text)
    first_words = next(texts, None)
    return Summary(
        trajectory_id=trajectory.trajectory_id or "",
        steps=len(trajectory.steps),
        calls=sum(len(step.calls) for step in trajectory.steps),
        errors=sum(map(bool, marked)) if marked else None,
        success=trajectory.success,
        first_words=first_words and first_words[:WORDS],
    )
