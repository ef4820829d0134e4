"""The small parts of writing: texts, messages, observations and the object of a turn."""

from __future__ import annotations

from typing import Any

from adp.converters.json_objects import arrange, members
from adp.converters.m3 import keys as k
from adp.converters.m3.labels import error_of, labels_of, reward_of
from adp.converters.scalars import write_number
from adp.converters.unwritten_columns import REASON, report_columns, report_parts
from adp.converters.via_atif import came_from, kept_extra
from adp.converters.writing import parts_of, spoken_text
from adp_schema import jsontext, media
from adp_schema.extra_column import Extra, original, unpack
from adp_schema.losses import Losses
from adp_schema.model import Observation, Row, Step, Trajectory
from adp_schema.parts import JOINT

Item = dict[str, Any]

_TAKEN = frozenset({"interactions", "input", "alternate_trace"})
"""Keys that are always written; the source's own go before any others."""

_RESULT = frozenset({"source", "text", "content"})


class M3Parts:
    """Writes the parts of one trajectory.

    Args:
        run: the trajectory.
        losses: takes what has no place in the record.
        native: whether it was read from this format, so that its form is known.
    """

    def __init__(self, run: Trajectory, losses: Losses, *, native: bool) -> None:
        self.run = run
        self.losses = losses
        self.native = native
        self.keeps = native or came_from(run, k.NAME)

    def extra(self, row: Row) -> Extra:
        """A row's ``extra``; the form of another format means nothing here."""
        text: str | None = row.extra  # type: ignore[attr-defined]
        return unpack(text) if self.native else kept_extra(text, _TAKEN, native=self.keeps)

    def carried(self, columns: frozenset[str]) -> frozenset[str]:
        """Columns that are written; ``extra`` too when it is of this format."""
        return columns | {"extra"} if self.keeps else columns

    def text(self, row: Row, column: str, extra: Extra) -> str | None:
        """A text column with its base64 and the characters of the source."""
        value = original(row, column, extra)
        return None if value is None else media.restore(value, self.run.media)

    def words(self, row: Step | Observation, path: str, extra: Extra) -> str | None:
        """What a row of another format says; parts that are no text are reported."""
        text = spoken_text(row, extra)
        parts = parts_of(row, text, extra)
        if not self.native:
            report_parts(parts, path, self.losses, "text", "reasoning")
        for index, part in enumerate(parts):
            where = f"{path}.content[{index}]"
            if part.type in ("media", "opaque"):
                self.losses.add(where, REASON)
            if part.type == "media":
                self.losses.add(f"$.media.{part.media_id}", REASON)
            for key in sorted(part.extra):
                if part.type not in ("media", "opaque"):
                    self.losses.add(f"{where}.extra.{key}", REASON)
        return None if text is None else media.restore(text, self.run.media)

    def seen(
        self, rows: list[tuple[str, Observation]], labels: list[str] | None
    ) -> tuple[str | None, str]:
        """What came back after a turn, as one text, and the role that the model sees it under."""
        texts: list[str] = []
        role = k.OBSERVATION
        for path, row in rows:
            extra = self.extra(row)
            carried = _RESULT
            text = self.words(row, path, extra)
            if text is None and row.axtree is not None and not self.native:
                text, carried = self.text(row, "axtree", extra), carried | {"axtree"}
            is_error, kind = error_of(text or "", labels)
            if row.is_error == is_error:
                carried = carried | {"is_error"}
            if row.error_type == kind:
                carried = carried | {"error_type"}
            if self.native:
                carried = carried | {"call_id", "native_call_id"}
            report_columns(row, self.carried(carried), path, self.losses)
            if row.source not in (None, "environment"):
                self.losses.add(f"{path}.source", f"{row.source} is written as {k.OBSERVATION}")
            if text is not None:
                if texts:
                    self.losses.add(f"{path}.text", "it becomes one text with the result before it")
                texts.append(text)
            role = extra.shape.get("role", role)
        return (JOINT.join(texts) if texts else None), role

    def judged(self, step: Step, path: str, extra: Extra) -> Any:
        """The reward of a step: its categories, or a number."""
        if step.labels is None:
            return write_number(step.reward, "reward", extra.shape)
        if step.reward is not None:
            self.losses.add(f"{path}.reward", "a step has categories, or a number")
        full = extra.shape.get("reward") == "whole"
        labels = step.labels
        written = reward_of(labels, single=full)
        if labels_of(written) != (labels, not full):
            self.losses.add(f"{path}.labels", "such labels are no names of reward categories")
        return jsontext.string(written)

    def turn(self, known: Item, meta: Item, out: Item, extra: Extra, order: tuple[str, ...]) -> Any:
        """The object of a turn, from its values and what ``extra`` keeps of it."""
        kept = dict(extra.fields)
        for name, values, keys in (("metadata", meta, k.METADATA), ("output", out, k.OUTPUT)):
            form = extra.shape.get(name)
            there = {key: value for key, value in values.items() if value is not None}
            if there or form is not None:
                child = members(kept.pop(name, None)) or {}
                known[name] = arrange(there, child, form or {}, keys)
        return arrange(known, kept, extra.shape, order)
