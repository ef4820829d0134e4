"""PC Agent: events such as ``click (828, 1075)``, with the screen before each."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from adp.converters.datasets.actions import observe
from adp.converters.datasets.reader_specs import ObservationSpec
from adp.converters.datasets.turns import DatasetRow, DatasetTurn, TurnCall, take_text

_POINTS = re.compile(r"([a-z][a-z _]*?) \((\d+), ?(\d+)\)(?: to \((\d+), ?(\d+)\))?(?:: ?(.*))?")
_WORDS = re.compile(r"([a-z][a-z_]*(?: key| text| down| up)?):? ?(.*)", re.DOTALL)


def turns(row: DatasetRow) -> Iterator[DatasetTurn]:
    """What the person saw and did, event by event."""
    seen = ObservationSpec(image=("screenshot",))
    events, row.rows = row.rows, []
    for event in events:
        observe(row, event, seen)
        action = take_text(event, "action")
        calls = [] if action is None else [_call(action)]
        time = event.text("timestamp")
        columns: dict[str, Any] = {"timestamp_text": time} if time else {}
        yield DatasetTurn("agent", action, calls, columns=columns, extra=event.rest())


def _call(action: str) -> TurnCall:
    """The call that an event is; its words are the text of the step."""
    span = (0, len(action))
    match = _POINTS.fullmatch(action)
    if match:
        numbers = zip(("x", "y", "to_x", "to_y"), match.groups()[1:5], strict=True)
        given: dict[str, Any] = {key: int(value) for key, value in numbers if value is not None}
        given |= {"text": match[6]} if match[6] else {}
        return TurnCall(match[1], given, kind="gui", span=span)
    words = _WORDS.fullmatch(action)
    if words is None:
        return TurnCall(action, {}, kind="gui", span=span)
    return TurnCall(words[1], {"text": words[2]} if words[2] else {}, kind="gui", span=span)
