"""Sessions as they are published for the Hub's trace viewer.

They hold what the Hub documents and nothing else, so that its programs read them. What was tried
with ``datasets`` 5.2 and teich 0.3 decides the rest:

- ``datasets`` takes a folder for agent traces when it infers ``type`` as a string and ``message``
  as JSON, from the first 10 MB of the first file. It infers JSON only when the messages do not
  all have the same keys. A header with an empty object ``message`` makes any file pass; it is
  written only where the messages do not do it by themselves.
- Its decoder refuses integers beyond 64 bits, and lone surrogates. So tools stand in the header
  as a JSON string, and surrogates are replaced.
- It cuts the text at every line separator that Unicode knows. So the lines are pure ASCII.
- teich reads the ``toolCalls`` of a session of this format as little as the number of calls that
  ``datasets`` counts does. Both read them in the form of Pi's sessions, which the Hub names as
  the alternative: `pi_lines`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from datetime import UTC
from typing import Any, Literal

from adp.converters.sts.write import Line, SessionWriter
from adp_schema import jsontext
from adp_schema.extra_column import Extra, unpack
from adp_schema.losses import Losses
from adp_schema.model import Observation, Row, Step, Trajectory

Form = Literal["sts", "pi"]

FIRST_LOOK = 10 << 20
"""Bytes of a file that ``datasets`` infers its features from."""

_PI_VERSION = 3
_PLAIN_DEPTH = 64


def trace_lines(trajectory: Trajectory, losses: Losses, harness: str, form: Form) -> list[bytes]:
    """The lines of a published session, without their ends.

    Args:
        trajectory: a whole run; a branch with the steps of its parent.
        losses: takes what the form has no place for.
        harness: id of the harness, by which the Hub chooses icon and label.
        form: ``sts``, or ``pi`` for the form of Pi's sessions.
    """
    writer = _TraceWriter(trajectory, losses, native=False)
    header = {**writer.header(), "harness": harness, "id": trajectory.trajectory_id or ""}
    if (agent := trajectory.agent_name) is not None:
        header["agent"] = agent
    pairs = writer.rows()
    lines = list(_pi(header, pairs, writer) if form == "pi" else _sts(header, pairs))
    if form == "pi":
        losses.items = [item for item in losses.items if not _is_in_pi(item["path"])]
    encoded = [_ascii(line) for line in lines]
    if _is_uniform(lines, encoded):
        encoded[0] = _ascii({**lines[0], "message": {}})
    return encoded


class _TraceWriter(SessionWriter):
    """Writes the characters that the store holds, not those of the source."""

    name = "trace"
    lists = False

    def extra(self, row: Row) -> Extra:
        """Nothing: neither the form of the source nor characters that cannot be stored."""
        for column in unpack(row.extra).escaped:  # type: ignore[attr-defined]
            if column != "extra":
                place = type(row).__name__.lower()
                self.losses.add(f"$.{place}.{column}", "characters that Unicode lacks are replaced")
        return Extra()


def _sts(header: Line, pairs: Iterable[tuple[Step | Observation, Line]]) -> Iterator[Line]:
    if "tools" in header:
        header["tools"] = bytes(header["tools"]).decode("utf-8")
    yield header
    for _, line in pairs:
        yield line


def _pi(
    header: Line, pairs: Iterable[tuple[Step | Observation, Line]], writer: SessionWriter
) -> Iterator[Line]:
    """The lines in the form of Pi's sessions."""
    run = writer.trajectory
    tools = header.pop("tools", None)
    first: Line = {"type": "session", "version": _PI_VERSION, "id": header.pop("id")}
    if run.started_at is not None:
        first["timestamp"] = _iso(run.started_at)
    del header["type"]
    first |= {"cwd": "", **header}
    listed = None if tools is None else _plain(bytes(tools).decode("utf-8"), list)
    if tools is not None:
        extra = ("data", {}) if listed is not None else ("tools", bytes(tools).decode("utf-8"))
        first[extra[0]] = extra[1]
    yield first
    parent = None
    if listed is not None:
        parent = "00000000"
        custom = {"type": "custom", "id": parent, "parentId": None}
        yield {**custom, "customType": "teich-available-tools", "data": {"tools": listed}}
    for number, (row, line) in enumerate(pairs, 1):
        entry: Line = {"type": "message", "id": f"{number:08x}", "parentId": parent}
        parent = entry["id"]
        if row.timestamp is not None:
            entry["timestamp"] = _iso(row.timestamp)
        yield {**entry, "message": _pi_message(line["message"], row, writer)}


