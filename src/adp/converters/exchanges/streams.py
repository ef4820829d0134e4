"""Streams of events that a model's reply came in, joined to the reply that they tell.

The events are those of Anthropic (``message_start`` and so on), of the Responses API
(``response.created`` and so on), and the chunks of chat completions.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from adp_schema import jsontext

Event = dict[str, Any]
_ENDS = ("response.completed", "response.incomplete", "response.failed")
_JOINED = ("content", "refusal", "reasoning_content", "reasoning", "thinking", "arguments")
_DELTAS = {
    "text_delta": "text",
    "thinking_delta": "thinking",
    "signature_delta": "signature",
    "compaction_delta": "content",
}


def is_event(kind: str, form: str) -> bool:
    """Whether an object is an event of a stream, by its ``type`` and its ``object``."""
    return (
        form == "chat.completion.chunk"
        or kind.startswith(("response.", "content_block_"))
        or kind in ("message_start", "message_delta", "message_stop")
    )


def events_of(text: str) -> list[Event]:
    """The events of a text of server-sent events; none when a line of data is no object."""
    events: list[Event] = []
    for line in text.splitlines():
        if not line.startswith("data:"):
            continue
        data = line[5:].strip()
        if data == "[DONE]":
            continue
        try:
            event = msgspec.json.decode(data)
        except (msgspec.DecodeError, UnicodeEncodeError):
            return []
        if not isinstance(event, dict):
            return []
        events.append(event)
    return events


def join(events: Iterable[Event]) -> list[Event]:
    """The replies that events tell, in the order in which they begin.

    Args:
        events: events of one or more streams, one stream after the other.

    Returns:
        Replies as the API gives them without a stream; none of events that tell none.
    """
    replies: list[Event] = []
    for stream in streams_of(events):
        first = stream[0]
        reply: Event | None = None
        try:
            if first.get("object") == "chat.completion.chunk":
                reply = _chat(stream)
            elif str(first.get("type")).startswith("response."):
                reply = _response(stream)
            else:
                reply = _anthropic(stream)
        except (AttributeError, TypeError, KeyError, ValueError):
            continue
        if reply is not None:
            replies.append(reply)
    return replies


def encoded(reply: Event) -> bytes:
    """A joined reply as JSON text."""
    return jsontext.text_of(reply).encode("utf-8")


def streams_of(events: Iterable[Event]) -> list[list[Event]]:
    """Cut events where a reply begins: by its first event, or by the id of its chunks."""
    streams: list[list[Event]] = []
    last: Any = None
    for event in events:
        kind = event.get("type")
        chunk = event.get("object") == "chat.completion.chunk"
        if not (chunk or is_event(str(kind), "")):
            continue
        begins = kind in ("message_start", "response.created") or (
            chunk and event.get("id") not in (last, "")
        )
        if begins or not streams:
            streams.append([])
        if chunk:
            last = event.get("id") or last
        streams[-1].append(event)
    return streams


def _chat(events: list[Event]) -> Event:
    reply: Event = {**events[0], "object": "chat.completion", "choices": []}
    choices: dict[int, Event] = {}
    for event in events:
        reply.update({key: it for key, it in event.items()
                      if key not in ("choices", "object") and it is not None})  # fmt: skip
        for choice in event.get("choices") or []:
            index = choice.get("index") or 0
            whole = choices.setdefault(index, {"index": index, "message": {}})
            whole.update({key: it for key, it in choice.items()
                          if key not in ("delta", "index") and it is not None})  # fmt: skip
            _add_delta(whole["message"], choice.get("delta") or {})
    reply["choices"] = [choices[index] for index in sorted(choices)]
    return reply


def _add_delta(message: Event, delta: Event) -> None:
    for key, value in delta.items():
        if key == "tool_calls":
            calls = message.setdefault("tool_calls", [])
            for piece in value or []:
                _add_call(calls, piece)
        elif key in _JOINED and isinstance(value, str):
            message[key] = (message.get(key) or "") + value
        elif isinstance(value, list):
            message.setdefault(key, [])
            message[key] += value
        elif value is not None or key not in message:
            message[key] = value


def _add_call(calls: list[Event], piece: Event) -> None:
    index = piece.get("index", len(calls))
    call = next((it for it in calls if it.get("index") == index), None)
    if call is None:
        call = {"index": index, "function": {}}
        calls.append(call)
    call.update({key: it for key, it in piece.items()
                 if key not in ("index", "function") and it is not None})  # fmt: skip
    for key, value in (piece.get("function") or {}).items():
        before = call["function"].get(key)
        joined = key == "arguments" and isinstance(before, str) and isinstance(value, str)
        if value is not None:
            call["function"][key] = before + value if joined else value


def _response(events: list[Event]) -> Event | None:
    """The response that the last event holds; of a stream that was cut, the items that came."""
    reply: Event | None = None
    items: dict[int, Event] = {}
    for event in events:
        if isinstance(event.get("response"), dict):
            reply = event["response"]
        if event.get("type") in _ENDS:
            return reply
        if event.get("type") == "response.output_item.done":
            items[event["output_index"]] = event["item"]
    return None if reply is None else {**reply, "output": [items[n] for n in sorted(items)]}


def _anthropic(events: list[Event]) -> Event | None:
    reply: Event | None = None
    blocks: dict[int, Event] = {}
    inputs: dict[int, str] = {}
    for event in events:
        kind = event.get("type")
        if kind == "message_start":
            reply = dict(event["message"])
        elif kind == "content_block_start":
            blocks[event["index"]] = dict(event["content_block"])
        elif kind == "content_block_delta":
            _add_piece(blocks[event["index"]], event["index"], event["delta"], inputs)
        elif kind == "message_delta" and reply is not None:
            reply.update(event.get("delta") or {})
            reply["usage"] = {**(reply.get("usage") or {}), **(event.get("usage") or {})}
            if event.get("context_management") is not None:
                reply["context_management"] = event["context_management"]
    for index, text in inputs.items():
        try:
            blocks[index]["input"] = msgspec.json.decode(text) if text else {}
        except msgspec.DecodeError:
            blocks[index]["input"] = text
    return None if reply is None else {**reply, "content": [blocks[n] for n in sorted(blocks)]}


def _add_piece(block: Event, index: int, delta: Event, inputs: dict[int, str]) -> None:
    kind = str(delta.get("type"))
    if kind == "input_json_delta":
        inputs[index] = inputs.get(index, "") + delta["partial_json"]
    elif kind == "citations_delta":
        block["citations"] = [*(block.get("citations") or []), delta["citation"]]
    elif kind in _DELTAS:
        key = _DELTAS[kind]
        block[key] = (block.get(key) or "") + delta[key]
