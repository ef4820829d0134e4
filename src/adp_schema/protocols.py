"""What a format is: the one page that a converter implements.

A format lives in one file of ``adp.converters``, both directions together, and is listed in
``adp.converters.registry`` (or under the entry-point group ``adp.converters``).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from typing import TYPE_CHECKING, Any, Protocol

from adp_schema.losses import Losses

if TYPE_CHECKING:
    from msgspec import Raw

    from adp_schema.builder import RowBuilder
    from adp_schema.model import Trajectory


class Match(IntEnum):
    """How surely a format recognises a record: a data set beats a stamp, and a stamp a shape."""

    NO = 0
    SHAPE = 1
    STAMP = 2
    DATA_SET = 3


class SkipRecordError(Exception):
    """Raised by a converter for a record that is valid but no trajectory; counted as skipped."""


@dataclass(slots=True)
class RawRecord:
    """One record of an input file, as bytes of JSON text.

    Attributes:
        data: the record. When ``marked`` it went through `jsontext.sanitise`.
        source_file: input file, relative to the root of the conversion.
        number: number of the record in its file, from 1 (the line number in JSON Lines).
        offset: byte offset of the record in its file (the row number in Parquet).
        size: length in bytes as it stands in the file.
        marked: whether characters were replaced by marks.
        side_files: contents of the files that belong to this one (see `Converter.side_files`),
            by their path relative to the root of the conversion.
    """

    data: bytes
    source_file: str
    number: int
    offset: int
    size: int
    marked: bool = False
    side_files: Mapping[str, bytes] = field(default_factory=dict)


LIST_LINE = "[]"
"""The key under which `Converter.sniff` gets a line that is a list instead of an object."""


class Converter(Protocol):
    """A format, both directions. Methods are pure: no files, clock, randomness or network."""

    name: str
    """Name for ``--from`` and ``--to``."""
    version: str
    """Version of this converter; part of the provenance."""
    title: str
    """One line for ``adp formats``."""
    container: str
    """How its files are usually laid out: ``jsonl``, ``json_array``, ``json``, or
    ``session``: a file of lines is one record, and `read` gets its lines as a JSON array; or
    ``text``: a file that is no JSON is one record, and `read` gets ``{"text": ...}``; or
    ``sqlite``: a record is a session of a database, and an attribute ``database``, a
    `adp.converters.files.sqlite.SqliteShape`, says where the sessions lie. Such a database is
    recognised by its tables and columns; `sniff` is asked about JSON files only."""
    recognised: str
    """How a record is recognised, in one sentence."""
    versions: str
    """Which versions or dialects are read and which is written, in a sentence or two."""
    flavours: tuple[str, ...]
    """Names for ``--flavour``, the default first; empty when there is one way to write."""

    def side_files(self, source_file: str) -> tuple[str, ...]:
        """Paths of the files that belong to an input file, if they are there.

        A path with ``*`` in it stands for all inputs of the run that match, sorted: ``*`` for any
        characters but a slash, ``**`` for any folders. A file is never its own side file, and one
        that belongs to another file owns none; several may share one.

        Args:
            source_file: path of the file, relative to the root of the conversion, with ``/``.

        Returns:
            Candidates, relative to the same root, in order.
        """
        ...

    def embeds(self, branch: Trajectory) -> bool:
        """Whether a branch is written inside the record of its parent (`Trajectory.branches`).

        Otherwise it becomes a record of its own.
        """
        ...

    def sniff(self, record: Mapping[str, Raw]) -> Match:
        """Say how surely a record (first level decoded) is of this format.

        A line that is a list is ``{LIST_LINE: the list}``.
        """
        ...

    def read(self, record: RawRecord, builder: RowBuilder, losses: Losses) -> None:
        """Convert a record into rows.

        Raises:
            RecordError: the record is wrong; it names the JSON path.
            SkipRecordError: the record is no trajectory.
        """
        ...

    def write(
        self, trajectory: Trajectory, losses: Losses, flavour: str | None = None
    ) -> dict[str, Any] | list[dict[str, Any]]:
        """Convert a trajectory into a record of this format.

        Args:
            trajectory: with its steps; with its branches when the format embeds them.
            losses: takes what the format has no place for.
            flavour: one of `flavours`; None means the first.

        Returns:
            The record as a tree of dicts, lists, scalars and `Raw` JSON text, in key order; the
            lines of a ``session``.
        """
        ...


class Progress(Protocol):
    """What long-running library functions report to."""

    def note(self, message: str) -> None:
        """Say something once."""
        ...

    def status(self, words: str) -> None:
        """Say what is being done before the amount is known, or how it goes afterwards."""
        ...

    def total(self, amount: int) -> None:
        """Say how much there is to do, in bytes or items."""
        ...

    def advance(self, amount: int) -> None:
        """Say that a part is done."""
        ...
