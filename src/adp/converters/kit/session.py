"""A session log: a reader says what each type of line means, the engine does the rest."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, ClassVar

from msgspec import Raw

from adp.converters.format import Format
from adp.converters.kit.blocks import BlockReader
from adp.converters.kit.drafts import (
    ObservationDraft,
    StepDraft,
    TrajectoryDraft,
    emit,
    merge_extra,
)
from adp.converters.kit.key_tables import copy_words
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

SHARED = ("agent_name", "agent_version", "agent_model", "session_id")
"""Columns that a branch has from the trajectory that it leaves."""


_FORGOTTEN = SourceObject(None, "$", Losses()), ""
"""In the place of a line that was read."""


class SessionLog:
    """One session while it is read. A reader subclasses it, with a method for each type of line.

    Attributes:
        handlers: value of ``type_key`` -> name of the method that takes such a line. The type
            itself is dropped before: it decides what comes of the line.
        kept: types that are known, and become events without more ado.
        notes: type of a line that becomes an event -> column of the trajectory -> the key of a
            string that fills it; a dot leads into an object.
        edits: type of a line that changes the context -> the boundary of the edit, and the keys
            of its summary.
        constants: keys whose value most lines repeat; it is kept once, with the trajectory.
        type_key: key that says what a line is.
        agent: ``agent_name`` of the trajectory, when the log does not say another.
        id_key: key of the id of a line; empty when lines have none.
        parent_key: key of the id of the line that a line follows; empty when lines have none.
        time_keys: keys of its time.
        blocks: reads content blocks.
        record: the record that is read, with its side files.
        kind: what the line is that is read, such as its type.
    """

    handlers: ClassVar[Mapping[str, str]] = {}
    kept: ClassVar[frozenset[str]] = frozenset()
    notes: ClassVar[Mapping[str, Mapping[str, str]]] = {}
    edits: ClassVar[Mapping[str, tuple[str, ...]]] = {}
    constants: ClassVar[tuple[str, ...]] = ()
    type_key: ClassVar[str] = "type"
    agent: ClassVar[str | None] = None
    id_key: ClassVar[str] = ""
    parent_key: ClassVar[str] = ""
    time_keys: ClassVar[tuple[str, ...]] = ("timestamp",)

    def __init__(self, record: RawRecord, builder: RowBuilder, losses: Losses) -> None:
        self.record = record
        self.builder = builder
        self.losses = losses
        self._trajectory = TrajectoryDraft()
        self.blocks = BlockReader(builder, losses, self._trajectory)
        self.kind = ""
        self._type: Raw | None = None
        if self.agent is not None:
            self.run.columns["agent_name"] = self.agent
        self.set_up()

    @classmethod
    def knows(cls, kind: str) -> bool:
        """Whether a type of line is known."""
        return any(kind in known for known in (cls.handlers, cls.kept, cls.notes, cls.edits))

    def set_up(self) -> None:
        """Make what the reader keeps while it reads; called once, before the first line."""

    @property
    def run(self) -> TrajectoryDraft:
        """The trajectory that lines are read into; who sets it sets that of ``blocks``, too."""
        return self._trajectory

    @run.setter
    def run(self, run: TrajectoryDraft) -> None:
        self._trajectory = self.blocks.run = run

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
        self.line_of_kind(source, self.kind_of(source))

    def line_of_kind(self, source: SourceObject, kind: str) -> None:
        """Take one line, when it is known what it is."""
        if self.constants:
            self.run.constant(source, *self.constants)
        self.kind = kind
        name = self.handlers.get(kind)
        if name is not None:
            self._type = source.take(self.type_key) if source.word(self.type_key) else None
            getattr(self, name)(source)
            self._type = None
            return
        if kind in self.edits:
            step = self.context_edit(source, *self.edits[kind])
            step.extra.update(source.rest())
            return
        if kind in self.notes:
            copy_words(source, self.run.columns, self.notes[kind])
        elif kind not in self.kept:
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

    def keep(self, source: SourceObject) -> StepDraft:
        """Keep a line that a handler has looked at as an event, with its type."""
        if self._type is not None:
            source.values[self.type_key] = self._type
        self.other(source)
        return self.run.steps[-1]

    def is_first_header(
        self, source: SourceObject, *id_keys: str, inside: SourceObject | None = None
    ) -> bool:
        """Take the id of the session; a header after the first, of a joined log, is an event.

        Args:
            source: the line.
            id_keys: keys of the id.
            inside: the object of the line that has them, where that is not the line itself.
        """
        if "source_id" in self.run.columns:
            self.keep(source)
            return False
        name = (inside or source).name(*id_keys)
        self.run.columns["source_id"] = self.run.columns["session_id"] = name
        return True

    def begin_step(self, source: SourceObject, speaker: str, kind: str = "") -> StepDraft:
        """Add a step with the id and the time of its line: a turn of the agent, or a message."""
        step = self.run.step(speaker, kind or ("llm_turn" if speaker == "agent" else "message"))
        if self.id_key:
            step.columns["native_id"] = source.name(self.id_key)
        take_time(source, step.columns, *self.time_keys)
        return step

    def end_step(self, source: SourceObject, step: StepDraft) -> None:
        """Keep what is left of its line in ``extra``; a parent is left out that is the step before.

        The step is the last one.
        """
        steps = self.run.steps
        before = steps[-2].columns.get("native_id") if len(steps) > 1 else None
        if self.parent_key and before and source.word(self.parent_key) == before:
            source.drop(self.parent_key)
        merge_extra(step.extra, source.rest())

    def add_message(
        self, source: SourceObject, role: str, content: Raw | None, path: str
    ) -> StepDraft | ObservationDraft:
        """Add a message; one of the user may hold results of calls, or nothing but these.

        Args:
            source: the line, which has the id and the time.
            role: assistant, system, or any other for the user.
            content: a string, a list of blocks, or a block.
            path: where it is.

        Returns:
            The step, or the last result: takes what else the line says.
        """
        if role == "assistant":
            step = self.begin_step(source, "agent")
            self.blocks.content(content, step, path)
            return step
        speaker = "system" if role == "system" else "user"
        draft = self.blocks.user_content(content, path, lambda: self.begin_step(source, speaker))
        if isinstance(draft, ObservationDraft):
            take_time(source, draft.columns, *self.time_keys)
        return draft

    def begin_result(
        self, source: SourceObject, answers: str | None, **columns: Any
    ) -> ObservationDraft:
        """Add a result with the time of its line, by the id of its call, or by the order."""
        draft = self.run.observe(columns, answers=answers, by_order=True)
        take_time(source, draft.columns, *self.time_keys)
        return draft

    def open_turn(self, source: SourceObject) -> StepDraft:
        """The turn of the model that the last step is, while no result follows; or a new one."""
        last = self.run.steps[-1] if self.run.steps else None
        if last is None or last.columns["kind"] != "llm_turn" or last.observations:
            return self.begin_step(source, "agent")
        return last

    def context_edit(
        self, source: SourceObject, boundary: str | None, *summary_keys: str
    ) -> StepDraft:
        """Add a context edit: ``replace``, by the summary under a key, or ``truncate``."""
        step = self.begin_step(source, "system", "context_edit")
        step.columns["edit_boundary"] = boundary
        if summary_keys:
            step.columns["edit_summary"] = source.text(*summary_keys)
        return step

    def set_model(self, step: StepDraft, model: str | None) -> None:
        """Set the model of a turn, which is that of the trajectory from there on."""
        step.columns["model"] = model
        if model:
            self.run.columns["agent_model"] = model

    def link_parent(self, session: str) -> None:
        """Say which session the trajectory is a subagent of."""
        self.run.link("subagent", target_id=session, extra='{"target":"parent"}')

    def side_objects(self) -> Iterator[tuple[str, SourceObject]]:
        """The side files that are objects, by their paths; others are reported."""
        for path, data in self.record.side_files.items():
            source = SourceObject(data if jsontext.is_valid(data) else None, "$", self.losses)
            if source:
                yield path, source
            else:
                self.losses.add(f"$side.{path}", "the file is no JSON object")

    def finish(self) -> None:
        """Complete the trajectory when all lines are read."""


class TreeLog(SessionLog):
    """A session whose entries point to the entry that they follow.

    The main line leads to the last entry; what leaves it becomes branches.

    Attributes:
        branch_kind: ``branch_kind`` of what leaves the main line.
        root_id: the parent of an entry that follows none, where a log has a word for it.
    """

    branch_kind: ClassVar[str] = "rewind"
    id_key: ClassVar[str] = "id"
    parent_key: ClassVar[str] = "parentId"
    root_id: ClassVar[str | None] = None

    def ids(self, source: SourceObject) -> tuple[str | None, str | None]:
        """The id of an entry, and of the one that it follows; they stay where they are."""
        return source.word(self.id_key) or None, source.word(self.parent_key) or None

    def read_lines(self) -> None:
        """Read the main line, and then each branch from where it leaves."""
        self.read_tree(self.sources())

    def read_tree(self, lines: Iterable[tuple[SourceObject, str]], leaf: str = "") -> None:
        """Read entries; the main line leads to the one with the id ``leaf``, or to the last."""
        sources, ids = [], []
        for source, broken in lines:
            sources.append((source, broken))
            ids.append(self.ids(source))
        names = [name for name, _ in ids]
        end = names.index(leaf) if leaf in names else None
        line = split(names, [parent for _, parent in ids], end, self.root_id)
        self._read_line(line, sources, 0)

    def _read_line(
        self, line: EntryLine, sources: list[tuple[SourceObject, str]], before: int
    ) -> None:
        """Read the entries of a line into the trajectory at hand; ``before`` steps are kept.

        Each is forgotten then: of a long log the memory is used again.
        """
        counts = {}
        for place in line.entries:
            source, broken = sources[place]
            sources[place] = _FORGOTTEN
            self.entry(source, broken)
            counts[place] = before + len(self.run.steps)
        for branch in line.branches:
            main = self.run
            kept = before if branch.after is None else counts[branch.after]
            shared = {key: main.columns[key] for key in SHARED if key in main.columns}
            self.run = main.branch(kept, branch.kind or self.branch_kind, **shared)
            self._read_line(branch, sources, kept)
            self.run = main


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
