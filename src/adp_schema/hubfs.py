"""Files of the Hugging Face Hub, read by byte ranges: for DuckDB, Polars and pyarrow.

huggingface_hub's own file system does the work. Three things are set here. Places are pinned to a
commit, so a file never changes, and DuckDB, which asks when it changed, need not ask the Hub.
Nothing is read ahead: the readers of Parquet know what they need, and five megabytes more with
every read would be most of what is sent. And what fails in passing is tried again.
"""

from __future__ import annotations

import functools
from datetime import UTC, datetime
from typing import IO, Any, cast

from adp_schema.hub import explained, parse
from adp_schema.retries import retried


def file_system() -> Any:
    """The file system for ``hf://``; one for a process."""
    from huggingface_hub import constants

    return _made(constants.ENDPOINT)


@functools.cache
def _made(endpoint: str) -> Any:
    from huggingface_hub import HfFileSystem
    from huggingface_hub.hf_file_system import HfFileSystemFile

    class PinnedFile(HfFileSystemFile):
        def _fetch_range(self, start: int, end: int) -> bytes:
            with explained(parse(f"hf://{self.path}")):
                return super()._fetch_range(start, end)  # tries again by itself

    class PinnedFiles(HfFileSystem):
        def modified(self, path: str, **kwargs: Any) -> datetime:
            return datetime.fromtimestamp(0, UTC)

        def resolve_path(self, path: str, revision: str | None = None) -> Any:
            with explained(parse(f"hf://{self._strip_protocol(path)}")):
                return retried(lambda: super(PinnedFiles, self).resolve_path(path, revision))

        def _open(self, path: str, mode: str = "rb", **kwargs: Any) -> Any:  # type: ignore[override]
            if kwargs.get("block_size") == 0:
                return super()._open(path, mode, **kwargs)
            return PinnedFile(self, path, mode=mode, **{**kwargs, "cache_type": "none"})

    return PinnedFiles(endpoint=endpoint, skip_instance_cache=True)


def exists(address: str) -> bool:
    """Whether a file is there.

    Raises:
        HubError: the Hub refuses, or cannot be reached.
    """
    from huggingface_hub.errors import EntryNotFoundError

    with explained(parse(address)):
        try:
            retried(lambda: file_system().info(address))
        except (FileNotFoundError, EntryNotFoundError):
            return False
        return True


def read_text(address: str) -> str:
    """Read a small UTF-8 file.

    Raises:
        HubError: it is missing, or the Hub cannot be reached.
    """

    def read() -> bytes:
        with file_system().open(address, "rb", block_size=0) as file:
            return cast(bytes, file.read())

    with explained(parse(address)):
        return retried(read).decode("utf-8")


def open_file(address: str, *, whole: bool = False) -> IO[Any]:
    """Open a file for reading by ranges.

    Args:
        address: the file.
        whole: it is to be read from its beginning to its end.

    Raises:
        HubError: it is missing, or the Hub cannot be reached.
    """
    how = {"block_size": 0} if whole else {}
    with explained(parse(address)):
        return cast(IO[Any], retried(lambda: file_system().open(address, "rb", **how)))
