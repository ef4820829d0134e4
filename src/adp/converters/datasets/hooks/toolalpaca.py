"""ToolAlpaca: steps of an instance as ``[[action, input, log], observation]``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from adp.converters.datasets.turns import DatasetRow, DatasetTurn, TurnCall
from adp_schema import jsontext


def turns(row: DatasetRow) -> Iterator[DatasetTurn]:
    """The question, each call with its result, and the answer."""
    yield DatasetTurn("user", row.take_text("input"))
    for item in row.items("intermediate_steps"):
        value = jsontext.decode_value(item)
        action, result = _parts(value)
        if action is None:
            yield DatasetTurn("environment", jsontext.text_of(value))
            continue
        name, given, log = action
        thought = log.partition("\nAction:")[0].strip()
        call = TurnCall(name, given)
        yield DatasetTurn("agent", None, [call], reasoning=thought or None, extra={"log": log})
        yield DatasetTurn("result", result if isinstance(result, str) else jsontext.text_of(result))
    last, answer = row.take_text("Final Thought"), row.take_text("output")
    if last or answer is not None:
        yield DatasetTurn("agent", answer, reasoning=last)


def _parts(value: Any) -> tuple[tuple[str, str, str] | None, Any]:
    """The action, its input and the log, and what came back; None for another shape."""
    if not (isinstance(value, list) and len(value) == 2 and isinstance(value[0], list)):
        return None, None
    texts = [it for it in value[0] if isinstance(it, str)]
    if len(texts) != 3 or len(value[0]) != 3:
        return None, None
    return (texts[0], texts[1], texts[2]), value[1]
