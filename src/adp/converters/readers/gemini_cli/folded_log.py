"""Logs that are folded: a message replaces the one with its id, and a rewind drops messages."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from msgspec import Raw

from adp.converters.kit.lines import log_lines
from adp.converters.kit.session import TreeLog
from adp.converters.kit.source_object import SourceObject
from adp.converters.kit.tree import EntryLine, split
from adp.converters.reading import BRACKET, NULL
from adp_schema import jsontext
from adp_schema.losses import Losses

ROOT = "$root"
"""Id of the entry that the first message follows, and its only key."""


@dataclass
class FoldedLog:
    """The messages of a log, each with the message that it follows.

    The first entry is none of the log: it is what the first message follows.

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
    _names: dict[int, str | None] = field(default_factory=dict)

    def __post_init__(self) -> None:
        root = SourceObject(b'{"$root":0}', "$", Losses())
        self.entries, self.ids, self.parents = [(root, "")], [ROOT], [None]

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
        self.parents.append(self.live[-1] if self.live else ROOT)
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

    def patch(self, change: SourceObject) -> bool:
        """Change some keys of a message that holds; its calls are changed by their ids.

        Args:
            change: the keys, with the id of the message.

        Returns:
            Whether there is such a message.
        """
        known = self.held(change.word("id"))
        if known is None:
            return False
        before = self.entries[self._places[known]][0]
        changed = before.copy()
        for key, raw in change.values.items():
            calls = _patched_calls(before, change) if key == "toolCalls" else None
            changed.values[key] = raw if calls is None else calls
        self.message(changed)
        return True

    def held(self, name: str) -> str | None:
        """The entry of a message that holds."""
        return self._held.get(name) if name else None

    def rewind(self, name: str) -> None:
        """Rewind to before a message; an id that is not there rewinds to the beginning."""
        known = self.held(name)
        self.keep(0 if known is None else self.live.index(known))

    def keep(self, count: int) -> None:
        """Keep so many of the entries that hold, from the first one on."""
        gone = set(self.live[count:])
        self.live = self.live[:count]
        self._held = {name: it for name, it in self._held.items() if it not in gone}

    def earlier_of(self, source: SourceObject) -> list[dict[str, Any]]:
        """What earlier versions of an entry said in another way."""
        if not self._names:
            pairs = zip(self.ids, self.entries, strict=True)
            self._names = {id(entry): name for name, (entry, _) in pairs}
        return self.earlier.get(self._names.get(id(source)) or "", [])

    def line(self) -> EntryLine:
        """The entries that hold at the end, and what leaves them."""
        places = {name: place for place, name in enumerate(self.ids)}
        return split(self.ids, self.parents, places[self.live[-1]] if self.live else 0)


def _patched_calls(before: SourceObject, change: SourceObject) -> Raw | None:
    """The calls of a message, some of them changed; a result that came back stays.

    None when one of the two is no list of objects: then the change takes its place.
    """
    calls, changes = before.copy().objects("toolCalls"), change.copy().objects("toolCalls")
    if calls and bytes(change.values["toolCalls"]) == b"[]":
        return before.values["toolCalls"]
    if not calls or not changes:
        return None
    places = {call.word("id"): call for call in calls if call.word("id")}
    for entry in changes:
        call = places.get(entry.word("id"))
        if call is None:
            calls.append(entry)
            continue
        call.values |= {key: raw for key, raw in entry.values.items()
                        if entry.first(key) != NULL or key not in call}  # fmt: skip
    return jsontext.raw(jsontext.text_of([call.values for call in calls]))


class FoldedSession(TreeLog):
    """A session that is read when its log was folded.

    Attributes:
        folded: the messages of the log.
        updates: changes that no message takes.
    """

    def set_up(self) -> None:
        """Make the log that is folded, and what changes it in no message."""
        self.folded = FoldedLog()
        self.updates: list[Any] = []

    def read_lines(self) -> None:
        """Fold the log, and read the messages that hold; the others become branches."""
        log = self.folded
        last_time = b""
        for source, broken in log_lines(self.record, self.builder, self.losses):
            if broken:
                log.add(source, "$broken", broken)
            elif "$rewindTo" in source:
                log.rewind(source.word("$rewindTo"))
                log.add(source, "$rewind")
            elif "$patch" in source:
                self._patch(source)
            elif "$set" in source:
                self._set(source, last_time)
            elif "type" not in source and "id" not in source:
                self.header(source)
            else:
                log.message(source)
                last_time = bytes(source.values.get("timestamp", b""))
        self._read_line(log.line(), log.entries, 0)
        if self.updates:
            self.run.extra["$set"] = self.updates

    def header(self, source: SourceObject) -> None:
        """Take the header, or a second one."""
        raise NotImplementedError

    def _set(self, source: SourceObject, last_time: bytes) -> None:
        """A change of the header, or a new list of messages."""
        change = source.child("$set")
        messages = change.objects("messages") if change.first("messages") == BRACKET else None
        if messages is not None:
            self._replace(messages)
        elif change.first("messages") == BRACKET:
            self.folded.keep(0)
        if bytes(change.values.get("lastUpdated", b"")) == last_time:
            change.drop("lastUpdated")
        if left := source.rest():
            self.updates.append(left["$set"] if set(left) == {"$set"} else left)

    def _patch(self, source: SourceObject) -> None:
        """A change of a message; one that would take a value away, or finds none, is kept."""
        change = source.copy().child("$patch")
        text = bytes(source.values["$patch"])
        if not self.folded.patch(change) or b":null" in text.replace(b" ", b""):
            self.updates.append(source.rest())
        elif left := {key: raw for key, raw in source.values.items() if key != "$patch"}:
            self.updates.append(left)

    def _replace(self, messages: list[SourceObject]) -> None:
        """Messages that hold from here on: a rollback, or a history that was made shorter."""
        log = self.folded
        names = [message.word("id") for message in messages]
        kept = [held for name in names if (held := log.held(name)) is not None]
        if kept == log.live[: len(kept)]:
            log.keep(len(kept))
        else:
            edit = SourceObject(None, "$", self.losses)
            edit.values = {"$edit": jsontext.raw(jsontext.text_of(names))}
            log.add(edit, "$edit")
        for message in messages:
            log.message(message)

    def entry(self, source: SourceObject, broken: str) -> None:
        """Take one entry, with what earlier versions of it said."""
        super().entry(source, broken)
        if earlier := self.folded.earlier_of(source):
            self.run.steps[-1].extra["earlier"] = earlier
