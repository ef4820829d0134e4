"""Before a conversion: which format each file has, and how the input is cut into shards.

Shards follow from the input alone, never from the number of workers, so any number of workers
writes the same store.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from itertools import islice
from typing import Any

import msgspec

from adp.converters import framing, style
from adp.converters.framing import SHARD_BYTES, Frame, Piece
from adp.converters.inputs import InputFile
from adp.converters.registry import formats
from adp_schema import jsontext
from adp_schema.errors import AmbiguousFormatError, InputError
from adp_schema.protocols import Converter, Match

_SNIFFED_RECORDS = 20


@dataclass
class PlannedFile:
    """An input file with its format.

    Attributes:
        source_file: path relative to the root of the conversion.
        dataset: data set that its trajectories go to.
        format: name of the format; None for a file that none recognises.
        why: one sentence on how the format was chosen, or why none was.
        framing: how it is cut into records.
        size: size in bytes.
        style: its layout.
        pieces: its pieces, in order.
    """

    source_file: str
    dataset: str
    format: str | None
    why: str
    framing: str
    size: int
    style: dict[str, Any]
    pieces: list[Piece] = field(default_factory=list)


@dataclass
class Plan:
    """All files, and the shards as lists of (index of the file, piece)."""

    files: list[PlannedFile]
    shards: list[list[tuple[int, Piece]]]

    def key(self, options: dict[str, Any]) -> dict[str, Any]:
        """What a resumed run must have in common with the one that was stopped."""
        return {"files": [asdict(file) for file in self.files], "options": options}


def make_plan(inputs: list[InputFile], wanted: str | None, dataset: str | None) -> Plan:
    """Choose formats and cut shards.

    Args:
        inputs: the files.
        wanted: format that the user named, or None to recognise it.
        dataset: name for the data set, or None to take it from the path.

    Raises:
        UsageError: the wanted format is unknown.
        AmbiguousFormatError: two formats claim a file.
        InputError: a file that the user named is of no known format.
    """
    converters = [formats.get(wanted)] if wanted else formats.all()
    files: list[PlannedFile] = []
    position = 0
    for item in inputs:
        planned = _plan_file(item, converters, wanted, dataset, position)
        files.append(planned)
        rows = max((piece.end for piece in planned.pieces), default=0)
        position += max(planned.size, rows) + 1
    if not any(file.format for file in files):
        raise InputError(f"no input has a known format: {files[0].source_file}: {files[0].why}")
    return Plan(files, _cut(files))


def _plan_file(
    item: InputFile,
    converters: list[Converter],
    wanted: str | None,
    dataset: str | None,
    position: int,
) -> PlannedFile:
    size = item.path.stat().st_size
    kind = framing.detect_framing(item.path)
    chosen, why, layout = None, "", {"layout": "spaced"}
    if size == 0:
        why = "the file is empty"
    elif kind is None:
        why = "it is not JSON, JSON Lines or Parquet"
    else:
        pieces = framing.pieces_of(item.path, item.source_file, kind, position)
        head = _head(pieces)
        chosen, why = (wanted, "named by --from") if wanted else _recognise(item, head, converters)
        layout = _layout(item, kind, head)
    if chosen is None:
        if item.named:
            raise InputError(f"{item.path}: {why}; name the format with --from (see: adp formats)")
        pieces = [Piece(str(item.path), item.source_file, "json", 0, size, 1, position)]
    return PlannedFile(
        source_file=item.source_file,
        dataset=dataset or item.dataset,
        format=chosen,
        why=why,
        framing=kind or "json",
        size=size,
        style=layout,
        pieces=pieces,
    )


def _head(pieces: list[Piece]) -> list[Frame]:
    """The first records of a file."""
    return list(islice(framing.frames(pieces[0]), _SNIFFED_RECORDS)) if pieces else []


def _layout(item: InputFile, kind: str, head: list[Frame]) -> dict[str, Any]:
    if kind == "parquet":
        from adp.converters.parquet_rows import schema_text

        return {"layout": "compact", "schema": schema_text(item.path)}
    layout: dict[str, Any] = {"layout": "spaced"}
    if head:
        layout = style.detect(head[0].data, kind)
    with item.path.open("rb") as file:
        layout["bom"] = file.read(3) == b"\xef\xbb\xbf"
        file.seek(-1, 2)
        layout["final_newline"] = file.read(1) == b"\n"
    return layout


def _recognise(
    item: InputFile, head: Iterable[Frame], converters: list[Converter]
) -> tuple[str | None, str]:
    """The format that claims a file most strongly, and why."""
    best: dict[str, Match] = {}
    keys: list[str] = []
    for frame in head:
        record = _first_level(frame.data)
        if record is None:
            continue
        keys = keys or list(record)
        for converter in converters:
            match = converter.sniff(record)
            best[converter.name] = max(best.get(converter.name, Match.NO), match)
    top = max(best.values(), default=Match.NO)
    if top == Match.NO:
        found = f"the first record has the keys {', '.join(keys[:8])}" if keys else "no JSON object"
        return None, f"no format recognises it ({found})"
    names = sorted(name for name, match in best.items() if match == top)
    if len(names) > 1:
        raise AmbiguousFormatError(
            f"{item.path}: {' and '.join(names)} claim it equally; choose one with --from"
        )
    others = [name for name, match in best.items() if Match.NO < match < top]
    also = f", before {' and '.join(sorted(others))}" if others else ""
    return names[0], f"recognised by its {'stamp' if top == Match.STAMP else 'shape'}{also}"


def _first_level(data: bytes) -> dict[str, msgspec.Raw] | None:
    try:
        return jsontext.decode_object(data)
    except (msgspec.DecodeError, RecursionError):
        pass
    try:
        return jsontext.decode_object(jsontext.sanitise(data))
    except (msgspec.DecodeError, RecursionError, ValueError):
        return None


def _cut(files: list[PlannedFile]) -> list[list[tuple[int, Piece]]]:
    """Shards: runs of whole small files, or single pieces of large ones."""
    shards: list[list[tuple[int, Piece]]] = []
    size = 0
    for index, file in enumerate(files):
        for piece in file.pieces:
            length = file.size // len(file.pieces)
            if not shards or size + length > SHARD_BYTES:
                shards.append([])
                size = 0
            shards[-1].append((index, piece))
            size += length
    return shards
