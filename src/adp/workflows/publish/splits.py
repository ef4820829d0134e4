"""The splits of the config ``messages``: names that ``datasets`` takes, for any text in the store.

A branch repeats the start of another run, or is an answer that was rejected. Branches therefore
have splits of their own: who loads ``train`` gets main lines only.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from adp_schema.store import Store

TRAIN = "train"
"""Name of the split of rows that say none, and of the flat tables."""

BRANCHES = "_branches"
"""What the name of a split of branches ends with."""

_MOST = 20
"""More splits than this are no splits in the sense of `datasets`, but labels of another kind."""

_LONGEST = 40
_SQL = (
    "SELECT split, coalesce(parent_id, '') <> '' AS branch, count(*) AS rows "
    "FROM all_trajectories GROUP BY ALL ORDER BY ALL"
)


@dataclass(frozen=True)
class Splits:
    """Which split a trajectory belongs to.

    Attributes:
        names: value of the column ``split`` -> name of the split of its main lines. Empty when
            all main lines are in one split, `TRAIN`.
        order: names of all splits that have rows, main lines first.
    """

    names: tuple[tuple[str | None, str], ...]
    order: tuple[str, ...]

    def of(self, split: str | None, *, branch: bool) -> str:
        """The name of the split of a trajectory.

        Args:
            split: its column ``split``.
            branch: whether it is a branch.
        """
        name = dict(self.names).get(split or None, TRAIN)
        return name + BRANCHES if branch else name


def splits_of(store: Store) -> Splits:
    """The splits of a store.

    One value of the column ``split`` gives the one split its name; several give one each; more
    than twenty give none, and the split is called ``train``.
    """
    rows = store.query(_SQL).to_pylist()
    values = sorted({row["split"] or "" for row in rows})
    names: dict[str | None, str] = {}
    if len(values) <= _MOST:
        taken: set[str] = set()
        for value in values:
            names[value or None] = _free(_safe(value) if value else TRAIN, taken)
    splits = Splits(tuple(names.items()), ())
    mains = [splits.of(row["split"], branch=False) for row in rows if not row["branch"]]
    branches = [splits.of(row["split"], branch=True) for row in rows if row["branch"]]
    order = dict.fromkeys([*sorted(mains, key=_rank), *sorted(branches, key=_rank)])
    return Splits(splits.names, tuple(order))


def _rank(name: str) -> tuple[bool, str]:
    return not name.startswith(TRAIN), name


def _safe(value: str) -> str:
    """A value as a name of a split: ASCII letters, digits and underscores.

    ``all`` means all splits to `datasets`, and the names of branches are made by us.
    """
    name = re.sub(r"[^A-Za-z0-9]+", "_", value).strip("_")[:_LONGEST] or "split"
    if name.lower() == "all" or name.endswith(BRANCHES):
        name += "_split"
    return name


def _free(name: str, taken: set[str]) -> str:
    """A name that no other split has, also where upper and lower case are the same file."""
    number, free = 1, name
    while free.lower() in taken:
        number += 1
        free = f"{name}_{number}"
    taken.add(free.lower())
    return free
