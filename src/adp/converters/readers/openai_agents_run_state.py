"""Runs of the OpenAI Agents SDK that were serialised to go on later (``RunState``).

The same items stand in it up to three times: as what the session holds, as what the next request
holds, and as what the model gave. They are read once, in the order of the session; the responses
give tokens and tell the model's turns apart. The SDK for JavaScript writes the keys in camel case.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import Raw

from adp.converters.kit.drafts import StepDraft, append_extra, merge_extra
from adp.converters.kit.responses_items import ResponseItems
from adp.converters.kit.session import LogReader, SessionLog
from adp.converters.kit.source_object import SourceObject
from adp.converters.kit.usage import OPENAI, set_usage, take_usage
from adp.converters.reading import BRACE, BRACKET, NULL
from adp_schema import jsontext
from adp_schema.errors import RecordError
from adp_schema.model import Columns
from adp_schema.protocols import Match


class RunState(SessionLog):
    """One run."""

    def read_lines(self) -> None:
        """Read the input, then the items of the session."""
        if jsontext.first_byte(self.record.data) != BRACE:
            raise RecordError("expected an object")
        source = SourceObject(self.record.data, "$", self.losses)
        columns = self.run.columns
        columns["source_version"] = source.text("$schemaVersion")
        agent = _child(source, "current_agent")
        columns["agent_name"] = agent.word("name") or None
        columns["session_id"] = source.name("conversation_id", "conversationId")
        self.items = ResponseItems(self.blocks)
        key = _key(source, "original_input")
        self.items.read(source.take(key), f"$.{key}")
        responses = source.objects(_key(source, "model_responses"))
        self.whole = [_sorted(response.values) for response in responses]
        self._read_items(source, responses)
        left = [rest for rest in map(self._left, responses) if rest]
        if left:
            self.run.extra["model_responses"] = left
        self._end(source)
        self.run.extra.update(source.rest())

    def _read_items(self, source: SourceObject, responses: list[SourceObject]) -> None:
        """The items of the session; of those that were generated, what it does not have."""
        self.places: dict[str, int] = {}
        self.outputs: list[list[Raw]] = []
        for number, response in enumerate(responses):
            raw = response.values.get("output")
            items = (
                jsontext.decode_array(raw) if raw and response.first("output") == BRACKET else []
            )
            self.outputs.append(items)
            for output in items:
                self.places.setdefault(_name(output), number)
        self.responses = responses
        self.current = -1
        self.read_already: set[bytes] = set()
        session = source.objects(_key(source, "session_items"))
        generated = source.objects(_key(source, "generated_items"))
        seen: list[bytes] = []
        for item in session:
            seen.append(_sorted(item.values))
            self._item(item)
        for item in generated:
            text = _sorted(item.values)
            if text in seen:
                seen.remove(text)
            else:
                self._item(item)
        self.items.end_turn()

    def _item(self, item: SourceObject) -> None:
        """An item of a run: the item of the model, who made it, and how it is shown."""
        key = _key(item, "raw_item")
        raw = item.take(key) if item.first(key) == BRACE else None
        if raw is None:
            self.items.end_turn()
            self.run.event(item)
            return
        if item.word("type") == "tool_approval_item" and self._approved(item, raw):
            return
        place = self.places.get(_name(raw), -1)
        if place not in (-1, self.current):
            self.items.end_turn()
            self.current = place
        output = item.values.get("output")
        inner = SourceObject(raw, f"{item.path}.{key}", self.losses)
        if output is not None and bytes(output) == bytes(inner.values.get("output", b"")):
            item.drop("output")
        steps, kind = len(self.run.steps), inner.word("type")
        self.items.item(inner)
        if not self.run.steps:
            append_extra(self.run.extra, "items", item.rest_lines())
            return
        step = self.run.steps[-1]
        if item.word("type") in _REPEATED_TYPES:
            item.drop("type")
        if place >= 0 and step.columns["source"] == "agent":
            self.read_already.add(_sorted_raw(bytes(raw)))
            self._response(step, self.responses[place])
        self._rest(item, step, kind, is_new=len(self.run.steps) > steps)

    def _approved(self, item: SourceObject, raw: Raw) -> bool:
        """Keep with its call that it has to be approved: the item repeats the call."""
        names = SourceObject(raw, "$", self.losses)
        call_id = names.name("call_id", "callId", "id")
        calls = (call for step in reversed(self.run.steps) for call in step.calls)
        call = next((it for it in calls if it.columns.get("call_id") == call_id), None)
        if call is None or call_id is None:
            return False
        rest = item.rest_lines()
        if _sorted_raw(bytes(raw)) not in self.read_already:
            rest["raw_item"] = raw
        merge_extra(call.extra, {"approval": rest})
        return True

    def _rest(self, item: SourceObject, step: StepDraft, kind: str, *, is_new: bool) -> None:
        """What is beside the item of the model goes to the row that it became."""
        agent = item.child("agent")
        if step.columns["source"] == "agent" and agent.word("name"):
            name = step.columns.setdefault("actor", agent.word("name"))
            if name == agent.word("name"):
                agent.drop("name")
        if kind.endswith(("_output", "_result")) and step.observations:
            draft = step.observations[-1]
            item.drop_text("output", draft.parts.columns().get("text"))
            if item.first("output") not in (0, NULL):
                draft.columns["structured"] = item.json("output")
            merge_extra(draft.extra, item.rest())
        elif step.calls and not is_new and kind not in ("message", "reasoning"):
            merge_extra(step.calls[-1].extra, item.rest())
        elif rest := item.rest_lines():
            append_extra(step.extra, "run_items", rest)

    def _response(self, step: StepDraft, response: SourceObject) -> None:
        """Tokens and id of a response, once."""
        columns: Columns = {}
        columns["response_id"] = response.text("response_id", "responseId")
        take_usage(response, "usage", columns, OPENAI)
        _camel_usage(columns)
        step.columns.update({key: it for key, it in columns.items() if it is not None})

    def _left(self, response: SourceObject) -> dict[str, Any]:
        """What no row has of a response: items that stand nowhere else, and its parameters."""
        number = next(n for n, it in enumerate(self.responses) if it is response)
        outputs = self.outputs[number]
        left = [item for item in outputs if _sorted_raw(bytes(item)) not in self.read_already]
        if outputs and not left:
            response.drop("output")
        elif len(left) < len(outputs):
            response.values["output"] = jsontext.raw(jsontext.text_of(left))
        return response.rest_lines()

    def _end(self, source: SourceObject) -> None:
        """How the run stands, and its tokens."""
        step = SourceObject(source.values.get(_key(source, "current_step")), "$", self.losses)
        kind = step.word("type")
        if kind:
            self.run.columns["stop_reason"] = kind
        if kind == "next_step_final_output":
            self.run.columns["terminated"] = True
            output = SourceObject(step.values.get("data"), "$", self.losses).word("output")
            self.run.columns["final_answer"] = output or step.word("output") or None
        last = _key(source, "last_model_response")
        text = bytes(source.values.get(last, b""))
        if text and _sorted_raw(text) in self.whole:
            source.drop(last)
        usage = SourceObject(source.child("context").values.get("usage"), "$", self.losses)
        totals: Columns = {}
        set_usage(usage, totals, OPENAI)
        for name in ("tokens_in", "tokens_out", "tokens_cached"):
            if totals.get(name):
                self.run.columns[f"total_{name}"] = totals[name]


_REPEATED_TYPES = frozenset(
    {"message_output_item", "tool_call_item", "tool_call_output_item", "reasoning_item"}
)
"""Types of items of a run that the item of the model tells, too."""


def _key(source: SourceObject, name: str) -> str:
    """A key as the object has it: in snake case, or in camel case."""
    camel = re.sub("_([a-z])", lambda match: match[1].upper(), name)
    return camel if camel in source and name not in source else name


def _child(source: SourceObject, name: str) -> SourceObject:
    return source.child(_key(source, name))


def _name(item: Raw) -> str:
    """What an item is known by: its ids, or all of it."""
    if jsontext.first_byte(item) != BRACE:
        return bytes(item).decode("utf-8", "replace")
    values = jsontext.decode_object(item)
    ids = [values[key] for key in ("type", "id", "call_id", "callId") if key in values]
    known = [bytes(it) for it in ids[1:] if bytes(it) != b"null"]
    return b" ".join([bytes(ids[0]), *known]).decode() if known else _sorted(values).decode()


def _sorted(values: Mapping[str, Raw]) -> bytes:
    return _sorted_raw(jsontext.text_of(values).encode("utf-8", "replace"))


def _sorted_raw(data: bytes) -> bytes:
    try:
        return msgspec.json.encode(msgspec.json.decode(data), order="sorted")
    except msgspec.DecodeError:
        return data


def _camel_usage(columns: Columns) -> None:
    """Tokens of the SDK for JavaScript."""
    if "usage" not in columns or "tokens_in" in columns:
        return
    values = jsontext.decode_object(columns["usage"].encode())
    for key, column in (("inputTokens", "tokens_in"), ("outputTokens", "tokens_out")):
        if key in values and bytes(values[key]).isdigit():
            columns[column] = int(bytes(values[key]))


class OpenAIAgentsRunState(LogReader):
    """The format ``openai_agents_run_state``."""

    name = "openai_agents_run_state"
    title = "Runs of the OpenAI Agents SDK, serialised (RunState)"
    recognised = "a $schemaVersion with an original input and generated items"
    versions = "reads versions 1.0 to 1.21 of the SDKs for Python and JavaScript"
    container = "json"
    log = RunState

    def sniff(self, record: Mapping[str, Raw]) -> Match:
        """The version with the items of a run."""
        keys = {"original_input", "generated_items", "originalInput", "generatedItems"}
        return Match.STAMP if "$schemaVersion" in record and keys & set(record) else Match.NO


CONVERTER = OpenAIAgentsRunState()
