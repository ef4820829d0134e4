"""Trajectories in one line each: the first ones, or an unchanging sample."""

from __future__ import annotations

import hashlib
import heapq
from dataclasses import dataclass

from adp_schema.store import Store


@dataclass(frozen=True)
class Summary:
    """One trajectory in one line."""

    trajectory_id: str
    steps: int
    calls: int
    errors: int
    success: bool | None
    first_words: str | None


def head(store: Store, count: int) -> list[Summary]:
    """The first trajectories in input order, branches aside.

    Args:
        store: the store.
        count: how many.
    """
    rows = store.query(f"SELECT seq FROM trajectories ORDER BY seq LIMIT {int(count)}")
    return _summaries(store, rows["seq"].to_pylist())


def sample(store: Store, count: int, seed: int = 0) -> list[Summary]:
    """Trajectories drawn by a hash of seed and id: the same ones on every machine.

    Args:
        store: the store.
        count: how many.
        seed: another seed draws others.
    """
    rows = store.query("SELECT seq, trajectory_id FROM trajectories ORDER BY seq")
    places = zip(rows["seq"].to_pylist(), rows["trajectory_id"].to_pylist(), strict=True)
    drawn = heapq.nsmallest(count, places, key=lambda place: (_key(seed, place[1]), place[1]))
    return _summaries(store, sorted(seq for seq, _ in drawn))


def _key(seed: int, trajectory_id: str) -> bytes:
    data = f"{seed}\0{trajectory_id}".encode()
    return hashlib.blake2b(data, digest_size=16).digest()


_SUMMARY = """
WITH picked AS (SELECT seq, trajectory_id, success FROM trajectories WHERE seq IN ({seqs})),
s AS (
    SELECT seq, count(*) AS steps,
        arg_min(left(text, 400), step) FILTER (source = 'user' AND text <> '') AS first_words
    FROM steps WHERE seq IN ({seqs}) GROUP BY seq
),
c AS (SELECT seq, count(*) AS calls FROM tool_calls WHERE seq IN ({seqs}) GROUP BY seq),
o AS (
    SELECT seq, count(*) FILTER (is_error OR coalesce(exit_code, 0) <> 0) AS errors
    FROM observations WHERE seq IN ({seqs}) GROUP BY seq
)
SELECT trajectory_id, coalesce(steps, 0) AS steps, coalesce(calls, 0) AS calls,
    coalesce(errors, 0) AS errors, success, first_words
FROM picked LEFT JOIN s USING (seq) LEFT JOIN c USING (seq) LEFT JOIN o USING (seq)
ORDER BY seq
"""


def _summaries(store: Store, seqs: list[int]) -> list[Summary]:
    if not seqs:
        return []
    rows = store.query(_SUMMARY.format(seqs=", ".join(map(str, seqs))))
    return [Summary(**row) for row in rows.to_pylist()]
