"""A record as it stands in a file, before it is parsed, and the files that belong to one."""

from __future__ import annotations

from dataclasses import dataclass

from adp.converters.files.limits import ConvertLimits
from adp.converters.files.streams import InputPlace
from adp_schema.errors import RecordError
from adp_schema.ids import digest
from adp_schema.protocols import SkipRecordError


@dataclass(frozen=True)
class SideFile:
    """A file that belongs to another one.

    Attributes:
        source_file: its path relative to the root of the conversion.
        place: where its bytes lie.
        framing: ``side`` when the converter gets its contents together with the owner's record,
            ``log`` or ``index`` when it is what SQLite keeps beside a database.
    """

    source_file: str
    place: InputPlace
    framing: str = "side"


@dataclass(slots=True)
class Frame:
    """A record as it stands in the file.

    Attributes:
        data: its bytes; only the beginning of one that is too large.
        number: its number.
        offset: its first byte.
        size: its length in bytes.
        error: why it is none, such as a file that ends inside it.
        hash: blake2b-128 of its bytes when ``data`` does not hold them all.
        skip: why it is no trajectory, when its container knows that.
        original: its bytes in the file when ``data`` is made of them, as of the lines of a session.
    """

    data: bytes
    number: int
    offset: int
    size: int
    error: str = ""
    hash: str = ""
    skip: str = ""
    original: bytes = b""

    def source_hash(self) -> str:
        """blake2b-128 of its bytes."""
        return self.hash or digest(self.data)

    def check(self, limits: ConvertLimits) -> None:
        """Refuse what is no whole record, and what is over a limit.

        Raises:
            RecordError: it is refused.
            SkipRecordError: it is no trajectory.
        """
        if self.error:
            raise RecordError(self.error)
        if self.skip:
            raise SkipRecordError(self.skip)
        limits.check_size(self.size)
        limits.check_depth(self.data)
