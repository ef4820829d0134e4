"""Tries at one episode: which of them count.

An episode that broke, for a reason that is not the agent's, may be tried again; the new try is a
trajectory of its own (``...#2``), and the broken one stays. Only the last try counts.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple, Protocol

import polars as pl

from adp.rollouts.collecting.recorder import ENVIRONMENT, INFRASTRUCTURE, POLICY, ROLLOUT
from adp_schema import location
from adp_schema.ids import numbered
from adp_schema.store import Store

BROKEN = frozenset({ENVIRONMENT, INFRASTRUCTURE, POLICY})
"""Values of ``error_type`` of a trajectory that broke, and not because of the agent."""

IS_ATTEMPT = (
    f"(t.parent_id IS NULL OR (t.branch_kind = 'attempt' AND t.source_format = '{ROLLOUT}'))"
)
"""`is_attempt` in SQL, over ``all_trajectories t``."""


class Try(NamedTuple):
    """What tells tries apart; the columns of a trajectory of these names."""

    trajectory_id: str | None
    dataset: str | None
    task_id: str | None
    attempt: int | None
    error_type: str | None
    parent_id: str | None = None
    branch_kind: str | None = None
    source_format: str | None = None

    @property
    def is_attempt(self) -> bool:
        """See `is_attempt`."""
        return is_attempt(self)


class _Branch(Protocol):
    """What tells whether a trajectory is an attempt."""

    @property
    def parent_id(self) -> str | None: ...

    @property
    def branch_kind(self) -> str | None: ...

    @property
    def source_format(self) -> str | None: ...


def is_attempt(trajectory: _Branch) -> bool:
    """Whether a trajectory is an attempt at its task: a main line, or a rollout that branched.

    Branches that other formats call attempts are the tries of one run.
    """
    rollout = trajectory.branch_kind == "attempt" and trajectory.source_format == ROLLOUT
    return trajectory.parent_id is None or rollout


def is_attempt_column() -> pl.Expr:
    """`is_attempt`, over the columns of the table of trajectories."""
    rollout = (pl.col("branch_kind") == "attempt") & (pl.col("source_format") == ROLLOUT)
    return pl.col("parent_id").is_null() | rollout.fill_null(value=False)


def tries_of(store: Store) -> Iterator[Try]:
    """All trajectories of a store, in order."""
    for address in store.files("trajectories"):
        table = location.open_parquet(address).read(columns=list(Try._fields))
        columns = (table[name].to_pylist() for name in Try._fields)
        yield from map(Try, *columns)


def superseded(tries: Iterable[Try]) -> set[str]:
    """Ids of the tries that broke and were made again.

    Args:
        tries: all trajectories of a store.
    """
    known = {item.trajectory_id: item for item in tries if item.trajectory_id is not None}
    result = set()
    for name, first in known.items():
        number, last = 1, first
        while last.error_type in BROKEN:
            number += 1
            after = known.get(numbered(name, number))
            # Elsewhere such ids tell apart what came under one id by chance.
            if after is None or after[1:4] != first[1:4]:
                break
            result.add(str(last.trajectory_id))
            last = after
    return result
