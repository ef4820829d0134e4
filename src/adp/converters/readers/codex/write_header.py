"""The header of a Codex session that is written, which holds its first system prompt."""

from __future__ import annotations

from adp.converters.readers.codex.write_lines import CodexLineWriter
from adp.converters.session_writers.values import Line, iso, merged, text_at
from adp.converters.writing import string
from adp_schema import jsontext
from adp_schema.extra_column import original, unpack
from adp_schema.model import Step

_INSTRUCTIONS = ("base_instructions", "instructions")
_ANEW = frozenset({"history_mode", "timestamp", "ordinal"})


class CodexHeaderWriter(CodexLineWriter):
    """Writes the header of a session."""

    def header(self) -> Line:
        """The first line of a session."""
        start = iso(self.time())
        payload: Line = {
            **{"id": self.session, "timestamp": start, "cwd": string(self.cwd)},
            **{"originator": "adp", "cli_version": "0.0.0", "source": "cli"},
        }
        if self.native:
            payload["cli_version"] = string(self.run.agent_version or "0.0.0")
            if self.run.session_id not in (None, self.session):
                payload["session_id"] = string(self.run.session_id)
            if self.run.tools is not None:
                tools = original(self.run, "tools", unpack(self.run.extra))
                payload["dynamic_tools"] = jsontext.raw(tools)
        for step in self.run.steps:
            if (key := self.place_in_header(step)) is None:
                break
            text = self.text(step)
            fields = {key: raw for key, raw in self.fields(step).items() if key != "type"}
            payload[key] = merged({"text": string(text)}, fields) if key[0] == "b" else string(text)
        if "history_mode" in self.kept:
            self.losses.add("$.extra.history_mode", "the session is written in one piece")
        kept = {key: raw for key, raw in self.kept.items() if key not in _ANEW}
        return {"timestamp": start, "type": "session_meta", "payload": merged(payload, kept)}

    def place_in_header(self, step: Step) -> str | None:
        """The key of the header for a system prompt; None for any other step."""
        if step.source != "system" or step.kind != "message" or not step.text:
            return None
        if self.native:
            kind = text_at(self.fields(step), "type")
            return kind if kind in _INSTRUCTIONS else None
        first = self.run.steps[0] is step and not self.run.early_observations
        return _INSTRUCTIONS[0] if first and step.content is None else None
