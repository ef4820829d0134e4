"""Tables that users give: Parquet, CSV and JSON Lines files."""

from __future__ import annotations

import io
from pathlib import Path

import polars as pl

from adp.core.input_files import LARGEST_LIST, read_bytes

SUFFIXES = (".parquet", ".csv", ".jsonl", ".ndjson")
"""How the names of files end that can be read."""


def read_frame(path: Path) -> pl.DataFrame:
    """Read a table; its suffix, one of `SUFFIXES`, says what it is.

    Raises:
        OSError: it cannot be read.
        PolarsError: it is no such table.
        InputError: it is too large.
    """
    data = io.BytesIO(read_bytes(path, LARGEST_LIST))
    if path.suffix == ".parquet":
        return pl.read_parquet(data)
    return pl.read_csv(data) if path.suffix == ".csv" else pl.read_ndjson(data)
