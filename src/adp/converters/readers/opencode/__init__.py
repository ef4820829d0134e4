"""Sessions of opencode: its database, ``opencode export``, and what it prints (`printed`).

All hold parts that belong to messages: a part ``tool`` is a call with its result in one.
A message may be several turns of the model, each from ``step-start`` to ``step-finish``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Raw

from adp.converters.files.sqlite import SqliteShape
from adp.converters.kit.drafts import merge_extra
from adp.converters.kit.key_tables import take_columns
from adp.converters.kit.lines import log_lines
from adp.converters.kit.session import SHARED, LogReader, inner, word
from adp.converters.kit.source_object import SourceObject
from adp.converters.readers.opencode.messages import is_info
from adp.converters.readers.opencode.printed import (
    EVENTS,
    OpencodePrinted,
    is_server_event,
    unwrap,
)
from adp.converters.reading import BRACE
from adp.converters.session_writers.names import NamedRun, opencode_id
from adp_schema import jsontext
from adp_schema.errors import RecordError
from adp_schema.losses import Losses
from adp_schema.model import Trajectory
from adp_schema.protocols import Match, SkipRecordError

TIMES = {"started_at": ("created", "time_created"), "ended_at": ("updated", "time_updated")}


class OpencodeSession(OpencodePrinted):
    """One session."""

    def set_up(self) -> None:
        """Make what is known of the log: whether it is a document, and what is reverted."""
        super().set_up()
        self.alone = False
        self.reverted = ""

    def read_lines(self) -> None:
        """Take the lines, or the one document."""
        lines = list(log_lines(self.record, self.builder, self.losses))
        self.alone = len(lines) == 1
        if not self.alone or is_server_event(lines[0][0].values):
            for source, _ in lines:
                unwrap(source)
            lines = self.read_events(self.latest(lines))
        for source, broken in lines:
            self.entry(source, broken)

    def line(self, source: SourceObject) -> None:
        """An export or the rows of a database; else an event."""
        if "source_id" in self.run.columns and {"messages", "message"} & set(source.values):
            self.other(source)
        elif source.first("messages"):
            self.take_header(source.take_child("info"))
            for message in source.objects("messages"):
                parts = message.objects("parts")
                step = self.message(message.take_child("info"), parts)
                merge_extra(step.extra, message.rest())
            self.run.extra.update(source.rest())
        elif source.first("message"):
            self._rows(source)
        elif source.word("sessionID") and source.first("part") == BRACE:
            self.event(source)
        elif self.record.side_files and (source.word("role") or is_info(source.values)):
            self._files(source)
        elif self.alone and source.word("type") != "error":
            raise _refused(source)
        else:
            self.note_error(source.child("error"))
            super().line(source)

    def take_header(self, info: SourceObject) -> None:
        """Take what is known of a session."""
        columns = self.run.columns
        columns["source_id"] = columns["session_id"] = info.name("id")
        take_columns(info.child("time") or info, columns, TIMES)
        take_columns(info, columns, {"agent_version": "version", "total_cost_usd": "cost"})
        self.reverted = info.parsed("revert").word("messageID")
        self.run.extra.update(info.rest())

    def _rows(self, source: SourceObject) -> None:
        """Rows of the tables; of each message and part the row has ids, and ``data`` the rest."""
        self.take_header(source.take_child("session"))
        parts: dict[str, list[SourceObject]] = {}
        for row in _in_order(source.objects("part")):
            owner = row.word("message_id") or row.word("messageID")
            parts.setdefault(owner, []).append(_unfold(row))
        for row in _in_order(source.objects("message")):
            name = row.word("id")
            self.message(_unfold(row), parts.pop(name, []))
        for lonely in parts.values():
            self.message(SourceObject(None, source.path, self.losses), lonely)
        self.run.extra.update(source.rest())

    def _files(self, document: SourceObject) -> None:
        """The old folder, where a session, each message and each part have files of their own."""
        parts: dict[str, list[SourceObject]] = {}
        messages: list[SourceObject] = []
        if document.word("role"):  # the file of its session is missing
            self.run.columns["session_id"] = document.word("sessionID") or None
            messages.append(document)
        else:
            self.take_header(document)
        for path, data in sorted(self.record.side_files.items()):
            source = SourceObject(data if jsontext.is_valid(data) else None, path, self.losses)
            if not source:
                self.run.event(source, {"text": data.decode("utf-8", "backslashreplace")})
            elif "part" in (folders := path.split("/"))[-4:-2]:
                parts.setdefault(folders[-2], []).append(source)
            else:
                messages.append(source)
        for message in messages:
            self.message(message, parts.pop(message.word("id"), []))
        for owner, left in parts.items():
            self.message(SourceObject(None, owner, self.losses), left)

    def finish(self) -> None:
        """Reverted messages (``revert.messageID``) become a branch of the kind rewind."""
        steps = self.run.steps
        names = [step.columns.get("native_id") for step in steps]
        if self.reverted and self.reverted in names[1:]:
            at = names.index(self.reverted)
            shared = {key: self.run.columns.get(key) for key in SHARED}
            branch = self.run.branch(at, "rewind", **shared)
            branch.steps = steps[at:]
            branch.links = [link for link in self.run.links if link.step in branch.steps]
            self.run.links = [link for link in self.run.links if link.step not in branch.steps]
            self.run.steps = steps[:at]


def _refused(source: SourceObject) -> Exception:
    """Why a lone document is no session."""
    if {"sessionID", "role"} <= set(source.values) or "messageID" in source:
        return SkipRecordError("one message or part of a session, which is a folder of files")
    if {"projectID", "directory"} <= set(source.values):
        return SkipRecordError("the header of a session; its messages are in other files")
    return RecordError("it is no session of opencode", source.path)


def _in_order(rows: list[SourceObject]) -> list[SourceObject]:
    """Rows by their time and id, as opencode reads them; as they came when one has no time."""
    times = [row.integer_at("time_created") for row in rows]
    if any(time is None for time in times):
        return rows
    return sorted(rows, key=lambda row: (row.integer_at("time_created") or 0, row.word("id")))


def _unfold(row: SourceObject) -> SourceObject:
    """A row with the values of its column ``data``."""
    for key, value in row.take_child("data").values.items():
        row.values[key if key not in row else f"data.{key}"] = value
    return row


class OpencodeReader(LogReader):
    """The format ``opencode``."""

    name = "opencode"
    title = "Sessions of opencode"
    recognised = "an export, the rows of a session, or printed events with a sessionID and a part"
    versions = (
        "Reads the database, `opencode export`, `run --format json` and the events of the "
        "server of version 1. Writes the document of the export; it was tried with `opencode "
        "import` of 1.18.33."
    )
    log = OpencodeSession
    database = SqliteShape(
        root="session",
        key="id",
        children={"message": "session_id", "part": "session_id", "todo": "session_id"},
        order={name: ("time_created", "id") for name in ("message", "part")},
        shared=("project",),
        needs=("message.session_id", "message.data", "part.message_id", "part.data"),
        through={"part": ("message_id", "message")},
    )

    def may_link(self, source_file: str) -> bool:
        """Whether a file lies where one of the old folder does; others need not be looked into."""
        return "session" in source_file or "message" in source_file

    def linked_files(self, source_file: str, data: bytes) -> list[str]:
        """Of a session of the old folder its messages, and of a message its parts."""
        folder, _, _ = source_file.rpartition("/")
        names = SourceObject(data if jsontext.is_valid(data) else None, "$", Losses())
        above, _, here = folder.rpartition("/")
        kind = above.rpartition("/")[2] or above
        root = f"{above.rpartition('/')[0]}/".removeprefix("/")
        if kind == "session" and "projectID" in names:
            return [f"{root}message/{names.word('id')}/*.json"]
        if above.endswith("session") and here == "info" and is_info(names.values):
            return [f"{above}/message/{names.word('id')}/*.json"]  # before 0.6
        if kind == "message" and names.word("sessionID") == here:
            owner = names.word("id")
            return [f"{root}part/{owner}/*.json", f"{root}part/{here}/{owner}/*.json"]
        return []

    def sniff(self, record: Mapping[str, Raw]) -> Match:
        """The forms; lone messages and parts of the old folder are read with their session."""
        keys = set(record)
        if {"session", "message", "part"} <= keys:
            return Match.STAMP
        info = inner(record, "info")
        if "messages" in keys and "id" in info and {"time", "directory", "projectID"} & set(info):
            return Match.STAMP
        printed = word(record, "type") in EVENTS or word(record, "type") == "message.part.updated"
        if ("sessionID" in keys and printed and {"part", "error"} & keys) or is_server_event(
            record
        ):
            return Match.STAMP
        lone = ({"id", "sessionID", "role", "time"}, {"id", "sessionID", "messageID", "type"})
        is_lone = any(shape <= keys for shape in lone) or is_info(record)
        return Match.SHAPE if is_lone else Match.NO

    def write(
        self, trajectory: Trajectory, losses: Losses, flavour: str | None = None
    ) -> list[dict[str, Any]]:
        """Convert a trajectory into the document of an export."""
        from adp.converters.readers.opencode.write import OpencodeWriter

        return OpencodeWriter(trajectory, losses).lines()

    def embeds(self, branch: Trajectory) -> bool:
        """Reverted messages stand at the end of their session."""
        return branch.branch_kind == "rewind" and branch.source_format == self.name

    def session_file(self, run: NamedRun) -> str:
        """``<session>.json``."""
        return f"{opencode_id(run)}.json"


CONVERTER = OpencodeReader()
