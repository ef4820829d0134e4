"""Sessions of Continue, of its editor and its CLI: a document for each, below ``sessions``.

An entry of the history is a message of a chat with what the program knows of it. The state of a
call has its output; the editor also puts the output in a message of its own, and reasoning before
the answer, in the role ``thinking``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from msgspec import Raw

from adp.converters.kit.chat_messages import ChatMessages
from adp.converters.kit.drafts import StepDraft, merge_extra
from adp.converters.kit.session import LogReader, SessionLog, first_item, inner, word
from adp.converters.kit.source_object import SourceObject
from adp.converters.kit.usage import OPENAI, UsageKeys, set_totals, take_usage
from adp.converters.reading import BRACKET
from adp_schema import jsontext
from adp_schema.protocols import Match

_TOTALS = UsageKeys(
    prompt=("promptTokens",),
    written=("completionTokens",),
    cached=("promptTokensDetails.cachedTokens",),
    cost=("totalCost",),
)
_RENAMED = {"toolCalls": "tool_calls", "toolCallId": "tool_call_id"}
_FAILED = ("errored", "canceled")


class ContinueSession(SessionLog):
    """One session."""

    agent: ClassVar[str | None] = "continue"

    def set_up(self) -> None:
        """Make the reader of messages; no reasoning waits for its answer."""
        self._chat = ChatMessages(self.blocks)
        self._thought: StepDraft | None = None

    def line(self, source: SourceObject) -> None:
        """The document of a session."""
        columns = self.run.columns
        columns["source_id"] = columns["session_id"] = source.name("sessionId")
        columns["agent_model"] = source.word("chatModelTitle") or None
        set_totals(source.peek("usage"), columns, _TOTALS)
        history = source.objects("history")
        self._answered = {entry.peek("message").word("toolCallId") for entry in history}
        for entry in history:
            self._entry(entry)
        merge_extra(self.run.extra, source.rest())

    def _entry(self, source: SourceObject) -> None:
        message = source.child("message")
        for old, new in _RENAMED.items():
            if old in message and new not in message:
                message.values[new] = message.values.pop(old)
        if message.word("role") == "thinking":
            self._think(source, message)
            return
        step = self._chat.message(message) if message.word("role") != "assistant" else None
        if message.word("role") == "assistant":
            step = self._answer(message)
        if step is None:
            merge_extra(self.run.observations[-1].extra, {"entry": source.rest_lines()})
            return
        states = source.objects("toolCallStates")
        merge_extra(step.extra, source.rest())
        for state in states:
            self._result(state, step)

    def _think(self, source: SourceObject, message: SourceObject) -> None:
        """Reasoning, which is a part of the answer after it."""
        self._thought = self.run.step("agent", "llm_turn")
        text = message.text("content")
        message.drop("role")
        self._thought.parts.reasoning(self.builder.text(text or ""))
        merge_extra(self._thought.extra, source.rest())

    def _answer(self, message: SourceObject) -> StepDraft:
        usage = message.peek("usage")
        model = usage.word("model") or None
        columns = {"model": model or self.run.columns.get("agent_model")}
        take_usage(message, "usage", columns, OPENAI)
        thought, self._thought = self._thought, None
        # The answer goes on with the reasoning before it, unless a result stands between them.
        if thought is not None and (self.run.steps[-1] is not thought or thought.observations):
            thought = None
        about: dict[str, Any] = {}
        if thought is not None:
            about, thought.extra = thought.extra, {}
        step = self._chat.assistant(message, thought)
        merge_extra(step.extra, {"thinking": about} if about else {})
        step.columns.update(columns)
        if model is not None:
            self.set_model(step, model)
        return step

    def _result(self, state: SourceObject, step: StepDraft) -> None:
        """The output of a call, unless a message has it."""
        status, call_id = state.word("status"), state.word("toolCallId")
        if call_id and call_id in self._answered:
            call = next((it for it in step.calls if it.columns.get("call_id") == call_id), None)
            target = step.extra if call is None else call.extra
            merge_extra(target, {"state": state.rest_lines()})
            return
        state.drop("toolCallId") if call_id else None
        draft = self.run.observe({}, answers=call_id or None)
        draft.columns["is_error"] = True if status in _FAILED else None
        for item in state.objects("output"):
            text = item.text("content")
            draft.parts.text(self.builder.text(text or ""), item.rest_lines())
        draft.extra.update(state.rest())


class ContinueReader(LogReader):
    """The format ``continue_sessions``."""

    name = "continue_sessions"
    title = "Sessions of Continue"
    recognised = "a sessionId beside a history of messages with contextItems"
    versions = "reads the sessions of the CLI 1.5 and of the editor"
    log = ContinueSession

    def sniff(self, record: Mapping[str, Raw]) -> Match:
        """A document with a history of messages in entries."""
        if "sessionId" not in record or "history" not in record:
            return Match.NO
        first = first_item(record, "history")
        is_list = jsontext.first_byte(record["history"]) == BRACKET
        known = word(inner(first, "message"), "role") and "contextItems" in first
        return Match.STAMP if is_list and known else Match.NO


CONVERTER = ContinueReader()
