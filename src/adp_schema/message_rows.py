"""All messages of a trajectory, added at once: numbered and paired as `RowBuilder` does.

A converter whose messages have one of a few usual forms fills columns, which is several times
faster than a row at a time. `add_messages` is for call ids that are all different: a repeated one
needs `RowBuilder.call`, which makes it unique.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from adp_schema.builder import RowBuilder

ColumnValues = dict[str, list[Any]]
"""Column name -> a value for each row."""


@dataclass(slots=True)
class MessageRows:
    """The messages of one trajectory, without the columns that `add_messages` fills.

    Attributes:
        steps: columns of the steps; ``source`` is required.
        calls: columns of the calls; ``call_id`` is required, and each is another one.
        observations: columns of the observations.
        callers: for each call the number of steps before the one that makes it, ascending.
        after: for each observation the number of steps before it, ascending.
        answers: for each observation the call id that the source wrote.
    """

    steps: ColumnValues
    calls: ColumnValues = field(default_factory=dict)
    observations: ColumnValues = field(default_factory=dict)
    callers: list[int] = field(default_factory=list)
    after: list[int] = field(default_factory=list)
    answers: list[str] = field(default_factory=list)


def add_messages(builder: RowBuilder, rows: MessageRows) -> None:
    """Add the messages to the open trajectory, which has no row yet."""
    first = builder.next_step
    count = len(rows.steps["source"])
    rows.steps["step"] = list(range(first, first + count))
    rows.steps["turn"] = _turns(rows.steps["source"])
    builder.extend("steps", rows.steps, count)
    places: dict[str, tuple[int, int]] = {}
    if rows.callers:
        steps = [first + caller for caller in rows.callers]
        indices = _order(rows.callers)
        rows.calls["step"], rows.calls["call"] = steps, indices
        places = dict(zip(rows.calls["call_id"], zip(steps, indices, strict=True), strict=True))
        builder.extend("tool_calls", rows.calls, len(steps))
    if rows.after:
        rows.observations["step"] = [first + after - 1 for after in rows.after]
        rows.observations["order"] = _order(rows.after)
        _pair(rows, places)
        builder.extend("observations", rows.observations, len(rows.after))


def _turns(sources: list[str]) -> list[int]:
    """The turn of each step: a new one begins with each user's step behind another one's."""
    turns = []
    turn, last = -1, ""
    for source in sources:
        if source == "user" and last != "user":
            turn += 1
        last = source
        turns.append(turn if turn > 0 else 0)
    return turns


def _order(places: list[int]) -> list[int]:
    """The number of each value among those that are equal, from 0; the values ascend."""
    numbers = []
    number, last = 0, -1
    for place in places:
        number = number + 1 if place == last else 0
        last = place
        numbers.append(number)
    return numbers


def _pair(rows: MessageRows, places: dict[str, tuple[int, int]]) -> None:
    """Fill in the call that each observation answers: one that was made before it."""
    columns, nothing = rows.observations, (None, None)
    paired_with = [
        place if (place := places.get(answer, nothing))[0] is None or place[0] <= step else nothing
        for answer, step in zip(rows.answers, columns["step"], strict=True)
    ]
    columns["call_step"] = [place[0] for place in paired_with]
    columns["call"] = [place[1] for place in paired_with]
    if nothing not in paired_with:
        columns["call_id"] = rows.answers
        return
    paired = list(zip(rows.answers, columns["call"], strict=True))
    columns["call_id"] = [None if call is None else answer for answer, call in paired]
    columns["native_call_id"] = [answer if call is None else None for answer, call in paired]
