"""Which files a conversion reads, what each is called in the store, and its data set."""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

from adp.converters.files.members import Unpacking, archive_kind, tar_listing, zip_listing
from adp.converters.files.streams import InputPlace
from adp.converters.files.walk import (
    COMPRESSIONS,
    DATA_SUFFIXES,
    WalkedFiles,
    base_of,
    is_archive_name,
    is_data,
    is_hidden,
    is_pattern,
    is_store,
    matches,
    walk,
)
from adp.converters.known import looks_like, recognise_known
from adp.core.input_files import Located, Roots
from adp_schema.errors import InputError
from adp_schema.ids import digest_file, numbered
from adp_schema.location import hub_form, is_url

STDIN = "-"
BROUGHT = "remote"
"""The folder of a run that holds what came from afar; it is kept when the run ends early."""

_LOOKED = 20
_ENDINGS = 5


@dataclass(frozen=True)
class InputFile:
    """An input: a file, or a member of an archive.

    Attributes:
        place: where its bytes lie.
        source_file: its path relative to the root of the conversion, with forward slashes.
        named: True when the user named it; False when it was found in a folder or an archive.
        fault: why it cannot be read; empty when it can.
        path: the file as it was named or found.
    """

    place: InputPlace
    source_file: str
    named: bool
    fault: str = ""
    path: str = ""

    @property
    def label(self) -> str:
        """What messages call it."""
        if self.source_file == "stdin":
            return "standard input"
        return self.path if self.place.member is None else self.source_file

    @property
    def dataset(self) -> str:
        """The data set when none is given: the first folder of the path, else the file's stem."""
        first, *rest = self.source_file.split("/")
        if rest and not is_archive_name(first):
            return first
        return first.lstrip(".").split(".")[0] or first


@dataclass(frozen=True)
class Inputs:
    """What a conversion reads.

    Attributes:
        files: the inputs, in order.
        walked: whether a folder was given, so that files beside the found ones may be looked at.
        roots: where their links may lead.
    """

    files: list[InputFile] = field(default_factory=list)
    walked: bool = False
    roots: Roots = field(default_factory=lambda: Roots([]))


def collect(
    sources: list[str],
    spool: Path | None = None,
    *,
    follow_links: bool = False,
    unpacking: Unpacking | None = None,
) -> Inputs:
    """Find the inputs of a conversion, in the order given; folders are walked sorted.

    Paths are relative to the folder itself when a single folder is given, else to the folder
    that all sources share. Hidden files and folders below it are passed over, and so are stores.
    A link that leads out of the sources is not followed, and has a fault.

    Args:
        sources: files, folders, patterns, and ``-`` for standard input.
        spool: where standard input is put.
        follow_links: read what links lead to, wherever that is.
        unpacking: where compressed archives are unpacked.

    Raises:
        InputError: a source does not exist, or holds no data file.
    """
    unpacking = unpacking or Unpacking()
    if not sources:
        raise InputError("no input was given; name at least one file or folder")
    given: list[tuple[Path, bool]] = []
    piped = STDIN in sources
    roots = Roots(_named(sources, spool), follow_links)
    for source in sources:
        if source == STDIN:
            continue
        _check_local(source)
        if is_pattern(source):
            given += [(path, False) for path in _matched(source, roots)]
        else:
            given.append((_existing(Path(source)), True))
    root = _root([path for path, _ in given])
    results: dict[str, InputFile] = {}
    if piped:
        for item in _inputs_of(_spooled(spool), "stdin", roots, True, unpacking):
            _add(results, item)
    for path, named in given:
        # Paths below a folder above the home folder would tell where that one is.
        base = path.absolute().parent if len(given) > 1 and _is_above_home(root) else root
        for item in _of(path, base, roots, named, unpacking):
            _add(results, item)
    return Inputs(list(results.values()), any(path.is_dir() for path, _ in given), roots)


def _named(sources: list[str], spool: Path | None) -> Iterator[Path]:
    """What the user named: files, folders, and the folders that patterns begin with."""
    for source in sources:
        if source != STDIN:
            yield base_of(source) if is_pattern(source) else Path(source)
        elif spool is not None:
            yield spool


def collect_below(
    root: Path, given: list[tuple[Path, bool]], unpacking: Unpacking | None = None
) -> Inputs:
    """Find the inputs of a conversion below a folder of our own, whatever part of it is read.

    Links in it are followed.

    Args:
        root: the folder that all names are relative to.
        given: files and folders in it, and whether each was named rather than found.
        unpacking: where compressed archives are unpacked.

    Raises:
        InputError: a folder holds no data file.
    """
    roots = Roots([root], follow_links=True)
    results: dict[str, InputFile] = {}
    for path, named in given:
        for item in _of(path, root.absolute(), roots, named, unpacking or Unpacking()):
            _add(results, item)
    return Inputs(list(results.values()), any(path.is_dir() for path, _ in given), roots)


def _add(fields: dict[str, InputFile], item: InputFile) -> None:
    """Add an input once; another one that would have the same name gets a number."""
    name, count = item.source_file, 1
    while name in fields:
        other = fields[name]
        if (other.path, other.place.member) == (item.path, item.place.member):
            return
        count += 1
        name = numbered(item.source_file, count)
    fields[name] = replace(item, source_file=name)


def _is_above_home(folder: Path) -> bool:
    try:
        return folder in Path.home().absolute().parents
    except RuntimeError:  # there is no home folder
        return False


def _matched(pattern: str, roots: Roots) -> list[Path]:
    try:
        paths = matches(pattern, roots)
    except re.error as error:
        raise InputError(f"{pattern} is no pattern ({error}); check the brackets") from error
    if not paths:
        raise InputError(f"no file matches {pattern}; check the pattern")
    return paths


