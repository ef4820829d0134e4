"""Sessions of Cursor: transcripts of its agent, and the rows of its databases.

The editor keeps a conversation as ``composerData:ID`` and its pieces as ``bubbleId:ID:PIECE``; a
piece is a text, reasoning, or a call with its result. The terminal keeps messages as blobs.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from msgspec import Raw

from adp.converters.files.sqlite import SqliteShape
from adp.converters.kit.blocks import call_columns
from adp.converters.kit.drafts import StepDraft, merge_extra
from adp.converters.kit.key_tables import exit_code, take_columns, take_tools
from adp.converters.kit.session import LogReader, SessionLog, inner, word
from adp.converters.kit.source_object import SourceObject, embedded
from adp.converters.kit.times import take_start, take_time
from adp.converters.kit.usage import UsageKeys, take_usage
from adp.converters.reading import BRACE, BRACKET
from adp_schema.protocols import Match

USAGE = UsageKeys(prompt=("inputTokens",), written=("outputTokens",))


class CursorSession(SessionLog):
    """One session."""

    agent: ClassVar[str | None] = "cursor"
    handlers: ClassVar[Mapping[str, str]] = {
        "cursor_session_meta": "header",
        "cursor_available_tools": "tools",
        "message": "message",
        "editor": "editor",
        "terminal": "terminal",
    }
    kept: ClassVar[frozenset[str]] = frozenset({"turn_ended"})
    time_keys: ClassVar[tuple[str, ...]] = ("timestamp", "createdAt")

    def kind_of(self, source: SourceObject) -> str:
        """The rows of a database, a message, or the type of another line."""
        if source.first("cursorDiskKV") == BRACE:
            return "editor"
        if source.first("meta") == BRACE and source.first("blobs") == BRACKET:
            return "terminal"
        if source.word("role") and source.first("message") == BRACE:
            return "message"
        return source.word("type")

    def header(self, source: SourceObject) -> None:
        """A line about the session, which tools that collect transcripts write."""
        if not self.is_first_header(source, "session_id"):
            return
        take_columns(source, self.run.columns, {"agent_model": "model"})
        merge_extra(self.run.extra, source.rest())

    def tools(self, source: SourceObject) -> None:
        """The tools on offer."""
        take_tools(source, self.run.columns)
        if rest := source.rest():
            merge_extra(self.run.extra, {"cursor_available_tools": rest})

    def message(self, source: SourceObject) -> None:
        """A message by its role; results stand in those of the user."""
        message = source.child("message")
        role = source.word("role")
        if role in ("user", "assistant"):
            source.drop("role")
        self._message(role, message, source)

    def _message(self, role: str, message: SourceObject, source: SourceObject) -> None:
        draft = self.add_message(source, role, message.take("content"), message.path)
        if role == "assistant":
            take_columns(message, draft.columns, {"model": "model"})
        merge_extra(draft.extra, source.rest())

    def finish(self) -> None:
        """Results whose id no call has answer calls without an id, in their order."""
        names = {
            call.columns.get("call_id") for step in self.run.steps for call in step.calls
        } - {None}  # fmt: skip
        for step in self.run.steps:
            for result in step.observations:
                if result.answers is not None and result.answers not in names:
                    result.columns["native_call_id"] = result.answers
                    result.answers, result.by_order = None, True

    def editor(self, source: SourceObject) -> None:
        """A conversation with its pieces, in the order of its list of them."""
        if "source_id" in self.run.columns:
            self.other(source)
            return
        row = source.child("cursorDiskKV")
        composer = row.parsed("value")
        columns = self.run.columns
        name = composer.name("composerId") or row.word("key").partition(":")[2] or None
        columns["source_id"] = columns["session_id"] = name
        take_columns(composer, columns, {"started_at": "createdAt", "ended_at": "lastUpdatedAt"})
        columns["agent_model"] = composer.child("modelConfig").word("modelName") or None
        pieces: dict[str, SourceObject] = {}
        for item in source.objects("bubbleId"):
            piece = item.word("key").rpartition(":")[2]
            pieces[piece if piece not in pieces else f"{piece} {len(pieces)}"] = item
        for header in composer.copy().objects("fullConversationHeadersOnly"):
            if (name := header.word("bubbleId")) in pieces:
                self._row(pieces.pop(name))
        for bubble in composer.objects("conversation"):
            self._bubble(bubble, bubble)
        for item in pieces.values():
            self._row(item)
        merge_extra(self.run.extra, source.rest())

    def _row(self, row: SourceObject) -> None:
        bubble = row.parsed("value")
        if bubble:
            self._bubble(bubble, row)
        else:
            self.run.event(row)

    def _bubble(self, bubble: SourceObject, row: SourceObject) -> None:
        agent = bubble.integer_at("type") != 1
        if bubble.integer_at("type") in (1, 2):
            bubble.drop("type")
        who, kind = ("agent", "llm_turn") if agent else ("user", "message")
        step = self.run.step(who, kind, native_id=bubble.name("bubbleId"))
        take_time(bubble, step.columns, "createdAt")
        if thought := bubble.child("thinking").text("text"):
            step.parts.reasoning(self.builder.text(thought))
        if text := bubble.text("text"):
            step.parts.text(self.builder.text(text))
        if agent:
            self.set_model(step, bubble.child("modelInfo").text("modelName"))
            take_usage(bubble, "tokenCount", step.columns, USAGE)
        tool = bubble.child("toolFormerData")
        if tool.word("name") or tool.word("toolCallId"):
            self._tool(tool, step)
        merge_extra(step.extra, row.rest())

    def _tool(self, tool: SourceObject, step: StepDraft) -> None:
        name, call_id = tool.text("name"), tool.name("toolCallId")
        key = "rawArgs" if tool.word("rawArgs") else "params"
        call = step.call(call_columns(name, call_id, tool.take(key)))
        status = call.columns["status"] = tool.text("status")
        result, error = tool.text("result"), tool.first("error")
        if result is None and not error:
            return
        draft = self.run.observe({"name": name}, answers=call_id, by_order=True)
        draft.columns["is_error"] = None if status is None else status == "error"
        if result is None:
            failure = tool.parsed("error")
            message = failure.text("modelVisibleErrorMessage", "clientVisibleErrorMessage")
            if (text := message if failure else tool.text("error")) is not None:
                draft.parts.text(self.builder.text(text))
            return
        draft.parts.text(self.builder.text(result))
        values = embedded(result, tool.path, self.losses)
        draft.columns["exit_code"] = exit_code(values)

    def terminal(self, source: SourceObject) -> None:
        """A conversation: a header in hexadecimal digits, and messages among the blobs."""
        columns = self.run.columns
        if "source_id" in columns:
            self.other(source)
            return
        meta = source.child("meta")
        header = _of_digits(meta.word("value"), meta.path, self)
        if header:
            meta.drop("value")
            columns["source_id"] = columns["session_id"] = header.name("agentId")
            columns["agent_model"] = header.text("lastUsedModel")
            take_start(header, columns, "createdAt")
            self.run.extra["header"] = header.rest()
        for row in source.objects("blobs"):
            blob = row.parsed("data")
            if role := blob.word("role"):
                if role in ("user", "assistant", "system"):
                    blob.drop("role")
                self._message(role, blob, row)
            else:
                self.run.event(row, {"native_id": row.word("id") or None})
        merge_extra(self.run.extra, source.rest())


def _of_digits(digits: str, path: str, session: CursorSession) -> SourceObject:
    """The object whose JSON text is written as hexadecimal digits."""
    try:
        text = bytes.fromhex(digits).decode("utf-8")
    except ValueError:
        text = ""
    return embedded(text, path, session.losses)


class CursorReader(LogReader):
    """The format ``cursor``."""

    name = "cursor"
    title = "Sessions of Cursor"
    recognised = "lines of a role and a message, or the rows of a conversation in its databases"
    versions = "reads transcripts, and conversations of the editor and the terminal"
    log = CursorSession
    database = (
        SqliteShape(
            root="cursorDiskKV",
            key="key",
            prefix="composerData:",
            children={"bubbleId": "bubbleId:{id}:"},
            needs=("cursorDiskKV.value",),
        ),
        SqliteShape(root="meta", key="key", shared=("blobs",), needs=("meta.value", "blobs.data")),
    )

    def sniff(self, record: Mapping[str, Raw]) -> Match:
        """A line of a transcript, or the first row of a conversation."""
        if word(record, "type").startswith("cursor_"):
            return Match.STAMP
        if word(inner(record, "cursorDiskKV"), "key").startswith("composerData:"):
            return Match.STAMP
        if "blobs" in record and word(inner(record, "meta"), "value").startswith("7b22"):
            return Match.STAMP
        lines = set(record) in ({"role", "message"}, {"role", "message", "timestamp"})
        return Match.SHAPE if lines and "content" in inner(record, "message") else Match.NO


CONVERTER = CursorReader()
