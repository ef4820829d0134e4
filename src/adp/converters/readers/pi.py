"""Sessions of Pi, and of OpenClaw, which writes the same lines.

A header, then entries that point to the one that they follow (``parentId``; none in version 1).
A compaction replaces what came before the entry that it names. Sources: the session format in
Pi's documentation, versions 1 to 4.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from msgspec import Raw

from adp.converters.kit.key_tables import take_columns
from adp.converters.kit.session import LogReader, TreeLog, word
from adp.converters.kit.source_object import SourceObject
from adp.converters.kit.usage import UsageKeys, take_usage
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


class PiSession(TreeLog):
    """One session."""

    agent: ClassVar[str | None] = "pi"
    handlers: ClassVar[Mapping[str, str]] = {
        "session": "header",
        "message": "message",
        "compaction": "compaction",
        "branch_summary": "summary",
        "custom_message": "custom",
    }
    kept: ClassVar[frozenset[str]] = frozenset(
        {
            "model_change",
            "thinking_level_change",
            "custom",
            "label",
            "session_info",
            "reset",
            "leaf",
        }
    )

    def header(self, source: SourceObject) -> None:
        """The first line, or the header of another session that was joined to it."""
        if not self.is_first_header(source, "id"):
            return
        columns = self.run.columns
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


class PiReader(LogReader):
    """The format ``pi``."""

    name = "pi"
    title = "Sessions of Pi and OpenClaw"
    recognised = "a line of the type session with an id, a cwd and no harness"
    versions = "reads versions 1 to 4"
    log = PiSession

    def sniff(self, record: Mapping[str, Raw]) -> Match:
        """A header without the ``harness`` that sessions of STS have."""
        header = word(record, "type") == "session" and {"id", "cwd"} <= set(record)
        return Match.STAMP if header and "harness" not in record else Match.NO


CONVERTER = PiReader()
