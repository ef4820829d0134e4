"""Which format an SQLite database has, by its tables and columns, and what lies beside it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from adp.converters.files import sqlite
from adp.converters.files.limits import ConvertLimits
from adp.converters.files.sqlite import SqliteDatabase, SqliteShape
from adp.converters.files.streams import InputPlace
from adp.converters.frames import SideFile
from adp.converters.framing import ByteRange, log_of
from adp.converters.known import looks_like, recognise_known
from adp_schema.errors import AmbiguousFormatError, RecordError
from adp_schema.protocols import Converter

_TABLES = 8
_UNFINISHED = (
    "a change of the SQLite database was not finished (there is a -journal file beside it); "
    "open it once with the program that wrote it"
)

Tables = dict[str, tuple[str, ...]]


@dataclass(frozen=True)
class DatabasePlan:
    """How a database is read.

    Attributes:
        format: name of the format; None when none reads it.
        why: how it was chosen, or why none was.
        pieces: the one piece of it.
    """

    format: str | None
    why: str
    pieces: list[ByteRange]


def plan_database(
    place: InputPlace,
    source_file: str,
    converters: Sequence[Converter],
    wanted: str | None,
    limits: ConvertLimits,
) -> DatabasePlan:
    """Choose the format of a database.

    Args:
        place: the file.
        source_file: its path relative to the root of the conversion.
        converters: the formats to choose from.
        wanted: the format that the user named, if any.
        limits: limits of the conversion.

    Raises:
        OSError: it cannot be read.
        AmbiguousFormatError: two formats fit equally.
    """
    try:
        if sqlite.is_unfinished(place.path):
            return DatabasePlan(None, _UNFINISHED, [])
        sides = _sides(place.path, source_file)
        log = log_of(sides)
        tables, matching = _matching(place.path, log, converters, limits)
    except RecordError as error:
        return DatabasePlan(None, error.reason, [])
    if not matching:
        return DatabasePlan(None, _no_format(place, source_file, tables, converters, wanted), [])
    if len(matching) > 1:
        names = sorted(converter.name for converter, _ in matching)
        raise AmbiguousFormatError(
            f"{source_file}: {' and '.join(names)} claim it equally; choose one with --from"
        )
    ((converter, shape),) = matching
    end = place.size + sum(side.place.size for side in sides)
    piece = ByteRange(place, source_file, "sqlite", 0, end, sides=sides, database=shape)
    why = "named by --from" if wanted else "recognised by its tables"
    return DatabasePlan(wanted or converter.name, why, [piece])


def shapes_of(converter: Converter) -> tuple[SqliteShape, ...]:
    """Where the sessions of a format lie in its databases; nothing when it is in none."""
    shapes = getattr(converter, "database", None)
    return (shapes,) if isinstance(shapes, SqliteShape) else shapes or ()


def _sides(path: str, source_file: str) -> tuple[SideFile, ...]:
    """What SQLite keeps beside a database; an empty log has no changes in it."""
    sides = []
    for suffix, framing in ((sqlite.LOG, "log"), (sqlite.INDEX, "index")):
        status = sqlite.neighbour_status(path, suffix)
        if status is not None:
            size = status.st_size
            place = InputPlace(path + suffix, size, status.st_mtime_ns, packed=size)
            sides.append(SideFile(source_file + suffix, place, framing))
    return tuple(sides)


def _matching(
    path: str, log: str | None, converters: Sequence[Converter], limits: ConvertLimits
) -> tuple[Tables, list[tuple[Converter, SqliteShape]]]:
    """The tables of a database, and the formats that find theirs among them."""
    if log is not None:
        # Copying takes time; what the file has without its log mostly says enough.
        try:
            with SqliteDatabase(path, limits) as database:
                tables = database.columns()
            if matching := _fitting(tables, converters):
                return tables, matching
        except RecordError:
            pass
    with SqliteDatabase(path, limits, log) as database:
        tables = database.columns()
    return tables, _fitting(tables, converters)


def _fitting(
    tables: Tables, converters: Sequence[Converter]
) -> list[tuple[Converter, SqliteShape]]:
    """The formats whose tables are there, but not those that need only a part of another's."""
    present = [
        (converter, shape, {*shape.needs, f"{shape.root}.{shape.key}"})
        for converter in converters
        for shape in shapes_of(converter)
        if not shape.lacks(tables)
    ]
    return [
        (converter, shape)
        for converter, shape, needs in present
        if not any(needs < others for _, _, others in present)
    ]


def _no_format(
    place: InputPlace,
    source_file: str,
    tables: Tables,
    converters: Sequence[Converter],
    wanted: str | None,
) -> str:
    """Why no format reads a database."""
    if wanted:
        shapes = shapes_of(converters[0])
        if not shapes:
            return f"it is an SQLite database, and {wanted} is not kept in one"
        lacking = min((shape.lacks(tables) for shape in shapes), key=len)
        return f"it is no database of {wanted}: it has no {', '.join(lacking[:_TABLES])}"
    known = recognise_known(Path(place.path), source_file.rsplit("/", 1)[-1])
    if known is not None:
        return looks_like(known)
    names = ", ".join(list(tables)[:_TABLES]) or "no tables"
    return f"no format recognises it (it is an SQLite database with {names})"
