"""Sessions of Gemini CLI: a document, or a log in which the last line with an id holds.

The log is folded: ``$set`` changes the header, ``$set.messages`` replaces the messages, and
``$rewindTo`` drops a message and all after it, which become a branch of the kind rewind, and
``$patch`` changes some keys of a message and of its calls; what a later version of a message says
in another way stays with the message. Sources: the types of Gemini CLI up to 0.61, and its files.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from msgspec import Raw

from adp.converters.kit.blocks import call_columns, function_response
from adp.converters.kit.drafts import ObservationDraft, StepDraft, append_extra
from adp.converters.kit.gemini_contents import take_outcome
from adp.converters.kit.key_tables import take_columns
from adp.converters.kit.session import LogReader, first_item, word
from adp.converters.kit.source_object import SourceObject
from adp.converters.kit.times import take_time
from adp.converters.kit.usage import GEMINI, take_usage
from adp.converters.readers.gemini_cli.folded_log import FoldedSession
from adp.converters.reading import BRACE, BRACKET, NULL
from adp_schema import jsontext
from adp_schema.protocols import Match

HEADER = {"started_at": "startTime", "ended_at": "lastUpdated"}
_NOTES = frozenset({"info", "warning", "error"})


class GeminiSession(FoldedSession):
    """One session."""

    agent: ClassVar[str | None] = "gemini-cli"
    handlers: ClassVar[Mapping[str, str]] = {
        "user": "user",
        "gemini": "model",
        "model": "model",
        "qwen": "model",
        "$root": "root",
        "$edit": "edit",
        **dict.fromkeys(_NOTES, "note"),
    }
    kept: ClassVar[frozenset[str]] = frozenset({"$rewindTo"})

    def set_up(self) -> None:
        """Make what is noted on the way: the calls that have a result."""
        super().set_up()
        self._answered: set[str] = set()

    def kind_of(self, source: SourceObject) -> str:
        """The type of a message; a header and an edit have none."""
        for key in ("$root", "$edit", "$rewindTo"):
            if key in source:
                return key
        return source.word("type")

    def root(self, source: SourceObject) -> None:
        """What the first message follows; it is no step."""

    def header(self, source: SourceObject) -> None:
        """The header, of a document with its messages; a second one is kept under ``$set``."""
        for message in source.objects("messages"):
            self.folded.message(message)
        columns = self.run.columns
        if "source_id" in columns:
            self.updates.append(source.rest())
            return
        columns["source_id"] = columns["session_id"] = source.name("sessionId")
        take_columns(source, columns, HEADER)
        folders = self.record.source_file.split("/")[:-1]
        if source.word("kind") == "subagent" and folders and folders[-1] not in ("", "chats"):
            self.link_parent(folders[-1])
        self.run.extra.update(source.rest())

    def edit(self, source: SourceObject) -> None:
        """The history was replaced; new messages in it follow."""
        step = self.run.step("system", "context_edit", edit_boundary="replace")
        step.extra["messages"] = source.take("$edit")

    def user(self, source: SourceObject) -> None:
        """A message of the user; one that repeats results is no message."""
        if self._repeats_results(source):
            self.keep(source)
            return
        step = self.begin_step(source, "user")
        self.blocks.content(source.take("content"), step, f"{source.path}.content")
        self.end_step(source, step)

    def _repeats_results(self, source: SourceObject) -> bool:
        """Whether a message holds nothing but results that the calls have already."""
        if source.first("content") != BRACKET:
            return False
        parts = jsontext.decode_array(source.values["content"])
        names = [SourceObject(part, source.path, self.losses).peek("functionResponse").word("id")
                 for part in parts]  # fmt: skip
        return bool(names) and all(name in self._answered for name in names)

    def model(self, source: SourceObject) -> None:
        """A turn of the model: thoughts, text, calls with their results."""
        step = self.begin_step(source, "agent")
        self.set_model(step, source.text("model"))
        for thought in source.objects("thoughts"):
            self._thought(thought, step)
        self.blocks.content(source.take("content"), step, f"{source.path}.content")
        take_usage(source, "tokens", step.columns, GEMINI)
        for call in source.objects("toolCalls"):
            self._call(call, step)
        self.end_step(source, step)

    def _thought(self, thought: SourceObject, step: StepDraft) -> None:
        subject, words = thought.word("subject"), thought.word("description")
        if words:
            thought.drop("description")
        text = f"**{subject}**\n{words}" if subject else words
        if text:
            step.parts.reasoning(self.builder.text(text), thought.rest())
        else:
            append_extra(step.extra, "thoughts", thought.rest())

    def _call(self, source: SourceObject, step: StepDraft) -> None:
        """A call, whose result stands in it."""
        call_id, status = source.name("id"), source.text("status")
        call = step.call(call_columns(source.text("name"), call_id, source.take("args")))
        call.columns["status"] = status
        if agent := source.word("agentId"):
            self.run.link("subagent", step, call=len(step.calls) - 1, target_id=agent)
        if any(source.first(key) not in (0, NULL) for key in ("result", "resultDisplay")):
            name = call.columns["name"]
            draft = self.run.observe({"name": name}, answers=call_id, by_order=True)
            take_time(source, draft.columns, "timestamp")
            self._result(source, draft, status)
            if call_id is not None:
                self._answered.add(call_id)
        call.extra = source.rest()

    def _result(self, source: SourceObject, draft: ObservationDraft, status: str | None) -> None:
        if source.first("result") == BRACKET:
            parts = source.objects("result")
        else:
            parts = [source.child("result")] if source.first("result") == BRACE else []
        if not parts:
            self.blocks.result(source.take("result"), draft, f"{source.path}.result")
        for part in parts:
            response = part.child("functionResponse")
            if not response:
                self.blocks.part(part, draft.parts)
                continue
            for key, known in (("id", draft.answers), ("name", draft.columns["name"])):
                if known and response.word(key) == known:
                    response.drop(key)
            function_response(self.blocks, response, draft)
            if left := part.rest():
                append_extra(draft.extra, "result", left)
        take_outcome(source, draft, status)

    def note(self, source: SourceObject) -> None:
        """A notice of the program to its user; its type stays with it."""
        step = self.begin_step(source, "environment", "event")
        step.columns["visibility"] = "user"
        self.blocks.content(source.take("content"), step, f"{source.path}.content")
        step.extra |= {**source.rest(), "type": self.kind}

    def finish(self) -> None:
        """An error at the end has ended the session."""
        last = self.run.steps[-1] if self.run.steps else None
        if last is not None and last.extra.get("type") == "error":
            self.run.columns["error_message"] = last.parts.columns().get("text")


class GeminiReader(LogReader):
    """The format ``gemini_cli``."""

    name = "gemini_cli"
    title = "Sessions of Gemini CLI"
    recognised = "a header with sessionId and projectHash, or a line with $set, $patch or $rewindTo"
    versions = "reads documents (up to 0.39) and logs (0.40 to 0.61)"
    log = GeminiSession

    def sniff(self, record: Mapping[str, Raw]) -> Match:
        """The header, of a document or of a log, and the changes in a log."""
        if "$rewindTo" in record or (len(record) == 1 and ("$set" in record or "$patch" in record)):
            return Match.STAMP
        keys = set(record)
        header = bool(word(record, "sessionId")) and not keys & {"type", "uuid", "id"}
        if header and ("projectHash" in keys or {"startTime", "lastUpdated"} <= keys):
            return Match.STAMP
        kind = word(first_item(record, "messages"), "type")
        document = {"projectHash", "startTime"} <= keys and kind in GeminiSession.handlers
        return Match.STAMP if document else Match.NO


CONVERTER = GeminiReader()
