"""Turns of the model in the events of OpenHands' SDK, with their calls and the results of these."""

from __future__ import annotations

from typing import ClassVar

from msgspec import Raw

from adp.converters.kit.blocks import call_columns
from adp.converters.kit.chat import take_reasoning
from adp.converters.kit.drafts import CallDraft, ObservationDraft, StepDraft
from adp.converters.kit.key_tables import exit_code
from adp.converters.kit.session import TreeLog
from adp.converters.kit.source_object import SourceObject
from adp.converters.kit.times import take_time
from adp.converters.readers.openhands_v0.turns import drop_known
from adp.converters.reading import BRACE, BRACKET, QUOTE
from adp_schema import jsontext
from adp_schema.model import Columns

_USUAL = {"cache_prompt": Raw(b"false"), "enable_truncation": Raw(b"true")}


class SdkTurns(TreeLog):
    """The turns of a conversation.

    Attributes:
        pending: tokens that were counted before the next turn.
    """

    agent: ClassVar[str | None] = "openhands"
    parent_key: ClassVar[str] = "parent_id"
    root_id: ClassVar[str | None] = "__root__"

    def set_up(self) -> None:
        """Make what joins events: the answer of the model, and its calls by their events."""
        self.blocks.usual = _USUAL
        self.pending: Columns = {}
        self._response: tuple[str, StepDraft] | None = None
        self._calls: dict[str, str] = {}

    def begin_step(self, source: SourceObject, speaker: str, kind: str = "") -> StepDraft:
        """Add a step; one of the agent has the tokens that were counted before it."""
        step = super().begin_step(source, speaker, kind)
        source.drop_text("source", speaker)
        if speaker == "agent":
            step.columns |= self.pending
            self.pending = {}
        return step

    def take_reasoning_item(self, source: SourceObject, step: StepDraft) -> None:
        """The summary of reasoning whose text is encrypted; the item stays in extra."""
        if "responses_reasoning_item" not in source:
            return
        item = source.peek("responses_reasoning_item")
        texts = [*item.words("summary"), *item.words("content")]
        if texts and "reasoning" not in step.parts.columns():
            step.parts.reasoning("\n\n".join(texts))

    def action(self, source: SourceObject) -> None:
        """One call: of the answer before, or of a new one."""
        response = source.word("llm_response_id")
        step = self._response[1] if self._response and self._response[0] == response else None
        first = step is None or not response or step not in self.run.steps[-1:]
        native = source.word("id")
        if step is None or first:
            step = self.begin_step(source, "agent")
            self._response = (response, step)
            step.columns["response_id"] = source.text("llm_response_id")
            self.take_reasoning_item(source, step)
            take_reasoning(source, step, self.blocks)
            if source.first("thought") in (BRACKET, QUOTE):
                self.blocks.content(source.take("thought"), step, f"{source.path}.thought")
            self._turn_rest(source, step)
        call = self._call(source, step)
        if native and call.columns["call_id"]:
            self._calls[native] = call.columns["call_id"]
        call.extra |= source.rest()

    def _turn_rest(self, source: SourceObject, step: StepDraft) -> None:
        for key in ("source", "responses_reasoning_item", "critic_result"):
            if key in source:
                step.extra[key] = source.values.pop(key)

    def _call(self, source: SourceObject, step: StepDraft) -> CallDraft:
        given, args = source.child("tool_call"), source.child("action")
        function = given.child("function") if given.first("function") == BRACE else given
        name, call_id = function.text("name"), given.name("id")
        raw = function.take("arguments")
        for key, value in (("tool_name", name), ("tool_call_id", call_id)):
            source.drop_text(key, value)
        if raw is None and args:
            raw = jsontext.raw(jsontext.text_of(args.values))
        name = name or source.text("tool_name")
        call = step.call(call_columns(name, call_id or source.name("tool_call_id"), raw))
        drop_known(args, call)
        return call

    def _result(self, source: SourceObject) -> ObservationDraft:
        answers = source.text("tool_call_id")
        cause = self._calls.get(source.word("action_id"))
        if cause is not None and answers in (None, cause):
            answers = cause
        draft = self.run.observe({"name": source.text("tool_name")}, answers=answers)
        take_time(source, draft.columns, "timestamp")
        if source.word("source") in ("environment", "user", "agent"):
            draft.columns["source"] = source.text("source")
        return draft

    def observation(self, source: SourceObject) -> None:
        """A result; what it says beside its content is structured."""
        draft = self._result(source)
        inner = source.child("observation")
        draft.columns["is_error"] = inner.flag("is_error")
        for key in ("content", "output"):
            if inner.first(key) in (BRACKET, QUOTE) and not draft.parts.columns():
                self.blocks.result(inner.take(key), draft, f"{inner.path}.{key}")
        places = (inner, inner.peek("metadata")) if "metadata" in inner else (inner,)
        draft.columns["exit_code"] = exit_code(*places)
        if inner:
            draft.columns["structured"] = jsontext.text_of(inner.values)
            inner.values.clear()
        draft.extra = source.rest()

    def refusal(self, source: SourceObject) -> None:
        """A call that was not carried out: it failed before, or the user or a hook said no."""
        draft = self._result(source)
        self.blocks.take_text(source, draft.parts, "error", "rejection_reason")
        draft.columns["is_error"] = True
        draft.columns["error_type"] = source.text("rejection_source")
        draft.extra = source.rest()

    def acp_call(self, source: SourceObject) -> None:
        """A call of another agent that OpenHands drives; later events tell how it went on."""
        call_id, status = source.word("tool_call_id"), source.word("status")
        if call_id not in self._calls.values():
            step = self.begin_step(source, "agent")
            self._calls[source.word("id") or call_id] = call_id
            name = source.text("tool_kind") or source.word("title")
            columns = call_columns(name, source.text("tool_call_id"), source.take("raw_input"))
            step.call({**columns, "status": status or None}, source.rest())
        if status not in ("completed", "failed"):
            if source:
                self.other(source)
            return
        draft = self.run.observe({"is_error": status == "failed"}, answers=call_id)
        draft.columns["structured"] = source.json("raw_output")
        self.blocks.result(source.take("content"), draft, source.path)
        draft.extra = source.rest()
