"""Records of Claude Code that are written, and the blocks in them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from msgspec import Raw

from adp.converters.readers.claude_code.names import CONSTANT
from adp.converters.scalars import number_text
from adp.converters.session_writers.blocks import Block
from adp.converters.session_writers.log_writer import SessionLogWriter
from adp.converters.session_writers.names import is_uuid, uuid_of
from adp.converters.session_writers.values import Line, iso, merged
from adp.converters.unwritten_columns import REASON
from adp.converters.writing import string
from adp_schema import jsontext
from adp_schema.extra_column import original, unpack
from adp_schema.losses import Losses
from adp_schema.model import Step, Trajectory

Fields = Mapping[str, Raw]
_ANEW = re.compile(r"(uuid|parentUuid|timestamp)(#\d+)?|.+#\d+")
"""Keys of ``extra`` that the records of a response had apart; they are written anew."""

USAGE = {
    "tokens_cached": "cache_read_input_tokens",
    "tokens_cache_write": "cache_creation_input_tokens",
    "tokens_out": "output_tokens",
}
"""Columns of a turn -> keys of its usage, beside the prompt."""


class ClaudeRecords(SessionLogWriter):
    """Records of Claude Code that are written, and the blocks in them."""

    def __init__(self, run: Trajectory, losses: Losses) -> None:
        super().__init__(run, losses)
        self._constant = {key: raw for key, raw in self.kept.items() if key in CONSTANT}
        if self.native and run.agent_version is not None:
            self._constant["version"] = jsontext.raw(jsontext.text_of(run.agent_version))

    def _record(
        self, kind: str, time: datetime, name: str, more: Line, fields: Fields | None = None
    ) -> Line:
        """A record that follows the one before.

        Args:
            kind: its type.
            time: its time.
            name: its id, if that is a UUID, or what one is made of.
            more: what it says.
            fields: keys of the source.
        """
        fields = fields or {}
        uuid = self._uuid(name)
        if uuid in self.used:
            uuid = uuid_of(uuid, len(self.used))
        record = {"parentUuid": self.previous, "isSidechain": False, "userType": "external",
                  "cwd": string(self.cwd), "sessionId": self.session, **self._constant,
                  "type": kind, **more, "uuid": uuid, "timestamp": iso(time)}  # fmt: skip
        self.used[uuid] = None
        self.previous = uuid
        return merged(record, {key: raw for key, raw in fields.items() if not _ANEW.match(key)})

    def _uuid(self, name: str) -> str:
        """The id of a record by its name."""
        fits = (self.native and not name.startswith("$")) or is_uuid(name)
        return name if fits else uuid_of(self.run.trajectory_id or "", self.session, name)

    def _usage(self, step: Step) -> Any:
        if self.native and step.usage is not None:
            return jsontext.raw(original(step, "usage", unpack(step.extra)))
        usage = {key: getattr(step, column) for column, key in USAGE.items()}
        if step.tokens_in is not None:
            cached = (step.tokens_cached or 0) + (step.tokens_cache_write or 0)
            usage = {"input_tokens": step.tokens_in - cached, **usage}
        known: Line = {key: value for key, value in usage.items() if value is not None}
        if step.tokens_reasoning is not None:
            known["output_tokens_details"] = {"thinking_tokens": step.tokens_reasoning}
        return known or None

    def _content(self, blocks: list[Block], path: str = "") -> list[Line]:
        made = (self._block(block, path) for block in blocks)
        return [block for block in made if block is not None]

    def _block(self, block: Block, path: str) -> Any:
        """A block in the form of the API; None when it has none there."""
        if block.kind == "opaque":
            return block.value
        if block.kind == "text":
            return merged({"type": "text", "text": string(block.text)}, block.extra)
        if block.kind == "reasoning":
            known = {"type": "thinking", "thinking": string(block.text)}
            signature = {} if self.native else {"signature": ""}
            return merged({**known, **signature}, block.extra)
        if block.kind == "call":
            call = block.call
            known = {"type": "tool_use", "id": string(self.call_id(call, path)),
                     "name": string(self.call_name(call)),
                     "input": self.arguments_object(call, path)}  # fmt: skip
            return merged(known, self.fields(call))
        kind = "image" if block.is_image() else "document"
        if block.blob.data is None:
            if block.blob.mime is not None:
                self.losses.add(f"$.media.{block.blob.media_id}.mime", REASON)
            source = {"type": "url", "url": string(block.blob.uri)}
        else:
            source = {"type": "base64", "media_type": string(block.blob.mime or "image/png"),
                      "data": block.base64()}  # fmt: skip
        return merged({"type": kind, "source": source}, block.extra)


def plain(content: list[Line]) -> Any:
    """A single text as a string, as Claude Code writes it."""
    only = content[0] if len(content) == 1 and isinstance(content[0], dict) else {}
    return only["text"] if list(only) == ["type", "text"] else content or ""


def number(value: float) -> Any:
    """A number, as programs spell it."""
    return jsontext.raw(number_text(value))


def tools_of(text: str) -> Any:
    """Tools in the form of a snapshot."""
    data = text.encode("utf-8", "surrogatepass")
    tools = jsontext.decode_value(data) if jsontext.is_valid(data) else None
    if not isinstance(tools, list):
        return jsontext.raw(text)
    made = []
    for tool in tools:
        function = tool.get("function") if isinstance(tool, dict) else None
        if not isinstance(function, dict):
            made.append(tool)
            continue
        others = {key: value for key, value in tool.items() if key not in ("type", "function")}
        schema = {"schema" if key == "parameters" else key: it for key, it in function.items()}
        made.append({**others, **schema})
    return made
