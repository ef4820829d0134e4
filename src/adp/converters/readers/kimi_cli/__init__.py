"""Sessions of Kimi CLI, which came before Kimi Code: ``context.jsonl``, the messages of a session.

Messages have neither times nor tokens: those are in ``wire.jsonl`` beside them. After a compaction
or a step back, the messages until then are in ``context_1.jsonl`` and so on.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import ClassVar

from msgspec import Raw

from adp.converters.kit.chat_messages import ChatMessages
from adp.converters.kit.drafts import StepDraft, merge_extra
from adp.converters.kit.session import LogReader, SessionLog, word
from adp.converters.kit.source_object import SourceObject
from adp.converters.kit.times import take_end, take_start, take_time
from adp.converters.readers.kimi_cli.wire import Wire, WireStep, text_of
from adp_schema import jsontext
from adp_schema.protocols import Match

_MARKS = {"_system_prompt": "content", "_checkpoint": "id", "_usage": "token_count"}
"""Role of a line that is no message -> what it has."""
_BY_PROGRAM = re.compile(r"<(system|system-reminder|notification)\b.*</\1>\s*", re.DOTALL)


class KimiCliSession(SessionLog):
    """One context."""

    agent: ClassVar[str | None] = "kimi-cli"
    type_key: ClassVar[str] = "role"
    handlers: ClassVar[Mapping[str, str]] = {"_system_prompt": "prompt", "_usage": "usage"}
    kept: ClassVar[frozenset[str]] = frozenset({"_checkpoint"})

    def read_lines(self) -> None:
        """Take what is beside the messages first."""
        self._chat = ChatMessages(self.blocks)
        self._name()
        sides = {path.rpartition("/")[2]: path for path in self.record.side_files}
        wire = sides.pop("wire.jsonl", None)
        self._wire = Wire(b"" if wire is None else self.record.side_files[wire], "wire.jsonl",
                          self.losses)  # fmt: skip
        self.run.columns.update(self._wire.trajectory)
        self._step: WireStep | None = None
        for name, path in sides.items():
            self._about(name, self.record.side_files[path])
        super().read_lines()
        if self._main:
            if self._wire.others:
                self.run.extra["wire"] = self._wire.others
            if unused := self._wire.unused:
                self.losses.add("$side.wire.jsonl", f"{unused} steps are not in these messages")

    def _name(self) -> None:
        """The folder is the session; other contexts of it are named after their file."""
        *folders, file = self.record.source_file.split("/")
        stem = file.removesuffix(".jsonl")
        self._main = stem == "context"
        session = folders[-1] if folders and stem.startswith("context") else stem
        columns = self.run.columns
        columns["source_id"] = session if self._main or stem == session else f"{session}/{stem}"
        columns["session_id"] = session
        if folders[-2:-1] == ["subagents"] and len(folders) > 2:
            self._parent(folders[-3])
        elif stem.startswith("context_sub") and stem != session:
            self._parent(session)

    def _parent(self, name: str) -> None:
        self.run.link("subagent", target_session_id=name, extra='{"target":"parent"}')

    def _about(self, name: str, data: bytes) -> None:
        """The state of a session, or what is known of a subagent."""
        source = SourceObject(data if jsontext.is_valid(data) else None, "$", self.losses)
        if not source:
            self.losses.add(f"$side.{name}", "the file is no JSON object")
        if source.word("agent_id"):
            take_start(source, self.run.columns, "created_at")
            take_end(source, self.run.columns, "updated_at")
            spec = source.child("launch_spec")
            self.run.columns["agent_model"] = spec.text("effective_model", "model_override")
        merge_extra(self.run.extra, source.rest())

    def prompt(self, source: SourceObject) -> None:
        """The system prompt."""
        step = self.run.step("system")
        self.blocks.content(source.take("content"), step, f"{source.path}.content")
        step.extra.update(source.rest())

    def usage(self, source: SourceObject) -> None:
        """How many tokens the context has after the answer before it."""
        step = self.run.steps[-1] if self.run.steps else None
        if step is None or step.columns["source"] != "agent" or "token_count" in step.extra:
            source.values["role"] = Raw(b'"_usage"')
            self.other(source)
        else:
            step.extra.update(source.rest())

    def line(self, source: SourceObject) -> None:
        """A message, or a mark between them."""
        role = self.kind_of(source)
        if not role or role.startswith("_"):
            super().line(source)
            return
        text, answers = text_of(source, "content"), source.word("tool_call_id")
        step = self._chat.message(source)
        if step is None:
            self._result(answers, text)
        elif step.columns["source"] == "user":
            self._recorded(step, self._wire.prompt(text))
            if _BY_PROGRAM.fullmatch(text):
                step.columns["synthetic"] = True
        elif step.columns["source"] == "agent":
            calls = [str(it.columns.get("call_id") or "") for it in step.calls]
            self._step = self._wire.step(text, calls)
            self._recorded(step, self._step)

    def _recorded(self, step: StepDraft, recorded: WireStep | None) -> None:
        if recorded is not None:
            step.columns.update(recorded.columns)
            merge_extra(step.extra, recorded.extra)

    def _result(self, answers: str, text: str) -> None:
        """What the recording knows of a result; its output is in the message already."""
        event = self._step.results.pop(answers, None) if self._step and answers else None
        if event is None:
            return
        observations = self.run.steps[-1].observations if self.run.steps else self.run.early
        draft = observations[-1]
        take_time(event, draft.columns, "timestamp")
        value = event.child("message").child("payload").child("return_value")
        draft.columns["is_error"] = value.flag("is_error")
        for key in ("output", "message"):
            if value.word(key) in text:
                value.drop(key) if value.first(key) == ord('"') else None
        merge_extra(draft.extra, value.rest())


class KimiCliReader(LogReader):
    """The format ``kimi_cli``."""

    name = "kimi_cli"
    title = "Sessions of Kimi CLI (context.jsonl)"
    recognised = "lines of the roles _system_prompt, _checkpoint and _usage"
    versions = "reads context.jsonl with wire.jsonl, state.json and meta.json beside it"
    log = KimiCliSession

    def side_files(self, source_file: str) -> tuple[str, ...]:
        """What was recorded of the session, and its state."""
        folder, slash, name = source_file.rpartition("/")
        if not name.startswith("context"):
            return ()
        names = ("wire.jsonl", "state.json", "meta.json")
        return tuple(f"{folder}{slash}{it}" for it in names)

    def sniff(self, record: Mapping[str, Raw]) -> Match:
        """A line that is no message."""
        needed = _MARKS.get(word(record, "role"))
        known = needed is not None and needed in record and len(record) <= 3
        return Match.STAMP if known else Match.NO


CONVERTER = KimiCliReader()
