"""Logs that OpenHands writes of each call of a model: the prompt, the completion, its cost.

Where a model has no calls of its own, ``messages`` have them as text; the same as calls stand in
``fncall_messages`` or ``raw_messages``, which are read then. Sources: both generations of
OpenHands.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from msgspec import Raw

from adp.converters.exchanges.apis import ModelApis, reply_kind
from adp.converters.exchanges.reader import REPLY_ONLY
from adp.converters.kit.drafts import StepDraft, merge_extra
from adp.converters.kit.session import LogReader, SessionLog
from adp.converters.kit.source_object import SourceObject
from adp.converters.kit.times import take_time
from adp.converters.reading import BRACE, BRACKET
from adp_schema import jsontext
from adp_schema.errors import RecordError
from adp_schema.protocols import Match

_REPLIES = ("fncall_response", "response", "raw_response")


class CompletionLog(SessionLog):
    """One call of a model."""

    agent: ClassVar[str | None] = "openhands"

    def read_lines(self) -> None:
        """Read the prompt, then the completion."""
        if jsontext.first_byte(self.record.data) != BRACE:
            raise RecordError("expected an object")
        source = SourceObject(self.record.data, "$", self.losses)
        apis = ModelApis(self.blocks)
        for key in ("fncall_messages", "raw_messages"):
            if source.first(key) == BRACKET and "messages" in source:
                source.values["prompt_messages"] = source.values.pop("messages")
                source.values["messages"] = source.values.pop(key)
                break
        apis.request(source, "responses" if "input" in source else "chat")
        if self.run.columns.get("tools") is None:
            apis.request(source.child("kwargs"), "", skip=1)
        self._parameters(source)
        step = self._reply(source, apis)
        if step is None:
            step = self.run.step("agent", "llm_turn") if not self.run.steps else self.run.steps[-1]
        cost, latency = source.number("cost"), source.number("latency_sec")
        if cost is not None and step.columns.get("cost_usd") is None:
            step.columns["cost_usd"] = cost
        if latency is not None:
            step.columns["duration_ms"] = latency * 1000
            step.extra["latency_sec"] = latency
        if "timestamp" not in step.columns:
            take_time(source, step.columns, "timestamp")
        if "profile_name" in source:
            self.run.extra["profile_name"] = source.take("profile_name")
        merge_extra(self.run.extra, source.rest())

    def _parameters(self, source: SourceObject) -> None:
        """The tools stand a second time among the parameters."""
        kwargs = source.child("kwargs")
        tools = kwargs.values.get("tools")
        if tools is not None and jsontext.one_line(tools) == self.run.columns.get("tools"):
            kwargs.drop("tools")
        effort = kwargs.word("reasoning_effort")
        if effort:
            self.run.extra["reasoning_effort"] = effort

    def _reply(self, source: SourceObject, apis: ModelApis) -> StepDraft | None:
        for key in _REPLIES:
            reply = source.child(key)
            kind = reply_kind(reply.values)
            if kind:
                step = apis.reply(reply, kind)
                if len(self.run.steps) == 1 and "messages" not in source:
                    self.run.columns["tags"] = [REPLY_ONLY]
                if step is not None:
                    self.run.columns["source_id"] = step.columns.get("response_id")
                return step
        return None


class OpenHandsLLMLogs(LogReader):
    """The format ``openhands_llm_logs``."""

    name = "openhands_llm_logs"
    title = "Logs that OpenHands writes of the calls of a model"
    recognised = "messages or an input beside a response, kwargs and a cost or a latency"
    versions = "reads the logs of version 0 and of the SDK"
    container = "json"
    log = CompletionLog

    def sniff(self, record: Mapping[str, Raw]) -> Match:
        """A prompt and a completion, with what only this log has."""
        keys = set(record)
        if "response" not in keys or not keys & {"messages", "input"}:
            return Match.NO
        sdk = "kwargs" in keys and bool(keys & {"latency_sec", "context_window"})
        older = "fncall_messages" in keys or {"args", "kwargs", "cost", "timestamp"} <= keys
        gateway = {"backing_model", "gateway_model"} <= keys
        return Match.STAMP if sdk or older or gateway else Match.NO


CONVERTER = OpenHandsLLMLogs()
