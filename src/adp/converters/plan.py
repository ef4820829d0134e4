"""Before a conversion: which format each file has, and how the input is cut into shards.

Shards follow from the input alone, never from the number of workers, so any number of workers
writes the same store.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa

from adp.converters import framing
from adp.converters.database_plan import plan_database
from adp.converters.datasets.catalogue import data_set_name, misfits, notes_on, recognise, texts_of
from adp.converters.file_pieces import pieces_of, shards_of
from adp.converters.files.detect import detect, layout
from adp.converters.files.limits import ConvertLimits
from adp.converters.files.streams import InputStream
from adp.converters.frames import Frame
from adp.converters.framing import ByteRange
from adp.converters.inputs import InputFile, Inputs
from adp.converters.known import KnownFormat, kinds_of, looks_like, outranks, recognise_known
from adp.converters.known.head import HEAD_BYTES, text_head
from adp.converters.planned_file import PlannedFile
from adp.converters.registry import FormatChoice, formats
from adp.converters.text_calls.of_file import check_dialect, dialect_of_file
from adp.converters.text_plan import TEXT, text_format
from adp.converters.unread_files import NO_FORMAT, advice, by_kind, no_object
from adp_schema import jsontext
from adp_schema.errors import AmbiguousFormatError, InputError, RecordError
from adp_schema.protocols import LIST_LINE, Match

_SNIFFED_RECORDS = 20
_SNIFFED_BYTES = 64 << 20
_LINES = ("jsonl", "json", "json_array")
_ROWS = ("parquet", "documents", "protobuf", "list")


@dataclass
class ConvertPlan:
    """What a conversion reads.

    Attributes:
        files: the inputs.
        shards: lists of (index of the file, piece).
        parent: hash of the manifest of the earlier store whose inputs are left out.
        unchanged: how many are left out.
        source: the location on the Hub that they come from, at a commit; empty for files here.
    """

    files: list[PlannedFile]
    shards: list[list[tuple[int, ByteRange]]]
    parent: str = ""
    unchanged: int = 0
    source: str = ""

    def key(self, options: dict[str, Any]) -> dict[str, Any]:
        """What a resumed run must have in common with the one that was stopped."""
        files = [asdict(file) for file in self.files]
        key = {"files": files, "options": options, "parent": self.parent}
        return {**key, "source": self.source} if self.source else key


@dataclass(frozen=True)
class _Choice:
    """What formats are chosen by: the candidates, and the name that the user gave, if any."""

    converters: FormatChoice
    wanted: str | None
    dataset: str | None
    limits: ConvertLimits
    dialect: str | None
    recipes: tuple[str, ...] = ()


def choose(
    inputs: Inputs,
    wanted: str | None,
    dataset: str | None,
    limits: ConvertLimits,
    *,
    dialect: str | None = None,
    recipes: Sequence[str] = (),
) -> list[PlannedFile]:
    """Choose the format of each input, and the dialect of the actions in its texts.

    Args:
        inputs: the files.
        wanted: format that the user named, or None to recognise it.
        dataset: name for the data set, or None to take it from the path.
        limits: limits of the conversion.
        dialect: dialect that the user named, ``none``, or None to recognise it.
        recipes: names of recipes that describe data sets, beside those of the package.

    Raises:
        UsageError: the wanted format or dialect is unknown.
        AmbiguousFormatError: two formats claim a file.
        InputError: a file that the user named cannot be read, or is of no known format.
    """
    from adp.converters.side_files import attach

    check_dialect(dialect)
    choice = _Choice(FormatChoice(wanted), wanted, dataset, limits, dialect, tuple(recipes))
    planned: list[PlannedFile | InputError] = []
    for item in inputs.files:
        try:
            planned.append(_plan_file(item, choice))
        except InputError as error:
            # It may turn out to belong to another file, which says what it is.
            planned.append(error)
    files = attach(inputs, planned, limits)
    if not any(file.format for file in files):
        text = f"{files[0].source_file}: {files[0].why}" if len(files) == 1 else ""
        raise InputError(f"no input has a known format: {text or '; '.join(by_kind(files))}")
    return files


def make_plan(files: list[PlannedFile], source: str = "") -> ConvertPlan:
    """Give each file its position in the whole input, and cut shards.

    Args:
        files: the inputs.
        source: the location on the Hub that they come from.
    """
    position = 0
    for file in files:
        file.pieces = [replace(piece, seq=position) for piece in file.pieces]
        position += max([file.place.size, *(piece.end for piece in file.pieces)]) + 1
    return ConvertPlan(files, shards_of(files), source=source)


def _plan_file(item: InputFile, choice: _Choice) -> PlannedFile:
    place, kind, why = item.place, None, item.fault
    chosen: str | None = None
    style: dict[str, Any] = {"layout": "spaced"}
    pieces: list[ByteRange] = []
    head: list[Frame] = []
    try:
        if not why:
            place, kind, why = detect(item.place, item.source_file, choice.limits)
        is_open = not item.fault and kind not in ("sqlite", "parquet")
        if is_open and (text := text_format(
            place, item.source_file, kind, choice.converters, choice.limits
        )):  # fmt: skip
            chosen, kind, style = text, TEXT, {}
            why = "named by --from" if choice.wanted else "recognised by its text"
            pieces = pieces_of(place, item.source_file, kind, choice.limits)
        elif kind == "sqlite":
            plan = plan_database(
                place, item.source_file, choice.converters, choice.wanted, choice.limits
            )
            chosen, why, pieces = plan.format, plan.why, plan.pieces
        elif kind is not None:
            way = _way_of_reading(replace(item, place=place), kind, choice)
            chosen, why, kind, pieces = way.format, way.why, way.framing, way.pieces
            head = way.head
            style = layout(place, kind.removesuffix(framing.GATHERED), way.first, choice.limits)
        elif item.place.size and not item.fault and (known := _known(item)):
            why = looks_like(known)
    except AmbiguousFormatError as error:
        if item.named:
            raise
        why = str(error).removeprefix(f"{item.label}: ")
    except (OSError, pa.ArrowException) as error:
        chosen = None
        reason = (getattr(error, "strerror", None) or str(error)).splitlines()
        why = f"it cannot be read: {reason[0] if reason else type(error).__name__}"
    if chosen is None:
        if item.named:
            raise InputError(f"{item.label}: {why}")
        pieces = [ByteRange(place, item.source_file, "json", 0, place.packed)]
    grammar, is_found = dialect_of_file(chosen, head, choice.dialect)
    return PlannedFile(
        source_file=item.source_file,
        place=place,
        dataset=choice.dataset or data_set_name(chosen) or item.dataset,
        format=chosen,
        why=why,
        framing=kind or "json",
        style=style,
        pieces=pieces,
        dialect=grammar,
        dialect_is_found=is_found,
        notes=notes_on(chosen, head, item.source_file),
    )


@dataclass
class _Way:
    """How a file is read.

    Attributes:
        framing: how it is cut into records.
        pieces: its pieces.
        head: its first records.
        format: its format; None when none recognises it.
        why: why this one, or none.
    """

    framing: str
    pieces: list[ByteRange]
    head: list[Frame]
    format: str | None
    why: str

    @property
    def first(self) -> bytes | None:
        """The first record; None when it is none."""
        return self.head[0].data if self.head and not self.head[0].error else None


def _way_of_reading(item: InputFile, kind: str, choice: _Choice) -> _Way:
    """How a file is read that is cut into records of this kind."""
    pieces = pieces_of(item.place, item.source_file, kind, choice.limits)
    head = _head(pieces, choice.limits)
    way = _Way(kind, pieces, head, *_recognise(item, head, choice))
    if kind == "json":
        way = _in_list(item, way, choice)
    if kind == "jsonl" and way.format is None and len(head) == 1 and head[0].data[:1] == b"[":
        return _way_of_reading(item, "json_array", choice)  # it is called JSON Lines, and is none
    if _is_session(way.format, way.framing):
        # Its lines were looked at one by one; all of them are one record.
        way.framing = _session_framing(way.framing, way.head)
        way.pieces = pieces_of(item.place, item.source_file, way.framing, choice.limits)
    return way


def _in_list(item: InputFile, way: _Way, choice: _Choice) -> _Way:
    """How a document is read that is no record, but holds a list of them; others as they are."""
    if way.format is not None and (not choice.wanted or _is_claimed(way.format, way.head)):
        return way
    pieces = [replace(piece, framing="list") for piece in way.pieces]
    records = [frame for frame in _head(pieces, choice.limits) if not frame.skip]
    if not records or records[0].error:
        return way
    name, why = _recognise(item, records, choice)
    if name is None or (choice.wanted and not _is_claimed(name, records)):
        return way
    return _Way("list", pieces, records, name, why)


def _is_claimed(name: str, head: list[Frame]) -> bool:
    """Whether a format recognises a record."""
    records = [first_level(frame.data) for frame in head if not frame.error]
    converter = formats.get(name)
    return any(converter.sniff(it) > Match.NO for it in records if it is not None)


def _is_session(chosen: str | None, kind: str) -> bool:
    """Whether a file of lines, of one list, or of rows is one record of its format."""
    if chosen is None or formats.get(chosen).container != "session":
        return False
    gathered = getattr(formats.get(chosen), "gathers_rows", False)
    return kind in _LINES or kind == "list" or (kind in _ROWS and gathered)


def _session_framing(kind: str, head: list[Frame]) -> str:
    """How a session is read: its lines or rows, or a document of more than one line."""
    if kind in _ROWS:
        return f"{kind}{framing.GATHERED}"
    if kind == "jsonl":
        return "session"
    return "json" if kind == "json_array" or b"\n" in head[0].data else "session"


def _head(pieces: list[ByteRange], limits: ConvertLimits) -> list[Frame]:
    """The first records of a file."""
    head: list[Frame] = []
    size = 0
    for frame in framing.frames(pieces[0], limits) if pieces else ():
        head.append(frame)
        size += len(frame.data)
        if len(head) == _SNIFFED_RECORDS or size > _SNIFFED_BYTES:
            break
    return head


def _recognise(item: InputFile, head: list[Frame], choice: _Choice) -> tuple[str | None, str]:
    """The format that claims a file most strongly, and why."""
    if choice.wanted:
        return choice.wanted, "named by --from"
    best: dict[str, Match] = {}
    keys: list[str] = []
    rows, text = _rows(head, choice.limits)
    asked = choice.converters.with_keys({key for record in rows for key in record})
    converters = [it for it in asked if it.container != TEXT]
    for record in rows:
        keys = keys or [key for key in record if key != LIST_LINE]
        for converter in converters:
            match = converter.sniff(record)
            best[converter.name] = max(best.get(converter.name, Match.NO), match)
    top = max(best.values(), default=Match.NO)
    is_log = _is_log(best, top)
    name = recognise(rows or texts_of(head), item, choice.recipes, top, is_log=is_log)
    if name is not None:
        return name, f"recognised by its recipe{misfits(choice.recipes, rows, item)}"
    misfit = misfits(choice.recipes, rows, item)
    known = _known(item) if top < Match.STAMP else None
    if top == Match.NO:
        if known is not None:
            return None, looks_like(known)
        if not keys:
            return None, text or no_object(head)
        forced = advice(choice.converters, head, choice.limits)
        shown = f"(the first record has the keys {', '.join(keys[:8])})"
        return None, f"{NO_FORMAT} {shown}{misfit}{forced}"
    names = sorted(name for name, match in best.items() if match == top)
    if known is not None and outranks(known, names):
        forced = advice([formats.get(name) for name in names], head, choice.limits)
        return None, f"{looks_like(known)}{forced}"
    names = [it for it in names if not getattr(formats.get(it), "gives_way", False)] or names
    if len(names) > 1:
        raise AmbiguousFormatError(
            f"{item.label}: {' and '.join(names)} claim it equally; choose one for this file "
            "with --from"
        )
    others = [name for name, match in best.items() if Match.NO < match < top]
    also = f", before {' and '.join(sorted(others))}" if others else ""
    return names[0], f"recognised by its {'stamp' if top == Match.STAMP else 'shape'}{also}{misfit}"


def _rows(head: list[Frame], limits: ConvertLimits) -> tuple[list[dict[str, msgspec.Raw]], str]:
    """The first level of the first records, and why the last one that is none is none."""
    rows, reason = [], ""
    for frame in head:
        try:
            frame.check(limits)
        except RecordError as error:
            reason = error.reason
            continue
        if (record := first_level(frame.data)) is not None:
            rows.append(record)
    return rows, reason


def _is_log(best: dict[str, Match], top: Match) -> bool:
    """Whether a file is surely the log of a session, which no recipe is asked about."""
    names = [name for name, match in best.items() if match == top]
    return top == Match.STAMP and all(formats.get(it).container == "session" for it in names)


def _known(item: InputFile) -> KnownFormat | None:
    """What a file, or a member of an archive, seems to be that no format reads."""
    name = item.source_file.rsplit("/", 1)[-1]
    if item.place.member is None:
        return recognise_known(Path(item.place.path), name)
    with InputStream(item.place, ConvertLimits()) as source:
        data = source.file.read(HEAD_BYTES + 1)
    head = text_head(name, data[:HEAD_BYTES], len(data) > HEAD_BYTES)
    return next(iter(kinds_of(head)), None)


def first_level(data: bytes) -> dict[str, msgspec.Raw] | None:
    """The first level of an object; a line that is a list, whole, under `LIST_LINE`.

    Args:
        data: a record.

    Returns:
        Its keys and values as formats see them to recognise it; None when it is neither.
    """
    with contextlib.suppress(UnicodeDecodeError):
        data.decode("utf-8")
        return _values(data)
    return _values(data.decode("utf-8", "replace").encode("utf-8"))  # what is read is rejected


def _values(data: bytes) -> dict[str, msgspec.Raw] | None:
    if data.startswith(b"[") and jsontext.is_valid(data):
        return {LIST_LINE: msgspec.Raw(data)}
    try:
        return jsontext.decode_object(data)
    except (msgspec.DecodeError, RecursionError):
        pass
    try:
        return jsontext.decode_object(jsontext.sanitise(data))
    except (msgspec.DecodeError, RecursionError, ValueError):
        return None
