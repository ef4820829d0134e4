"""Sessions of Pi, and of OpenClaw, which writes the same lines.

A header, then entries that point to the one that they follow (``parentId``; none in version 1).
A compaction replaces what came before the entry that it names. Sources: the session format in
Pi's documentation, versions 1 to 4.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, ClassVar

from msgspec import Raw

from adp.converters.kit.drafts import StepDraft
from adp.converters.kit.session import LogReader, TreeLog, word
from adp.converters.kit.source_object import SourceObject
from adp.converters.kit.times import take_start, take_time
from adp.converters.kit.usage import UsageKeys, take_usage
from adp.converters.kit.written_names import NamedRun, cwd_of, session_word
from adp.converters.kit.written_values import EPOCH, iso
from adp.converters.readers.pi_write import SYSTEM, TOOLS
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


class PiSession(TreeLog):
    """One session."""

    agent: ClassVar[str | None] = "pi"
    id_key: ClassVar[str] = "id"
    handlers: ClassVar[Mapping[str, str]] = {
        "session": "header",
        "message": "message",
        "compaction": "compaction",
        "branch_summary": "summary",
        "custom_message": "custom",
        "custom": "note",
    }
    kept: ClassVar[frozenset[str]] = frozenset(
        {
            "model_change",
            "thinking_level_change",
            "label",
            "session_info",
            "reset",
            "leaf",
        }
    )

    def header(self, source: SourceObject) -> None:
        """The first line, or the header of another session that was joined to it."""
        if "source_id" in self.run.columns:
            self.other(source)
            return
        columns = self.run.columns
        columns["source_id"] = columns["session_id"] = source.name("id")
        if "/.openclaw/" in source.word("cwd"):
            columns["agent_name"] = "openclaw"
        if source.integer_at("version") is not None:
            columns["source_version"] = source.name("version")
        columns["agent_model"] = source.text("modelId")
        take_start(source, columns, "timestamp")
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
        kind = "llm_turn" if agent else "message"
        step = self.run.step("agent" if agent else "user", kind, native_id=source.name("id"))
        if role in ("user", "assistant"):
            message.drop("role")
        take_time(source, step.columns, "timestamp")
        self.blocks.content(message.take("content"), step, message.path)
        if agent:
            step.columns["model"] = message.text("model")
            step.columns["stop_reason"] = message.text("stopReason")
            step.columns["response_id"] = message.text("responseId")
            take_usage(message, "usage", step.columns, USAGE)
            self.run.columns["agent_model"] = step.columns["model"]
        self._end(source, step)

    def _result(self, source: SourceObject, message: SourceObject) -> None:
        columns = {"name": message.text("toolName"), "is_error": message.flag("isError")}
        draft = self.run.observe(columns, answers=message.name("toolCallId"), by_order=True)
        take_time(source, draft.columns, "timestamp")
        message.drop("role")
        self.blocks.result(message.take("content"), draft, message.path)
        draft.columns["structured"] = message.json("details")
        draft.extra = source.rest()

    def compaction(self, source: SourceObject) -> None:
        """The context was replaced by a summary and the entries from one on."""
        step = self.run.step("system", "context_edit", native_id=source.name("id"))
        take_time(source, step.columns, "timestamp")
        step.columns["edit_boundary"] = "replace"
        step.columns["edit_summary"] = source.text("summary")
        kept = source.word("firstKeptEntryId")
        first = next((it for it in self.run.steps if it.columns.get("native_id") == kept), None)
        if first is not None:
            step.columns["edit_from"], step.columns["edit_to"] = first, step
        self._end(source, step)

    def summary(self, source: SourceObject) -> None:
        """What was done on a branch that was left."""
        step = self.run.step("user", native_id=source.name("id"), synthetic=True)
        take_time(source, step.columns, "timestamp")
        step.columns["text"] = source.text("summary")
        step.extra["type"] = "branch_summary"
        self._end(source, step)

    def custom(self, source: SourceObject) -> None:
        """A message of an extension, which the model sees."""
        step = self.run.step("user", native_id=source.name("id"))
        take_time(source, step.columns, "timestamp")
        self.blocks.content(source.take("content"), step, source.path)
        step.extra["type"] = "custom_message"
        self._end(source, step)

    def note(self, source: SourceObject) -> None:
        """What an extension keeps: a system prompt or tools, as `pi_write` puts them; or any."""
        kind, data = source.word("customType"), source.child("data")
        if kind == SYSTEM and "content" in data:
            source.drop("customType")
            step = self.run.step("system", native_id=source.name("id"))
            take_time(source, step.columns, "timestamp")
            self.blocks.content(data.take("content"), step, data.path)
            self._end(source, step)
            return
        if kind == TOOLS and (tools := data.json_list("tools")) is not None:
            self.run.columns["tools"], self.run.columns["tools_origin"] = tools, "recorded"
        source.values["type"] = Raw(b'"custom"')
        self.other(source)

    def _end(self, source: SourceObject, step: StepDraft) -> None:
        previous = self.run.steps[-2].columns.get("native_id") if len(self.run.steps) > 1 else None
        if source.word("parentId") == previous:
            source.drop("parentId")
        step.extra.update(source.rest())


class PiReader(LogReader):
    """The format ``pi``."""

    name = "pi"
    title = "Sessions of Pi and OpenClaw"
    recognised = "a line of the type session with an id, a cwd and no harness"
    versions = "Reads versions 1 to 4. Writes version 3; it was tried with Pi 0.73.1."
    log = PiSession

    def sniff(self, record: Mapping[str, Raw]) -> Match:
        """A header without the ``harness`` that sessions of STS have."""
        header = word(record, "type") == "session" and {"id", "cwd"} <= set(record)
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


CONVERTER = PiReader()
