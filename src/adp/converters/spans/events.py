"""What stands beside a span, in its events or in records of logs: messages, contents, scores."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from msgspec import Raw

from adp.converters.kit.source_object import SourceObject
from adp.converters.reading import BRACE, BRACKET
from adp.converters.spans.blocks import items_of, plain, unwrapped, word_of
from adp.converters.spans.otlp_values import take_attributes, value_of
from adp.converters.spans.tree import TraceSpan
from adp_schema import jsontext

_ROLES = {"gen_ai.system.message": "system", "gen_ai.user.message": "user",
          "gen_ai.assistant.message": "assistant", "gen_ai.tool.message": "tool",
          "gen_ai.choice": "assistant"}  # fmt: skip
"""Events that are a message each: the conventions from 1.28 to 1.36."""
_DETAILS = frozenset({"gen_ai.client.inference.operation.details", "gen_ai.content.prompt",
                      "gen_ai.content.completion"})  # fmt: skip
"""Events that hold attributes of the span: the conventions to 1.27, and from 1.37."""
_SCORES = frozenset({"gen_ai.evaluation.result", "gen_ai.evaluation"})


def log_event(record: SourceObject) -> tuple[str, SourceObject]:
    """A record of a log as an event of a span: its name and its attributes."""
    attributes = take_attributes(record, record.losses)
    body = record.values.get("body")
    if body is not None and (value := value_of(body)) is not None:
        record.values["body"] = value
    name = record.word("eventName") or attributes.word("event.name")
    text = word_of(record.values.get("body"))
    if text.rpartition(".")[2] == name:  # the body has the whole name
        name = text
    record.values.setdefault("name", plain(name))
    return name, attributes


def add_events(span: TraceSpan, events: Iterable[Raw]) -> None:
    """Add events to those of a span."""
    span.source.values["events"] = plain([*items_of(span.source.values.get("events")), *events])


def lift_details(span: TraceSpan) -> dict[str, Raw]:
    """Move attributes that stand in an event to the span, and return the scores of other events."""
    raw = span.source.values.get("events")
    scores: dict[str, Raw] = {}
    listed = _listed(raw)
    if raw is None or not listed or b'"gen_ai.' not in bytes(raw):
        return scores
    out: list[Any] = []
    for item in listed:
        if jsontext.first_byte(item) != BRACE:
            out.append(item)
            continue
        event = SourceObject(item, f"{span.source.path}.events", span.source.losses)
        inner = event.child("attributes")
        name = event.word("event.name") or event.word("name") or inner.word("event.name")
        if name in _SCORES:
            number = inner.values.get("gen_ai.evaluation.score.value")
            if number is not None and jsontext.first_byte(number) in b"-0123456789":
                scores[inner.word("gen_ai.evaluation.name")] = number
        elif name in _DETAILS:
            known = span.attributes.values
            for key in [key for key in inner.values if key.startswith("gen_ai.")]:
                if bytes(known.setdefault(key, inner.values[key])) == bytes(inner.values[key]):
                    inner.drop(key)
        out.append(event.rest())
    span.source.values["events"] = plain(out)
    return scores


def has_messages(span: TraceSpan) -> bool:
    """Whether an event of a span is a message."""
    raw = bytes(span.source.values.get("events", b""))
    return any(f'"{name}"'.encode() in raw for name in _ROLES)


def take_messages(span: TraceSpan, *, answers: bool) -> list[Raw]:
    """Take the messages in events of a span, or in an attribute that lists events.

    What an event says beside its message, such as its time, stays: so that the same message is the
    same text in each call of a model.

    Args:
        span: the span.
        answers: those that the model gave, or else those that it got.
    """
    for place in (span.source, span.attributes):
        taken: list[Raw] = []
        left: list[Raw] = []
        for raw in _listed(place.values.get("events")):
            message, rest = _message(raw, span, answers=answers)
            taken.extend([] if message is None else [message])
            left.extend([] if rest is None else [rest])
        if taken:
            place.values["events"] = plain(left)
            if not left:
                place.drop("events")
            return taken
    return []


def take_output(span: TraceSpan) -> Raw | None:
    """Take the result of a call from an event ``tool.output``, as Claude Code writes it."""
    output: Raw | None = None
    left = []
    for raw in _listed(span.source.values.get("events")):
        event = SourceObject(raw, f"{span.source.path}.events", span.source.losses)
        attributes = event.child("attributes")
        if output is None and event.word("name") == "tool.output":
            output = attributes.take("content") or attributes.take("output")
            raw = plain(event.rest())
        left.append(raw)
    if output is not None:
        span.source.values["events"] = plain(left)
    return output


def _listed(raw: Raw | None) -> list[Raw]:
    attributes = unwrapped(raw)
    return (
        items_of(attributes)
        if attributes is not None and jsontext.first_byte(attributes) == BRACKET
        else []
    )


def _message(raw: Raw, span: TraceSpan, *, answers: bool) -> tuple[Raw | None, Raw | None]:
    """The message that an event is, if it is one of those, and what is left of the event."""
    if jsontext.first_byte(raw) != BRACE:
        return None, raw
    event = SourceObject(raw, f"{span.source.path}.events", span.source.losses)
    name = event.word("event.name") or event.word("name")
    if name not in _ROLES or (name == "gen_ai.choice") != answers:
        return None, raw
    parts = [attributes for key in ("attributes", "body") if (attributes := event.child(key))]
    message = SourceObject(None, event.path, event.losses)
    for attributes in parts or [event]:
        message.values |= attributes.values
        attributes.values = {}
    choice = message.take_child("message")  # an object, or the text of one
    message.values |= choice.values
    if message.word("event.name") == name:
        message.drop("event.name")
        message.values["event"] = plain(name)
    message.values.setdefault("role", plain(_ROLES[name]))
    if answers and not span.columns.get("stop_reason"):
        span.columns["stop_reason"] = message.text("finish_reason")
    for key in ("tool_calls", "content"):
        value = unwrapped(message.values.get(key))
        if value is not None and jsontext.first_byte(value) == BRACKET:
            message.values[key] = value
    if name == "gen_ai.tool.message" and "tool_call_id" not in message and "id" in message:
        message.values["tool_call_id"] = message.values.pop("id")
    return plain(message.values), plain(event.rest()) if parts else None
