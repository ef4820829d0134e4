"""The contents of the files that go with a record, kept as long as the next record shares them."""

from __future__ import annotations

from adp.converters import framing
from adp.converters.files.limits import ConvertLimits
from adp.converters.files.streams import InputStream, unreadable
from adp.converters.frames import SideFile
from adp.converters.framing import ByteRange


class SideContents:
    """Reads the side files of one piece after another.

    Args:
        limits: limits of the conversion; all side files of a record together keep that of one.
    """

    def __init__(self, limits: ConvertLimits) -> None:
        self._limits = limits
        self._kept: dict[SideFile, bytes | None] = {}

    def of(self, piece: ByteRange) -> tuple[dict[str, bytes], str]:
        """The files that go with the first record of a piece.

        A single one that is over the limit, or damaged, is left out: it is a reject of its own.

        Args:
            piece: what is read.

        Returns:
            Their contents by path, and why the record cannot be read; empty when it can.

        Raises:
            InputError: one of them cannot be read.
        """
        kept, contents, size = self._kept, {}, 0
        self._kept = {}
        for side in piece.sides:
            if side.framing != "side":
                continue
            data = kept[side] if side in kept else self._read(side)
            self._kept[side] = data
            if data is None:
                continue
            size += len(data)
            if size > self._limits.record_bytes:
                self._kept = {}
                return {}, (
                    "the files that belong to it are larger together than the limit of "
                    f"{self._limits.record_bytes:,} bytes"
                )
            contents[side.source_file] = data
        return contents, ""

    def _read(self, side: SideFile) -> bytes | None:
        try:
            with InputStream(side.place, self._limits) as source:
                frame = framing.whole_file(source, self._limits)
                fault = source.fault
        except OSError as error:
            raise unreadable(side.place, error) from error
        fits = frame.size <= self._limits.record_bytes and not fault
        return frame.data if fits else None
