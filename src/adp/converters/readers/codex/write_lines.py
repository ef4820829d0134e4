"""Lines of a rollout that are written: items, events, reports of tokens."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Raw

from adp.converters.session_writers.blocks import Block
from adp.converters.session_writers.log_writer import SessionLogWriter
from adp.converters.session_writers.values import Line, iso, merged, text_at
from adp.converters.unwritten_columns import REASON
from adp.converters.writing import string
from adp_schema import jsontext, media
from adp_schema.extra_column import original, unpack
from adp_schema.losses import Losses
from adp_schema.model import Observation, Step, Trajectory

LINES = frozenset({"session_meta", "turn_context", "world_state", "inter_agent_communication",
                   "inter_agent_communication_metadata", "retained_context",
                   "security_risk_score"})  # fmt: skip
"""Types of lines that become events; any other event is the payload of an ``event_msg``."""

AROUND = frozenset({"timestamp", "ordinal"})
"""Keys of a line, beside its payload."""

USAGE = {"tokens_in": "input_tokens", "tokens_cached": "cached_input_tokens",
          "tokens_cache_write": "cache_write_input_tokens", "tokens_out": "output_tokens",
          "tokens_reasoning": "reasoning_output_tokens"}  # fmt: skip
"""Columns of a turn -> keys of a report of tokens."""

_NEEDED = ("input_tokens", "cached_input_tokens", "output_tokens", "reasoning_output_tokens")


class CodexLineWriter(SessionLogWriter):
    """Lines of a rollout that are written: items, events, reports of tokens."""

    def __init__(self, run: Trajectory, losses: Losses) -> None:
        super().__init__(run, losses)
        self._open = False
        self._total: dict[str, int] = {}
        turns = [step.step for step in run.steps if self._usage(step)]
        self._last = turns[-1] if turns else None

    def _line(self, kind: str, row: Step | Observation | None, payload: Any) -> Line:
        return {"timestamp": iso(self.time(row)), "type": kind, "payload": payload}

    def _item(self, row: Step | Observation, item: Line, fields: Mapping[str, Raw]) -> Line:
        """An item, with the keys that no column holds."""
        left = {key: raw for key, raw in fields.items() if key not in AROUND}
        return self._line("response_item", row, merged(item, left))

    def _event(self, row: Step | Observation, kind: str, more: Line) -> Line:
        return {"timestamp": iso(self.now), "type": "event_msg", "payload": {"type": kind, **more}}

    def _noted(self, row: Step | Observation, fields: dict[str, Raw]) -> Line:
        left = {key: raw for key, raw in fields.items() if key not in AROUND}
        kind = text_at(fields, "type")
        if kind in LINES:
            del left["type"]
            return self._line(kind, row, left)
        if kind[:1].isupper():
            return self._line("event_msg", row, {"type": "item_completed", "item": left})
        return self._line("event_msg", row, left)

    def _usage(self, step: Step) -> Any:
        if self.native and step.usage is not None:
            return jsontext.raw(original(step, "usage", unpack(step.extra)))
        counts = {key: getattr(step, column) for column, key in USAGE.items()}
        known = {key: value for key, value in counts.items() if value is not None}
        return {**dict.fromkeys(_NEEDED, 0), **known} if known else None

    def _tokens(self, step: Step, usage: Any) -> Line:
        """A report of tokens, which ends the turn."""
        self._open = False
        counts = {key: getattr(step, column) or 0 for column, key in USAGE.items()}
        counts["total_tokens"] = counts["input_tokens"] + counts["output_tokens"]
        self._total = {key: self._total.get(key, 0) + value for key, value in counts.items()}
        total: Any = dict(self._total)
        if self.native and step.step == self._last and self.run.final_metrics is not None:
            total = jsontext.raw(original(self.run, "final_metrics", unpack(self.run.extra)))
        if isinstance(usage, dict):
            usage = {**usage, "total_tokens": counts["total_tokens"]}
        info = {"total_token_usage": total, "last_token_usage": usage}
        return self._event(step, "token_count", {"info": info})

    def _part(self, block: Block, way: str) -> Any:
        """A block of a message."""
        if block.kind == "opaque":
            return block.value
        if block.kind != "media":
            return merged({"type": f"{way}_text", "text": string(block.text)}, block.extra)
        if way == "output" or not block.is_image():
            return {"type": f"{way}_text", "text": string(self.address(block))}
        if block.blob.data is None and block.blob.mime is not None:
            self.losses.add(f"$.media.{block.blob.media_id}.mime", REASON)
        url = string(media.reference_of_media(block.blob, block.blob.mime or "image/png"))
        return merged({"type": "input_image", "image_url": url}, block.extra)
