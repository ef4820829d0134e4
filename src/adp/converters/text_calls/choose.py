"""Which dialect a file has: the one in which most turns of its first records act.

A chat that only talks about tools has none; `adp.converters.text_calls.evidence` says what counts.
Most files are chats without actions, so it must cost next to nothing to see that a file has none:
`adp.converters.text_calls.first_look` does, before any record is read as a trajectory.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress

from adp.converters.text_calls.dialect import Dialect
from adp.converters.text_calls.evidence import evidence
from adp.converters.text_calls.first_look import may_act
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


def dialect_of_records(converter: Converter, records: Sequence[bytes]) -> str:
    """The dialect of the first records of a file; empty when they have none.

    Args:
        converter: the format of the records.
        records: the records.
    """
    looked_at = _first(records)
    likely = may_act(looked_at)
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
