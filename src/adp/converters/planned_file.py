"""An input file with its format, as a conversion plans it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from adp.converters.files.streams import InputPlace
from adp.converters.framing import ByteRange
from adp.converters.registry import formats


@dataclass
class PlannedFile:
    """An input file with its format.

    Attributes:
        source_file: path relative to the root of the conversion.
        place: where its bytes lie.
        dataset: data set that its trajectories go to.
        format: name of the format; None for a file that none recognises.
        why: one sentence on how the format was chosen, or why none was.
        framing: how it is cut into records.
        style: its layout.
        pieces: its pieces, in order.
        dialect: the grammar of the actions in its texts; empty when they are left as they are.
        dialect_is_found: whether it was found in its texts, and not named.
        notes: what its recipe names and its first records have not.
    """

    source_file: str
    place: InputPlace
    dataset: str
    format: str | None
    why: str
    framing: str
    style: dict[str, Any]
    pieces: list[ByteRange] = field(default_factory=list)
    dialect: str = ""
    dialect_is_found: bool = False
    notes: list[str] = field(default_factory=list)

    @property
    def format_name(self) -> str | None:
        """What the format is called; of a recipe of the user's without the path of its file."""
        return None if self.format is None else formats.get(self.format).name

    @property
    def size(self) -> int:
        """Bytes that it takes on disk."""
        return self.place.packed
