"""Where a store lies: a local folder, or any URL that fsspec can open (``hf://`` included)."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, cast

import pyarrow as pa
import pyarrow.parquet as pq

from adp_schema.errors import DamagedStoreError, StoreError, UsageError

_PAGE = re.compile(
    r"https?://(?:www\.)?(?:huggingface\.co|hf\.co)/datasets/(?P<repo>[^/?#]+/[^/?#]+)"
    r"(?:/(?:tree|blob|resolve)/(?P<rest>[^?#]+))?(?:[/?#].*)?"
)

INDEX_SUFFIX = ".index"
"""What the folder of the index of a store is called, after the name of the store."""

_URL = re.compile(r"[a-z][a-z0-9+.-]+:/{1,2}[^/]")


def is_url(root: str) -> bool:
    """Whether a location is a URL rather than a local path."""
    return "://" in root


def is_hub(root: str) -> bool:
    """Whether a location is on the Hugging Face Hub."""
    return root.startswith("hf://")


def hub_form(url: str) -> str | None:
    """The ``hf://`` location of the page of a data set on the Hub; None for any other address."""
    match = _PAGE.fullmatch(url)
    if match is None:
        return None
    revision, _, path = (match["rest"] or "").strip("/").partition("/")
    if revision == "refs" and path.count("/") >= 1:  # refs/convert/parquet, refs/pr/3
        kind, number, *below = path.split("/")
        revision, path = f"refs/{kind}/{number}", "/".join(below)
    at = f"@{revision}" if revision not in ("", "main") else ""
    return f"hf://datasets/{match['repo']}{at}{'/' if path else ''}{path}"


def check_local(out: str | os.PathLike[str]) -> None:
    """Refuse a URL where a file or folder of this machine is written.

    A path that was made of a URL is known by it, too: ``s3:/bucket/x``.

    Raises:
        UsageError: it is a URL.
    """
    text = os.fspath(out)
    if _URL.match(text) and not Path(text.partition("/")[0]).exists():
        url = re.sub(":/+", "://", text, count=1)
        raise UsageError(
            f"{url} is a URL, and this is written to a file or folder of this machine; "
            "choose a local -o, and copy it there"
        )


def check_readable(root: str) -> None:
    """Check that there is something here that reads the protocol of a location.

    Raises:
        StoreError: there is not; the message says what to install, or to write.
    """
    if not is_url(root) or is_hub(root):
        return
    if better := hub_form(root):
        raise StoreError(f"{root} is a page for people; write {better}")
    import fsspec
    from fsspec.registry import known_implementations

    protocol = root.partition("://")[0]
    try:
        fsspec.get_filesystem_class(protocol)
    except ValueError:
        raise StoreError(
            f"nothing here reads {protocol}:// addresses; write a local path, or "
            "hf://datasets/OWNER/NAME for a data set on the Hugging Face Hub"
        ) from None
    except ImportError as error:
        module = known_implementations.get(protocol, {}).get("class", "fsspec").split(".")[0]
        names = re.findall(r'"([\w.-]+)"', str(error))
        if module != "fsspec":
            names = [module.replace("_", "-")]
        advice = f"install {' and '.join(names)}" if names else f"do this: {error}"
        raise StoreError(f"to read {protocol}:// addresses, {advice}") from None


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


class ShardFile(pq.ParquetFile):  # type: ignore[misc]
    """A Parquet file of a store, whose faults are errors about the store.

    Whoever reads one store and writes another must be able to tell which of them failed.

    Args:
        address: path or URL of the file.
    """

    def __init__(self, address: str) -> None:
        self._address = address
        with reading(address):
            if not is_url(address):
                super().__init__(address)
            elif is_hub(address):
                from adp_schema import hubfs

                # All that a read needs is asked for together: each call takes its time.
                super().__init__(hubfs.open_file(address), pre_buffer=True)
            else:
                import fsspec

                super().__init__(fsspec.open(address, "rb").open())

    def read(self, *arguments: Any, **options: Any) -> pa.Table:
        """Read the file, as pyarrow does."""
        with reading(self._address):
            return super().read(*arguments, **options)

    def read_row_group(self, *arguments: Any, **options: Any) -> pa.Table:
        """Read a row group, as pyarrow does."""
        with reading(self._address):
            return super().read_row_group(*arguments, **options)

    def iter_batches(self, *arguments: Any, **options: Any) -> Iterator[pa.RecordBatch]:
        """Read the file piece by piece, as pyarrow does."""
        batches = super().iter_batches(*arguments, **options)
        while True:
            with reading(self._address):
                batch = next(batches, None)
            if batch is None:
                return
            yield batch


@contextmanager
def reading(address: str) -> Iterator[None]:
    """Turn what fails while a file of a store is read into an error that names the file.

    Raises:
        DamagedStoreError: the file is missing, cannot be read, or is damaged.
    """
    try:
        yield
    except FileNotFoundError:
        raise DamagedStoreError(
            f"{address} is missing; restore the store from a copy, or make it again"
        ) from None
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        first = (str(error).splitlines() or [type(error).__name__])[0]
        if isinstance(error, OSError) and error.errno:
            raise DamagedStoreError(f"cannot read {address}: {error.strerror or first}") from error
        raise DamagedStoreError(
            f"{address} is damaged ({first}); restore the store from a copy, or make it again"
        ) from error


def open_parquet(address: str) -> ShardFile:
    """Open a Parquet file of a store for reading.

    Raises:
        DamagedStoreError: it is missing, or none; so do the methods of the file.
    """
    return ShardFile(address)
