"""A session log: a reader says what each type of line means, the engine does the rest."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

from msgspec import Raw

from adp.converters.format import Format
from adp.converters.kit.blocks import BlockReader
from adp.converters.kit.drafts import TrajectoryDraft, emit
from adp.converters.kit.lines import log_lines
from adp.converters.kit.source_object import SourceObject
from adp.converters.kit.times import take_time
from adp.converters.kit.tree import EntryLine, split
from adp_schema import jsontext
from adp_schema.builder import RowBuilder
from adp_schema.errors import RecordError
from adp_schema.losses import Losses
from adp_schema.model import Columns
from adp_schema.protocols import Match, RawRecord


class SessionLog:
    """One session while it is read. A reader subclasses it, with a method for each type of line.

    Attributes:
        handlers: value of ``type_key`` -> name of the method that takes such a line. The type
            itself is dropped before: it decides what comes of the line.
        kept: types that are known, and become events without more ado.
        type_key: key that says what a line is.
        agent: ``agent_name`` of the trajectory, when the log does not say another.
        id_key: key of the id of a line that becomes an event; empty when there is none.
        time_keys: keys of its time.
        run: the trajectory.
        blocks: reads content blocks.
        record: the record that is read, with its side files.
    """

    handlers: ClassVar[Mapping[str, str]] = {}
    kept: ClassVar[frozenset[str]] = frozenset()
    type_key: ClassVar[str] = "type"
    agent: ClassVar[str | None] = None
    id_key: ClassVar[str] = ""
    time_keys: ClassVar[tuple[str, ...]] = ("timestamp",)

    def __init__(self, record: RawRecord, builder: RowBuilder, losses: Losses) -> None:
        self.record = record
        self.builder = builder
        self.losses = losses
        self.run = TrajectoryDraft()
        self.blocks = BlockReader(builder, losses, self.run)
        if self.agent is not None:
            self.run.columns["agent_name"] = self.agent

    def read(self) -> None:
        """Read all lines and write the rows.

        Raises:
            RecordError: nothing of the record is of this format.
        """
        self.read_lines()
        self.finish()
        if not self.run.steps and not self.run.columns.get("source_id"):
            raise RecordError("the log holds no message")
        emit(self.run, self.builder)

    def read_lines(self) -> None:
        """Take the lines in their order."""
        for source, broken in self.sources():
            self.entry(source, broken)

    def sources(self) -> Iterator[tuple[SourceObject, str]]:
        """The lines: an object and an empty text, or the text of a line that is no object."""
        return log_lines(self.record, self.builder, self.losses)

    def entry(self, source: SourceObject, broken: str) -> None:
        """Take one line, or keep the text of one that is no object."""
        if broken:
            step = self.run.step("environment", "event", visibility="none")
            step.extra["line"] = broken
        else:
            self.line(source)

    def line(self, source: SourceObject) -> None:
        """Take one line."""
        kind = self.kind_of(source)
        name = self.handlers.get(kind)
        if name is not None:
            source.drop(self.type_key)
            getattr(self, name)(source)
            return
        if kind not in self.kept:
            self.losses.unknown(f"record type {kind or 'without a type'}")
        self.other(source)

    def kind_of(self, source: SourceObject) -> str:
        """What a line is: a key of ``handlers``."""
        return source.word(self.type_key)

    def other(self, source: SourceObject) -> None:
        """Keep a line that is no message."""
        columns: Columns = {"native_id": source.name(self.id_key)} if self.id_key else {}
        take_time(source, columns, *self.time_keys)
        self.run.event(source, columns)

    def finish(self) -> None:
        """Complete the trajectory when all lines are read."""


class TreeLog(SessionLog):
    """A session whose entries point to the entry that they follow.

    The main line leads to the last entry; what leaves it becomes branches.

    Attributes:
        branch_kind: ``branch_kind`` of what leaves the main line.
    """

    branch_kind: ClassVar[str] = "rewind"

    def ids(self, source: SourceObject) -> tuple[str | None, str | None]:
        """The id of an entry, and of the one that it follows; they stay where they are."""
        return source.word("id") or None, source.word("parentId") or None

    def read_lines(self) -> None:
        """Read the main line, and then each branch from where it leaves."""
        sources = list(self.sources())
        ids = [self.ids(source) for source, _ in sources]
        line = split([name for name, _ in ids], [parent for _, parent in ids])
        self._read_line(line, sources, 0)

    def _read_line(
        self, line: EntryLine, sources: list[tuple[SourceObject, str]], before: int
    ) -> None:
        """Read the entries of a line into the trajectory at hand; ``before`` steps are kept."""
        counts = {}
        for place in line.entries:
            self.entry(*sources[place])
            counts[place] = before + len(self.run.steps)
        for branch in line.branches:
            main = self.run
            kept = before if branch.after is None else counts[branch.after]
            self.run = TrajectoryDraft(keeps=kept, kind=branch.kind or self.branch_kind)
            self.run.columns = {
                key: main.columns[key] for key in ("agent_name", "agent_version", "agent_model",
                                                   "session_id") if key in main.columns
            }  # fmt: skip
            self.blocks.run = self.run
            self._read_line(branch, sources, kept)
            main.branches.append(self.run)
            self.run = self.blocks.run = main


class LogReader(Format):
    """A format that is read by a `SessionLog`."""

    container = "session"
    log: type[SessionLog]

    def sniff(self, record: Mapping[str, Raw]) -> Match:
        """Say how surely a line is of this format."""
        raise NotImplementedError

    def read(self, record: RawRecord, builder: RowBuilder, losses: Losses) -> None:
        """Read one session."""
        self.log(record, builder, losses).read()


def word(record: Mapping[str, Raw], key: str) -> str:
    """The string under a key of a line that is sniffed; empty when there is none."""
    raw = record.get(key)
    if raw is None or jsontext.first_byte(raw) != 0x22:
        return ""
    text: Any = jsontext.decode_value(raw)
    return str(text)


def inner(record: Mapping[str, Raw], key: str) -> dict[str, Raw]:
    """The object under a key of a line that is sniffed; empty when there is none."""
    raw = record.get(key)
    if raw is None or jsontext.first_byte(raw) != 0x7B:
        return {}
    values: dict[str, Raw] = jsontext.decode_object(raw)
    return values


def first_item(record: Mapping[str, Raw], key: str) -> dict[str, Raw]:
    """The first item of the list under a key of a line that is sniffed; empty when it is none."""
    raw = record.get(key)
    if raw is None or jsontext.first_byte(raw) != 0x5B:
        return {}
    items = jsontext.decode_array(raw)
    return inner({"item": items[0]}, "item") if items else {}
