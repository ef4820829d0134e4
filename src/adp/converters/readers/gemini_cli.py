"""Sessions of Gemini CLI: a document, or a log in which the last line with an id holds.

The log is folded: ``$set`` changes the header, ``$set.messages`` replaces the messages, and
``$rewindTo`` takes back a message and all after it. What was taken back becomes a branch; what a
later version of a message says in another way stays with the message. Sources: the types of
Gemini CLI up to 0.61, and files of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from msgspec import Raw

from adp.converters.kit.blocks import call_columns, function_response
from adp.converters.kit.drafts import ObservationDraft, StepDraft
from adp.converters.kit.lines import log_lines
from adp.converters.kit.session import LogReader, TreeLog, word
from adp.converters.kit.source_object import SourceObject
from adp.converters.kit.times import take_end, take_start, take_time
from adp.converters.kit.tree import split
from adp.converters.kit.usage import GEMINI, take_usage
from adp.converters.reading import BRACE, BRACKET, NULL
from adp_schema import jsontext
from adp_schema.builder import RowBuilder
from adp_schema.losses import Losses
from adp_schema.protocols import Match, RawRecord

_ROOT = "$root"
_NOTES = frozenset({"info", "warning", "error"})


@dataclass
class FoldedLog:
    """The messages of a log, each with the message that it follows.

    Attributes:
        entries: the last version of each message, and what else stands between them.
        ids: their ids.
        parents: the id of the entry that each one follows.
        earlier: what earlier versions said in another way, by the id of an entry.
        live: ids of the messages that hold at the end.
    """

    entries: list[tuple[SourceObject, str]] = field(default_factory=list)
    ids: list[str | None] = field(default_factory=list)
    parents: list[str | None] = field(default_factory=list)
    earlier: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    live: list[str] = field(default_factory=list)
    _places: dict[str, int] = field(default_factory=dict)
    _held: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        root = SourceObject(b'{"$root":0}', "$", Losses())
        self.entries, self.ids, self.parents = [(root, "")], [_ROOT], [None]

    def add(self, source: SourceObject, name: str, broken: str = "") -> None:
        """Add an entry after the last one that holds."""
        name = name or "$line"
        unique, number = name, 1
        while unique in self._places:
            number += 1
            unique = f"{name}#{number}"
        self._places[unique] = len(self.entries)
        self.entries.append((source, broken))
        self.ids.append(unique)
        self.parents.append(self.live[-1] if self.live else _ROOT)
        self.live.append(unique)
        self._held[name] = unique

    def message(self, source: SourceObject) -> str:
        """Add a message, or put its new version in the place of the one that is there."""
        name = source.word("id")
        known = self.held(name)
        if known is None:
            self.add(source, name)
            return self.live[-1]
        place = self._places[known]
        before = self.entries[place][0]
        changed = {key: raw for key, raw in before.values.items()
                   if bytes(source.values.get(key, b"")) != bytes(raw)}  # fmt: skip
        if changed:
            self.earlier.setdefault(known, []).append(changed)
        self.entries[place] = (source, "")
        return known

    def held(self, name: str) -> str | None:
        """The entry of a message that holds."""
        return self._held.get(name) if name else None

    def rewind(self, name: str) -> None:
        """Take back a message and all after it; an id that is not there takes back everything."""
        known = self.held(name)
        self.keep(0 if known is None else self.live.index(known))

    def keep(self, count: int) -> None:
        """Keep so many of the entries that hold."""
        gone = set(self.live[count:])
        self.live = self.live[:count]
        self._held = {name: it for name, it in self._held.items() if it not in gone}


class GeminiSession(TreeLog):
    """One session."""

    agent: ClassVar[str | None] = "gemini-cli"
    handlers: ClassVar[Mapping[str, str]] = {
        "user": "user",
        "gemini": "model",
        "model": "model",
        "$root": "root",
        "$edit": "edit",
        **dict.fromkeys(_NOTES, "note"),
    }
    kept: ClassVar[frozenset[str]] = frozenset({"$rewindTo"})

    def __init__(self, record: RawRecord, builder: RowBuilder, losses: Losses) -> None:
        super().__init__(record, builder, losses)
        self._log = FoldedLog()
        self._updates: list[Any] = []
        self._answered: set[str] = set()
        self._names: dict[int, str | None] = {}

    def read_lines(self) -> None:
        """Fold the log, and read the messages that hold; the others become branches."""
        log = self._log
        last_time = b""
        for source, broken in log_lines(self.record, self.builder, self.losses):
            if broken:
                log.add(source, "$broken", broken)
            elif "$rewindTo" in source:
                log.rewind(source.word("$rewindTo"))
                log.add(source, "$rewind")
            elif "$set" in source:
                self._set(source, last_time)
            elif "type" not in source and "id" not in source:
                self._header(source)
            else:
                log.message(source)
                last_time = bytes(source.values.get("timestamp", b""))
        places = {name: place for place, name in enumerate(log.ids)}
        leaf = places[log.live[-1]] if log.live else 0
        self._names = {
            id(source): name for name, (source, _) in zip(log.ids, log.entries, strict=True)
        }
        line = split(log.ids, log.parents, leaf)
        self._read_line(line, log.entries, 0)
        if self._updates:
            self.run.extra["$set"] = self._updates

    def kind_of(self, source: SourceObject) -> str:
        """The type of a message; a header and an edit have none."""
        for key in ("$root", "$edit", "$rewindTo"):
            if key in source:
                return key
        return source.word("type")

    def root(self, source: SourceObject) -> None:
        """What the first message follows; it is no step."""

    def _header(self, source: SourceObject) -> None:
        """The header; messages in it are those of a document."""
        for message in source.objects("messages"):
            self._log.message(message)
        self.header(source)

    def header(self, source: SourceObject) -> None:
        """Fill the trajectory; what a second header says in another way stands in ``$set``."""
        columns = self.run.columns
        if "source_id" in columns:
            self._updates.append(source.rest())
            return
        columns["source_id"] = columns["session_id"] = source.name("sessionId")
        take_start(source, columns, "startTime")
        take_end(source, columns, "lastUpdated")
        folders = self.record.source_file.split("/")[:-1]
        if source.word("kind") == "subagent" and folders and folders[-1] not in ("", "chats"):
            self.run.link("subagent", target_id=folders[-1], extra='{"target":"parent"}')
        self.run.extra.update(source.rest())

    def _set(self, source: SourceObject, last_time: bytes) -> None:
        """A change of the header, or a new list of messages."""
        change = source.child("$set")
        messages = change.objects("messages") if change.first("messages") == BRACKET else None
        if messages is not None:
            self._replace(messages)
        elif change.first("messages") == BRACKET:
            self._log.keep(0)
        if bytes(change.values.get("lastUpdated", b"")) == last_time:
            change.drop("lastUpdated")
        if left := source.rest():
            self._updates.append(left["$set"] if set(left) == {"$set"} else left)

    def _replace(self, messages: list[SourceObject]) -> None:
        """Messages that hold from here on: a rollback, or a history that was made shorter."""
        log = self._log
        known = [log.held(message.word("id")) for message in messages]
        kept = [name for name in known if name is not None]
        if log.live and known != log.live[: len(known)]:
            edit = SourceObject(None, "$", self.losses)
            names = [message.word("id") for message in messages]
            edit.values = {"$edit": jsontext.raw(jsontext.text_of(names))}
            if kept != log.live[: len(kept)]:
                log.add(edit, "$edit")
            elif len(kept) < len(log.live):
                log.keep(len(kept))
        elif len(known) < len(log.live):
            log.keep(len(known))
        for message in messages:
            log.message(message)

    def edit(self, source: SourceObject) -> None:
        """The history was replaced; new messages in it follow."""
        step = self.run.step("system", "context_edit", edit_boundary="replace")
        step.extra["messages"] = source.take("$edit")

    def user(self, source: SourceObject) -> None:
        """A message of the user; one that repeats results is no message."""
        if self._repeats_results(source):
            source.values["type"] = Raw(b'"user"')
            self.other(source)
            return
        step = self.run.step("user")
        self._begin(source, step)
        self.blocks.content(source.take("content"), step, f"{source.path}.content")
        self._end(source, step)

    def _repeats_results(self, source: SourceObject) -> bool:
        """Whether a message holds nothing but results that the calls have already."""
        if source.first("content") != BRACKET:
            return False
        parts = jsontext.decode_array(source.values["content"])
        names = []
        for part in parts:
            response = SourceObject(part, source.path, Losses()).child("functionResponse")
            names.append(response.word("id"))
        return bool(names) and all(name in self._answered for name in names)

    def model(self, source: SourceObject) -> None:
        """A turn of the model: thoughts, text, calls with their results."""
        step = self.run.step("agent", "llm_turn", model=source.text("model"))
        self._begin(source, step)
        if step.columns["model"]:
            self.run.columns["agent_model"] = step.columns["model"]
        for thought in source.objects("thoughts"):
            self._thought(thought, step)
        self.blocks.content(source.take("content"), step, f"{source.path}.content")
        take_usage(source, "tokens", step.columns, GEMINI)
        for call in source.objects("toolCalls"):
            self._call(call, step)
        self._end(source, step)

    def _thought(self, thought: SourceObject, step: StepDraft) -> None:
        subject, words = thought.word("subject"), thought.word("description")
        if words:
            thought.drop("description")
        text = f"**{subject}**\n{words}" if subject else words
        if text:
            step.parts.reasoning(self.builder.text(text), thought.rest())
        else:
            step.extra.setdefault("thoughts", []).append(thought.rest())

    def _call(self, source: SourceObject, step: StepDraft) -> None:
        """A call, whose result stands in it."""
        call_id, status = source.name("id"), source.text("status")
        columns = call_columns(source.text("name"), call_id, source.take("args"))
        columns["status"] = status
        index = len(step.calls)
        call = step.call(columns)
        agent = source.word("agentId")
        if agent:
            self.run.link("subagent", step, call=index, target_id=agent)
        if source.first("result") not in (0, NULL) or source.first("resultDisplay") not in (
            0,
            NULL,
        ):
            draft = ObservationDraft({"name": columns["name"]}, call_id, call_id is None)
            step.observations.append(draft)
            take_time(source, draft.columns, "timestamp")
            if status in ("success", "error", "cancelled"):
                draft.columns["is_error"] = status != "success"
            self._result(source, draft)
            if call_id is not None:
                self._answered.add(call_id)
        call.extra = source.rest()

    def _result(self, source: SourceObject, draft: ObservationDraft) -> None:
        draft.columns["error_type"] = source.text("errorType")
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
                draft.extra.setdefault("result", []).append(left)
        shown = source.json_object("resultDisplay")
        if shown is not None and draft.columns.get("structured") is None:
            draft.columns["structured"] = shown
        elif shown is not None:
            draft.extra["resultDisplay"] = jsontext.raw(shown)

    def note(self, source: SourceObject) -> None:
        """What the program told its user."""
        step = self.run.step("environment", "event", visibility="user")
        self._begin(source, step)
        self.blocks.content(source.take("content"), step, f"{source.path}.content")
        self._end(source, step)

    def line(self, source: SourceObject) -> None:
        """Take one message; the type of a note stays with it."""
        kind = self.kind_of(source)
        super().line(source)
        if kind in _NOTES:
            self.run.steps[-1].extra["type"] = kind

    def _begin(self, source: SourceObject, step: StepDraft) -> None:
        step.columns["native_id"] = source.name("id")
        take_time(source, step.columns, "timestamp")

    def _end(self, source: SourceObject, step: StepDraft) -> None:
        step.extra.update(source.rest())

    def entry(self, source: SourceObject, broken: str) -> None:
        """Take one entry, with what earlier versions of it said."""
        super().entry(source, broken)
        earlier = self._log.earlier.get(self._names.get(id(source)) or "")
        if earlier:
            self.run.steps[-1].extra["earlier"] = earlier

    def finish(self) -> None:
        """An error at the end has ended the session."""
        last = self.run.steps[-1] if self.run.steps else None
        if last is not None and last.extra.get("type") == "error":
            self.run.columns["error_message"] = last.parts.columns().get("text")


class GeminiReader(LogReader):
    """The format ``gemini_cli``."""

    name = "gemini_cli"
    title = "Sessions of Gemini CLI"
    recognised = "a header with sessionId and projectHash, or a line with $set or $rewindTo"
    versions = "reads documents (up to 0.39) and logs (0.40 to 0.61)"
    log = GeminiSession

    def sniff(self, record: Mapping[str, Raw]) -> Match:
        """The header, of a document or of a log, and the changes in a log."""
        if "$rewindTo" in record or ("$set" in record and len(record) == 1):
            return Match.STAMP
        keys = set(record)
        header = bool(word(record, "sessionId")) and not keys & {"type", "uuid", "id"}
        if header and ("projectHash" in keys or {"startTime", "lastUpdated"} <= keys):
            return Match.STAMP
        return Match.NO


CONVERTER = GeminiReader()
