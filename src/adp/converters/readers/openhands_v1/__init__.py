"""Events of OpenHands' SDK (version 1): lines, lists, or a folder with a file an event.

The actions of one answer of the model stand in events of their own, which share its
``llm_response_id``; they become one step. Tokens are known only as sums that grow: what they
grew by before an answer is what it took. Since 1.33 an event names the one that it follows, and
the state the last one of the active branch. Source: openhands.sdk.event, 1.0 to 1.33.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import ClassVar

from msgspec import Raw

from adp.converters.kit.chat import chat_turn
from adp.converters.kit.drafts import merge_extra
from adp.converters.kit.key_tables import take_tools
from adp.converters.kit.session import LogReader, word
from adp.converters.kit.source_object import SourceObject
from adp.converters.kit.usage import RunningTotals, set_usage
from adp.converters.readers.openhands_v0.turns import METRICS
from adp.converters.readers.openhands_v1.spent import ResponseCosts
from adp.converters.readers.openhands_v1.turns import SdkTurns
from adp.converters.reading import BRACE, BRACKET, QUOTE
from adp_schema import jsontext
from adp_schema.model import Columns
from adp_schema.protocols import Match, SkipRecordError

_STATE = "base_state.json"
_NUMBER = re.compile(r"event-(\d+)")
_FIRST = re.compile(r"event-0+-.*\.json$")


class OpenHandsSdkLog(SdkTurns):
    """One conversation."""

    type_key: ClassVar[str] = "kind"
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
        "ACPToolCallEvent": "acp_call",
        "State": "state",
    }
    kept: ClassVar[frozenset[str]] = frozenset(
        {"CondensationRequest", "CondensationSummaryEvent", "PauseEvent", "TokenEvent",
         "LLMCompletionLogEvent", "HookExecutionEvent", "StreamingDeltaEvent", "StreamingDelta",
         "InterruptEvent"}
    )  # fmt: skip

    notes: ClassVar[Mapping[str, Mapping[str, str]]] = {
        "ConversationErrorEvent": {"error_type": "code", "error_message": "detail"}
    }

    def set_up(self) -> None:
        """Make what joins events: numbers of steps by ids, and what was spent before a turn."""
        super().set_up()
        self._numbers: dict[str, int] = {}
        self._spent = RunningTotals()
        self._grown: dict[int, Columns] = {}
        self._before = ""
        self._line = self.run

    def sources(self) -> Iterator[tuple[SourceObject, str]]:
        """The record, and the files of its events."""
        yield from super().sources()
        for path, data in sorted(self.record.side_files.items(), key=_event_number):
            source = SourceObject(data if jsontext.is_valid(data) else None, path, self.losses)
            yield source, "" if source else data.decode("utf-8", "backslashreplace")

    _costs: ResponseCosts | None = None

    def read_lines(self) -> None:
        """Read the state, and then the tree of events up to the one that the state names."""
        events: list[tuple[SourceObject, str]] = []
        leaf = ""
        for source, broken in self.sources():
            kind = self.kind_of(source)
            if kind == "State":
                leaf = source.word("leaf_event_id") or leaf
                self.entry(source, broken)
                continue
            if kind == "ConversationStateUpdateEvent":
                # Sums grow in the order of the log, whatever branch an event is on.
                self._grown[len(events)] = self._spent.grown(self._sums(source))
            events.append((source, broken))
        self._grown = {id(events[place][0]): grown for place, grown in self._grown.items()}
        self.read_tree(events, leaf)

    def kind_of(self, source: SourceObject) -> str:
        """The kind; the state that lies beside a folder of events has none."""
        return source.word("kind") or ("State" if "agent" in source else "")

    def line(self, source: SourceObject) -> None:
        """Take one event."""
        native = source.word("id")
        if self.run is not self._line:
            self._line, self.pending = self.run, {}
        else:
            source.drop_text("parent_id", self._before)
        self._before = native
        super().line(source)
        if native and self.run.steps:
            self._numbers[native] = (self.run.keeps or 0) + len(self.run.steps) - 1

    def finish(self) -> None:
        """Give the run the totals of its last state.

        Raises:
            SkipRecordError: there is nothing but a state.
        """
        if not self.run.steps:
            raise SkipRecordError("the state of a conversation without its events")
        self._spent.finish(self.run.columns)
        if self._costs is not None:
            self._costs.fill(self.run)
            self._costs.total(self.run.columns)

    def system_prompt(self, source: SourceObject) -> None:
        """The system prompt, and the tools."""
        step = self.begin_step(source, "system")
        for key in ("system_prompt", "dynamic_context"):
            if source.first(key) in (BRACE, BRACKET, QUOTE):
                self.blocks.content(source.take(key), step, key)
        take_tools(source, self.run.columns)
        step.extra.update(source.rest())

    def message(self, source: SourceObject) -> None:
        """A message of the user or of the agent; what was added to it is seen by the model."""
        message = source.child("llm_message")
        role = message.word("role")
        kind = {"assistant": "agent", "system": "system"}.get(role, "user")
        step = self.begin_step(source, kind)
        chat_turn(message, step, self.blocks)
        if source.first("extended_content") == BRACKET:
            self.blocks.content(source.take("extended_content"), step, source.path)
        step.columns["response_id"] = source.text("llm_response_id")
        step.columns["actor"] = source.text("sender")
        self.take_reasoning_item(message, step)
        step.extra.update(source.rest())

    def condensation(self, source: SourceObject) -> None:
        """The context lost events, for a summary."""
        step = self.context_edit(source, "replace", "summary")
        names = source.words("forgotten_event_ids")
        gone = [self._numbers[name] for name in names if name in self._numbers]
        if gone:
            step.columns |= {"edit_from": max(gone) + 1, "edit_to": step}
        step.extra.update(source.rest())

    def state_update(self, source: SourceObject) -> None:
        """A part of the state: sums of tokens, or whether the run goes on."""
        if source.word("key") == "execution_status":
            self._status(source.word("value"))
        for column, grown in self._grown.get(id(source), {}).items():
            if grown:
                self.pending[column] = self.pending.get(column, 0) + grown
        self.other(source)

    def _sums(self, source: SourceObject) -> Columns:
        """What the conversation has spent until an update of its state, by all of its models."""
        value, now = source.peek("value"), Columns()
        usages = (value.child("stats") or value).child("usage_to_metrics")
        for name in list(usages.values):
            metrics, part = usages.child(name), Columns()
            set_usage(metrics, part, METRICS)
            for column, number in part.items():
                now[column] = now.get(column, 0) + number
            if model := metrics.word("model_name"):
                self.run.columns.setdefault("agent_model", model)
        return now

    def _status(self, status: str) -> None:
        self.run.columns["stop_reason"] = status
        self.run.columns["terminated"] = status == "finished"

    def state(self, source: SourceObject) -> None:
        """The state that lies beside the events of a conversation."""
        columns = self.run.columns
        columns["source_id"] = columns["session_id"] = source.name("id")
        model = word(source.child("agent").child("llm").values, "model")
        columns["agent_model"] = model or columns.get("agent_model")
        if status := source.word("execution_status") or source.word("agent_status"):
            self._status(status)
        self._costs = ResponseCosts(source)
        merge_extra(self.run.extra, source.rest())


def _event_number(item: tuple[str, bytes]) -> tuple[int, str]:
    """Orders files of events by their numbers, which grow beyond five digits."""
    match = _NUMBER.search(item[0])
    return (int(match[1]) if match else 0, item[0])


class OpenHandsSdkReader(LogReader):
    """The format ``openhands_v1``."""

    name = "openhands_v1"
    title = "Events of OpenHands' SDK"
    recognised = "events with kind, id and source, or the base_state.json beside them"
    versions = "reads lines, lists and folders of events, 1.0 to 1.33, with their branches"
    log = OpenHandsSdkLog

    def sniff(self, record: Mapping[str, Raw]) -> Match:
        """An event, or the state of a conversation."""
        state = {"id", "agent", "workspace"} <= set(record) and "kind" not in record
        return Match.STAMP if is_event(record) or state else Match.NO

    def side_files(self, source_file: str) -> tuple[str, ...]:
        """The events of a conversation: beside its state, or else beside the first of them."""
        folder, slash, name = source_file.rpartition("/")
        if _FIRST.match(name):
            return (f"{folder}{slash}event-*.json",)
        return (f"{folder}{slash}events/event-*.json",) if name == _STATE else ()


def is_event(event: Mapping[str, Raw]) -> bool:
    """Whether an object is an event of version 1."""
    kind = word(event, "kind")
    known = kind.endswith("Event") or kind in OpenHandsSdkLog.handlers
    return known and {"id", "source", "timestamp"} <= set(event)


CONVERTER = OpenHandsSdkReader()
