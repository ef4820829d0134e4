"""Where a store lies: a local folder, or any URL that fsspec can open (``hf://`` included)."""

from __future__ import annotations

from pathlib import Path
from typing import IO, Any, cast

import pyarrow.parquet as pq


def is_url(root: str) -> bool:
    """Whether a location is a URL rather than a local path."""
    return "://" in root


def is_hub(root: str) -> bool:
    """Whether a location is on the Hugging Face Hub."""
    return root.startswith("hf://")


def file_system(root: str) -> Any:
    """The file system of a URL."""
    if is_hub(root):
        from adp_schema import hubfs

        return hubfs.file_system()
    import fsspec

    return fsspec.core.url_to_fs(root)[0]


def join(root: str, path: str) -> str:
    """Address of a file in a store."""
    return f"{root.rstrip('/')}/{path}" if is_url(root) else str(Path(root) / path)


def exists(address: str) -> bool:
    """Whether a file is there."""
    if not is_url(address):
        return Path(address).exists()
    if is_hub(address):
        from adp_schema import hubfs

        return hubfs.exists(address)
    import fsspec

    filesystem, path = fsspec.core.url_to_fs(address)
    return bool(filesystem.exists(path))


def read_text(address: str) -> str:
    """Read a small UTF-8 file."""
    if not is_url(address):
        return Path(address).read_text(encoding="utf-8")
    if is_hub(address):
        from adp_schema import hubfs

        return hubfs.read_text(address)
    import fsspec

    with fsspec.open(address, "rb") as file:
        return cast(bytes, file.read()).decode("utf-8")


def open_stream(address: str) -> IO[Any]:
    """Open a file of a URL that is to be read from its beginning to its end."""
    if is_hub(address):
        from adp_schema import hubfs

        return hubfs.open_file(address, whole=True)
    import fsspec

    return cast(IO[Any], fsspec.open(address, "rb").open())


def open_parquet(address: str) -> pq.ParquetFile:
    """Open a Parquet file for reading."""
    if not is_url(address):
        return pq.ParquetFile(address)
    if is_hub(address):
        from adp_schema import hubfs

        # All that a read needs is asked for together: each call takes its time.
        return pq.ParquetFile(hubfs.open_file(address), pre_buffer=True)
    import fsspec

    file: IO[Any] = fsspec.open(address, "rb").open()
    return pq.ParquetFile(file)
