"""The events of a sample of Inspect AI: what models were asked and said, and what tools gave back.

Each model event repeats its input. A message is added to its trajectory when it is first seen; a
list of messages that is kept says only which ones, ``[start, end]``, in the order in which they
were first seen in the sample. A model event whose input lost messages that the run had before
follows an edit of the context. Agents in agents or tools, and the calls of scorers, are branches.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from msgspec import Raw

from adp.converters.kit.blocks import BlockReader, call_columns
from adp.converters.kit.chat import MessagePool, take_calls
from adp.converters.kit.drafts import ObservationDraft, StepDraft, TrajectoryDraft, merge_extra
from adp.converters.kit.source_object import SourceObject
from adp.converters.kit.times import take_time
from adp.converters.readers.inspect_parts import (
    Attachments,
    SpanTree,
    aligned,
    identities,
    inputs_of,
    line_of,
    set_duration,
    set_error,
    set_event,
    take_usage,
)
from adp.converters.reading import BRACE, BRACKET, NULL, QUOTE
from adp_schema import jsontext
from adp_schema.model import Columns

_STRUCTURE = frozenset({"span_begin", "span_end", "step", "state", "store", "sample_init"})
_EVENTS = frozenset(
    {"sandbox", "score", "score_edit", "approval", "input", "interrupt", "branch", "checkpoint",
     "error", "info", "logger", "sample_limit", "anchor"}
)  # fmt: skip
_SOURCES = {"system": "system", "user": "user", "assistant": "agent"}


@dataclass
class _Agent:
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


class SampleEvents:
    """Reads the events of one sample.

    Args:
        blocks: reads content; its trajectory is the main one.
        attachments: texts that events refer to.
        pool: messages that model events refer to by their places.
    """

    def __init__(self, blocks: BlockReader, attachments: Attachments, pool: list[Raw]) -> None:
        self.blocks = blocks
        self.attachments = attachments
        self.messages = MessagePool()
        self.output = ""
        self._pool = pool
        self._used: set[int] = set()
        self._spans = SpanTree()
        self._agents: dict[str, _Agent] = {"": _Agent(blocks.run)}
        self._results: dict[str, list[SourceObject]] = {}
        self._calls: dict[str, tuple[_Agent, StepDraft]] = {}
        self._structure: list[tuple[int, SourceObject]] = []

    @property
    def has_turns(self) -> bool:
        """Whether a model event was read."""
        return bool(self.output)

    # ---- what belongs to whom --------------------------------------------------------------

    def read(self, events: Iterable[SourceObject]) -> None:
        """Read events in their order."""
        for event in events:
            kind = event.word("event")
            span = event.word("span_id") or self._spans.current
            if kind == "model":
                self._model(event, self._agent(span))
            elif kind == "tool":
                self._tool(event)
            elif kind == "subtask":
                self._nested(event, event.word("name"))
                self._keep(event, span)
            elif kind == "compaction":
                self._compaction(event, self._agent(span))
            elif kind in _STRUCTURE:
                self._structural(event, kind)
            else:
                if kind not in _EVENTS:
                    self.blocks.losses.unknown(f"event {kind or 'without a kind'}")
                self._keep(event, span)

    def _keep(self, event: SourceObject, span: str) -> None:
        agent = self._agents.get(self._spans.owner(span)) or self._agents[""]
        columns: Columns = {}
        take_time(event, columns, "timestamp")
        agent.draft.event(event, columns)

    def _structural(self, event: SourceObject, kind: str) -> None:
        self._structure.append((len(self._agents[""].draft.steps), event))
        if kind == "span_begin":
            self._spans.begin(
                event.word("id"), event.word("parent_id"), event.word("type"), event.word("name")
            )
        elif kind == "step" and event.word("action") == "begin":
            self._spans.enter(event.word("type"), event.word("name"))
        elif kind == "step":
            self._spans.leave()

    def _agent(self, span_id: str) -> _Agent:
        owner = self._spans.owner(span_id)
        if owner not in self._agents:
            span = self._spans.spans[owner]
            kind = "alternate" if span.kind == "branch" else "subagent"
            self._agents[owner] = self._branch(self._agent(span.parent), span.name, owner, kind)
        return self._agents[owner]

    def _branch(self, parent: _Agent, name: str, owner: str, kind: str = "subagent") -> _Agent:
        draft = TrajectoryDraft(keeps=0, kind=kind)
        target = f"{self.blocks.run.columns.get('source_id')}/{owner}"
        draft.columns |= {"agent_name": name or None, "source_id": target}
        steps = parent.draft.steps
        parent.draft.link("subagent", steps[-1] if steps else None, target_id=target)
        parent.draft.branches.append(draft)
        return _Agent(draft)

    def _nested(self, event: SourceObject, name: str) -> None:
        """Events inside another one, as logs before the spans had them."""
        inner = event.objects("events")
        if not inner:
            return
        self._spans.enter("tool", name)
        self._spans.enter("subtask", name)
        self.read(inner)
        self._spans.leave()
        self._spans.leave()

    # ---- model events ----------------------------------------------------------------------

    def _model(self, event: SourceObject, agent: _Agent) -> None:
        inputs = [self.attachments.resolve(raw) for raw in inputs_of(event, self._pool, self._used)]
        names, texts = identities(inputs)
        names = aligned(names, texts, agent.context, agent.known)
        if agent.context and names[: len(agent.context)] != agent.context:
            roles = [SourceObject(it, "", self.blocks.losses).word("role") for it in inputs]
            same = [name in agent.known for name, role in zip(names, roles, strict=True)
                    if role != "system"]  # fmt: skip
            if not any(same):  # a call beside the conversation
                number = len(agent.draft.branches)
                agent = self._branch(agent, "", f"{event.word('uuid') or 'call'}-{number}")
            elif not agent.was_edited:
                self._edit(agent, names)
        agent.was_edited = False
        for name, text, raw in zip(names, texts, inputs, strict=True):
            if name not in agent.known:
                self._message(agent, name, text, raw)
        step = agent.draft.step("agent", "llm_turn")
        if inputs and not ("input_refs" in event and all(map(self.messages.has, texts))):
            step.extra["input"] = self.messages.references(inputs)
        outputs = self._turn(event, step, agent)
        agent.context = [*names, *outputs]

    def _edit(self, agent: _Agent, names: list[str]) -> None:
        """The context changed, although no event says so."""
        step = agent.draft.step("system", "context_edit", edit_boundary="replace")
        step.columns["synthetic"] = True
        step.extra["dropped"] = sum(name not in names for name in agent.context)

    def _compaction(self, event: SourceObject, agent: _Agent) -> None:
        step = agent.draft.step("system", "context_edit", edit_boundary="replace")
        take_time(event, step.columns, "timestamp")
        step.columns["edit_summary"] = event.text("summary")
        step.extra.update(event.rest())
        agent.was_edited = True

    def _turn(self, event: SourceObject, step: StepDraft, agent: _Agent) -> list[str]:
        """The output of a model event, and what it took."""
        take_time(event, step.columns, "timestamp")
        written = event.values.get("output")
        if written is not None:
            self.output = jsontext.one_line(self.attachments.resolve(written))
        output = event.child("output")
        step.columns["model"] = event.text("model")
        take_usage(output, step.columns, self.blocks.losses)
        set_duration(event, step.columns)
        self._tools(event, agent)
        choices = output.objects("choices")
        names: list[str] = []
        for choice in choices[:1]:
            step.columns["stop_reason"] = choice.text("stop_reason")
            message = choice.take("message")
            if message is not None and jsontext.first_byte(message) == BRACE:
                message = self.attachments.resolve(message)
                (name,), (text,) = identities([message], before=agent.context)
                names.append(name)
                agent.known[name] = text
                self.messages.add(message)
                self._fill(self._object(message, f"{choice.path}.message"), step, agent)
            elif message is not None:
                choice.values["message"] = message
        if any(left := [choice.rest() for choice in choices]):
            output.values["choices"] = jsontext.raw(jsontext.text_of(left))
        if output.word("completion") == step.parts.columns().get("text"):
            output.drop("completion")
        event.drop("event")
        merge_extra(step.extra, event.rest())
        return names

    def _tools(self, event: SourceObject, agent: _Agent) -> None:
        raw, columns = event.values.get("tools"), agent.draft.columns
        if raw is None or jsontext.first_byte(raw) != BRACKET or bytes(raw) == b"[]":
            return
        tools = jsontext.one_line(self.attachments.resolve(raw))
        if columns.setdefault("tools", tools) == tools:
            columns["tools_origin"] = "recorded"
            event.drop("tools")

    # ---- messages --------------------------------------------------------------------------

    def _object(self, raw: Raw, path: str) -> SourceObject:
        return SourceObject(self.attachments.resolve(raw), path, self.blocks.losses)

    def _message(self, agent: _Agent, name: str, text: str, raw: Raw) -> None:
        """Add a message that the trajectory does not have yet."""
        agent.known[name] = text
        is_known = self.messages.has(text)
        self.messages.add(raw)
        if jsontext.first_byte(raw) != BRACE:
            agent.draft.step("environment", "event", visibility="none").extra["message"] = raw
            return
        message = self._object(raw, "$.messages")
        role = message.word("role")
        if role == "tool":
            self._result(agent, message)
            return
        source = _SOURCES.get(role, "environment")
        step = agent.draft.step(source, "llm_turn" if source == "agent" else "message")
        if (source == "agent" and self.has_turns) or is_known:
            step.columns["is_copied_context"] = True
        self._fill(message, step, agent)

    def _fill(self, message: SourceObject, step: StepDraft, agent: _Agent) -> None:
        self.blocks.run = agent.draft
        if message.word("role") in _SOURCES:
            message.drop("role")
        step.columns["native_id"] = message.name("id")
        if step.columns.get("model") is None:
            step.columns["model"] = message.text("model")
        self._content(message, step)
        take_calls(message, step, self.blocks)
        for call in step.calls:
            self._calls[call.columns["call_id"] or ""] = (agent, step)
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

    # ---- results ---------------------------------------------------------------------------

    def _tool(self, event: SourceObject) -> None:
        self._nested(event, event.word("function"))
        self._results.setdefault(event.word("id"), []).append(event)

    def _result(self, agent: _Agent, message: SourceObject) -> None:
        """The result of a call as the model saw it, with the event that tells of the call."""
        call_id = message.word("tool_call_id")
        draft = ObservationDraft({"name": message.text("function")}, message.text("tool_call_id"))
        steps = agent.draft.steps
        (steps[-1].observations if steps else agent.draft.early).append(draft)
        self.blocks.run = agent.draft
        if message.word("content") or message.first("content") != QUOTE:
            self.blocks.result(message.take("content"), draft, message.path)
        message.drop("role")
        waiting = self._results.get(call_id)
        set_error(message, draft)
        if waiting:
            event, error = waiting.pop(0), message.values.get("error")
            if message.word("id") and event.word("message_id") == message.word("id"):
                event.drop("message_id")
            if error is not None and event.values.get("error") == error:
                event.drop("error")
            self._event(event, draft)
        draft.extra.update(message.rest())

    def _event(self, event: SourceObject, draft: ObservationDraft) -> None:
        _, step = self._calls.get(event.word("id"), (None, None))
        calls = step.calls if step is not None else []
        call = next((it for it in calls if it.columns["call_id"] == event.word("id")), None)
        raw, text = event.values.get("result"), None
        if raw is not None and jsontext.first_byte(raw) == QUOTE:
            text = jsontext.decode_value(self.attachments.resolve(raw))
        set_event(event, draft, call, text)

    # ---- the end ---------------------------------------------------------------------------

    def finish(self, messages: list[Raw]) -> list[Raw | list[int]]:
        """Add the final messages that no model event had, and the results that none saw.

        Args:
            messages: those of the sample.

        Returns:
            Which messages they are.
        """
        main = self._agents[""]
        messages = [self.attachments.resolve(raw) for raw in messages]
        names, texts = identities(messages)
        names = aligned(names, texts, main.context, main.known)
        for name, text, raw in zip(names, texts, messages, strict=True):
            if name not in main.known:
                self._message(main, name, text, raw)
        for call_id, events in self._results.items():
            agent, step = self._calls.get(call_id, (main, None))
            for event in events:
                draft = ObservationDraft({}, call_id or None)
                steps = agent.draft.steps
                target = step or (steps[-1] if steps else None)
                (target.observations if target else agent.draft.early).append(draft)
                value = event.values.get("result")
                if value is not None and jsontext.first_byte(value) in (QUOTE, BRACKET, BRACE):
                    event.drop("result")
                    self.blocks.result(self.attachments.resolve(value), draft, event.path)
                else:
                    draft.columns["structured"] = event.json("result")
                set_error(event, draft)
                self._event(event, draft)
        return self.messages.references(messages)

    def refer(self, messages: list[Raw]) -> list[Raw | list[int]]:
        """Which messages of the sample a list holds."""
        return self.messages.references([self.attachments.resolve(raw) for raw in messages])

    def structure(self) -> list[Any]:
        """Spans, states and the like, each with the step before which it stood."""
        return [[place, self._shrunk(event)] for place, event in self._structure]

    def unused(self) -> list[Raw]:
        """Messages of the pool that no model event referred to."""
        return [raw for place, raw in enumerate(self._pool) if place not in self._used]

    def _shrunk(self, event: SourceObject) -> dict[str, Any]:
        """An event without the messages that the sample has anyway."""
        state = event.child("state")
        if raws := state.items("messages"):
            refs = self.refer(raws)
            state.values["messages"] = jsontext.raw(jsontext.text_of(refs))
        changes = event.objects("changes")
        for change in changes:
            raw = change.values.get("value")
            if raw is not None and jsontext.first_byte(raw) == BRACE:
                (ref,) = self.refer([raw])
                change.values["value"] = jsontext.raw(jsontext.text_of(ref))
        if changes:
            event.values["changes"] = jsontext.raw(jsontext.text_of([it.rest() for it in changes]))
        return event.rest()
