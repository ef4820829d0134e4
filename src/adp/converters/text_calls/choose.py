"""Which dialect a file has: the one in which most turns of its first records act.

A chat that only talks about tools has none; `adp.converters.text_calls.evidence` says what counts.
Most files are chats without actions, so it must cost next to nothing to see that a file has none.
The marks of the dialects are looked for in the bytes of its first records, then in their strings;
only dialects whose mark stands there are imported, and only when one reads an action from a string
the records are read as trajectories.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from functools import cache
from typing import Any

import msgspec

from adp.converters.text_calls.dialect import Dialect
from adp.converters.text_calls.evidence import evidence
from adp.converters.text_calls.marks import automatic_marks
from adp.converters.text_calls.registry import dialect
from adp_schema.builder import Origin, RowBuilder
from adp_schema.losses import Losses
from adp_schema.protocols import Converter, RawRecord
from adp_schema.row_changes import TrajectoryRows

RECORDS = 20
"""Records or trajectories that are looked at."""

_FEWEST = 5
"""One of so many trajectories must act, at least."""

_ENOUGH_BYTES = 1 << 20
"""Records are looked at until they have so many bytes, and one in any case."""

_AS_WRITTEN = re.compile(r"(?:[ !#-%(-.0-;=?-\[\]-~]|\\n)+")
"""Characters that no writer of JSON writes as escapes, and line ends, which all escape alike."""


def dialect_of_records(converter: Converter, records: Sequence[bytes]) -> str:
    """The dialect of the first records of a file; empty when they have none.

    Args:
        converter: the format of the records.
        records: the records.
    """
    looked_at = _first(records)
    names = _likely(looked_at)
    likely = _acting(names, looked_at) if names else []
    if not likely:
        return ""
    runs: list[TrajectoryRows] = []
    builder = RowBuilder()
    for number, data in enumerate(looked_at, 1):
        builder.begin(Origin(number, ""))
        losses = Losses()
        with suppress(Exception):  # the conversion itself says what is wrong
            converter.read(RawRecord(data, "", number, 0, len(data)), builder, losses)
            builder.close_record(losses)
            builder.change(runs.append)
    return dialect_of(runs, likely)


def dialect_of(runs: Sequence[TrajectoryRows], likely: Iterable[Dialect] | None = None) -> str:
    """The dialect of trajectories; empty when they have none.

    Args:
        runs: the rows of some trajectories.
        likely: the dialects that come into question; None: all that may be chosen automatically.
    """
    best, most = "", 0
    for grammar in map(dialect, automatic_marks()) if likely is None else likely:
        turns = acting = 0
        for run in runs:
            seen = evidence(grammar, run)
            if seen.acts():
                acting += 1
                turns += seen.looking
        if turns > most and _FEWEST * acting >= len(runs):
            best, most = grammar.name, turns
    return best


def _first(records: Sequence[bytes]) -> list[bytes]:
    """The records that are looked at."""
    results: list[bytes] = []
    size = 0
    for data in records[:RECORDS]:
        results.append(data)
        size += len(data)
        if size > _ENOUGH_BYTES:
            break
    return results


def _likely(records: Sequence[bytes]) -> list[str]:
    """The dialects that a mark of stands in the bytes of some records."""
    needles = _needles()
    seen = {
        needle for needle in {it for its in needles.values() for it in its}
        if any(needle in data for data in records)
    }  # fmt: skip
    return [name for name, marks in needles.items() if not seen.isdisjoint(marks)]


def _acting(names: Sequence[str], records: Sequence[bytes]) -> list[Dialect]:
    """Those of some dialects that read an action from a string of some records."""
    texts: set[str] = set()
    for data in records:
        with suppress(msgspec.DecodeError, RecursionError):
            texts.update(_strings(msgspec.json.decode(data)))
    marks = automatic_marks()
    results = []
    for name in names:
        likely = [text for text in texts if any(mark in text for mark in marks[name])]
        if likely and any(_reads(dialect(name), text) for text in likely):
            results.append(dialect(name))
    return results


def _strings(value: Any) -> Iterator[str]:
    """The strings of a JSON value."""
    rest = [value]
    while rest:
        item = rest.pop()
        if isinstance(item, str):
            yield item
        elif isinstance(item, dict):
            rest.extend(item.values())
        elif isinstance(item, list):
            rest.extend(item)


def _reads(grammar: Dialect, text: str) -> bool:
    turn = grammar.parse(text)
    return bool(turn.calls or turn.answer)


@cache
def _needles() -> dict[str, tuple[bytes, ...]]:
    """Dialect -> for each mark, its longest part that stands in JSON as it is."""
    return {
        name: tuple(
            max(_AS_WRITTEN.findall(mark.replace("\n", "\\n")), key=len, default="").encode()
            for mark in marks
        )
        for name, marks in automatic_marks().items()
    }
