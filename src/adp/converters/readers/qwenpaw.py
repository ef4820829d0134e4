"""Sessions of QwenPaw and of other agents of AgentScope: the state of an agent with its memory.

The memory is a list of pairs of a message and its marks. Results of tools stand in messages of the
role ``system``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from msgspec import Raw

from adp.converters.kit.blocks import call_columns
from adp.converters.kit.drafts import ObservationDraft, StepDraft, merge_extra
from adp.converters.kit.session import LogReader, SessionLog, inner
from adp.converters.kit.source_object import SourceObject
from adp.converters.kit.times import take_time
from adp.converters.reading import BRACE, BRACKET
from adp_schema import jsontext
from adp_schema.errors import RecordError
from adp_schema.protocols import Match

_ROLES = {"user": "user", "assistant": "agent", "system": "system"}


class QwenpawSession(SessionLog):
    """The state of one agent, under the key ``agent``."""

    agent: ClassVar[str | None] = "qwenpaw"

    def line(self, source: SourceObject) -> None:
        """The document."""
        if self.run.steps:
            self.other(source)
            return
        agent = source.child("agent")
        memory = agent.child("memory")
        if memory.first("content") != BRACKET:
            raise RecordError("expected a list of messages", f"{memory.path}.content")
        columns, name = self.run.columns, self.record.source_file.rpartition("/")[2]
        columns["source_id"] = columns["session_id"] = name.removesuffix(".json") or None
        prompt = agent.text("_sys_prompt", "sys_prompt")
        if prompt:
            self.run.step("system").parts.text(self.builder.text(prompt))
        for text in ("_compressed_summary", "compressed_summary"):
            if memory.word(text):
                step = self.run.step("system", "context_edit", edit_boundary="replace")
                step.columns["edit_summary"] = memory.text(text)
        for number, item in enumerate(memory.items("content")):
            self._entry(item, f"{memory.path}.content[{number}]")
        merge_extra(self.run.extra, source.rest())

    def _entry(self, item: Raw, path: str) -> None:
        """A message with its marks; older versions write the message alone."""
        marks: list[Any] = []
        if jsontext.first_byte(item) == BRACKET and (parts := jsontext.decode_array(item)):
            item, marks = parts[0], parts[1:]
        if jsontext.first_byte(item) != BRACE:
            step = self.run.step("environment", "event", visibility="none")
            step.extra["message"] = item
            draft: StepDraft | ObservationDraft = step
        else:
            draft = self._message(SourceObject(item, path, self.losses))
        if any(bytes(mark) != b"[]" for mark in marks):
            merge_extra(draft.extra, {"marks": marks})

    def _message(self, message: SourceObject) -> StepDraft | ObservationDraft:
        role = message.word("role")
        who = _ROLES.get(role, "environment")
        if role in _ROLES:
            message.drop("role")
        else:
            self.losses.unknown(f"role {role or 'missing'}")
        step = StepDraft({"source": who, "kind": "llm_turn" if who == "agent" else "message"})
        last = self._content(message, step)
        draft: StepDraft | ObservationDraft = step
        if last is not None and not step.parts.columns() and not step.calls:
            draft = last
        elif not self.run.steps or self.run.steps[-1] is not step:
            self.run.steps.append(step)
        if isinstance(draft, StepDraft):
            draft.columns["native_id"] = message.name("id")
            draft.columns["actor"] = message.text("name")
        take_time(message, draft.columns, "timestamp")
        self.run.constant(message, "metadata")
        merge_extra(draft.extra, message.rest())
        return draft

    def _content(self, message: SourceObject, step: StepDraft) -> ObservationDraft | None:
        """Read the blocks; the last result among them, if there is one."""
        path, last = f"{message.path}.content", None
        raw = message.take("content")
        items = [raw] if raw is not None else []
        if raw is not None and jsontext.first_byte(raw) == BRACKET:
            items = jsontext.decode_array(raw)
        for item in items:
            block = SourceObject(item, path, self.losses)
            if block.word("type") == "tool_result":
                block.drop("type")
                last = self._result(block)
                continue
            if not self.run.steps or self.run.steps[-1] is not step:
                self.run.steps.append(step)
            if block.word("type") == "tool_use":
                block.drop("type")
                _call(block, step)
            else:
                self.blocks.content(item, step, path)
        return last

    def _result(self, block: SourceObject) -> ObservationDraft:
        columns = {"name": block.text("name")}
        draft = self.run.observe(columns, answers=block.name("id"), by_order=True)
        self.blocks.result(block.take("output"), draft, f"{block.path}.output")
        draft.extra.update(block.rest())
        return draft


def _call(block: SourceObject, step: StepDraft) -> None:
    """A call; its arguments as the model wrote them, where they say the same."""
    name, call_id, arguments = block.text("name"), block.name("id"), block.take("input")
    written = block.word("raw_input")
    if written and arguments is not None:
        same = jsontext.is_valid(written) and not jsontext.has_mark(written)
        if same and _value(written.encode()) == _value(bytes(arguments)):
            arguments = block.take("raw_input")
    step.call(call_columns(name, call_id, arguments), block.rest())


def _value(data: bytes) -> Any:
    """A decoded JSON value, for comparing."""
    return jsontext.decode_value(Raw(data)) if jsontext.is_valid(data) else None


class QwenpawReader(LogReader):
    """The format ``qwenpaw``."""

    name = "qwenpaw"
    title = "Sessions of QwenPaw"
    container = "json"
    recognised = "a document of an agent with a memory"
    versions = "reads the state that AgentScope 1 saves"
    log = QwenpawSession

    def sniff(self, record: Mapping[str, Raw]) -> Match:
        """The state of an agent."""
        memory = inner(inner(record, "agent"), "memory")
        known = "content" in memory and jsontext.first_byte(memory["content"]) == BRACKET
        return Match.STAMP if known else Match.NO


CONVERTER = QwenpawReader()
