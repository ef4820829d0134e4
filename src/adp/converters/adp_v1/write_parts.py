"""The small parts of writing: texts, images, identifiers and arguments of a trajectory."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import Raw

from adp.converters.adp_v1 import images
from adp.converters.adp_v1.layout import ORDER, arrange, write_number
from adp.converters.call_ids import CallIds
from adp.converters.unwritten_columns import REASON
from adp.converters.via_atif import came_from, kept_extra
from adp.converters.writing import parts_of
from adp_schema import extra_column, jsontext, media
from adp_schema.extra_column import Extra
from adp_schema.losses import Losses
from adp_schema.model import Observation, Row, Step, ToolCall, Trajectory
from adp_schema.parts import Part

Item = dict[str, Any]


_TAKEN = frozenset(name for names in ORDER.values() for name in names) - {
    *("details", "annotations"),
    *(name for name in ORDER["trajectory"] if name.startswith("available_")),
}
"""Keys that a foreign trajectory is written under."""


class AdpV1Parts:
    """Turns columns into values of a record, and collects its items.

    Args:
        trajectory: the trajectory that is written.
        losses: takes what has no place in the record.
    """

    def __init__(self, trajectory: Trajectory, losses: Losses) -> None:
        self.trajectory = trajectory
        self.losses = losses
        self.native = trajectory.source_format == "adp_v1"
        self.keeps = self.native or came_from(trajectory, "adp_v1")
        self.items: list[Item] = []
        self.ids = CallIds(trajectory, losses, native=self.native)

    def put(self, name: str, values: Item, extra: Extra) -> None:
        """Add an object of a class, in the form of the source."""
        self.items.append(arrange(name, {"class_": name, **values}, extra))

    def extra(self, row: Row) -> Extra:
        """The row's ``extra``; of other formats only what restores characters."""
        text: str | None = getattr(row, "extra", None)
        return (
            extra_column.unpack(text)
            if self.native
            else kept_extra(text, _TAKEN, native=self.keeps)
        )

    def text(self, row: Row, column: str, extra: Extra) -> str | Raw | None:
        """A column as the source wrote it; None when it is null."""
        value = extra_column.original(row, column, extra)
        return None if value is None else self.string(value)

    def string(self, text: str) -> str | Raw:
        """A text with its base64 restored, in the form that the encoder takes."""
        return jsontext.string(media.restore(text, self.trajectory.media))

    def reward(self, row: Step | Observation, extra: Extra) -> float | Raw | None:
        """The reward, as the source spelled it."""
        return write_number(row.reward, extra.shape.get("exact", {}).get("reward"))

    def parts(self, row: Step | Observation, extra: Extra, path: str) -> list[tuple[int, Part]]:
        """The parts of a row with their numbers; what a part says besides is reported."""
        parts = parts_of(row, extra_column.original(row, "text", extra), extra)
        known = images.REMEMBERED if self.native else images.REMEMBERED | {"annotations"}
        for n, part in enumerate(parts):
            if part.type == "opaque":
                self.losses.add(f"{path}.content[{n}]", REASON)
            for key in sorted(part.extra.keys() - known):
                self.losses.add(f"{path}.content[{n}].extra.{key}", REASON)
        return list(enumerate(parts))

    def image(self, part: Part, extra: Extra) -> str | Raw:
        """What stands for an image in the record."""
        blob = self.trajectory.media.get(part.media_id or "")
        if blob is None:
            self.losses.add(f"$.media.{part.media_id}", "the store does not hold it")
            return ""
        if not self.native and blob.mime is not None and not blob.mime.startswith("image/"):
            reason = f"the format has images only; {blob.mime} is written as one"
            self.losses.add(f"$.media.{part.media_id}", reason)
        if not self.keeps and blob.mime is not None and blob.data is None:
            self.losses.add(f"$.media.{part.media_id}.mime", REASON)
        plain = {
            key: msgspec.json.decode(value)
            for key, value in part.extra.items()
            if key in images.REMEMBERED
        }
        reference = images.reference(blob, plain)
        written = extra.fields.get("content")
        if written is not None and blob.data is None:
            marked = jsontext.sanitise(bytes(written)).decode("utf-8")
            if jsontext.decode_value(jsontext.mend_text(marked)[0]) == reference:
                return written
        return jsontext.string(reference)

    def answered_id(self, row: Observation, extra: Extra, path: str) -> str | Raw | None:
        """The id of the call that an observation answers."""
        answered = self.ids.answered(row, extra, path)
        by_order = self.native and row.native_call_id is None and extra.shape.get("by_order")
        return None if by_order or answered is None else self.string(answered)

    def kwargs(self, call: ToolCall, extra: Extra, path: str) -> Raw | dict[str, Any]:
        """The arguments of a call as an object."""
        text = call.arguments
        if text is None and call.arguments_kind == "object":
            text = call.arguments_raw
        if text is not None and _is_object(text):
            return jsontext.raw(media.restore(text, self.trajectory.media))
        column = "arguments" if call.arguments is not None else "arguments_raw"
        written = self.text(call, column, extra)
        if written is None:
            return {}
        reason = "it is not a JSON object and is written as text under the key arguments"
        self.losses.add(f"{path}.{column}", reason)
        return {"arguments": written}


def _is_object(text: str) -> bool:
    """Whether a text is a JSON object; lone surrogates and NaN are let pass."""
    data = text.encode("utf-8")
    try:
        if not jsontext.is_valid(data):
            data = jsontext.sanitise(data)
        jsontext.decode_object(data)
    except (msgspec.DecodeError, RecursionError, ValueError):
        return False
    return True
