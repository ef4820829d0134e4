"""Files behind URLs that fsspec opens, such as ``s3://``, as the input of a conversion.

What a URL names is listed once and pinned by size and version, and brought to a folder of the run.
So all that holds for a folder here holds for it too, and the store has the same bytes as that of a
copy made by hand. A run that is stopped brings only what is not there yet.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from adp.converters.files.walk import STORE_MARKS, is_data, is_hidden, is_magic, pattern_regex
from adp.converters.inputs import BROUGHT
from adp.converters.registry import sides_of
from adp.core.progress import Progress
from adp_schema import location
from adp_schema.errors import InputError, StoreError, UsageError
from adp_schema.manifest import write_atomic

_NOTE = "remote.json"
_THREADS = 8


@dataclass(frozen=True)
class RemoteSource:
    """What a conversion reads from afar.

    Attributes:
        url: the address, without a name and a password in it.
        root: the folder here that stands for the place.
        given: the paths here that are to be read, and whether each was named as a file.
    """

    url: str
    root: Path
    given: list[tuple[Path, bool]]


@dataclass(frozen=True)
class _Listing:
    """A folder of a file system, and what is read of it.

    Attributes:
        files: path below the folder -> size, and what tells its version.
        given: paths below the folder, and whether each was named.
    """

    folder: str
    files: Mapping[str, tuple[int, str]]
    given: list[tuple[str, bool]]


def bring_remote(sources: list[str], run: Path, report: Progress) -> RemoteSource | None:
    """Bring the files that a URL names: a file, a folder, or a pattern.

    Args:
        sources: what is to be converted.
        run: folder for files that only the run needs.
        report: told how far it is, in bytes.

    Returns:
        None when no source is a URL.

    Raises:
        UsageError: there is something beside the URL.
        InputError: there is nothing to convert, it cannot be read, or it changed since the run
            was stopped.
    """
    if not any(location.is_url(source) and not Path(source).exists() for source in sources):
        return None
    if len(sources) > 1:
        raise UsageError(
            "convert one URL at a time, and nothing beside it; adp merge puts the stores together"
        )
    url = re.sub(r"://[^/@]*@", "://", sources[0])
    try:
        location.check_readable(sources[0])
    except StoreError as error:
        raise InputError(str(error)) from None
    if url.startswith(("http://", "https://")):
        raise InputError(f"{url} is on a web server, which lists no files: bring it here first")
    with _readable(url):
        system, path = _system(sources[0])
        listing = _list(system, path, url)
    wanted = _pinned(run, url, _wanted(listing, url))
    total = sum(size for size, _ in wanted.values())
    report.note(f"{len(wanted):,} files, {total:,} bytes, from {url}")
    report.total(total)
    root = run / BROUGHT

    def fetch(name: str) -> int:
        _fetch(system, f"{listing.folder}/{name}", root / name, wanted[name][0])
        return wanted[name][0]

    with _readable(url), ThreadPoolExecutor(_THREADS) as threads:
        for size in threads.map(fetch, wanted):
            report.advance(size)
    return RemoteSource(url, root, [(root / path, named) for path, named in listing.given])


def _system(url: str) -> tuple[Any, str]:
    """The file system of a URL, which lists anew, and the path in it."""
    import fsspec

    system, path = fsspec.core.url_to_fs(url, use_listings_cache=False)
    return system, str(path).rstrip("/")


@contextmanager
def _readable(url: str) -> Iterator[None]:
    """Turn what a file system raises into one sentence; each has errors of its own."""
    try:
        yield
    except (InputError, UsageError):
        raise
    except FileNotFoundError:
        raise InputError(f"there is nothing at {url}; check the address") from None
    except Exception as error:
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise InputError(
            f"{url} cannot be read ({reason}); check the address, the network and your credentials"
        ) from error


def _list(system: Any, path: str, url: str) -> _Listing:
    """What a path of a file system names."""
    if is_magic(path) and not system.exists(path):
        parts = path.split("/")
        first = next(place for place, part in enumerate(parts) if is_magic(part))
        folder, pattern = "/".join(parts[:first]), tuple(parts[first:])
        files = _files(system, folder)
        regex = re.compile(pattern_regex(pattern))
        given = [(name, False) for name in sorted(files) if regex.fullmatch(name)]
        return _Listing(folder, files, [item for item in given if not is_hidden(item[0])])
    if system.isfile(path):
        folder, _, name = path.rpartition("/")
        return _Listing(folder, _files(system, folder, depth=1), [(name, True)])
    files = _files(system, path)
    if not files:
        raise InputError(f"there is nothing at {url}; check the address")
    return _Listing(path, files, [("", True)])


def _files(system: Any, folder: str, depth: int | None = None) -> dict[str, tuple[int, str]]:
    prefix = f"{folder}/" if folder else ""
    return {
        name.removeprefix(prefix): (int(facts["size"]), _version(facts))
        for name, facts in sorted(system.find(folder, maxdepth=depth, detail=True).items())
        if name.startswith(prefix) and name != folder
    }


def _version(facts: Mapping[str, Any]) -> str:
    """What changes with a file: its ETag, or the time of its last change."""
    keys = ("ETag", "etag", "md5Hash", "LastModified", "last_modified", "updated", "mtime")
    return next((str(facts[key]) for key in keys if facts.get(key)), "")


def _wanted(listing: _Listing, url: str) -> dict[str, tuple[int, str]]:
    """The files to bring: those that were named, data files of folders, and files beside them."""
    files = listing.files
    stores = {name.rpartition("/")[0] for name in files if name.rpartition("/")[2] in STORE_MARKS}
    if "" in stores and ("", True) in listing.given:
        raise InputError(f"{url} is a store already; adp info, query and curate read it there")
    chosen = {name for name, _ in listing.given if name in files}
    if ("", True) in listing.given:
        chosen |= {
            name
            for name in files
            if is_data(name) and not is_hidden(name)
            and not any(name.startswith(f"{store}/") for store in stores)
        }  # fmt: skip
    if not chosen:
        raise InputError(f"{url} names no data file; check the pattern, or name the files")
    if odd := [name for name in sorted(chosen) if not {"", ".", ".."}.isdisjoint(name.split("/"))]:
        raise InputError(f"{url} has '{odd[0]}', which is no name of a file in a folder; rename it")
    return {name: files[name] for name in sorted(chosen | sides_of(chosen, files))}


def _pinned(run: Path, url: str, wanted: dict[str, tuple[int, str]]) -> dict[str, tuple[int, str]]:
    """Note the files and their versions, or compare with those of the run that was stopped."""
    note = run / _NOTE
    text = json.dumps({"url": url, "files": wanted}, sort_keys=True)
    if note.exists() and note.read_text(encoding="utf-8") != text:
        raise InputError(
            f"the files at {url} changed since the run was stopped; remove the folder of the "
            "output and begin again"
        )
    run.mkdir(parents=True, exist_ok=True)
    write_atomic(note, text)
    return wanted


def _fetch(system: Any, address: str, target: Path, size: int) -> None:
    """Bring one file, unless it is here."""
    if target.exists():
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    staged = target.with_name(f".{target.name}.part")
    system.get_file(address, str(staged))
    if staged.stat().st_size != size:
        raise OSError(f"{address} changed while it was read")
    os.utime(staged, (0, 0))
    staged.replace(target)
