"""What these formats share: a record that is taken apart, and texts that are written again."""

from __future__ import annotations

from typing import Any

from msgspec import Raw

from adp.converters.json_objects import JsonObject
from adp.converters.reading import BRACE, BRACKET, QUOTE, begins
from adp.converters.unwritten_columns import REASON
from adp_schema import jsontext, media
from adp_schema.errors import RecordError
from adp_schema.extra_column import Extra, original
from adp_schema.losses import Losses
from adp_schema.model import Columns, Observation, Row, Step, ToolCall, Trajectory
from adp_schema.parts import resolve
from adp_schema.protocols import RawRecord


def record_object(record: RawRecord, losses: Losses) -> JsonObject:
    """The object of a record, on one line.

    Raises:
        RecordError: it is no object.
    """
    data = record.data
    if b"\n" in data or b"\r" in data:
        data = jsontext.one_line(data).encode("utf-8")
    return JsonObject(data, "$", losses)


def object_of(raw: Raw | None) -> dict[str, Raw]:
    """The keys of an object; none of anything else."""
    return jsontext.decode_object(raw) if begins(raw, BRACE) else {}


def listed(item: JsonObject, key: str) -> list[Raw]:
    """The items of a list that must be there.

    Raises:
        RecordError: it is not, or is something else.
    """
    items = item.items(key, key)
    if items is None:
        raise RecordError(f"there are no {key}", f"{item.path}.{key}")
    return items


def listed_texts(raw: Raw | None) -> list[str] | None:
    """The texts of a list that holds nothing else; None when it is no such list."""
    if not begins(raw, BRACKET):
        return None
    items = jsontext.decode_array(raw)
    if any(jsontext.first_byte(item) != QUOTE for item in items):
        return None
    return [jsontext.decode_value(item) for item in items]


def written_text(run: Trajectory, row: Row, column: str, extra: Extra) -> Any:
    """A text column with its base64 and the characters of the source; None when it is empty."""
    value = original(row, column, extra)
    return None if value is None else jsontext.string(media.restore(value, run.media))


def call_of(run: Trajectory, row: Observation) -> ToolCall | None:
    """The call that a result answers."""
    steps = (step for step in run.steps if step.step == row.call_step)
    calls = (call for step in steps for call in step.calls if call.call == row.call)
    return None if row.call is None else next(calls, None)


def report_content(row: Step | Observation, path: str, losses: Losses) -> None:
    """Report media and other parts of a row, which have no place in a text."""
    for index, part in enumerate(resolve(row.content, row.text)):
        if part.type == "media":
            losses.add(f"$.media.{part.media_id}", REASON)
        if part.type in ("media", "opaque"):
            losses.add(f"{path}.content[{index}]", REASON)


def function_columns(call: ToolCall, columns: frozenset[str]) -> frozenset[str]:
    """The columns that are written of a call where each is one of a function by its name."""
    if call.kind in (None, "function"):
        return columns | {"kind"}
    return columns | {"language"} if call.kind == "code" and call.name is None else columns


def result_columns(run: Trajectory, row: Observation, columns: frozenset[str]) -> frozenset[str]:
    """The columns that are written of a result, and those that its place says."""
    call = call_of(run, row)
    if call is not None and call.name == row.name:
        columns = columns | {"name"}
    return columns | {"source"} if row.source in (None, "environment") else columns


def without_marks(columns: Columns) -> Columns:
    """The filled columns of a task, mended where the record was sanitised."""
    return {
        name: jsontext.mend_json(value)[0] if jsontext.has_mark(value) else value
        for name, value in columns.items()
        if value is not None
    }
