"""Tries at one episode: which of them count.

An episode that broke, for a reason that is not the agent's, may be tried again; the new try is a
trajectory of its own (``...#2``), and the broken one stays. Only the last try counts.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from adp.rollouts.collecting.recorder import ENVIRONMENT, INFRASTRUCTURE, POLICY
from adp_schema import location
from adp_schema.ids import numbered
from adp_schema.store import Store

BROKEN = frozenset({ENVIRONMENT, INFRASTRUCTURE, POLICY})
"""Values of ``error_type`` of a trajectory that broke, and not because of the agent."""


class Try(NamedTuple):
    """What tells tries apart; the columns of a trajectory of these names."""

    trajectory_id: str | None
    dataset: str | None
    task_id: str | None
    attempt: int | None
    error_type: str | None
    parent_id: str | None = None


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
