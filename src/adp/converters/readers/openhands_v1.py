"""Events of OpenHands' SDK (version 1): lines, lists, or a folder with a file an event.

The actions of one answer of the model stand in events of their own, which share its
``llm_response_id``; they become one step. Tokens are known only as sums that grow: what they
grew by before an answer is what it took. Source: openhands.sdk.event, 1.0 to 1.22.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import ClassVar

from msgspec import Raw

from adp.converters.kit.blocks import call_columns
from adp.converters.kit.chat import chat_turn, take_reasoning
from adp.converters.kit.drafts import CallDraft, ObservationDraft, StepDraft, merge_extra
from adp.converters.kit.session import LogReader, TreeLog, word
from adp.converters.kit.source_object import SourceObject
from adp.converters.kit.times import take_time
from adp.converters.kit.usage import set_usage
from adp.converters.readers.openhands_v0 import METRICS, drop_known
from adp.converters.reading import BRACE, BRACKET, QUOTE
from adp_schema import jsontext
from adp_schema.builder import RowBuilder
from adp_schema.losses import Losses
from adp_schema.model import Columns
from adp_schema.parts import Parts
from adp_schema.protocols import Match, RawRecord

_STATE = "base_state.json"
_USUAL = {"cache_prompt": b"false", "enable_truncation": b"true"}


class OpenHandsSdkLog(TreeLog):
    """One conversation."""

    agent: ClassVar[str | None] = "openhands"
    type_key: ClassVar[str] = "kind"
    id_key: ClassVar[str] = "id"
    handlers: ClassVar[Mapping[str, str]] = {
        "SystemPromptEvent": "system_prompt",
        "MessageEvent": "message",
        "ActionEvent": "action",
        "ObservationEvent": "observation",
        "AgentErrorEvent": "refusal",
        "UserRejectObservation": "refusal",
        "Condensation": "condensation",
        "CondensationEvent": "condensation",
        "ConversationStateUpdateEvent": "state_update",
        "ConversationErrorEvent": "run_error",
        "ACPToolCallEvent": "acp_call",
        "State": "state",
    }
    kept: ClassVar[frozenset[str]] = frozenset(
        {"CondensationRequest", "CondensationSummaryEvent", "PauseEvent", "TokenEvent",
         "LLMCompletionLogEvent", "HookExecutionEvent", "StreamingDeltaEvent", "StreamingDelta",
         "InterruptEvent"}
    )  # fmt: skip

    def __init__(self, record: RawRecord, builder: RowBuilder, losses: Losses) -> None:
        super().__init__(record, builder, losses)
        self._response: tuple[str, StepDraft] | None = None
        self._calls: dict[str, str] = {}
        self._steps: dict[str, StepDraft] = {}
        self._spent: Columns = {}
        self._pending: Columns = {}
        self._before = ""

    def sources(self) -> Iterator[tuple[SourceObject, str]]:
        """The record, and the files of its events."""
        yield from super().sources()
        for path, data in sorted(self.record.side_files.items()):
            source = SourceObject(data if jsontext.is_valid(data) else None, path, self.losses)
            yield source, "" if source else data.decode("utf-8", "backslashreplace")

    def ids(self, source: SourceObject) -> tuple[str | None, str | None]:
        """The ids of an event and of its parent."""
        return source.word("id") or None, source.word("parent_id") or None

    def kind_of(self, source: SourceObject) -> str:
        """The kind; the state that lies beside a folder of events has none."""
        return source.word("kind") or ("State" if "agent" in source else "")

    def line(self, source: SourceObject) -> None:
        """Take one event."""
        native = source.word("id")
        if source.word("parent_id") == self._before:
            source.drop("parent_id")
        self._before = native
        super().line(source)
        if native and self.run.steps:
            self._steps[native] = self.run.steps[-1]

    def finish(self) -> None:
        """Give the run the totals of its last state."""
        for name, value in self._spent.items():
            self.run.columns.setdefault(f"total_{name}", value)

    # ---- messages --------------------------------------------------------------------------

    def _step(self, source: SourceObject, kind: str) -> StepDraft:
        step = self.run.step(kind, "llm_turn" if kind == "agent" else "message")
        step.columns["native_id"] = source.name("id")
        take_time(source, step.columns, "timestamp")
        if source.word("source") == kind:
            source.drop("source")
        if kind == "agent":
            step.columns |= self._pending
            self._pending = {}
        return step

    def _content(self, raw: Raw | None, parts: Parts, path: str) -> None:
        """Blocks of text and images; settings that nearly all have go where they are usual."""
        if raw is None:
            return
        items = jsontext.decode_array(raw) if jsontext.first_byte(raw) == BRACKET else [raw]
        for number, item in enumerate(items):
            if jsontext.first_byte(item) == QUOTE:
                parts.text(self.builder.text(jsontext.decode_value(item)))
                continue
            if jsontext.first_byte(item) != BRACE:
                parts.opaque(jsontext.raw_line(item))
                continue
            block = SourceObject(item, f"{path}[{number}]", self.losses)
            for key, usual in _USUAL.items():
                if block.values.get(key) == Raw(usual):
                    block.drop(key)
            self.blocks.part(block, parts)

    def system_prompt(self, source: SourceObject) -> None:
        """The system prompt, and the tools."""
        step = self._step(source, "system")
        for key in ("system_prompt", "dynamic_context"):
            if source.first(key) in (BRACE, BRACKET, QUOTE):
                self._content(source.take(key), step.parts, key)
        if "tools" not in self.run.columns and (tools := source.json_list("tools")):
            self.run.columns |= {"tools": tools, "tools_origin": "recorded"}
        step.extra.update(source.rest())

    def message(self, source: SourceObject) -> None:
        """A message of the user or of the agent; what was added to it is seen by the model."""
        message = source.child("llm_message")
        role = message.word("role")
        kind = {"assistant": "agent", "system": "system"}.get(role, "user")
        step = self._step(source, kind)
        content = message.take("content")
        chat_turn(message, step, self.blocks)
        self._content(content, step.parts, f"{message.path}.content")
        if source.first("extended_content") == BRACKET:
            self._content(source.take("extended_content"), step.parts, source.path)
        step.columns["response_id"] = source.text("llm_response_id")
        step.columns["actor"] = source.text("sender")
        self._reasoning_item(message, step)
        step.extra.update(source.rest())

    def _reasoning_item(self, source: SourceObject, step: StepDraft) -> None:
        """The summary of reasoning whose text is encrypted; the item stays in extra."""
        item = SourceObject(source.values.get("responses_reasoning_item"), "", self.losses)
        texts = [
            jsontext.decode_value(text)
            for key in ("summary", "content")
            for text in item.items(key)
            if jsontext.first_byte(text) == QUOTE
        ]
        if texts and "reasoning" not in step.parts.columns():
            step.parts.reasoning("\n\n".join(texts))

    # ---- calls and results -----------------------------------------------------------------

    def action(self, source: SourceObject) -> None:
        """One call: of the answer before, or of a new one."""
        response = source.word("llm_response_id")
        step = self._response[1] if self._response and self._response[0] == response else None
        first = step is None or not response or step not in self.run.steps[-1:]
        native = source.word("id")
        if step is None or first:
            step = self._step(source, "agent")
            self._response = (response, step)
            step.columns["response_id"] = source.text("llm_response_id")
            self._reasoning_item(source, step)
            take_reasoning(source, step, self.blocks)
            if source.first("thought") in (BRACKET, QUOTE):
                self._content(source.take("thought"), step.parts, f"{source.path}.thought")
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
        raw = next((function.take(it) for it in ("arguments",) if it in function), None)
        for key, value in (("tool_name", name), ("tool_call_id", call_id)):
            if source.word(key) == value:
                source.drop(key)
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
                self._content(inner.take(key), draft.parts, f"{inner.path}.{key}")
        metadata = SourceObject(inner.values.get("metadata"), inner.path, self.losses)
        codes = [it.integer_at("exit_code", 32) for it in (inner, metadata)]
        draft.columns["exit_code"] = next((it for it in codes if it is not None), None)
        if inner:
            draft.columns["structured"] = jsontext.text_of(inner.values)
            inner.values.clear()
        draft.extra = source.rest()

    def refusal(self, source: SourceObject) -> None:
        """A call that was not carried out: it failed before, or the user or a hook said no."""
        draft = self._result(source)
        text = source.text("error", "rejection_reason")
        if text is not None:
            draft.parts.text(self.builder.text(text))
        draft.columns["is_error"] = True
        draft.columns["error_type"] = source.text("rejection_source")
        draft.extra = source.rest()

    def acp_call(self, source: SourceObject) -> None:
        """A call of another agent that OpenHands drives; later events tell how it went on."""
        call_id, status = source.word("tool_call_id"), source.word("status")
        if call_id not in self._calls.values():
            step = self._step(source, "agent")
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
        self._content(source.take("content"), draft.parts, source.path)
        draft.extra = source.rest()

    # ---- context and state -----------------------------------------------------------------

    def condensation(self, source: SourceObject) -> None:
        """The context lost events, for a summary."""
        step = self.run.step("system", "context_edit", native_id=source.name("id"))
        take_time(source, step.columns, "timestamp")
        step.columns |= {"edit_boundary": "replace", "edit_summary": source.text("summary")}
        key = "forgotten_event_ids"
        ids = SourceObject(jsontext.raw(jsontext.text_of(source.values)), "", self.losses).items(
            key
        )
        names = {jsontext.decode_value(it) for it in ids if jsontext.first_byte(it) == QUOTE}
        gone = {id(self._steps[name]) for name in names if name in self._steps}
        places = [place for place, it in enumerate(self.run.steps) if id(it) in gone]
        if places:
            step.columns |= {"edit_from": self.run.steps[max(places) + 1], "edit_to": step}
        step.extra.update(source.rest())

    def state_update(self, source: SourceObject) -> None:
        """A part of the state: sums of tokens, or whether the run goes on."""
        key, value = source.word("key"), SourceObject(source.values.get("value"), "", self.losses)
        if key == "execution_status":
            self._status(source.word("value"))
        usages = (value.child("stats") or value).child("usage_to_metrics")
        now: Columns = {}
        for name in list(usages.values):
            metrics, part = usages.child(name), Columns()
            set_usage(metrics, part, METRICS)
            for column, number in part.items():
                now[column] = now.get(column, 0) + number
            if model := metrics.word("model_name"):
                self.run.columns.setdefault("agent_model", model)
        for column, number in now.items():
            grown = number - self._spent.get(column, 0)
            if grown > 0:
                self._pending[column] = self._pending.get(column, 0) + grown
        self._spent |= now
        self.other(source)

    def _status(self, status: str) -> None:
        self.run.columns["stop_reason"] = status
        self.run.columns["terminated"] = status == "finished"

    def run_error(self, source: SourceObject) -> None:
        """What ended the run."""
        self.run.columns["error_type"] = source.word("code") or None
        self.run.columns["error_message"] = source.word("detail") or None
        self.other(source)

    def state(self, source: SourceObject) -> None:
        """The state that lies beside the events of a conversation."""
        columns = self.run.columns
        columns["source_id"] = columns["session_id"] = source.name("id")
        model = word(source.child("agent").child("llm").values, "model")
        columns["agent_model"] = model or columns.get("agent_model")
        if status := source.word("execution_status") or source.word("agent_status"):
            self._status(status)
        merge_extra(self.run.extra, source.rest())


class OpenHandsSdkReader(LogReader):
    """The format ``openhands_v1``."""

    name = "openhands_v1"
    title = "Events of OpenHands' SDK"
    recognised = "events with kind, id and source, or the base_state.json beside them"
    versions = "reads lines, lists and folders of events, 1.0 to 1.22"
    log = OpenHandsSdkLog

    def sniff(self, record: Mapping[str, Raw]) -> Match:
        """An event, or the state of a conversation."""
        state = {"id", "agent", "workspace"} <= set(record) and "kind" not in record
        return Match.STAMP if is_event(record) or state else Match.NO

    def side_files(self, source_file: str) -> tuple[str, ...]:
        """The events of a conversation, beside its state."""
        folder, _, name = source_file.rpartition("/")
        events = f"{folder}/events/event-*.json" if folder else "events/event-*.json"
        return (events,) if name == _STATE else ()


def is_event(event: Mapping[str, Raw]) -> bool:
    """Whether an object is an event of version 1."""
    kind = word(event, "kind")
    known = kind.endswith("Event") or kind in OpenHandsSdkLog.handlers
    return known and {"id", "source", "timestamp"} <= set(event)


CONVERTER = OpenHandsSdkReader()
