"""The Session Trace Simple Format of the Hugging Face Hub: a session a file, a line a message.

How a line becomes rows: the header is the trajectory; system, user and assistant messages are
steps; tool messages are observations that arrive after the step before them; any other line is an
event. Whatever no column holds stays in ``extra`` (see `keys`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from msgspec import Raw

from adp.converters.format import Format
from adp_schema import jsontext
from adp_schema.losses import Losses
from adp_schema.model import Trajectory
from adp_schema.protocols import Match, RawRecord

if TYPE_CHECKING:
    from adp_schema.builder import RowBuilder


class STS(Format):
    """The format ``sts``."""

    name = "sts"
    title = "Session traces of the Hugging Face Hub (STS), one session a file"
    container = "session"
    recognised = (
        "A line with `type` session, a `harness` and an `id`, and no `version`, which the sessions "
        "of Pi have."
    )
    versions = (
        "Reads and writes what the Hub's page on session traces describes; the format has no "
        "version number. No file of another program was at hand: it was tried on files written "
        "by hand after that page. `adp publish --traces` writes a narrower form, for the Hub's "
        "viewer; the viewer itself could not be tried."
    )

    def sniff(self, record: Mapping[str, Raw]) -> Match:
        """The header of a session; one with a version is a session of Pi."""
        words = [record.get(name) for name in ("type", "harness", "id")]
        if any(word is None or jsontext.first_byte(word) != 0x22 for word in words):
            return Match.NO
        is_header = bytes(record["type"]) == b'"session"' and "version" not in record
        return Match.STAMP if is_header else Match.NO

    def read(self, record: RawRecord, builder: RowBuilder, losses: Losses) -> None:
        """Convert the lines of a file into a trajectory."""
        from adp.converters.sts.read import read_session

        read_session(record, builder, losses)

    def write(
        self, trajectory: Trajectory, losses: Losses, flavour: str | None = None
    ) -> list[dict[str, Any]]:
        """Convert a trajectory into the lines of a file."""
        from adp.converters.sts.write import write_session

        return write_session(trajectory, losses)


CONVERTER = STS()
