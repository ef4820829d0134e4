"""Sessions of Pi, and of OpenClaw, which writes the same lines, or keeps them in a database.

A header, then entries that point to the one that they follow (``parentId``; none in version 1).
A compaction replaces what came before the entry that it names. Sources: the session format in
Pi's documentation, versions 1 to 4; `pi_printed` has what ``pi --mode json`` prints.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, ClassVar

from msgspec import Raw

from adp.converters.files.sqlite import SqliteShape
from adp.converters.kit.key_tables import take_columns, take_tools
from adp.converters.kit.session import LogReader, inner, word
from adp.converters.kit.source_object import SourceObject
from adp.converters.kit.usage import UsageKeys, take_usage
from adp.converters.readers.pi_rows import EVENTS, WINDOW, OpenClawRows
from adp.converters.readers.pi_write import SYSTEM, TOOLS
from adp.converters.session_writers.names import NamedRun, cwd_of, session_word
from adp.converters.session_writers.values import EPOCH, iso
from adp_schema.losses import Losses
from adp_schema.model import Trajectory
from adp_schema.protocols import Match

USAGE = UsageKeys(
    prompt=("input",),
    written=("output",),
    cached=("cacheRead",),
    cache_write=("cacheWrite",),
    cost=("cost.total",),
    apart=True,
)

HEADER = {"source_version": "version", "agent_model": "modelId", "started_at": "timestamp"}
TURN = {"stop_reason": "stopReason", "response_id": "responseId"}


class PiSession(OpenClawRows):
    """One session."""

    agent: ClassVar[str | None] = "pi"
    handlers: ClassVar[Mapping[str, str]] = {
        "session": "header",
        "message": "message",
        "compaction": "compaction",
        "branch_summary": "summary",
        "custom_message": "custom",
        "custom": "note",
        **OpenClawRows.handlers,
    }
    kept: ClassVar[frozenset[str]] = OpenClawRows.kept | {
        *("model_change", "thinking_level_change", "label", "session_info", "reset", "leaf")
    }
    _has_header = False

    def header(self, source: SourceObject) -> None:
        """The first line, or the header of another session that was joined to it."""
        columns = self.run.columns
        if self._has_header or columns.get("source_id") not in (None, source.word("id")):
            self.keep(source)
            return
        self._has_header = True
        columns["source_id"] = columns["session_id"] = source.name("id")
        if "/.openclaw/" in source.word("cwd"):
            columns["agent_name"] = "openclaw"
        take_columns(source, columns, HEADER)
        for key, kind in (("parentSession", "continuation"), ("branchedFrom", "fork")):
            if path := source.word(key):
                self.run.link(kind, target_path=path)
        self.run.extra.update(source.rest())

    def message(self, source: SourceObject) -> None:
        """A message, by its role."""
        message = source.child("message")
        role = message.word("role")
        if role == "toolResult":
            self._result(source, message)
            return
        agent = role == "assistant"
        step = self.begin_step(source, "agent" if agent else "user")
        if role in ("user", "assistant"):
            message.drop("role")
        self.blocks.content(message.take("content"), step, message.path)
        if agent:
            self.set_model(step, message.text("model"))
            take_columns(message, step.columns, TURN)
            take_usage(message, "usage", step.columns, USAGE)
        self.end_step(source, step)

    def _result(self, source: SourceObject, message: SourceObject) -> None:
        draft = self.begin_result(source, message.name("toolCallId"))
        take_columns(message, draft.columns, {"name": "toolName", "is_error": "isError"})
        message.drop("role")
        self.blocks.result(message.take("content"), draft, message.path)
        draft.columns["structured"] = message.json("details")
        draft.extra = source.rest()

    def compaction(self, source: SourceObject) -> None:
        """The context was replaced by a summary and the entries from a kept one on."""
        step = self.context_edit(source, "replace", "summary")
        kept = source.word("firstKeptEntryId")
        first = next((it for it in self.run.steps if it.columns.get("native_id") == kept), None)
        if first is not None:
            step.columns["edit_from"], step.columns["edit_to"] = first, step
        self.end_step(source, step)

    def summary(self, source: SourceObject) -> None:
        """The summary of a branch that was left, which the model sees."""
        step = self.begin_step(source, "user")
        step.columns |= {"synthetic": True, "text": source.text("summary")}
        step.extra["type"] = "branch_summary"
        self.end_step(source, step)

    def custom(self, source: SourceObject) -> None:
        """A message of an extension, which the model sees."""
        step = self.begin_step(source, "user")
        self.blocks.content(source.take("content"), step, source.path)
        step.extra["type"] = "custom_message"
        self.end_step(source, step)

    def note(self, source: SourceObject) -> None:
        """What an extension keeps: a system prompt or tools, as `pi_write` puts them; or any."""
        kind, data = source.word("customType"), source.child("data")
        if kind == SYSTEM and "content" in data:
            source.drop("customType")
            step = self.begin_step(source, "system", "message")
            self.blocks.content(data.take("content"), step, data.path)
            self.end_step(source, step)
            return
        if kind == TOOLS:
            take_tools(data, self.run.columns)
        self.keep(source)


class PiReader(LogReader):
    """The format ``pi``."""

    name = "pi"
    title = "Sessions of Pi and OpenClaw"
    recognised = "a line of the type session with an id, a cwd and no harness, or entries of one"
    versions = (
        "Reads versions 1 to 4, openclaw-agent.sqlite and what pi --mode json prints. Writes "
        "version 3; it was tried with Pi 0.73.1."
    )
    log = PiSession
    database = SqliteShape(
        root=WINDOW,
        key="session_id",
        children={EVENTS: "session_id"},
        order={EVENTS: ("seq",)},
        needs=(f"{EVENTS}.event_json", f"{EVENTS}.seq"),
    )

    def sniff(self, record: Mapping[str, Raw]) -> Match:
        """A header without the ``harness`` that sessions of STS have; or rows of a database."""
        if "session_id" in inner(record, WINDOW) and EVENTS in record:
            return Match.STAMP
        if word(record, "type") == "message_end" and "role" in inner(record, "message"):
            return Match.SHAPE
        if {"id", "parentId", "timestamp"} <= set(record) and _is_entry(record):
            return Match.SHAPE  # the header is missing
        keys = set(record)
        header = word(record, "type") == "session" and "id" in keys
        header = header and ("cwd" in keys or {"version", "timestamp"} <= keys)
        return Match.STAMP if header and "harness" not in record else Match.NO

    def write(
        self, trajectory: Trajectory, losses: Losses, flavour: str | None = None
    ) -> list[dict[str, Any]]:
        """Convert a trajectory, with the branches that left it, into the lines of a session."""
        from adp.converters.readers.pi_write import PiWriter

        return PiWriter(trajectory, losses).lines()

    def embeds(self, branch: Trajectory) -> bool:
        """What left the main line stands in its file."""
        return branch.branch_kind in ("alternate", "fork", "rewind")

    def session_file(self, run: NamedRun) -> str:
        """``sessions/--<folder>--/<time>_<session>.jsonl``."""
        folder = re.sub(r"[/\\:]", "-", cwd_of(run.extra).removeprefix("/"))
        start = iso(run.started_at or EPOCH).replace(":", "-").replace(".", "-")
        return f"sessions/--{folder}--/{start}_{session_word(run)}.jsonl"


def _is_entry(record: Mapping[str, Raw]) -> bool:
    """Whether an entry has what Pi alone writes."""
    kind, message = word(record, "type"), inner(record, "message")
    if kind == "model_change":
        return {"provider", "modelId"} <= set(record)
    if kind != "message":
        return False
    if word(message, "role") == "toolResult":
        return "toolCallId" in message
    return word(message, "role") == "assistant" and {"api", "provider", "stopReason"} <= set(
        message
    )


CONVERTER = PiReader()