def _check_local(source: str) -> None:
    """Refuse a URL; a location on the Hub was brought here before."""
    if not is_url(source) or Path(source).exists():
        return
    if better := hub_form(source):
        raise InputError(f"{source} is a page for people; write {better}")
    raise InputError(f"{source} is read alone; convert it into a store, then use adp merge")


def _existing(path: Path) -> Path:
    if not path.exists():
        raise InputError(f"{path} does not exist; check the path")
    if path.is_dir():
        if is_store(path):
            raise InputError(f"{path} is a store already; read it with adp info or adp export")
    elif not path.is_file():
        raise InputError(f"{path} is no regular file; pipe it in, and name it - instead")
    return path


def _of(
    path: Path, root: Path, roots: Roots, named: bool, unpacking: Unpacking
) -> Iterator[InputFile]:
    """The inputs that a path stands for."""
    if not roots.locate(path).path or not path.is_dir():
        yield from _inputs_of(path, _name(path, root), roots, named, unpacking)
        return
    result = walk(path, roots=roots)
    if named:
        _check_any(path, result, roots)
    result.files = [file for file in result.files if is_data(file.name)]
    for file in sorted([*result.files, *result.faults]):
        name = _name(file, root)
        if fault := result.faults.get(file):
            if file.suffix and not is_data(file.name) and not roots.locate(file).is_folder:
                continue
            yield _faulty(file, name, fault)
        else:
            yield from _inputs_of(file, name, roots, False, unpacking)


def _faulty(path: Path, name: str, fault: str, named: bool = False) -> InputFile:
    """An input that is not opened."""
    return InputFile(InputPlace("", 0, 0), name, named, fault, str(path))


def _check_any(folder: Path, walked_files: WalkedFiles, roots: Roots) -> None:
    if folder in walked_files.faults:
        raise InputError(f"{folder}: {walked_files.faults[folder]}; check who may read it")
    if walked_files.faults or any(is_data(file.name) for file in walked_files.files):
        return
    kinds = ", ".join(sorted(DATA_SUFFIXES))
    packed = ", ".join(sorted(COMPRESSIONS))
    raise InputError(
        f"{folder} holds no data file ({kinds}; JSON also with {packed})"
        f"{_others(walked_files.files, roots)}; name the files themselves"
    )


def _others(files: list[Path], roots: Roots) -> str:
    """What the files are that are not looked at: what some look like, else how they end."""
    for file in files[:_LOOKED]:
        place = roots.locate(file).path
        known = recognise_known(Path(place), file.name) if place else None
        if known is not None and known.is_trace:
            return f": {file.name}: {looks_like(known)}"
    endings = Counter(file.suffix.lower() or "no ending" for file in files)
    common = sorted(endings.items(), key=lambda item: (-item[1], item[0]))[:_ENDINGS]
    return f", but {', '.join(f'{count} with {end}' for end, count in common)}" if common else ""


def _root(paths: list[Path]) -> Path:
    if len(paths) == 1 and paths[0].is_dir():
        return paths[0].absolute()
    return Path(os.path.commonpath([path.absolute().parent for path in paths]) if paths else ".")


def _name(path: Path, root: Path) -> str:
    """A path relative to the root; bytes of a name that are no text are written as escapes."""
    name = Path(os.path.relpath(path.absolute(), root)).as_posix()
    return os.fsencode(name).decode("utf-8", "backslashreplace")


def _inputs_of(
    path: Path, name: str, roots: Roots, named: bool, unpacking: Unpacking
) -> Iterator[InputFile]:
    """A file as one input, or as many when it is an archive."""
    place = place_of(roots.locate(path))
    if isinstance(place, str):
        if named:
            raise InputError(f"{path}: {place}; check the path")
        yield _faulty(path, name, place)
    elif kind := archive_kind(place.path, path.name, named):
        for item in _members(place, name, named, kind, unpacking):
            yield replace(item, path=str(path))
    else:
        yield InputFile(place, name, named, path=str(path))


def place_of(value: Located) -> InputPlace | str:
    """The place of a file, or why it is not read."""
    if value.status is None or value.fault:
        return value.fault
    if not value.is_file:
        return "it is a folder now"
    size = value.status.st_size
    return InputPlace(value.path, size, value.status.st_mtime_ns, packed=size)


def _members(
    place: InputPlace, name: str, named: bool, kind: str, unpacking: Unpacking
) -> Iterator[InputFile]:
    """The data files of an archive; their names are labels and lead nowhere."""
    listing = zip_listing(place) if kind == "zip" else tar_listing(place, kind, unpacking)
    repeats: Counter[str] = Counter()
    for member in sorted(listing.members, key=lambda item: item.name):
        label = member.name
        if not is_data(label) or is_hidden(label):
            continue
        repeats[label] += 1
        source_file = f"{name}/{numbered(label, repeats[label])}"
        yield InputFile(member.place, source_file, named=False, fault=member.fault)
    if listing.fault or not repeats:
        fault = listing.fault or "the archive holds no data file"
        yield InputFile(place, name, named and not repeats, fault)


def _spooled(spool: Path | None) -> Path:
    """Put standard input into a file, so that it can be read more than once.

    Of a run that was stopped the file is there already; the same bytes leave it as it is.
    """
    if spool is None:
        raise InputError("standard input cannot be read here; name a file")
    new = spool.with_name(f"{spool.name}.new")
    spool.parent.mkdir(parents=True, exist_ok=True)
    with new.open("wb") as file:
        shutil.copyfileobj(sys.stdin.buffer, file, 1 << 20)
    if not new.stat().st_size:
        new.unlink()
        raise InputError("standard input is empty; pipe the records in")
    if spool.exists() and digest_file(str(spool)) == digest_file(str(new)):
        new.unlink()
    else:
        new.replace(spool)
    return spool
