"""Leaving out the inputs that an earlier store holds already, by their fingerprints."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path

from adp.converters import framing
from adp.converters.files.limits import KEPT_BYTES, ConvertLimits
from adp.converters.files.streams import beginning
from adp.converters.fingerprint_cache import CachedFile, FingerprintCache
from adp.converters.grown_files import (
    SUPERSEDES,
    EarlierFile,
    cut_new_part,
    earlier_file,
    read_on,
)
from adp.converters.inputs import Inputs
from adp.converters.planned_file import PlannedFile
from adp.converters.shard_result import by_range
from adp_schema.errors import StoreError
from adp_schema.ids import digest, fingerprint
from adp_schema.location import exists, join, read_text
from adp_schema.manifest import MANIFEST
from adp_schema.store import Store


@dataclass(frozen=True)
class EarlierInputs:
    """What an earlier store holds.

    Attributes:
        manifest_hash: hash of its manifest.
        sizes: sizes of its inputs, with their formats.
        prints: fingerprints of its inputs, with their formats.
        files: name of an input -> its parts.
    """

    manifest_hash: str
    sizes: frozenset[tuple[int, str | None]]
    prints: frozenset[tuple[str, str | None]]
    files: Mapping[str, list[EarlierFile]]


def earlier(store: str) -> EarlierInputs:
    """Read what a store holds.

    Args:
        store: its folder or URL.

    Raises:
        StoreError: it is no store, or one that still grows.
    """
    opened = Store.open(store)
    address = join(opened.root, MANIFEST)
    names = ("source_file", "size", "fingerprint", "source_format", "style")
    rows = opened.scan("sources").select(*names)
    if not exists(address):
        raise StoreError(f"{store} still grows; end it with adp seal before --since")
    sources = rows.collect().to_dicts()
    files: dict[str, list[EarlierFile]] = defaultdict(list)
    for row in sources:
        files[row["source_file"]].append(earlier_file(row))
    return EarlierInputs(
        digest(read_text(address).encode("utf-8")),
        frozenset((row["size"], row["source_format"]) for row in sources),
        frozenset((row["fingerprint"], row["source_format"]) for row in sources),
        files,
    )


def untouched(
    inputs: Inputs, known: EarlierInputs, cache: FingerprintCache, wanted: str | None
) -> frozenset[str]:
    """The inputs that were not touched since they were read into the earlier store.

    They need not even be planned, as long as no file that belongs to them is new.

    Args:
        inputs: all inputs.
        known: what the earlier store holds.
        cache: what is known of files.
        wanted: format that the user named.
    """
    cached = cache.known(item.place for item in inputs.files)
    return frozenset(
        item.source_file
        for item in inputs.files
        if not item.fault
        and (entry := cached.get(item.place.path)) is not None
        and item.place.member is None
        and entry.format is not None
        and wanted in (None, entry.format)
        and not Path(f"{item.place.path}-wal").exists()  # a database that is in use
        and (entry.fingerprint, entry.format) in known.prints
    )


def near_changes(inputs: Inputs, left_out: frozenset[str]) -> Inputs:
    """The inputs that are to be planned: new ones, and those that may belong together with them.

    Files may belong together when one lies in the folder of the other, or below it.
    """
    changed = {
        _folder(item.source_file) for item in inputs.files if item.source_file not in left_out
    }
    above = {folder for name in changed for folder in _above(name)}
    files = [
        item
        for item in inputs.files
        if item.source_file not in left_out
        or _folder(item.source_file) in above
        or not changed.isdisjoint(_above(_folder(item.source_file)))
    ]
    return replace(inputs, files=files)


def _folder(name: str) -> str:
    return name.rpartition("/")[0]


def _above(folder: str) -> list[str]:
    """A folder and those that it is in, up to the root of the conversion."""
    folders = [folder]
    while folder:
        folder = _folder(folder)
        folders.append(folder)
    return folders


def only_new(
    files: list[PlannedFile],
    known: EarlierInputs,
    limits: ConvertLimits,
    cache: FingerprintCache | None = None,
) -> list[PlannedFile]:
    """The inputs that an earlier store does not hold, in the same order.

    An input that this version reads by another format than the earlier one is new. A file and
    those that belong to it are new together. Of a file that has grown, see `grown_files`. A log
    that was rotated is new, too, when its earlier name has other contents now: what the earlier
    store has under that name is superseded.
    """
    cached = cache.known(file.place for file in files) if cache else {}
    prints = {file.source_file: _known_print(file, known, limits, cached) for file in files}
    new = _new_names(files, prints, known)
    if cache:
        cache.note(
            (file.place, file.format_name, print_)
            for file in files
            if (print_ := prints[file.source_file]) is not None
        )
    kept: set[str] = set()
    attached: set[str] = set()
    for file in files:
        group = [file.source_file, *_side_names(file)]
        attached.update(group[1:])
        if file.framing not in framing.SIDE_FRAMINGS and any(new.get(name, True) for name in group):
            kept.update(group)
            _note_growth(file, known, limits, alone=not group[1:])
    kept.update(
        file.source_file
        for file in files
        if file.framing in framing.SIDE_FRAMINGS
        and file.source_file not in attached
        and new[file.source_file]
    )
    return [file for file in files if file.source_file in kept and file.pieces]


def _new_names(
    files: list[PlannedFile], prints: Mapping[str, str | None], known: EarlierInputs
) -> dict[str, bool]:
    """Which files are new: unknown ones, and those that had a name that a new one has now."""
    names: dict[tuple[str, str | None], set[str]] = defaultdict(set)
    for name, parts in known.files.items():
        for part in parts:
            names[part.fingerprint, part.format].add(name)
    new = {file.source_file: prints[file.source_file] is None for file in files}
    while True:
        superseding = {f.source_file for f in files if new[f.source_file] and f.format}
        moved = [
            file.source_file
            for file in files
            if not new[file.source_file]
            and file.source_file
            not in (had := names[prints[file.source_file] or "", file.format_name])
            and not superseding.isdisjoint(had)
        ]
        if not moved:
            return new
        new |= dict.fromkeys(moved, True)


def _note_growth(
    file: PlannedFile, known: EarlierInputs, limits: ConvertLimits, *, alone: bool
) -> None:
    """Read on in a file that has grown, or say what it supersedes."""
    parts = known.files.get(file.source_file)
    if not parts or file.format is None:
        return
    alone = alone and all(part.format == file.format_name for part in parts)
    start = read_on(file, parts, limits) if alone else 0
    if start:
        cut_new_part(file, start, parts)
    else:
        file.style[SUPERSEDES] = sorted(part.fingerprint for part in parts)


def _side_names(file: PlannedFile) -> list[str]:
    return [side.source_file for piece in file.pieces for side in piece.sides]


def _known_print(
    file: PlannedFile,
    known: EarlierInputs,
    limits: ConvertLimits,
    cached: Mapping[str, CachedFile],
) -> str | None:
    """The fingerprint of a file that the earlier store holds; None when it does not."""
    if (file.size, file.format_name) not in known.sizes:
        return None
    entry = cached.get(file.place.path) if file.place.member is None else None
    if entry is not None and entry.format == file.format_name:
        print_ = entry.fingerprint
    else:
        print_ = fingerprint_of(file, limits)
    return print_ if (print_, file.format_name) in known.prints else None


def fingerprint_of(file: PlannedFile, limits: ConvertLimits) -> str:
    """The fingerprint that a conversion would note for a file, without converting it."""
    if file.format is None:
        return fingerprint(file.size, [digest(beginning(file.place, limits, KEPT_BYTES))])
    hashes = []
    for pieces in by_range(file.pieces):
        hasher = hashlib.blake2b(digest_size=16)
        for frame in chain.from_iterable(framing.frames(piece, limits) for piece in pieces):
            hasher.update(bytes.fromhex(frame.source_hash()))
        hashes.append(hasher.hexdigest())
    return fingerprint(file.size, hashes)
