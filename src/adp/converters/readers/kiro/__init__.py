"""Sessions of the Kiro CLI, and of the Amazon Q CLI that it comes from.

In version 1 a conversation is one JSON value, in the table ``conversations_v2`` or exported: turns
of what was asked and what was answered. Version 2 writes lines of a ``kind`` with ``data``, with
a file about the session beside them; the editor of Kiro writes lines with a ``payload``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from msgspec import Raw

from adp.converters.files.sqlite import SqliteShape
from adp.converters.kit.drafts import ObservationDraft, StepDraft, merge_extra
from adp.converters.kit.key_tables import KeyTable, take_columns
from adp.converters.kit.session import LogReader, SessionLog, inner, word
from adp.converters.kit.source_object import SourceObject
from adp.converters.kit.times import take_time
from adp.converters.readers.kiro.blocks import EDITOR_LINES, KiroBlocks, pairs, tool_specifications
from adp.converters.reading import BRACE, BRACKET
from adp_schema import jsontext
from adp_schema.protocols import Match

TABLE = "conversations_v2"
EARLY_TABLE = "conversations"
TIMES: KeyTable = {
    "started_at": ("created_at", "createdAt"),
    "ended_at": ("updated_at", "lastModifiedAt"),
}
_NEEDS = (f"{TABLE}.key", f"{TABLE}.value")
_EARLY_NEEDS = (f"{EARLY_TABLE}.key", f"{EARLY_TABLE}.value", "auth_kv.value")
_ASKED = ("Prompt", "ToolUseResults", "CancelledToolUses")


class KiroSession(SessionLog):
    """One session."""

    agent: ClassVar[str | None] = "kiro-cli"
    handlers: ClassVar[Mapping[str, str]] = {
        "conversation": "conversation",
        "row": "row",
        "Prompt": "message",
        "AssistantMessage": "message",
        "ToolResults": "message",
        "payload": "payload",
    }
    edits: ClassVar[Mapping[str, tuple[str, ...]]] = {"Clear": ("truncate",)}
    constants: ClassVar[tuple[str, ...]] = ("version",)
    type_key: ClassVar[str] = "kind"

    def set_up(self) -> None:
        """Make the reader of blocks."""
        self.kiro_blocks = KiroBlocks(self.blocks)

    def kind_of(self, source: SourceObject) -> str:
        """A row of the database, a conversation, or a line."""
        if BRACE in (source.first(TABLE), source.first(EARLY_TABLE)):
            return "row"
        if source.first("history") == BRACKET:
            return "conversation"
        return "payload" if source.first("payload") == BRACE else source.word("kind")

    def row(self, source: SourceObject) -> None:
        """A row of the database, with the conversation as text."""
        row = source.child(TABLE) or source.child(EARLY_TABLE)
        columns = self.run.columns
        take_columns(row, columns, TIMES)
        columns["source_id"] = columns["session_id"] = row.name("conversation_id")
        value = row.parsed("value")
        if value:
            self.conversation(value)
        self.run.extra.update(source.rest())

    def conversation(self, source: SourceObject) -> None:
        """The turns of a conversation, after the summary of what was before them."""
        columns = self.run.columns
        if source.word("conversation_id") == columns.get("source_id"):
            source.drop("conversation_id")
        elif columns.get("source_id") is None:
            columns["source_id"] = columns["session_id"] = source.name("conversation_id")
        columns["agent_model"] = source.child("model_info").word("model_id") or None
        columns["tools"] = tool_specifications(source)
        columns["tools_origin"] = "recorded" if columns["tools"] else None
        self._summary(source)
        path = f"{source.path}.history"
        for number, item in enumerate(source.items("history")):
            self._turn(item, f"{path}[{number}]")
        merge_extra(self.run.extra, source.rest())

    def _summary(self, source: SourceObject) -> None:
        """What a compaction left: a text, alone or before what is known of its request."""
        parts = source.items("latest_summary")
        if parts and jsontext.first_byte(parts[0]) == ord('"'):
            text = jsontext.decode_value(parts[0])
            rest = {"latest_summary": parts[1:]} if parts[1:] else {}
        elif (summary := source.text("latest_summary")) is not None:
            text, rest = summary, {}
        else:
            if parts:
                source.values["latest_summary"] = jsontext.raw(jsontext.text_of(parts))
            return
        step = self.run.step("system", "context_edit", edit_boundary="replace", edit_summary=text)
        step.extra.update(rest)

    def _turn(self, item: Raw, path: str) -> None:
        """What was asked, and what the model answered; older versions write a pair."""
        turn = pairs(item, path, self.losses, ("user", "assistant"))
        user = turn.take_child("user")
        if user:
            self._asked(user)
        step = self._answered(turn.child("assistant"))
        if step is None:
            if rest := turn.rest():
                self.run.step("environment", "event", visibility="none").extra.update(rest)
            return
        about = turn.child("request_metadata")
        take_time(about, step.columns, "stream_end_timestamp_ms")
        step.columns["response_id"] = about.text("request_id")
        step.columns["model"] = about.text("model_id") or self.run.columns.get("agent_model")
        about.drop_text("message_id", step.columns.get("native_id"))
        step.extra.update(turn.rest())

    def _asked(self, user: SourceObject) -> None:
        """A prompt, or results; cancelled calls may have both."""
        self.run.constant(user, "env_context", "additional_context", "images")
        content = user.child("content")
        kind = next((key for key in _ASKED if content.first(key) == BRACE), "")
        if not kind:
            self.losses.unknown(f"content of a user {next(iter(content.values), 'without a type')}")
        body = content.child(kind)
        last: ObservationDraft | StepDraft | None = None
        for result in body.objects("tool_use_results"):
            last = self.kiro_blocks.result(result)
            if kind == "CancelledToolUses":
                last.extra.setdefault("cancelled", True)
        prompt = body.text("prompt")
        if prompt is not None or last is None:
            last = self.run.step("user")
            if prompt is not None:
                last.parts.text(self.builder.text(prompt))
        take_time(user, last.columns, "timestamp")
        merge_extra(last.extra, user.rest())

    def _answered(self, assistant: SourceObject) -> StepDraft | None:
        kind = next((key for key in ("Response", "ToolUse") if assistant.first(key) == BRACE), "")
        if not kind:
            if assistant:
                self.losses.unknown(f"answer {next(iter(assistant.values))}")
            return None
        body = assistant.child(kind)
        step = self.run.step("agent", "llm_turn", native_id=body.name("message_id"))
        self.kiro_blocks.thinking(body, step)
        if text := body.text("content"):
            step.parts.text(self.builder.text(text))
        for call in body.objects("tool_uses"):
            self.kiro_blocks.call(call, step)
        return step

    def read_lines(self) -> None:
        """Take what stands beside the lines first: it says which session this is."""
        for _, source in self.side_objects():
            self._about(source)
        super().read_lines()
        name = self.record.source_file.rpartition("/")[2]
        if not self.run.columns.get("source_id") and name.count("-") == 4:
            self.run.columns["source_id"] = self.run.columns["session_id"] = name.split(".")[0]

    def _about(self, source: SourceObject) -> None:
        columns = self.run.columns
        columns["source_id"] = columns["session_id"] = source.name("session_id", "sessionId", "id")
        take_columns(source, columns, TIMES)
        models = source.child("session_state").child("rts_model_state").child("model_info")
        columns["agent_model"] = models.word("model_id") or None
        self.run.extra["session"] = source.rest()

    def message(self, source: SourceObject) -> None:
        """A message: blocks of a kind with data."""
        data = source.child("data")
        draft: StepDraft | ObservationDraft | None = None
        agent = self.kind == "AssistantMessage"
        results = self.kind == "ToolResults"
        for block in data.objects("content"):
            if block.word("kind") == "toolResult":
                block.drop("kind")
                result = self.kiro_blocks.result(block.child("data"))
                result.extra.update(block.rest())
                draft = draft or result
                continue
            if not isinstance(draft, StepDraft):
                draft = self.run.step(
                    "agent" if agent else "user", "llm_turn" if agent else "message"
                )
            self.kiro_blocks.block(block, draft)
        if draft is None:
            draft = self.run.step("agent" if agent else "user", synthetic=results or None)
        if isinstance(draft, StepDraft):
            draft.columns["native_id"] = data.name("message_id")
            draft.columns["model"] = self.run.columns.get("agent_model") if agent else None
        take_time(data.child("meta"), draft.columns, "timestamp")
        merge_extra(draft.extra, source.rest())

    def payload(self, source: SourceObject) -> None:
        """A line of the editor."""
        self.run.columns["agent_name"] = "kiro"
        if not self.kiro_blocks.editor_line(source):
            kind = source.child("payload").word("type")
            self.losses.unknown(f"payload {kind or 'without a type'}")
            self.other(source)


class KiroReader(LogReader):
    """The format ``kiro``."""

    name = "kiro"
    title = "Sessions of Kiro and of the Amazon Q CLI"
    recognised = "turns with a user and an assistant, lines of a kind with data, or its database"
    versions = "reads conversations of version 1, also from data.sqlite3, and lines of version 2"
    log = KiroSession
    database = (
        SqliteShape(root=TABLE, key="conversation_id", needs=_NEEDS),
        SqliteShape(root=EARLY_TABLE, key="key", needs=_EARLY_NEEDS),
        SqliteShape(root=TABLE, key="conversation_id", needs=(*_NEEDS, *_EARLY_NEEDS)),
    )

    def side_files(self, source_file: str) -> tuple[str, ...]:
        """What is known about the session whose lines these are."""
        stem, dot, suffix = source_file.rpartition(".")
        folder, slash, name = stem.rpartition("/")
        folder_files = (f"{folder}{slash}session.json",) if name == "messages" else ()
        return (f"{stem}.json", *folder_files) if dot and suffix == "jsonl" else ()

    def sniff(self, record: Mapping[str, Raw]) -> Match:
        """A conversation, a row, or a line."""
        if "value" in inner(record, TABLE):
            return Match.STAMP
        if word(inner(record, EARLY_TABLE), "value").startswith('{"conversation_id"'):
            return Match.STAMP
        if "conversation_id" in record and "history" in record:
            return Match.STAMP
        if word(record, "kind") in ("Prompt", "AssistantMessage", "ToolResults"):
            return Match.STAMP if "content" in inner(record, "data") else Match.NO
        payload: dict[str, Any] = inner(record, "payload")
        known = word(payload, "type") in EDITOR_LINES and {"content", "toolCallId"} & set(payload)
        return Match.SHAPE if known and "type" not in record else Match.NO


CONVERTER = KiroReader()
