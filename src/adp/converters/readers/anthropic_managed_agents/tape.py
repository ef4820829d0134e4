"""Tapes of a client of an events API: pairs ``[method, payload]``, a pair a line.

What the client sends comes back as an event of the stream with an id and a time; it is left out
where it was sent.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
from msgspec import Raw

from adp.converters.kit.source_object import SourceObject
from adp.converters.reading import BRACE, BRACKET, QUOTE
from adp_schema import jsontext
from adp_schema.losses import Losses

PAIR = 2
_COPIED = ("content", "tool_use_id", "custom_tool_use_id", "result", "deny_message", "is_error")


def tape_events(lines: list[Raw], losses: Losses) -> tuple[list[SourceObject], list[str]]:
    """The events of lines that are events, or pairs of a tape.

    Args:
        lines: the lines; one that is neither becomes an event with its text under ``line``.
        losses: takes what is odd in them.

    Returns:
        The events, and the ids of the sessions that were sent to.
    """
    echoes = [_content_of(event) for event in map(_streamed, lines) if event]
    events: list[SourceObject] = []
    sessions: list[str] = []
    for number, raw in enumerate(lines):
        path = f"$[{number}]"
        pair = jsontext.decode_array(raw) if jsontext.first_byte(raw) == BRACKET else []
        if jsontext.first_byte(raw) == BRACE:
            events.append(SourceObject(raw, path, losses))
        elif len(pair) != PAIR or jsontext.first_byte(pair[0]) != QUOTE:
            events.append(_odd({"line": raw}, path, losses))
        elif jsontext.first_byte(pair[1]) == BRACE:
            events.append(_with_method(SourceObject(pair[1], f"{path}[1]", losses), pair[0]))
        else:
            sent = _sent(pair[1], f"{path}[1]", losses)
            if sent is None:
                events.append(_odd({"method": pair[0], "payload": pair[1]}, path, losses))
                continue
            session, requests = sent
            if session not in sessions:
                sessions.append(session)
            for event in requests:
                content = _content_of(event.values)
                if content in echoes and set(event.values) <= {"type", *_COPIED}:
                    echoes.remove(content)
                else:
                    events.append(event)
    return events, sessions


def _with_method(source: SourceObject, method: Raw) -> SourceObject:
    """A payload that is no event of the stream says how it came."""
    if not bytes(method).endswith((b'.stream"', b'.create"')) and "method" not in source:
        source.values["method"] = method
    return source


def _odd(values: dict[str, Raw], path: str, losses: Losses) -> SourceObject:
    source = SourceObject(None, path, losses)
    source.values = values
    return source


def _sent(raw: Raw, path: str, losses: Losses) -> tuple[str, list[SourceObject]] | None:
    """The session and the events of ``[session, {events}]``; None for anything else."""
    items = jsontext.decode_array(raw) if jsontext.first_byte(raw) == BRACKET else []
    if len(items) != PAIR or jsontext.first_byte(items[0]) != QUOTE:
        return None
    source = SourceObject(items[1], f"{path}[1]", losses)
    if set(source.values) != {"events"} or jsontext.has_mark(jsontext.decode_value(items[0])):
        return None
    events = source.objects("events")
    return (jsontext.decode_value(items[0]), events) if events else None


def _streamed(raw: Raw) -> dict[str, Raw]:
    """An event of a user that the stream brought; empty for anything else."""
    pair = jsontext.decode_array(raw) if jsontext.first_byte(raw) == BRACKET else []
    if len(pair) != PAIR or jsontext.first_byte(pair[1]) != BRACE:
        return {}
    event: dict[str, Raw] = jsontext.decode_object(pair[1])
    kind = event.get("type")
    return event if kind is not None and bytes(kind).startswith((b'"user.', b'"system.')) else {}


def _content_of(event: Mapping[str, Raw]) -> bytes:
    """What an event says, apart from what the server adds."""
    content = {}
    for key in ("type", *_COPIED):
        if key in event and bytes(event[key]) != b"false":
            try:
                content[key] = msgspec.json.decode(event[key])
            except msgspec.DecodeError:
                content[key] = bytes(event[key]).decode("utf-8", "replace")
    return msgspec.json.encode(content, order="sorted")
