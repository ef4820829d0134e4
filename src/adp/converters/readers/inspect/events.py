"""The events of a sample of Inspect AI: inputs and outputs of models, results of tools.

Each model event repeats its input. A message is added to its trajectory when it is first seen; a
list of messages that is kept says only which ones, ``[start, end]``, in the order in which they
were first seen in the sample. A model event whose input lost messages that the run had before
follows an edit of the context. Agents in agents or tools, and the calls of scorers, are branches.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from msgspec import Raw

from adp.converters.kit.blocks import BlockReader
from adp.converters.kit.drafts import StepDraft, merge_extra
from adp.converters.kit.source_object import SourceObject
from adp.converters.kit.times import take_time
from adp.converters.readers.inspect.messages import SampleAgent, SampleMessages
from adp.converters.readers.inspect.parts import (
    Attachments,
    aligned,
    identities,
    inputs_of,
    set_duration,
    take_usage,
)
from adp.converters.readers.inspect.span_tree import SpanTree
from adp.converters.reading import BRACE, BRACKET
from adp_schema import jsontext
from adp_schema.model import Columns

_STRUCTURE = frozenset({"span_begin", "span_end", "step", "state", "store", "sample_init"})
_EVENTS = frozenset(
    {"sandbox", "score", "score_edit", "approval", "input", "interrupt", "branch", "checkpoint",
     "error", "info", "logger", "sample_limit", "anchor"}
)  # fmt: skip


class SampleEvents(SampleMessages):
    """Reads the events of one sample.

    Args:
        blocks: reads content; its trajectory is the main one.
        attachments: texts that events refer to.
        pool: messages that model events refer to by their places.
    """

    def __init__(self, blocks: BlockReader, attachments: Attachments, pool: list[Raw]) -> None:
        super().__init__(blocks, attachments)
        self._pool = pool
        self._used: set[int] = set()
        self._spans = SpanTree()
        self._agents: dict[str, SampleAgent] = {"": SampleAgent(blocks.run)}
        self._structure: list[tuple[int, SourceObject]] = []

    def read(self, events: Iterable[SourceObject]) -> None:
        """Read events in their order."""
        for event in events:
            kind = event.word("event")
            span = event.word("span_id") or self._spans.current
            if kind == "model":
                self._model(event, self._agent(span))
            elif kind == "tool":
                self._nested(event, event.word("function"))
                self.results.setdefault(event.word("id"), []).append(event)
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

    def _agent(self, span_id: str) -> SampleAgent:
        owner = self._spans.owner(span_id)
        if owner not in self._agents:
            span = self._spans.spans[owner]
            kind = "alternate" if span.kind == "branch" else "subagent"
            self._agents[owner] = self._branch(self._agent(span.parent), span.name, owner, kind)
        return self._agents[owner]

    def _branch(
        self, parent: SampleAgent, name: str, owner: str, kind: str = "subagent"
    ) -> SampleAgent:
        target = f"{self.blocks.run.columns.get('source_id')}/{owner}"
        steps = parent.draft.steps
        parent.draft.link("subagent", steps[-1] if steps else None, target_id=target)
        draft = parent.draft.branch(0, kind, agent_name=name or None, source_id=target)
        return SampleAgent(draft)

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

    def _model(self, event: SourceObject, agent: SampleAgent) -> None:
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
                self.add_message(agent, name, text, raw)
        step = agent.draft.step("agent", "llm_turn")
        if inputs and not ("input_refs" in event and all(map(self.messages.has, texts))):
            step.extra["input"] = self.messages.references(inputs)
        outputs = self._turn(event, step, agent)
        agent.context = [*names, *outputs]

    def _edit(self, agent: SampleAgent, names: list[str]) -> None:
        """The context changed, although no event says so."""
        step = agent.draft.step("system", "context_edit", edit_boundary="replace")
        step.columns["synthetic"] = True
        step.extra["dropped"] = sum(name not in names for name in agent.context)

    def _compaction(self, event: SourceObject, agent: SampleAgent) -> None:
        step = agent.draft.step("system", "context_edit", edit_boundary="replace")
        take_time(event, step.columns, "timestamp")
        step.columns["edit_summary"] = event.text("summary")
        step.extra.update(event.rest())
        agent.was_edited = True

    def _turn(self, event: SourceObject, step: StepDraft, agent: SampleAgent) -> list[str]:
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
                self.fill(self.object_of(message, f"{choice.path}.message"), step, agent)
            elif message is not None:
                choice.values["message"] = message
        if any(left := [choice.rest() for choice in choices]):
            output.values["choices"] = jsontext.raw(jsontext.text_of(left))
        output.drop_text("completion", step.parts.columns().get("text"))
        event.drop("event")
        merge_extra(step.extra, event.rest())
        return names

    def _tools(self, event: SourceObject, agent: SampleAgent) -> None:
        raw, columns = event.values.get("tools"), agent.draft.columns
        if raw is None or jsontext.first_byte(raw) != BRACKET or bytes(raw) == b"[]":
            return
        tools = jsontext.one_line(self.attachments.resolve(raw))
        if columns.setdefault("tools", tools) == tools:
            columns["tools_origin"] = "recorded"
            event.drop("tools")

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
                self.add_message(main, name, text, raw)
        self.end_results(main)
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
