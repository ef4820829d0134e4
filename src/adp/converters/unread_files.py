"""What is said of files that no format reads: why, by kind, and what it costs to force a format."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec

from adp.converters.files.limits import ConvertLimits
from adp.converters.frames import Frame
from adp_schema import jsontext
from adp_schema.builder import Origin, RowBuilder
from adp_schema.losses import Losses
from adp_schema.protocols import Converter, RawRecord

if TYPE_CHECKING:
    from adp.converters.planned_file import PlannedFile

NO_FORMAT = "no format recognises it"
_TRIED = 5
_KINDS = 8
_NAMES = 3


def no_object(head: Sequence[Frame]) -> str:
    """Why the first records of a file are none: what they are instead of objects."""
    if not head:
        return "it is an empty list, with no record in it"
    data = head[0].data.strip()
    if data.startswith(b"{") and not jsontext.is_valid(data):
        return "its first record is no whole JSON object; the file may be cut or damaged"
    if data.startswith(b"{"):
        return "its first records are objects without a key"
    if not data.startswith(b"["):
        return "its records are texts or numbers, and no objects"
    try:
        items = msgspec.json.decode(data)
    except (msgspec.DecodeError, RecursionError):
        return "its records are lists that are not valid JSON"
    if not items:
        return "its records are empty lists"
    if not all(isinstance(item, dict) for item in items):
        return "its records are lists, and no objects"
    if all(item.keys() >= {"role", "content"} for item in items):
        return 'its records are bare lists of messages; write each as {"messages": [...]}'
    keys = ", ".join(list(items[0])[:_KINDS])
    return f"its records are lists of objects with the keys {keys}; write each as one object"


@dataclass
class FormatTrial:
    """What a format made of the first records of a file that it does not claim.

    Attributes:
        format: its name.
        tried: records that were tried.
        used: those that it read.
        texts: steps and results with words.
        calls: calls.
        opaque: parts of messages that it keeps as they are, without words or calls.
    """

    format: str
    tried: int = 0
    used: int = 0
    texts: int = 0
    calls: int = 0
    opaque: int = 0

    @property
    def is_idle(self) -> bool:
        """Whether nothing comes of it."""
        return not (self.texts or self.calls)


def attempt(converter: Converter, head: Iterable[Frame], limits: ConvertLimits) -> FormatTrial:
    """Read the first records of a file with a format, and count what comes out."""
    result = FormatTrial(converter.name)
    for frame in list(head)[:_TRIED]:
        builder = RowBuilder()
        result.tried += 1
        record = RawRecord(frame.data, "a.json", frame.number, frame.offset, frame.size)
        builder.begin(Origin(0, "tried", {"source_records": [1], "source_hash": ""}))
        try:
            frame.check(limits)
            losses = Losses()
            converter.read(record, builder, losses)
            builder.close_record(losses)
        except Exception:  # a reader may raise what it likes about a record that is not its own
            continue
        result.used += 1
        rows = [*builder.rows["steps"], *builder.rows["observations"]]
        result.texts += sum(1 for row in rows if (row.get("text") or "").strip())
        result.opaque += sum(str(row.get("content") or "").count('"type":"opaque"') for row in rows)
        result.calls += len(builder.rows["tool_calls"])
    return result


def advice(converters: Iterable[Converter], head: Sequence[Frame], limits: ConvertLimits) -> str:
    """What a forced format would make of a file, as the end of a sentence.

    Args:
        converters: the formats that come into question.
        head: the first records.
        limits: limits of the conversion.

    Returns:
        Nothing when no format gets a word or a call out of the records.
    """
    tried = [
        attempt(converter, head, limits)
        for converter in converters
        if converter.container not in ("session", "text")
    ]
    best = max(tried, key=lambda item: (item.used, item.texts + item.calls), default=None)
    if best is None or best.is_idle:
        return ""
    parts = [
        _counted(best.texts, "text"),
        _counted(best.calls, "call"),
        f"{_counted(best.opaque, 'part')} left without words or calls" if best.opaque else "",
        f"{best.tried - best.used} rejected" if best.tried > best.used else "",
    ]
    made = ", ".join(filter(None, parts))
    first = "the first record" if best.tried == 1 else f"the first {best.tried} records"
    return f"; --from {best.format} reads it all the same: {made} out of {first}"


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def by_kind(files: Iterable[PlannedFile]) -> list[str]:
    """One phrase for each kind of file that is not read, with its count; the most frequent first.

    Args:
        files: files without a format.
    """
    groups: dict[str, list[PlannedFile]] = {}
    for file in files:
        groups.setdefault(_kind(file.why), []).append(file)
    ordered = sorted(groups.items(), key=lambda group: (-len(group[1]), group[0]))
    phrases = [_phrase(kind, members) for kind, members in ordered[:_KINDS]]
    if rest := sum(len(members) for _, members in ordered[_KINDS:]):
        phrases.append(f"{_counted(rest, 'file')} of {len(ordered) - _KINDS} further kinds")
    return phrases


def _kind(why: str) -> str:
    """A reason without what differs from file to file."""
    return NO_FORMAT if why.startswith(NO_FORMAT) else why.partition("; --from ")[0]


def _phrase(kind: str, members: list[PlannedFile]) -> str:
    why, names = members[0].why, [file.source_file for file in members[:_NAMES]]
    if len(members) == 1:
        return f"1 file: {names[0]}: {why}"
    if any(file.why != why for file in members):
        rest = next(file.why for file in members if file.why != kind).removeprefix(kind)
        why = f"{kind} (such as: {rest.strip(' ;()')})"
    more = ", ..." if len(members) > len(names) else ""
    return f"{len(members):,} files ({', '.join(names)}{more}): {why}"
