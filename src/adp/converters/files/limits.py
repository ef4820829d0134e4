"""Limits that keep a conversion's memory and time bounded, whatever the input holds."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any

from adp_schema import jsontext
from adp_schema.errors import RecordError, UsageError

RECORD_BYTES = 256 << 20
FILE_BYTES = 64 << 30
BOMB_BYTES = 1 << 30
BOMB_RATIO = 1000
KEPT_BYTES = 1 << 20
"""How much of a record that is put aside is kept."""

_LARGE = 1 << 13
_STRIDE = 1 << 17
_PAIRS = 4
_NO_BRACKETS = bytes(set(range(256)) - set(b"[{]}"))


@dataclass(frozen=True)
class ConvertLimits:
    """Limits of a conversion. What is over one is rejected with a reason.

    Attributes:
        record_bytes: size of a record.
        depth: nesting of a record; at most 500.
        file_bytes: decompressed size of a compressed file or a member of an archive.
    """

    record_bytes: int = RECORD_BYTES
    depth: int = jsontext.MAX_DEPTH
    file_bytes: int = FILE_BYTES

    def check(self) -> None:
        """Refuse limits that make no sense.

        Raises:
            UsageError: one is below 1, or the depth is over what readers of a store can follow.
        """
        if min(self.record_bytes, self.depth, self.file_bytes) < 1:
            raise UsageError("a limit must be at least 1; choose a larger one")
        if self.depth > jsontext.MAX_DEPTH:
            raise UsageError(
                f"the nesting limit can be at most {jsontext.MAX_DEPTH}, not {self.depth}; "
                "choose a smaller one"
            )

    def changed(self) -> dict[str, Any]:
        """The limits that are not the usual ones, by the names of their options."""
        usual = ConvertLimits()
        names = {
            "max_record_bytes": "record_bytes",
            "max_depth": "depth",
            "max_decompressed_bytes": "file_bytes",
        }
        return {
            option: getattr(self, name)
            for option, name in names.items()
            if getattr(self, name) != getattr(usual, name)
        }

    def check_size(self, size: int) -> None:
        """Refuse a record that is too large.

        Raises:
            RecordError: it is over the limit.
        """
        if size > self.record_bytes:
            raise RecordError(f"the record is larger than the limit of {self.record_bytes:,} bytes")

    def check_depth(self, data: bytes) -> None:
        """Refuse a record that is nested too deep.

        Raises:
            RecordError: it is over the limit.
        """
        if _opening(data) <= self.depth:
            return
        text = data.translate(None, _NO_BRACKETS)
        # Each pair that is taken away makes what is left one level less deep at most.
        rest = text
        for _ in range(_PAIRS):
            rest = rest.replace(b"{}", b"").replace(b"[]", b"")
        if len(rest) + 2 * _PAIRS <= self.depth:
            return
        import numpy as np

        # Brackets inside strings count here too; only when these suffice does it get exact.
        brackets = np.frombuffer(text, dtype=np.uint8)
        opening = (brackets == 0x7B) | (brackets == 0x5B)
        level = np.cumsum(np.where(opening, 1, -1))
        if level.max() > self.depth and jsontext.depth(data) > self.depth:
            raise RecordError(f"nested deeper than {self.depth} levels")


def _opening(data: bytes) -> int:
    """How many opening brackets there are, those in strings too; never too few."""
    if len(data) < _LARGE:
        return data.count(b"{") + data.count(b"[")
    import numpy as np

    # The two differ in one bit. Of a large record this is several times as fast as to count bytes.
    array = np.frombuffer(data, np.uint8)
    parts = [array[at : at + _STRIDE] for at in range(0, len(array), _STRIDE)]
    return sum([int(np.count_nonzero(part | 0x20 == 0x7B)) for part in parts])


class Gathered:
    """The bytes of one record as they are read; of one that is too large only the beginning.

    Args:
        limit: the most that a record may have.
    """

    def __init__(self, limit: int) -> None:
        self.size = 0
        self._limit = limit
        self._parts: list[bytes] = []
        self._hasher: Any = None

    def add(self, part: bytes) -> None:
        """Take the next bytes."""
        self.size += len(part)
        if self._hasher is not None:
            self._hasher.update(part)
            return
        self._parts.append(part)
        if self.size > self._limit:
            self._hasher = hashlib.blake2b(digest_size=16)
            kept = b""
            for item in self._parts:
                self._hasher.update(item)
                kept += item[: KEPT_BYTES - len(kept)]
            self._parts = [kept]

    def data(self) -> bytes:
        """What was kept."""
        return self._parts[0] if len(self._parts) == 1 else b"".join(self._parts)

    def hash(self) -> str:
        """Hash of all that was read when not all is kept; else nothing."""
        return self._hasher.hexdigest() if self._hasher is not None else ""
