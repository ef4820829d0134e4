"""Sessions of Grok CLI and Grok Build: ``chat_history.jsonl``, with ``summary.json`` beside it.

Lines are messages and items of the Responses API, without times. The reasoning and the calls that
the provider carries out stand before the message of the model that they belong to.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from msgspec import Raw

from adp.converters.kit.blocks import call_columns
from adp.converters.kit.chat import add_call
from adp.converters.kit.drafts import StepDraft, append_extra
from adp.converters.kit.key_tables import KeyTable, take_columns
from adp.converters.kit.session import LogReader, SessionLog, word
from adp.converters.kit.source_object import SourceObject
from adp_schema.protocols import Match

_OWN_WORDS = frozenset({"", "interjection"})
"""Values of ``synthetic_reason`` of a message that the user has written."""
_TEXTS = frozenset({"summary_text", "reasoning_text", "text"})


TIMES: KeyTable = {"started_at": "created_at", "ended_at": ("updated_at", "last_active_at")}


class GrokSession(SessionLog):
    """One session."""

    agent: ClassVar[str | None] = "grok-cli"
    handlers: ClassVar[Mapping[str, str]] = {
        "system": "message",
        "user": "message",
        "reasoning": "reasoning",
        "assistant": "assistant",
        "tool_result": "result",
        "backend_tool_call": "backend_call",
    }
    _open: StepDraft | None = None

    def read_lines(self) -> None:
        """Take the summary first: it says which session this is."""
        for path, source in self.side_objects():
            if path.endswith("summary.json"):
                self._summary(source)
            elif source:
                self.run.extra["signals"] = source.rest()
        super().read_lines()
        self._folder()

    def _summary(self, source: SourceObject) -> None:
        columns, info = self.run.columns, source.child("info")
        columns["source_id"] = columns["session_id"] = info.name("id")
        columns["agent_name"] = source.text("agent_name") or self.agent
        columns["agent_model"] = source.text("current_model_id")
        take_columns(source, columns, TIMES)
        if parent := source.word("parent_session_id"):
            if source.word("session_kind") == "subagent":
                self.link_parent(parent)
            else:
                self.run.link("continuation", target_id=parent)
        self.run.extra.update(source.rest())

    def _folder(self) -> None:
        """Without a summary, the folder has the id of the session."""
        folders = self.record.source_file.split("/")[:-1]
        if not self.run.columns.get("source_id") and folders and folders[-1].count("-") == 4:
            self.run.columns["source_id"] = self.run.columns["session_id"] = folders[-1]

    def message(self, source: SourceObject) -> None:
        """A message of the user or of the program."""
        self._open = None
        step = self.run.step("system" if self.kind == "system" else "user")
        if source.word("synthetic_reason") not in _OWN_WORDS:
            step.columns["synthetic"] = True
        self.blocks.content(source.take("content"), step, f"{source.path}.content")
        step.extra.update(source.rest())

    def _agent(self) -> StepDraft:
        """The turn of the model at hand; its message ends it."""
        if self._open is None:
            self._open = self.run.step("agent", "llm_turn")
        return self._open

    def reasoning(self, source: SourceObject) -> None:
        """What the model thought, as a summary, before what it says."""
        step = self._agent()
        blocks = source.objects("summary")
        if all(it.word("text") and it.word("type") in _TEXTS and len(it.values) == 2
               for it in blocks):  # fmt: skip
            for block in blocks:
                step.parts.reasoning(self.builder.text(block.word("text")))
        else:
            for block in blocks:
                self.blocks.block(block, step)
        append_extra(step.extra, "items", {"type": "reasoning", **source.rest()})

    def assistant(self, source: SourceObject) -> None:
        """The message of the model, with its calls."""
        step = self._agent()
        self.set_model(step, source.text("model_id"))
        step.columns["reasoning_effort"] = source.text("reasoning_effort")
        self.blocks.content(source.take("content"), step, f"{source.path}.content")
        for call in source.objects("tool_calls"):
            add_call(call, step)
        step.extra.update(source.rest())
        self._open = None

    def backend_call(self, source: SourceObject) -> None:
        """A call that the provider has carried out; its result is not in the log."""
        step, kind = self._agent(), source.child("kind")
        columns = call_columns(kind.text("tool_type"), kind.name("id"), kind.take("action"))
        columns["status"] = kind.text("status")
        step.call(columns, {"type": "backend_tool_call", **source.rest()})

    def result(self, source: SourceObject) -> None:
        """The result of a call."""
        self._open = None
        draft = self.begin_result(source, source.name("tool_call_id"))
        draft.columns["is_error"] = source.flag("is_error")
        self.blocks.result(source.take("content"), draft, f"{source.path}.content")
        draft.extra = source.rest()


class GrokReader(LogReader):
    """The format ``grok_cli``."""

    name = "grok_cli"
    title = "Sessions of Grok CLI and Grok Build (chat_history.jsonl)"
    recognised = "a line of the model with model_id, a call of the backend, or an indexed prompt"
    versions = "reads chat_format_version 1"
    log = GrokSession

    def side_files(self, source_file: str) -> tuple[str, ...]:
        """What lies in the folder of the session."""
        folder, slash, _ = source_file.rpartition("/")
        return tuple(f"{folder}{slash}{name}" for name in ("summary.json", "signals.json"))

    def sniff(self, record: Mapping[str, Raw]) -> Match:
        """Keys that no other log of flat messages has."""
        kind, keys = word(record, "type"), set(record)
        if kind == "assistant" and "model_id" in keys and "message" not in keys:
            return Match.STAMP
        if kind == "backend_tool_call" and "kind" in keys:
            return Match.STAMP
        if kind == "user" and keys & {"prompt_index", "synthetic_reason"} and "uuid" not in keys:
            return Match.STAMP
        return Match.NO


CONVERTER = GrokReader()
