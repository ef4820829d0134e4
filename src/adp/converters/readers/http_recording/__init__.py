"""Recorded traffic of an agent with the APIs of models: HAR files, and the tapes of nock.

Each prompt repeats the history, so requests that go on with a conversation add to its trajectory
what is new. The bodies of other requests are kept as events. Sources: the HAR 1.2 specification;
tapes of a coding agent's tests.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from msgspec import Raw

from adp.converters.exchanges.apis import ModelApis
from adp.converters.exchanges.conversations import Conversation, items_of, longest
from adp.converters.exchanges.reader import REPLY_ONLY
from adp.converters.exchanges.wrappers import Exchange, open_exchange
from adp.converters.kit.drafts import StepDraft, TrajectoryDraft, append_extra, emit, merge_extra
from adp.converters.kit.session import LogReader, SessionLog
from adp.converters.kit.source_object import SourceObject
from adp.converters.kit.times import take_time
from adp.converters.readers.http_recording.known_values import KnownValues
from adp.converters.reading import BRACE, BRACKET
from adp_schema import jsontext
from adp_schema.errors import RecordError
from adp_schema.protocols import Match, SkipRecordError

_MESSAGES = ("messages", "contents", "input")
_NOCK = frozenset({"scope", "method", "path", "status", "response"})
_SESSIONS = (b"x-claude-code-session-id", b"x-session-id", b"session_id", b"x-conversation-id")


class Recording(SessionLog):
    """The traffic of a file."""

    agent: ClassVar[str | None] = None

    def read(self) -> None:
        """Read each conversation as a trajectory; what is none goes to the first one."""
        self.conversations: list[Conversation] = []
        self.others: list[tuple[SourceObject, dict[str, Any]]] = []
        head: dict[str, Any] = {}
        for entry in self._entries(head):
            self._entry(entry)
        if not self.conversations:
            raise SkipRecordError("no request in it is one to a model")
        first = self.conversations[0].value
        first.extra.update(head)
        for entry, rest in self.others:
            step = first.step("environment", "event", visibility="none")
            take_time(entry, step.columns, "startedDateTime")
            rest.pop("startedDateTime", None) if "timestamp" in step.columns else None
            step.extra.update(rest)
        for conversation in self.conversations:
            emit(conversation.value, self.builder)

    def _entries(self, head: dict[str, Any]) -> list[SourceObject]:
        """The entries of a HAR file, or of a list."""
        data = self.record.data
        is_list = jsontext.first_byte(data) == BRACKET
        items = jsontext.decode_array(data) if is_list else [data]
        entries: list[SourceObject] = []
        for number, item in enumerate(items):
            if jsontext.first_byte(item) != BRACE:
                raise RecordError("expected an entry", f"$[{number}]")
            source = SourceObject(item, f"$[{number}]" if is_list else "$", self.losses)
            if source.first("log") == BRACE:
                entries += source.child("log").objects("entries")
                merge_extra(head, _written(source.rest()))
            else:
                entries.append(source)
        return entries

    def _entry(self, entry: SourceObject) -> None:
        """One request with its response."""
        exchange = open_exchange(entry)
        if exchange.request is None and exchange.reply is None:
            self.others.append((entry, entry.rest()))
            return
        messages: list[Raw] = []
        if exchange.request is not None:
            raw = next((exchange.request.values.get(key) for key in _MESSAGES
                        if key in exchange.request), None)  # fmt: skip
            messages = items_of(raw)
        conversation, known = longest(self.conversations, messages)
        if conversation is None:
            conversation = self._begin(entry, exchange)
        self.run = self.blocks.run = conversation.value
        self._repeated(exchange, messages[:known], conversation)
        apis, steps = ModelApis(self.blocks), len(self.run.steps)
        if exchange.request is not None:
            apis.request(exchange.request, exchange.request_kind, skip=known)
        conversation.note_prompt(messages)
        step = exchange.read_reply(apis)
        conversation.answered = step is not None
        for turn in self.run.steps[steps:]:
            self.known_values[id(conversation)].add(_words(turn))
        self._end(entry, exchange, step)

    def _begin(self, entry: SourceObject, exchange: Exchange) -> Conversation:
        conversation = Conversation(TrajectoryDraft())
        self.conversations.append(conversation)
        if not hasattr(self, "known_values"):
            self.known_values: dict[int, KnownValues] = {}
        self.known_values[id(conversation)] = KnownValues()
        columns = conversation.value.columns
        if exchange.request is None:
            columns["tags"] = [REPLY_ONLY]
        headers = entry.child("request").objects("headers")
        if headers:
            entry.child("request").values["headers"] = _list([it.rest() for it in headers])
        for header in headers:
            if header.word("name").lower().encode() in _SESSIONS and header.word("value"):
                columns["session_id"] = header.word("value")
        return conversation

    def _repeated(
        self, exchange: Exchange, messages: list[Raw], conversation: Conversation
    ) -> None:
        """Messages that the trajectory has are read once; what they say anew is kept."""
        known = self.known_values[id(conversation)]
        left = [Raw(rest) for it in messages if (rest := known.rest(it)) is not None]
        if left:
            append_extra(self.run.extra, "repeated", _list(left))

    def _end(self, entry: SourceObject, exchange: Exchange, step: StepDraft | None) -> None:
        """Time, duration, and what is left of the entry, with the step of the reply."""
        step = step or (self.run.steps[-1] if self.run.steps else self.run.event(entry))
        if "timestamp" not in step.columns:
            take_time(entry, step.columns, "startedDateTime")
        time = SourceObject(jsontext.text_of(entry.values).encode(), "$", self.losses)
        if step.columns.get("duration_ms") is None:
            step.columns["duration_ms"] = time.number("time")
        rest = entry.rest()
        merge_extra(rest, exchange.rest())
        if rest:
            merge_extra(step.extra, {"exchange": _written(rest)})
        if step.columns.get("model") is not None:
            self.run.columns["agent_model"] = step.columns["model"]


def _words(step: StepDraft) -> bytes:
    """What a step says, under the keys that messages have."""
    columns = step.parts.columns()
    text, reasoning = columns.get("text"), columns.get("reasoning")
    values: list[Any] = [
        {
            "text": text,
            "content": text,
            "thinking": reasoning,
            "reasoning_content": reasoning,
            "role": step.columns["source"],
        }
    ]
    values += [{"role": role} for role in ("user", "assistant", "tool", "system", "model")]
    values += [{"type": kind} for kind in _KINDS]
    for call in step.calls:
        arguments = call.columns.get("arguments")
        inner = jsontext.raw(arguments) if arguments is not None else None
        values.append(
            {
                "id": call.columns.get("call_id"),
                "call_id": call.columns.get("call_id"),
                "name": call.columns.get("name"),
                "arguments": arguments,
                "input": inner,
                "args": inner,
                "extra": call.extra,
            }
        )
    for observation in step.observations:
        result = observation.parts.columns().get("text")
        values.append(
            {
                "tool_call_id": observation.answers,
                "tool_use_id": observation.answers,
                "call_id": observation.answers,
                "content": result,
                "text": result,
                "output": result,
                "name": observation.columns.get("name"),
            }
        )
    return jsontext.text_of([*values, step.extra, columns.get("content")]).encode()


_KINDS = ("text", "function", "tool_use", "tool_result", "thinking", "message", "function_call",
          "function_call_output", "output_text", "input_text", "reasoning")  # fmt: skip


def _list(items: list[Any]) -> Raw:
    return jsontext.raw(jsontext.text_of(items))


def _written(values: dict[str, Any]) -> dict[str, Any]:
    return {key: jsontext.raw(jsontext.text_of(it)) for key, it in values.items()}


class HTTPRecording(LogReader):
    """The format ``http_recording``."""

    name = "http_recording"
    title = "Recorded traffic of an agent with the APIs of models (HAR, nock)"
    recognised = "a HAR log with entries, or entries of nock with a scope and a path"
    versions = "reads HAR 1.1 and 1.2, and tapes of nock"
    log = Recording

    def sniff(self, record: Mapping[str, Raw]) -> Match:
        """A HAR log, or an entry of nock."""
        if set(record) >= _NOCK:
            return Match.STAMP
        raw = record.get("log")
        if raw is None or jsontext.first_byte(raw) != BRACE:
            return Match.NO
        log = jsontext.decode_object(raw)
        return Match.STAMP if "entries" in log and {"version", "creator"} & set(log) else Match.NO


CONVERTER = HTTPRecording()
