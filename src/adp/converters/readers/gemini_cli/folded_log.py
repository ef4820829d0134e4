"""Logs that are folded: a message replaces the one with its id, and a rewind drops messages."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from adp.converters.kit.source_object import SourceObject
from adp.converters.kit.tree import EntryLine, split
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
