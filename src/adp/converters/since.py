"""Leaving out the inputs that an earlier store holds already, by their fingerprints."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from adp.converters import framing
from adp.converters.files.limits import KEPT_BYTES, ConvertLimits
from adp.converters.files.streams import beginning
from adp.converters.planned_file import PlannedFile
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
    """

    manifest_hash: str
    sizes: frozenset[tuple[int, str | None]]
    prints: frozenset[tuple[str, str | None]]


def earlier(store: str) -> EarlierInputs:
    """Read what a store holds.

    Args:
        store: its folder or URL.

    Raises:
        StoreError: it is no store, or one that still grows.
    """
    opened = Store.open(store)
    address = join(opened.root, MANIFEST)
    rows = opened.scan("sources").select("size", "fingerprint", "source_format")
    if not exists(address):
        raise StoreError(f"{store} still grows; end it with adp seal before --since")
    sources = rows.collect().to_dicts()
    return EarlierInputs(
        digest(read_text(address).encode("utf-8")),
        frozenset((row["size"], row["source_format"]) for row in sources),
        frozenset((row["fingerprint"], row["source_format"]) for row in sources),
    )


def only_new(
    files: list[PlannedFile], known: EarlierInputs, limits: ConvertLimits
) -> list[PlannedFile]:
    """The inputs that an earlier store does not hold, in the same order.

    An input that this version reads by another format than the earlier one is new. A file and
    those that belong to it are new together.
    """
    new = {file.source_file: _is_new(file, known, limits) for file in files}
    kept: set[str] = set()
    attached: set[str] = set()
    for file in files:
        group = [file.source_file, *_side_names(file)]
        attached.update(group[1:])
        if file.framing not in framing.SIDE_FRAMINGS and any(new.get(name, True) for name in group):
            kept.update(group)
    kept.update(
        file.source_file
        for file in files
        if file.framing in framing.SIDE_FRAMINGS
        and file.source_file not in attached
        and new[file.source_file]
    )
    return [file for file in files if file.source_file in kept]


def _side_names(file: PlannedFile) -> list[str]:
    return [side.source_file for piece in file.pieces for side in piece.sides]


def _is_new(file: PlannedFile, known: EarlierInputs, limits: ConvertLimits) -> bool:
    if (file.size, file.format) not in known.sizes:
        return True
    return (fingerprint_of(file, limits), file.format) not in known.prints


def fingerprint_of(file: PlannedFile, limits: ConvertLimits) -> str:
    """The fingerprint that a conversion would note for a file, without converting it."""
    if file.format is None:
        return fingerprint(file.size, [digest(beginning(file.place, limits, KEPT_BYTES))])
    hashes = []
    for piece in file.pieces:
        hasher = hashlib.blake2b(digest_size=16)
        for frame in framing.frames(piece, limits):
            hasher.update(bytes.fromhex(frame.source_hash()))
        hashes.append(hasher.hexdigest())
    return fingerprint(file.size, hashes)
