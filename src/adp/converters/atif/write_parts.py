"""The small parts of writing: ``extra``, texts and content of a row."""

from __future__ import annotations

from typing import Any

from msgspec import Raw

from adp.converters.atif import keys as k
from adp.converters.atif.content import write_foreign_content, write_message
from adp.converters.atif.extra_columns import BLANK, columns_elsewhere
from adp.converters.atif.extra_columns import FORM as EXTRA_FORM
from adp_schema import jsontext, media
from adp_schema.extra_column import Extra, original, unpack
from adp_schema.losses import Losses
from adp_schema.model import Observation, Row, Step, Trajectory

Item = dict[str, Any]


class AtifParts:
    """Turns columns into values of a record.

    Args:
        run: the trajectory that is written.
        losses: takes what has no place in the record.
    """

    def __init__(self, run: Trajectory, losses: Losses) -> None:
        self.run = run
        self.losses = losses
        self.native = run.source_format == k.NAME

    def content(self, row: Step | Observation, extra: Extra, path: str) -> tuple[Any, list[Raw]]:
        """The content of a row, and the parts that ATIF has no type for."""
        if self.native:
            content = write_message(row, extra, self.run.media)
            return ("" if content is None and extra.shape.get(BLANK) else content), []
        content, opaque = write_foreign_content(row, extra, self.run.media, path, self.losses)
        return ("" if content is None and isinstance(row, Step) else content), opaque

    def extra_keys(self, row: Step | Observation, extra: Extra) -> frozenset[str]:
        """The columns of a row that stand in ``extra.adp`` although they have a place."""
        if self.native:
            return frozenset(extra.shape.get(EXTRA_FORM, ()))
        return columns_elsewhere(row, extra, self.run.media)

    def extra(self, row: Row) -> Extra:
        """A row's ``extra``; the form of another format means nothing here."""
        extra = unpack(row.extra)  # type: ignore[attr-defined]
        if self.native:
            return extra
        return Extra(fields=extra.fields, escaped=extra.escaped)

    def split(self, extra: Extra) -> tuple[Any, Item]:
        """What goes into the ``extra`` of an object, and what stands beside it."""
        fields: Item = dict(extra.fields)
        if extra.shape.get("whole"):
            return fields.pop("extra", None), fields
        names = extra.shape.get("own", ())
        adp_extra = {name: fields.pop(name) for name in names if name in fields}
        return fields or None, adp_extra

    def text(self, row: Row, column: str, extra: Extra) -> Any:
        """A text column with its base64, as the encoder takes it; None when it is null."""
        value = original(row, column, extra)
        return None if value is None else jsontext.string(media.restore(value, self.run.media))
