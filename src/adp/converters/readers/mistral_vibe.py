"""Sessions of Mistral Vibe: ``messages.jsonl`` with ``meta.json`` beside it.

The messages are those of a chat, without the system prompt, which is in ``meta.json``. A session
that was compacted goes on in another folder, and so do subagents, below ``agents``. Early versions
wrote one document with ``metadata`` and ``messages``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from msgspec import Raw

from adp.converters.kit.chat_messages import ChatMessages
from adp.converters.kit.drafts import merge_extra
from adp.converters.kit.session import LogReader, SessionLog, inner, word
from adp.converters.kit.source_object import SourceObject
from adp.converters.kit.times import take_end, take_start
from adp.converters.reading import BRACKET, tools_text
from adp_schema import jsontext
from adp_schema.protocols import Match

_ROLES = frozenset({"system", "user", "assistant", "tool"})
_KEYS = frozenset(
    {"role", "content", "message_id", "injected", "reasoning_content", "reasoning_state",
     "reasoning_signature", "reasoning_message_id", "tool_calls", "name", "tool_call_id", "model",
     "images", "user_display_content", "context_boundary", "timestamp", "manual_command"}
)  # fmt: skip


class VibeSession(SessionLog):
    """One session."""

    agent: ClassVar[str | None] = "mistral-vibe"

    def read_lines(self) -> None:
        """Take ``meta.json`` first: it has the system prompt."""
        self._chat = ChatMessages(self.blocks)
        for path, data in self.record.side_files.items():
            source = SourceObject(data if jsontext.is_valid(data) else None, "$", self.losses)
            if source:
                self._about(source)
            else:
                self.losses.add(f"$side.{path}", "the file is no JSON object")
        super().read_lines()
        folders = self.record.source_file.split("/")[:-1]
        if not self.run.columns.get("source_id") and folders:
            self.run.columns["source_id"] = self.run.columns["session_id"] = folders[-1]

    def _about(self, source: SourceObject) -> None:
        columns = self.run.columns
        columns["source_id"] = columns["session_id"] = source.name("session_id")
        take_start(source, columns, "start_time")
        take_end(source, columns, "end_time")
        columns["agent_model"] = source.text("model")
        for key in ("config", "agent_config"):
            if columns["agent_model"] is None:
                columns["agent_model"] = source.child(key).word("active_model") or None
        if source.first("tools_available") == BRACKET:
            columns["tools"] = tools_text(source.take("tools_available"))
            columns["tools_origin"] = "recorded"
        if parent := source.word("parent_session_id"):
            folders = self.record.source_file.split("/")
            kind = "subagent" if "agents" in folders[:-1] else "continuation"
            self.run.link(kind, target_session_id=parent, extra='{"target":"parent"}')
        stats = source.child("stats")
        columns["total_tokens_in"] = stats.integer("session_prompt_tokens")
        columns["total_tokens_out"] = stats.integer("session_completion_tokens")
        columns["total_tokens_cached"] = stats.integer("session_cached_tokens")
        columns["total_cost_usd"] = stats.number("session_cost")
        prompt = source.take_child("system_prompt")
        if prompt:
            name = prompt.name("message_id")
            step = self._chat.message(prompt)
            if step is not None:
                step.columns["native_id"] = name
        elif (text := source.text("system_prompt")) is not None:
            self.run.step("system").parts.text(self.builder.text(text))
        merge_extra(self.run.extra, source.rest())

    def line(self, source: SourceObject) -> None:
        """A message, by its role; or the document of an early version."""
        if "metadata" in source and source.first("messages") == BRACKET:
            self._about(source.take_child("metadata"))
            for message in source.objects("messages"):
                self.line(message)
            merge_extra(self.run.extra, source.rest())
            return
        if not source.word("role"):
            self.losses.unknown(f"record without a role: {next(iter(source.values), 'empty')}")
            self.other(source)
            return
        name, injected = source.name("message_id"), source.first("injected") == ord("t")
        model = source.text("model")
        step = self._chat.message(source)
        if step is None:
            observations = self.run.steps[-1].observations if self.run.steps else self.run.early
            values = {"message_id": name, "model": model}
            known = {key: value for key, value in values.items() if value is not None}
            merge_extra(observations[-1].extra, known)
            return
        other = step.columns.get("native_id")
        if name is not None and other is not None:
            merge_extra(step.extra, {"id": other})
        step.columns["native_id"] = other if name is None else name
        step.columns["synthetic"] = injected or None
        step.columns["model"] = model
        if step.columns["source"] == "agent" and model is None:
            step.columns["model"] = self.run.columns.get("agent_model")


class VibeReader(LogReader):
    """The format ``mistral_vibe``."""

    name = "mistral_vibe"
    title = "Sessions of Mistral Vibe"
    recognised = "lines of a role with a message_id or whether they were injected"
    versions = (
        "reads messages.jsonl, with arguments as an object or as text, meta.json, and documents of "
        "version 1"
    )
    log = VibeSession

    def side_files(self, source_file: str) -> tuple[str, ...]:
        """What is known about the session."""
        folder, slash, name = source_file.rpartition("/")
        return (f"{folder}{slash}meta.json",) if name == "messages.jsonl" else ()

    def sniff(self, record: Mapping[str, Raw]) -> Match:
        """A message with an id of its own, and no key of another format."""
        keys = set(record)
        if keys == {"metadata", "messages"}:
            about = inner(record, "metadata")
            return Match.STAMP if {"session_id", "start_time", "stats"} <= set(about) else Match.NO
        if word(record, "role") not in _ROLES or not keys <= _KEYS:
            return Match.NO
        if keys & {"injected", "reasoning_message_id"}:
            return Match.STAMP
        return Match.SHAPE if "message_id" in keys else Match.NO


CONVERTER = VibeReader()
