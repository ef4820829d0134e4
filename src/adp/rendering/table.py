"""Rows of training data as Arrow tables."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from adp.rendering.render import TokenRow

ROWS = pa.schema(
    [
        pa.field("trajectory_id", pa.string()),
        pa.field("seq", pa.int64()),
        pa.field("segment", pa.int32()),
        pa.field("window", pa.int32()),
        pa.field("input_ids", pa.list_(pa.int32())),
        pa.field("labels", pa.list_(pa.int32())),
        pa.field("loss_weights", pa.list_(pa.float32())),
        pa.field("step_index", pa.list_(pa.int32())),
        pa.field("context_cut", pa.bool_()),
        pa.field("length", pa.int32()),
        pa.field("trained", pa.int32()),
    ]
)
"""Columns of the rows."""

LOST = pa.schema(
    [
        pa.field("trajectory_id", pa.string()),
        pa.field("seq", pa.int64()),
        pa.field("reason", pa.string()),
        pa.field("steps", pa.int32()),
    ]
)
"""Columns of what was lost."""


def rows_table(rows: Sequence[TokenRow]) -> pa.Table:
    """Rows as an Arrow table with the columns `ROWS`."""
    columns: list[pa.Array] = []
    for name in ("trajectory_id", "seq", "segment", "window"):
        columns.append(pa.array([getattr(row, name) for row in rows], ROWS.field(name).type))
    lengths = np.array([len(row.input_ids) for row in rows], np.int32)
    offsets = pa.array(np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32))
    for name in ("input_ids", "labels", "loss_weights", "step_index"):
        kind = ROWS.field(name).type
        empty = np.empty(0, kind.value_type.to_pandas_dtype())
        values = np.concatenate([empty, *(getattr(row, name) for row in rows)])
        columns.append(pa.ListArray.from_arrays(offsets, pa.array(values, kind.value_type)))
    columns.append(pa.array([row.context_cut for row in rows], pa.bool_()))
    columns.append(pa.array(lengths))
    trained = [int(np.count_nonzero(row.loss_weights)) for row in rows]
    columns.append(pa.array(trained, pa.int32()))
    return pa.Table.from_arrays(columns, schema=ROWS)
