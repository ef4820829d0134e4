"""Threads of Amp: a document of messages with Anthropic-like blocks.

A result has its outcome in ``run``, which says whether the tool was done, failed or was refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from msgspec import Raw

from adp.converters.kit.drafts import ObservationDraft, StepDraft, merge_extra
from adp.converters.kit.key_tables import exit_code, take_columns
from adp.converters.kit.session import LogReader, SessionLog, word
from adp.converters.kit.source_object import SourceObject
from adp.converters.kit.times import take_time
from adp.converters.kit.usage import UsageKeys, take_usage
from adp.converters.reading import BRACE, BRACKET
from adp_schema import jsontext
from adp_schema.errors import RecordError
from adp_schema.protocols import Match

USAGE = UsageKeys(
    prompt=("inputTokens",),
    written=("outputTokens",),
    cached=("cacheReadInputTokens",),
    cache_write=("cacheCreationInputTokens",),
    apart=True,
)


class AmpThread(SessionLog):
    """One thread."""

    agent: ClassVar[str | None] = "amp"

    def line(self, source: SourceObject) -> None:
        """The document."""
        if source.first("messages") != BRACKET:
            raise RecordError("expected a list of messages", f"{source.path}.messages")
        if not self.is_first_header(source, "id"):
            return
        take_columns(source, self.run.columns, {"started_at": "created", "source_version": "v"})
        for message in source.objects("messages"):
            self.message(message)
        self.run.extra.update(source.rest())

    def message(self, message: SourceObject) -> None:
        """A message by its role."""
        role = message.word("role")
        if role in ("user", "assistant"):
            message.drop("role")
        content = message.take("content")
        path = f"{message.path}.content"
        if role == "assistant":
            step = self.run.step("agent", "llm_turn", native_id=message.name("messageId"))
            self.blocks.content(content, step, path)
            self._turn(message, step)
            step.extra.update(message.rest())
            return
        others: list[Raw] = []
        last: ObservationDraft | None = None
        is_list = content is not None and jsontext.first_byte(content) == BRACKET
        for item in jsontext.decode_array(content) if is_list and content is not None else []:
            block = SourceObject(item, path, self.losses)
            if block.word("type") == "tool_result" and block.first("run") == BRACE:
                last = self._result(block)
            else:
                others.append(item)
        draft: StepDraft | ObservationDraft
        if last is not None and not others:
            draft = last
        else:
            draft = self.run.step("user", native_id=message.name("messageId"))
            for item in others if is_list else [content] if content is not None else []:
                self.blocks.content(item, draft, path)
        take_time(message.child("meta"), draft.columns, "sentAt")
        merge_extra(draft.extra, message.rest())

    def _turn(self, message: SourceObject, step: StepDraft) -> None:
        state = message.child("state")
        step.columns["stop_reason"] = state.text("stopReason")
        take_time(message.child("meta"), step.columns, "sentAt")
        usage = message.peek("usage")
        take_time(usage, step.columns, "timestamp")
        self.set_model(step, usage.word("model") or None)
        take_usage(message, "usage", step.columns, USAGE)
        step.columns["duration_ms"] = message.number("turnElapsedMs")

    def _result(self, block: SourceObject) -> ObservationDraft:
        block.drop("type")
        run = block.child("run")
        draft = self.run.observe({}, answers=block.name("toolUseID", "tool_use_id"), by_order=True)
        status = run.word("status")
        if status:
            draft.columns["is_error"] = status != "done"
        result = run.peek("result")
        draft.columns["exit_code"] = exit_code(result)
        if result:
            text = result.word("output") or result.word("content")
            if text:
                draft.parts.text(self.builder.text(text))
            draft.columns["structured"] = run.json_object("result")
        else:
            self.blocks.result(run.take("result"), draft, f"{run.path}.result")
        error = run.peek("error")
        if message := error.word("message") or run.word("error") or run.word("reason"):
            draft.parts.text(self.builder.text(message))
        draft.extra = block.rest()
        return draft


class AmpReader(LogReader):
    """The format ``amp``."""

    name = "amp"
    title = "Threads of Amp"
    container = "json"
    recognised = "a document with an id that begins with T-, a v, and messages"
    versions = "reads the threads that Amp keeps and exports"
    log = AmpThread

    def sniff(self, record: Mapping[str, Raw]) -> Match:
        """A thread, by its id."""
        known = word(record, "id").startswith("T-") and {"messages", "v"} <= set(record)
        return Match.STAMP if known else Match.NO


CONVERTER = AmpReader()
