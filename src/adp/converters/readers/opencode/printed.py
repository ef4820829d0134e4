"""What opencode prints: ``run --format json``, and the events of its server.

Both say a part again as it grows, by its id; the last line that says it holds. The server also says
a message or a session again (``message.updated``, ``session.updated``), and the sessions of
subagents stand in between.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import ClassVar

from msgspec import Raw

from adp.converters.kit.drafts import merge_extra
from adp.converters.kit.session import SHARED, inner, word
from adp.converters.kit.source_object import SourceObject
from adp.converters.kit.times import take_time
from adp.converters.readers.opencode.messages import OpencodeMessages, is_over
from adp.converters.reading import BRACE

EVENTS = frozenset({"step_start", "step_finish", "text", "tool_use", "reasoning", "error"})
SERVER = frozenset(
    {"message.updated", "message.part.updated", "session.created", "session.updated"}
)
"""Events of the server that hold a message, a part, or a session."""
_OTHERS = frozenset(
    {"message.part.delta", "message.part.removed", "message.removed", "session.idle",
     "session.status", "session.error", "session.diff", "session.compacted", "session.deleted",
     "server.connected", "server.heartbeat", "server.instance.disposed", "file.edited",
     "file.watcher.updated", "todo.updated", "permission.asked", "permission.updated",
     "permission.replied", "question.asked", "question.replied", "lsp.updated",
     "lsp.client.diagnostics", "command.executed", "vcs.branch.updated", "project.updated"}
)  # fmt: skip

Lines = list[tuple[SourceObject, str]]


class OpencodePrinted(OpencodeMessages):
    """A session from what was printed."""

    kept: ClassVar[frozenset[str]] = frozenset({"error"}) | _OTHERS

    def take_header(self, info: SourceObject) -> None:
        """Take what is known of a session."""
        raise NotImplementedError

    def latest(self, lines: Iterable[tuple[SourceObject, str]]) -> Lines:
        """The lines, a part or a message in its last form, where it first stood."""
        kept: Lines = []
        places: dict[tuple[str, str], int] = {}
        for source, broken in lines:
            name = _name(source)
            place = places.get(name)
            if place is None or not name[1]:
                places[name] = len(kept)
                kept.append((source, broken))
            else:
                earlier = kept[place][0]
                self.losses.add(earlier.path, "a part or a message that a later line says whole")
                kept[place] = (source, broken)
        return kept

    def read_events(self, lines: Lines) -> Lines:
        """Read the messages that the server tells of; returns the other lines."""
        parts: dict[str, list[SourceObject]] = {}
        infos: dict[str, SourceObject] = {}
        sessions: dict[str, list[str]] = {}
        others: Lines = []
        for source, broken in lines:
            about = source.child("properties")
            kind = source.word("type")
            if kind not in SERVER or not about:
                others.append((source, broken))
                continue
            what = about.take_child("part" if kind == "message.part.updated" else "info")
            if kind.startswith("session."):
                self._session(what)
            else:
                owner = what.word("messageID") if kind != "message.updated" else what.word("id")
                names = sessions.setdefault(what.word("sessionID"), [])
                if owner not in names:
                    names.append(owner)
                if kind == "message.updated":
                    infos[owner] = what
                else:
                    parts.setdefault(owner, []).append(what)
            about.drop_text("sessionID", what.word("sessionID"))
            if about.take("delta") is not None:
                self.losses.add(f"{about.path}.delta", "a piece of a text that is there whole")
            if set(source.rest()) - {"type"}:
                self.other(source)
        main = self.run
        for number, (session, owners) in enumerate(sessions.items()):
            if number == 0 and "source_id" not in main.columns:
                main.columns["source_id"] = main.columns["session_id"] = session
            elif session != main.columns.get("session_id"):
                shared = {key: main.columns.get(key) for key in SHARED}
                self.run = main.branch(len(main.steps), "subagent", **shared)
                self.run.columns["source_id"] = self.run.columns["session_id"] = session
            for owner in owners:
                info = infos.get(owner) or SourceObject(None, "$", self.losses)
                self.message(info, parts.get(owner, []))
            self.run = main
        return others

    def _session(self, info: SourceObject) -> None:
        """A session; one of a subagent is kept as an event."""
        if "source_id" in self.run.columns or info.word("parentID"):
            self.other(info)
        else:
            self.take_header(info)

    def event(self, source: SourceObject) -> None:
        """A part of a message, as it was printed."""
        columns = self.run.columns
        if "source_id" not in columns:
            columns["source_id"] = columns["session_id"] = source.word("sessionID")
        self.run.constant(source, "sessionID")
        part = source.take_child("part")
        kind = part.word("type").replace("-", "_")
        if source.word("type") in ({"tool": "tool_use"}.get(kind, kind), "message.part.updated"):
            source.drop("type")
        elif source.word("type") not in EVENTS:
            self.losses.unknown(f"record type {source.word('type') or 'without a type'}")
        owner = part.word("messageID") or None
        step = self.run.steps[-1] if self.run.steps else None
        if step is None or step.columns.get("native_id") != owner or is_over(step, part):
            step = self.run.step("agent", "llm_turn", native_id=owner)
            take_time(source, step.columns, "timestamp")
        self.part(part, step)
        merge_extra(step.extra, source.rest())


def unwrap(source: SourceObject) -> None:
    """Take an event of the server out of its envelope, which names the directory."""
    event = source.peek("payload")
    if "type" not in source and event.word("type") and event.first("properties") == BRACE:
        source.drop("payload")
        source.values |= event.values


def is_server_event(record: Mapping[str, Raw]) -> bool:
    """Whether a line is an event of the server that holds a message, a part, or a session."""
    inside = inner(record, "payload") if "payload" in record and "type" not in record else record
    kind, values = word(inside, "type"), inner(inside, "properties")
    if kind == "message.part.updated":
        return {"sessionID", "messageID"} <= set(inner(values, "part"))
    about = inner(values, "info")
    if kind == "message.updated":
        return {"sessionID", "role"} <= set(about)
    return kind in SERVER and {"id", "directory"} <= set(about)


def _name(source: SourceObject) -> tuple[str, str]:
    """What a line says again: the kind of a thing, and its id; empty when it says none."""
    kind = source.word("type")
    outer = source.peek("properties") if "properties" in source else source
    if outer.first("part") == BRACE:
        return "part", outer.peek("part").word("id")
    if kind in SERVER:
        return kind.partition(".")[0], outer.peek("info").word("id")
    return "", ""
