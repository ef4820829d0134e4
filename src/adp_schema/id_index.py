"""Where each trajectory of a store is: looked up in the column of ids, without an object for each.

A store may have tens of millions. Single questions scan the column; whoever asks for many gets a
dict of all of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa

from adp_schema import location
from adp_schema.find_id import NEAR, find_id
from adp_schema.plain_arrays import plain_array

_SCANS = 32
"""Questions that are answered by scans, before a dict is made."""


class IdIndex:
    """The ids of a store.

    Args:
        addresses: the files of the table of trajectories, in order. Of several trajectories of one
            id the last one counts.
    """

    def __init__(self, addresses: Sequence[str]) -> None:
        self._addresses = list(addresses)
        self._places: dict[str, tuple[int, int]] | None = None
        self._asked = 0

    def place(self, trajectory_id: str) -> tuple[int, int] | None:
        """Shard and ``seq`` of a trajectory; None when there is none."""
        if not _is_text(trajectory_id):
            return None
        self._asked += 1
        if self._places is None and self._asked > _SCANS:
            self._places = dict(self._all())
        if self._places is not None:
            return self._places.get(trajectory_id)
        for shard in reversed(range(len(self._addresses))):
            seq = self._scan(shard, trajectory_id)
            if seq is not None:
                return shard, seq
        return None

    def find(self, text: str) -> str:
        """The id of the one trajectory that a text names: an id, its begin or its end.

        Raises:
            StoreError: none; the message names the nearest ones.
            UsageError: more than one, with the first of them.
        """
        if self.place(text) is not None:
            return text
        import pyarrow.compute as pc

        count = 0
        first: list[str] = []
        like: dict[str, None] = {}
        for address in self._addresses:
            ids = location.open_parquet(address).read(columns=["trajectory_id"])["trajectory_id"]
            count += len(ids)
            first += ids.slice(0, max(NEAR - len(first), 0)).to_pylist()
            if _is_text(text):
                like.update(dict.fromkeys(ids.filter(pc.match_substring(ids, text)).to_pylist()))
        return find_id(list(like), text) if like else find_id(first, text, count)

    def _all(self) -> Iterator[tuple[str, tuple[int, int]]]:
        for shard, address in enumerate(self._addresses):
            rows = location.open_parquet(address).read(columns=["trajectory_id", "seq"])
            names, seqs = rows["trajectory_id"].to_pylist(), rows["seq"].to_pylist()
            for name, seq in zip(names, seqs, strict=True):
                yield name, (shard, seq)

    def _scan(self, shard: int, trajectory_id: str) -> int | None:
        """The ``seq`` of a trajectory in a shard: only row groups that may have its id are read."""
        # pyarrow.compute and pa.scalar load more than the whole look-up takes.
        from pyarrow._compute import call_function

        wanted = plain_array([trajectory_id], pa.string())[0]

        file = location.open_parquet(self._addresses[shard])
        column = file.schema_arrow.get_field_index("trajectory_id")
        seq = None
        for group in range(file.num_row_groups):
            known = file.metadata.row_group(group).column(column).statistics
            if known is not None and known.has_min_max and _outside(known, trajectory_id):
                continue
            ids = file.read_row_group(group, columns=["trajectory_id"])["trajectory_id"]
            places = call_function("indices_nonzero", [call_function("equal", [ids, wanted])])
            if len(places):
                rows = file.read_row_group(group, columns=["seq"])["seq"]
                seq = int(rows[places[-1].as_py()].as_py())
        return seq


def _is_text(text: str) -> bool:
    """Whether a text can be in a store: half a character cannot."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _outside(statistics: Any, text: str) -> bool:
    """Whether a text is not between the least and the greatest one of a row group."""
    data = text.encode()
    return bool(data < statistics.min.encode() or data > statistics.max.encode())