def _is_in_pi(path: str) -> bool:
    """Whether a value that STS has no place for has one in Pi's sessions."""
    return "observations[" in path and path.endswith(("].name", "].is_error"))


def _pi_message(message: Line, row: Step | Observation, writer: SessionWriter) -> Line:
    content = message["content"]
    text = [{"type": "text", "text": content}]
    rest: Line = {key: message[key] for key in ("timestamp", "model") if key in message}
    if isinstance(row, Observation):
        return {
            "role": "toolResult",
            "toolCallId": message.get("toolCallId", ""),
            "toolName": row.name or writer.name_of_call(row) or "",
            "content": text,
            "isError": bool(row.is_error),
            **rest,
        }
    if message["role"] != "assistant" and "toolCalls" not in message:
        return {"role": message["role"], "content": content, **rest}
    parts: list[Line] = []
    if "reasoningContent" in message:
        parts.append({"type": "thinking", "thinking": message["reasoningContent"]})
    parts += text if content else []
    for call in message.get("toolCalls", ()):
        name, given = call["function"]["name"], call["function"]["arguments"]
        named = {"type": "toolCall", "id": call.get("id", ""), "name": name}
        parts.append({**named, "arguments": _pi_arguments(given, writer.losses)})
    return {"role": message["role"], "content": parts, **rest}


def _pi_arguments(text: str, losses: Losses) -> Any:
    """The arguments of a call: an object, or a text that teich decodes, or does not."""
    value = _plain(text, dict)
    if value is not None:
        return value
    try:
        fits = _decodes(json.loads(text))
    except json.JSONDecodeError:
        return text
    except (ValueError, RecursionError):
        fits = False
    if fits:
        return text
    losses.add("$.tool_call.arguments", "teich cannot decode them; they are a text after raw:")
    return f"raw: {text}"


def _decodes(value: Any) -> bool:
    """Whether `datasets` can write a value that teich decoded; it decodes JSON in strings too."""
    if isinstance(value, dict):
        return all(_decodes(key) and _decodes(item) for key, item in value.items())
    if isinstance(value, list):
        return all(map(_decodes, value))
    if not isinstance(value, str):
        return True
    if jsontext.replace_surrogates(value) != value:
        return False
    if value.strip()[:1] not in ("[", "{"):
        return True
    try:
        return _decodes(json.loads(value))
    except json.JSONDecodeError:
        return True
    except (ValueError, RecursionError):
        return False


def _plain(text: str, kind: type) -> Any:
    """A JSON text as a value that every program on the Hub can decode; None when it is none."""
    data = text.encode("utf-8")
    if not jsontext.is_valid(text) or jsontext.depth(data) > _PLAIN_DEPTH:
        return None
    try:
        value = json.loads(text)
    except ValueError:  # a number of thousands of digits
        return None
    fits = isinstance(value, kind) and _is_small(value) and _decodes(value)
    return value if fits else None


def _is_small(value: Any) -> bool:
    if isinstance(value, dict):
        return all(map(_is_small, value.values()))
    if isinstance(value, list):
        return all(map(_is_small, value))
    if isinstance(value, float):
        return abs(value) < float("inf")
    return not isinstance(value, int) or -(2**63) <= value < 2**63


def _is_uniform(lines: list[Line], encoded: list[bytes]) -> bool:
    """Whether the messages at the beginning of a file all have the same keys."""
    seen: set[frozenset[str]] = set()
    size = 0
    for line, data in zip(lines, encoded, strict=True):
        if size >= FIRST_LOOK or len(seen) > 1:
            break
        size += len(data) + 1
        if "message" in line:
            seen.add(frozenset(line["message"]))
    return len(seen) < 2


def _ascii(line: Line) -> bytes:
    return jsontext.escape_non_ascii(jsontext.encode(line).decode("utf-8")).encode("ascii")


def _iso(moment: Any) -> str:
    stamp = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    text: str = stamp.astimezone(UTC).isoformat(timespec="milliseconds")
    return text.replace("+00:00", "Z")
