"""Frames of very many rows: they lie in a file, of which memory holds what is read of it.

The file is one of Arrow that is mapped into memory, so the system may drop what it brought in, and
a selection of columns reads no other ones. Small frames stay as they are.

Columns that stand in one frame must have batches of the same rows, or the next selection copies
all of them into memory to make them alike. So each column of a large frame comes from such a file.
"""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pyarrow as pa

MAPPED_ROWS = 1_000_000
"""Frames with fewer rows stay in memory."""

_BATCH_ROWS = 1 << 17
"""Rows of a batch of a file: frames of equal height have batches of equal rows."""


def mapped(frame: pl.DataFrame | pl.LazyFrame, path: Path) -> pl.DataFrame:
    """The same rows, in a file when they are many.

    Args:
        frame: the rows; a lazy frame always goes to the file, without being in memory as a whole.
        path: a file that is not there, or that nothing needs any more.
    """
    if isinstance(frame, pl.DataFrame):
        if frame.height < MAPPED_ROWS:
            return frame
        frame = frame.lazy()
    frame.sink_ipc(
        path,
        compression="uncompressed",
        compat_level=pl.CompatLevel.newest(),
        record_batch_size=_BATCH_ROWS,
        engine="streaming",
    )
    with pa.memory_map(str(path)) as source:
        table = pa.ipc.open_file(source).read_all()
    result = pl.from_arrow(table, rechunk=False)
    assert isinstance(result, pl.DataFrame)
    return result


def filtered(frame: pl.DataFrame, wanted: pl.Series, path: Path) -> pl.DataFrame:
    """The rows of a frame at which a series is true; see `mapped`."""
    if wanted.all():
        return frame
    if frame.height < MAPPED_ROWS:
        return frame.filter(wanted)
    name = "$wanted"
    flags = mapped(wanted.alias(name).to_frame(), path.with_suffix(".flags"))
    marked = pl.concat([frame, flags], how="horizontal").lazy()
    return mapped(marked.filter(name).drop(name), path)


def with_columns_by_seq(frame: pl.DataFrame, more: pl.DataFrame, path: Path) -> pl.DataFrame:
    """A frame with the columns of another one with a column ``seq``, null where it has no row.

    Args:
        frame: rows with ``seq``, each once; they are not copied.
        more: ``seq``, each once, and columns that the frame lacks.
        path: see `mapped`.
    """
    new = frame.select("seq").join(
        more, on="seq", how="left", maintain_order="left", validate="1:1"
    )
    return pl.concat([frame, mapped(new.drop("seq"), path)], how="horizontal")
