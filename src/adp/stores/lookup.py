"""Finding trajectories: by a part of the id, the first ones, or an unchanging sample."""

from __future__ import annotations

import difflib
import hashlib
import heapq
from collections.abc import Iterator
from dataclasses import dataclass

from adp_schema import location
from adp_schema.errors import StoreError, UsageError
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


def _places(store: Store) -> Iterator[tuple[int, str]]:
    """seq and id of every trajectory, in input order."""
    for address in store.files("trajectories"):
        rows = location.open_parquet(address).read(columns=["seq", "trajectory_id"])
        yield from zip(rows["seq"].to_pylist(), rows["trajectory_id"].to_pylist(), strict=True)


def find_id(store: Store, text: str) -> str:
    """The id of the one trajectory that a text names: an id, its source id, its begin or its end.

    Raises:
        StoreError: no trajectory, with the nearest ids.
        UsageError: more than one, with the first of them.
    """
    return find_name([name for _, name in _places(store)], text)


def find_name(ids: list[str], text: str) -> str:
    """The one of some ids that a text names, as in `find_id`.

    Raises:
        StoreError: none, with the nearest ones.
        UsageError: more than one, with the first of them.
    """
    if text in set(ids):
        return text
    source = [name for name in ids if name.endswith("/" + text)]
    result = source or [name for name in ids if name.startswith(text) or name.endswith(text)]
    result = result or [name for name in ids if name.partition("/")[2].startswith(text)]
    if len(result) == 1:
        return result[0]
    if result:
        more = f" and {len(result) - 5:,} more" if len(result) > 5 else ""
        raise UsageError(
            f"'{text}' names {len(result):,} trajectories: {', '.join(result[:5])}{more}"
        )
    near = difflib.get_close_matches(text, ids[:20_000], n=3, cutoff=0.6)
    if not near:
        short = {name.partition("/")[2]: name for name in ids[:20_000]}
        near = [short[name] for name in difflib.get_close_matches(text, short, n=3)]
    if near:
        hint = f"did you mean {' or '.join(near)}?"
    else:
        hint = f"it holds {', '.join(ids[:3])}" if ids else "it holds none"
        hint += f" and {len(ids) - 3:,} more" if len(ids) > 3 else ""
    raise StoreError(f"the store has no trajectory '{text}'; {hint}")


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
