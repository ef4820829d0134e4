"""A data set on the Hugging Face Hub as the input of a conversion.

Its data files are brought to the cache of huggingface_hub, and a folder of links to them stands for
the repository. So all that holds for a folder here holds for it too, and the store has the same
bytes as that of a copy of the repository.
"""

from __future__ import annotations

import json
import re
import shutil
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from adp.converters.files.walk import (
    DATA_SUFFIXES,
    STORE_MARKS,
    is_data,
    is_hidden,
    is_magic,
    pattern_regex,
)
from adp.converters.hub_files import HubFile, HubPath, fetch_all, parse, resolve
from adp.converters.registry import sides_of
from adp.core.progress import Progress
from adp_schema import hub
from adp_schema.errors import InputError, UsageError
from adp_schema.manifest import write_atomic

_NOTE = "source.json"
"""Notes the commit, so that a run that was stopped goes on with it."""


@dataclass(frozen=True)
class HubSource:
    """What a conversion reads from the Hub.

    Attributes:
        place: the repository at a commit, with the path that was given.
        root: the folder here that stands for the repository.
        given: the paths here that are to be read, and whether each was named as a file.
    """

    place: HubPath
    root: Path
    given: list[tuple[Path, bool]]


def bring(sources: list[str], run: Path, report: Progress) -> HubSource:
    """Bring what a location on the Hub names.

    Args:
        sources: what is to be converted, a location on the Hub among it.
        run: folder for files that only the run needs.
        report: told how far it is, in bytes.

    Raises:
        UsageError: a location is not valid, or there is something beside it.
        InputError: there is nothing to convert.
        HubError: the Hub refuses, or cannot be reached. What came stays in the cache.
    """
    if len(sources) > 1:
        raise UsageError(
            "convert one data set of the Hub at a time, and nothing beside it; adp merge puts the "
            "stores together"
        )
    place = _pinned(parse(sources[0]), run)
    listed = hub.files(place)
    given, wanted = _select(place, listed)
    size = sum(listed[path].size for path in wanted)
    count = "1 file" if len(wanted) == 1 else f"{len(wanted):,} files"
    report.note(f"{count}, {size:,} bytes, from {place.url()}")
    report.total(size)
    root = run / "hub"
    if root.exists():
        shutil.rmtree(root)

    def take(path: str, file: Path) -> None:
        link = root / path
        link.parent.mkdir(parents=True, exist_ok=True)
        try:
            link.symlink_to(file.resolve())
        except OSError:  # a system without links
            shutil.copyfile(file, link)
        report.advance(listed[path].size)

    with hub.quiet(report.note):
        fetch_all(place, wanted, take, None)
    return HubSource(place, root, [(root / path, named) for path, named in given])


def _pinned(place: HubPath, run: Path) -> HubPath:
    """The place at a commit: that of a run that was stopped, else the present one."""
    note = run / _NOTE
    if note.exists():
        noted = json.loads(note.read_text(encoding="utf-8"))
        if noted["url"] == place.url():
            return HubPath(place.repo_id, noted["commit"], place.path)
    pinned = resolve(place)
    run.mkdir(parents=True, exist_ok=True)
    write_atomic(note, json.dumps({"url": place.url(), "commit": pinned.revision}))
    return pinned


def _select(place: HubPath, listed: dict[str, HubFile]) -> tuple[list[tuple[str, bool]], list[str]]:
    """What a place names: paths to read with whether each is a named file; and files to bring."""
    stores = {path.rpartition("/")[0] for path in listed if path.rpartition("/")[2] in STORE_MARKS}
    repo = HubPath(place.repo_id).url()
    if place.path in stores or (not place.path and stores & {"", "store"}):
        raise InputError(
            f"{place.url()} is a published store; bring it here with: adp pull {repo} -o STORE"
        )
    given = _given(place, listed)
    if not given:
        raise InputError(f"{place.repo_id} has nothing at {place.path}; check the path")
    wanted: set[str] = set()
    for path, _ in given:
        if path in listed:
            wanted.add(path)
            continue
        prefix = f"{path}/" if path else ""
        wanted.update(
            item
            for item in listed
            if item.startswith(prefix) and is_data(item) and not is_hidden(item[len(prefix) :])
            and not any(item.startswith(f"{store}/") for store in stores)
        )  # fmt: skip
    if not wanted:
        kinds = ", ".join(sorted(DATA_SUFFIXES))
        raise InputError(f"{place.url()} holds no data file ({kinds}); name the files themselves")
    return given, sorted(wanted | sides_of(wanted, listed))


def _given(place: HubPath, listed: dict[str, HubFile]) -> list[tuple[str, bool]]:
    """The files and folders that a path or a pattern names, sorted."""
    path = place.path
    if path in listed:
        return [(path, True)]
    folders = {str(parent) for file in listed for parent in PurePosixPath(file).parents} - {"."}
    if not path or path in folders:
        return [(path, True)]
    if not is_magic(path):
        return []
    regex = re.compile(pattern_regex(tuple(path.split("/"))))
    return [
        (item, False)
        for item in sorted({*listed, *folders})
        if regex.fullmatch(item) and not is_hidden(item)
    ]
