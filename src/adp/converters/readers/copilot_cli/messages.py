"""The messages of a session of Copilot CLI: prompts, reasoning, turns, usage."""

from __future__ import annotations

from adp.converters.kit.chat import add_call
from adp.converters.kit.drafts import StepDraft, merge_extra
from adp.converters.kit.key_tables import take_columns
from adp.converters.kit.logged_calls import LoggedCalls
from adp.converters.kit.session import SessionLog
from adp.converters.kit.source_object import SourceObject
from adp.converters.kit.usage import UsageKeys, set_usage
from adp_schema import jsontext
from adp_schema.model import Columns

USAGE = UsageKeys(
    prompt=("inputTokens",),
    written=("outputTokens",),
    cached=("cacheReadTokens",),
    cache_write=("cacheWriteTokens",),
    reasoning=("reasoningTokens",),
)


class CopilotMessages(SessionLog):
    """The messages of a session.

    Attributes:
        calls: the calls that messages request.
        model: the model that is selected.
    """

    def set_up(self) -> None:
        """Make what joins a message with the events before it."""
        self.calls = LoggedCalls()
        self.model: str | None = None
        self._spent: dict[str, Columns] = {}
        self._thought: StepDraft | None = None
        self._message: tuple[int, str] | None = None

    def system(self, source: SourceObject) -> None:
        """The system prompt; it is written again when the session goes on."""
        data = source.child("data")
        if data.word("role") == "system":
            data.drop("role")
        text = data.text("content")
        earlier = {it.columns.get("text") for it in self.run.steps
                   if it.columns["source"] == "system"}  # fmt: skip
        step = self.begin_step(source, "system")
        step.columns["text"] = None if text is None else self.builder.text(text)
        if text is not None and step.columns["text"] in earlier:
            step.columns["is_copied_context"] = True
        step.extra.update(source.rest())

    def user(self, source: SourceObject) -> None:
        """What the user wrote; the text is what the model saw of it."""
        data = source.child("data")
        step = self.begin_step(source, "user")
        seen = data.text("transformedContent")
        if seen is None or data.word("content") == seen:
            text = data.text("content")
            seen = text if seen is None else seen
        if seen is not None:
            step.parts.text(self.builder.text(seen))
        step.extra.update(source.rest())

    def reasoning(self, source: SourceObject) -> None:
        """Reasoning that comes before the message that it belongs to, or repeats that of one."""
        data = source.child("data")
        turns = (it for it in reversed(self.run.steps) if it.columns["kind"] == "llm_turn")
        before = next(turns, None)
        text = data.word("content")
        if before is not None and text and before.parts.columns().get("reasoning") == text:
            data.drop("content")
            merge_extra(before.extra, {"assistant.reasoning": source.rest()})
            return
        step = self.begin_step(source, "agent")
        self.blocks.take_reasoning(source.child("data"), step.parts, "content")
        step.extra["assistant.reasoning"] = source.rest()
        self._thought = step

    def assistant(self, source: SourceObject) -> None:
        """A message of the model, whole or a piece of it."""
        data = source.child("data")
        last = self.run.steps[-1] if self.run.steps else None
        name = data.word("messageId")
        is_piece = "chunkIndex" in data and (id(self.run), name) == self._message
        if last is not None and (is_piece or last is self._thought):
            step = last
        else:
            step = self.begin_step(source, "agent")
        self._thought, self._message = None, (id(self.run), name)
        self._fill(source, data, step)

    def _fill(self, source: SourceObject, data: SourceObject, step: StepDraft) -> None:
        columns = step.columns
        model = data.text("model")
        columns["model"] = model or columns.get("model") or self.model
        if columns["model"] and self.run.columns.get("agent_model") is None:
            self.run.columns["agent_model"] = columns["model"]
        thought, text = data.text("reasoningText"), data.text("content")
        if thought is not None and thought != step.parts.columns().get("reasoning"):
            step.parts.reasoning(self.builder.text(thought))
        if text:
            step.parts.text(self.builder.text(text))
        for request in data.objects("toolRequests"):
            kind = "mcp" if request.word("mcpServerName") else "function"
            call = add_call(request, step)
            call.columns["kind"] = kind
            self.calls.add(self.run, step, call)
        call_id = data.word("apiCallId")
        if call_id and columns.get("response_id") in (None, call_id):
            columns["response_id"] = data.text("apiCallId")
        if spent := self._spent.pop(call_id, None):
            columns.update(spent)
        if columns.get("tokens_out") is None:
            take_columns(data, columns, {"tokens_out": "outputTokens"})
        merge_extra(step.extra, source.rest())

    def usage_record(self, source: SourceObject) -> None:
        """Tokens of a call of the model, mostly before its message; the event keeps the rest."""
        usage, columns = source.child("data").peek("usage"), Columns()
        set_usage(usage, columns, USAGE)
        call_id = usage.word("apiCallId")
        same = (it for it in self.run.steps if call_id and it.columns.get("response_id") == call_id)
        step = next(same, None)
        if step is None:
            self._spent[call_id] = columns
        elif step.columns.get("tokens_in") is None:
            step.columns.update(columns)
        self.keep(source)

    def usage(self, source: SourceObject) -> None:
        """Tokens of the model call before it."""
        turns = [step for step in self.run.steps if step.columns["kind"] == "llm_turn"]
        if not turns or "usage" in turns[-1].columns:
            self.keep(source)
            return
        data = source.child("data")
        columns: Columns = {}
        set_usage(data, columns, USAGE)
        columns.update({k: v for k, v in turns[-1].columns.items() if v is not None})
        turns[-1].columns = columns
        turns[-1].columns["usage"] = jsontext.text_of(source.rest())
