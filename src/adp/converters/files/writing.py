"""Opening a file for writing, compressed or not. The same records give the same bytes."""

from __future__ import annotations

import gzip
import io
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, cast

from adp.converters.files.walk import COMPRESSIONS

_BUFFER = 1 << 20


def without_compression(path: Path) -> Path:
    """A path without a last suffix such as ``.gz``."""
    return path.with_suffix("") if path.suffix.lower() in COMPRESSIONS else path


def compression_of(path: Path) -> str:
    """The compression that a name asks for: ``gz``, ``zst`` or nothing."""
    suffix = path.suffix.lower()
    return {".gz": "gz"}.get(suffix, "zst") if suffix in COMPRESSIONS else ""


@contextmanager
def written_whole(path: Path) -> Iterator[Path]:
    """A path to write a file to, which gets its name when it is whole; else it is removed.

    Args:
        path: the file that is to be.
    """
    staged = path.with_name(f"{path.name}.partial")
    try:
        yield staged
        staged.replace(path)
    finally:
        staged.unlink(missing_ok=True)


@contextmanager
def open_target(path: Path, compression: str) -> Iterator[BinaryIO]:
    """Open a file for writing.

    Args:
        path: the file.
        compression: ``gz``, ``zst`` or nothing.
    """
    with path.open("wb") as file:
        if compression == "gz":
            # Neither a name nor a time goes into the file.
            packed = gzip.GzipFile("", "wb", fileobj=file, mtime=0)
            with packed, io.BufferedWriter(cast(Any, packed), _BUFFER) as target:
                yield cast(BinaryIO, target)
        elif compression == "zst":
            import pyarrow as pa

            with pa.CompressedOutputStream(pa.PythonFile(file, "w"), "zstd") as stream:
                yield stream
        else:
            yield file
