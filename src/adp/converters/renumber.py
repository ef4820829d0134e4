"""Making ids unique over shards.

Each shard numbers its own repeats. Which ids an earlier shard has too is known only when all
are there; then the later shard's files are written again with the right numbers. That is rare,
and it gives the same bytes whatever the order in which the shards were made.
"""

from __future__ import annotations

from base64 import b64decode
from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from adp.converters.shard_result import ShardResult
from adp_schema.ids import numbered
from adp_schema.tables import TABLES
from adp_schema.writer import place, table_writer

_COLUMNS = ("trajectory_id", "parent_id", "pair_id", "context_id", "chosen_id", "rejected_id")


def renumber_repeats(store: Path, results: list[ShardResult]) -> None:
    """Number repeated ids through all shards, in input order.

    Ids are compared by hashes of 8 bytes, so that all fit into memory. Where two hashes are equal
    by chance, an id gets a number that it did not need, and is still unique.

    Args:
        store: folder of the store.
        results: the shards in order; the entries of files that are written again are updated.
    """
    hashes = [np.frombuffer(b64decode(result.id_hashes), np.uint64) for result in results]
    repeated = _in_several(hashes)
    seen: Counter[int] = Counter()
    for result, here in zip(results, hashes, strict=True):
        places = np.flatnonzero(np.isin(here, repeated)) if len(repeated) else repeated
        if not len(places):
            continue
        counts: Counter[int] = Counter()
        changed: dict[str, str] = {}
        names = _ids(store / result.tables["trajectories"].path)
        for row, key in zip(places.tolist(), here[places].tolist(), strict=True):
            counts[key] += 1
            if seen[key]:
                name = names[row]
                base = name.removesuffix(f"#{counts[key]}") if counts[key] > 1 else name
                changed[name] = numbered(base, seen[key] + counts[key])
        if changed:
            # Without its note a shard is made anew when the run is stopped here, so that no
            # file is renumbered twice.
            (store / ".run" / f"shard-{result.index:05d}.json").unlink(missing_ok=True)
            for table in result.tables:
                _rewrite(store, result, table, changed)
        seen.update(counts)


def _in_several(hashes: Sequence[np.ndarray[Any, Any]]) -> np.ndarray[Any, Any]:
    """The hashes that more than one shard has, sorted."""
    every = np.concatenate([np.zeros(0, np.uint64), *map(_distinct, hashes)])
    every.sort()
    return _distinct(every[1:][every[1:] == every[:-1]])


def _distinct(values: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """What ``np.unique`` gives, which loads all of ``numpy.ma`` first."""
    values = np.sort(values)
    return np.concatenate([values[:1], values[1:][values[1:] != values[:-1]]])


def _ids(path: Path) -> list[str]:
    """The ids of the trajectories of a shard, in order."""
    with pq.ParquetFile(path) as file:
        names: list[str] = file.read(["trajectory_id"], use_threads=False)[0].to_pylist()
    return names


def _rewrite(store: Path, result: ShardResult, table: str, changed: dict[str, str]) -> None:
    columns = [name for name in _COLUMNS if name in TABLES[table].schema.names]
    shard = result.tables[table]
    if not columns or not shard.rows:
        return
    staged = store / ".run" / f"renumbered-{table}.parquet"
    schema = TABLES[table].schema
    with pq.ParquetFile(store / shard.path) as file, ExitStack() as stack:
        writer = None
        for group in range(file.num_row_groups):
            rows = file.read_row_group(group, use_threads=False)
            for name in columns:
                ids = [changed.get(value, value) for value in rows[name].to_pylist()]
                index = schema.get_field_index(name)
                rows = rows.set_column(index, schema.field(name), pa.array(ids, pa.string()))
            rows = rows.cast(schema).combine_chunks()
            writer = writer or stack.enter_context(table_writer(staged, table, rows))
            writer.write_table(rows, row_group_size=rows.num_rows)
    result.tables[table] = place(staged, store, table, result.index, shard.rows)
