"""Files that have grown since an earlier store was made of them.

Of a file of lines only the new lines are read, when those that the store has are still there. A
file that is one record, such as a session, is read whole, for its results and branches belong
together: its new trajectories supersede the earlier ones, which ``adp merge --latest`` leaves out.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from adp.converters import framing
from adp.converters.file_pieces import line_pieces, line_ranges
from adp.converters.files.limits import ConvertLimits
from adp.converters.framing import ByteRange
from adp.converters.planned_file import PlannedFile
from adp.core.input_files import open_file
from adp_schema.ids import fingerprint

START, CONTINUES, SUPERSEDES = "start", "continues", "supersedes"
"""Keys of a source's ``style``: the byte where a part begins, the fingerprint of the part before
it, and the fingerprints of what the file was before."""


@dataclass(frozen=True)
class EarlierFile:
    """An input of an earlier store, or a part of one.

    Attributes:
        size: size of the file at that time.
        start: first byte of the part that was read.
        fingerprint: its fingerprint.
        ended: whether it ended with the end of a line.
        format: name of its format; None when it had none.
    """

    size: int
    start: int
    fingerprint: str
    ended: bool
    format: str | None = None


def earlier_file(row: dict[str, Any]) -> EarlierFile:
    """What a row of the table of sources says."""
    style = json.loads(row["style"] or "{}")
    ended = bool(style.get("final_newline", False))
    print_, form = row["fingerprint"] or "", row["source_format"]
    return EarlierFile(row["size"] or 0, style.get(START, 0), print_, ended, form)


def read_on(file: PlannedFile, earlier: Sequence[EarlierFile], limits: ConvertLimits) -> int:
    """How many bytes of a file of lines an earlier store has; 0 when it must be read whole.

    Args:
        file: the file as it is now.
        earlier: what the store has of it, in any order.
        limits: limits of the conversion.
    """
    if file.framing != "jsonl" or not file.place.plain:
        return 0
    end = 0
    for part in sorted(earlier, key=lambda part: part.start):
        if part.start != end or not part.ended or part.size > file.place.size:
            break
        if fingerprint(part.size, _hashes(file, part.start, part.size, limits)) != part.fingerprint:
            break
        end = part.size
    return end


def _hashes(file: PlannedFile, start: int, end: int, limits: ConvertLimits) -> list[str]:
    hashes = []
    for first, last in line_ranges(file.place.path, end, start):
        hasher = hashlib.blake2b(digest_size=16)
        for frame in framing.frames(_piece(file, first, last, 1), limits):
            hasher.update(bytes.fromhex(frame.source_hash()))
        hashes.append(hasher.hexdigest())
    return hashes


def _piece(file: PlannedFile, start: int, end: int, line: int) -> ByteRange:
    return ByteRange(file.place, file.source_file, "jsonl", start, end, line)


def cut_new_part(file: PlannedFile, start: int, earlier: Iterable[EarlierFile]) -> None:
    """Leave of a file of lines what stands behind a byte.

    Args:
        file: the file; its pieces and its style are changed.
        start: where the new part begins.
        earlier: what an earlier store has of it.
    """
    with open_file(file.place.path) as data:
        line, left = 1, start
        while left and (chunk := data.read(min(left, 1 << 22))):
            line += chunk.count(b"\n")
            left -= len(chunk)
    size = file.place.size
    file.pieces = line_pieces(_piece(file, start, size, line)) if start < size else []
    last = max(earlier, key=lambda part: part.start)
    file.style |= {START: start, CONTINUES: last.fingerprint}
