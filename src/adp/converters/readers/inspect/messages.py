"""Messages of a sample of Inspect AI, read into the trajectory of the agent that has them."""

from __future__ import annotations

from dataclasses import dataclass, field

from msgspec import Raw

from adp.converters.kit.blocks import BlockReader, call_columns
from adp.converters.kit.chat import MessagePool, take_calls
from adp.converters.kit.drafts import ObservationDraft, StepDraft, TrajectoryDraft, merge_extra
from adp.converters.kit.source_object import SourceObject
from adp.converters.readers.inspect.parts import Attachments, line_of, set_error, set_event
from adp.converters.reading import BRACE, BRACKET, NULL, QUOTE
from adp_schema import jsontext

_SOURCES = {"system": "system", "user": "user", "assistant": "agent"}


@dataclass
class SampleAgent:
    """A trajectory of the sample, with the messages that it has.

    Attributes:
        draft: the trajectory.
        known: identity of a message -> its text.
        context: the messages that its next model event should begin with.
        was_edited: an edit that the log tells explains the next difference.
    """

    draft: TrajectoryDraft
    known: dict[str, str] = field(default_factory=dict)
    context: list[str] = field(default_factory=list)
    was_edited: bool = False


class SampleMessages:
    """Reads messages, and the results of calls.

    Args:
        blocks: reads content.
        attachments: texts that messages refer to.

    Attributes:
        messages: all messages, in the order in which they were first seen.
        output: the output of the last model event.
        results: id of a call -> events of tools that no message has taken.
        calls: id of a call -> the agent that it is of, and its step.
    """

    def __init__(self, blocks: BlockReader, attachments: Attachments) -> None:
        self.blocks = blocks
        self.attachments = attachments
        self.messages = MessagePool()
        self.output = ""
        self.results: dict[str, list[SourceObject]] = {}
        self.calls: dict[str, tuple[SampleAgent, StepDraft]] = {}

    @property
    def has_turns(self) -> bool:
        """Whether a model event was read."""
        return bool(self.output)

    def object_of(self, raw: Raw, path: str) -> SourceObject:
        """A message with the texts of its attachments."""
        return SourceObject(self.attachments.resolve(raw), path, self.blocks.losses)

    def add_message(self, agent: SampleAgent, name: str, text: str, raw: Raw) -> None:
        """Add a message that the trajectory does not have yet."""
        agent.known[name] = text
        is_known = self.messages.has(text)
        self.messages.add(raw)
        if jsontext.first_byte(raw) != BRACE:
            agent.draft.step("environment", "event", visibility="none").extra["message"] = raw
            return
        message = self.object_of(raw, "$.messages")
        role = message.word("role")
        if role == "tool":
            self._result(agent, message)
            return
        source = _SOURCES.get(role, "environment")
        step = agent.draft.step(source, "llm_turn" if source == "agent" else "message")
        if (source == "agent" and self.has_turns) or is_known:
            step.columns["is_copied_context"] = True
        self.fill(message, step, agent)

    def fill(self, message: SourceObject, step: StepDraft, agent: SampleAgent) -> None:
        """Read a message into a step of an agent."""
        self.blocks.run = agent.draft
        if message.word("role") in _SOURCES:
            message.drop("role")
        step.columns["native_id"] = message.name("id")
        if step.columns.get("model") is None:
            step.columns["model"] = message.text("model")
        self._content(message, step)
        take_calls(message, step, self.blocks)
        for call in step.calls:
            self.calls[call.columns["call_id"] or ""] = (agent, step)
        merge_extra(step.extra, message.rest())

    def _content(self, message: SourceObject, step: StepDraft) -> None:
        path = f"{message.path}.content"
        blocks = message.objects("content")
        if not blocks and message.first("content") not in (0, NULL):
            self.blocks.content(message.take("content"), step, path)
        for block in blocks:
            kind = block.word("type")
            if kind == "tool_use":
                self._server_call(block, step)
            elif kind == "reasoning" and block.values.get("redacted") == Raw(b"true"):
                if summary := block.text("summary"):
                    step.parts.reasoning(self.blocks.builder.text(summary))
                step.parts.opaque({key: line_of(it) for key, it in block.rest().items()})
            else:
                self.blocks.block(block, step)

    def _server_call(self, block: SourceObject, step: StepDraft) -> None:
        """A call that the provider carried out by itself, with its result."""
        name, call_id = block.text("name"), block.name("id")
        result, error = block.text("result"), block.text("error")
        kind = "mcp" if "mcp" in block.word("tool_type") else "function"
        step.call(call_columns(name, call_id, block.take("arguments"), kind), block.rest())
        draft = ObservationDraft({"is_error": bool(error)}, call_id, call_id is None)
        draft.parts.text(self.blocks.builder.text(result or ""))
        if error:
            draft.columns["error_type"] = error
        step.observations.append(draft)

    def _result(self, agent: SampleAgent, message: SourceObject) -> None:
        """The result of a call as the model saw it, with the event of the tool."""
        call_id = message.word("tool_call_id")
        draft = ObservationDraft({"name": message.text("function")}, message.text("tool_call_id"))
        agent.draft.observations.append(draft)
        self.blocks.run = agent.draft
        if message.word("content") or message.first("content") != QUOTE:
            self.blocks.result(message.take("content"), draft, message.path)
        message.drop("role")
        waiting = self.results.get(call_id)
        set_error(message, draft)
        if waiting:
            event, error = waiting.pop(0), message.values.get("error")
            if message.word("id") and event.word("message_id") == message.word("id"):
                event.drop("message_id")
            if error is not None and event.values.get("error") == error:
                event.drop("error")
            self.end_call(event, draft)
        draft.extra.update(message.rest())

    def end_call(self, event: SourceObject, draft: ObservationDraft) -> None:
        """Complete a result with the event of its call."""
        _, step = self.calls.get(event.word("id"), (None, None))
        calls = step.calls if step is not None else []
        call = next((it for it in calls if it.columns["call_id"] == event.word("id")), None)
        raw, text = event.values.get("result"), None
        if raw is not None and jsontext.first_byte(raw) == QUOTE:
            text = jsontext.decode_value(self.attachments.resolve(raw))
        set_event(event, draft, call, text)

    def end_results(self, main: SampleAgent) -> None:
        """Add the results that no message has; those of unknown calls are of the main agent."""
        for call_id, events in self.results.items():
            agent, step = self.calls.get(call_id, (main, None))
            for event in events:
                draft = ObservationDraft({}, call_id or None)
                (step.observations if step else agent.draft.observations).append(draft)
                value = event.values.get("result")
                if value is not None and jsontext.first_byte(value) in (QUOTE, BRACKET, BRACE):
                    event.drop("result")
                    self.blocks.result(self.attachments.resolve(value), draft, event.path)
                else:
                    draft.columns["structured"] = event.json("result")
                set_error(event, draft)
                self.end_call(event, draft)
