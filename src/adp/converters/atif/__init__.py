"""ATIF, the Agent Trajectory Interchange Format, versions 1.0 to 1.8.

A record has ``agent`` and a list ``steps``; a step of the agent has ``tool_calls``, and their
results in its ``observation``. Trajectories of subagents may be embedded; each becomes a
trajectory of its own. In a trial of Harbor the files beside ``agent/trajectory.json`` give
rewards, times and errors.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from msgspec import Raw

from adp.converters.atif import keys as k
from adp.converters.atif import trial
from adp.converters.format import Format
from adp.converters.reading import BRACE, BRACKET
from adp_schema import jsontext
from adp_schema.losses import Losses
from adp_schema.model import Pair, Trajectory
from adp_schema.protocols import Match, RawRecord

if TYPE_CHECKING:
    from adp_schema.builder import RowBuilder


class Atif(Format):
    """The format ``atif``."""

    name = k.NAME
    title = "ATIF 1.0 to 1.8, the agent trajectory interchange format, with trials of Harbor"
    container = "json"
    recognised = (
        "A `schema_version` that begins with `ATIF-`; or an `agent` and a list `steps` whose "
        "items have a `source` and a `message` or a `step_id`."
    )
    versions = (
        "Reads every version by its declared `schema_version`, both Harbor's strict form and the "
        "looser 1.7 of the ADP project. `as-read` writes what was read as it was, and `harbor` "
        "from other formats; `upstream` writes the looser 1.7; `harbor` writes the strict 1.7, "
        "or 1.8 when there are sounds in it."
    )
    flavours: tuple[str, ...] = ("as-read", k.UPSTREAM, k.HARBOR)

    def side_files(self, source_file: str) -> tuple[str, ...]:
        """The files of a trial, for its main trajectory."""
        return trial.side_files(source_file)

    def embeds(self, branch: Trajectory) -> bool:
        """Yes: as ``subagent_trajectories``."""
        return True

    def pair_columns(self, trajectory: Trajectory, pair: Pair) -> frozenset[str]:
        """The columns of a pair that a record says: all when it holds every side of it."""
        from adp.converters.atif.origin import pair_columns

        return pair_columns(trajectory, pair)

    def sniff(self, record: Mapping[str, Raw]) -> Match:
        """A stamp is the ``schema_version``, a shape the steps."""
        if bytes(record.get("schema_version", b"")).startswith(b'"ATIF-'):
            return Match.STAMP
        steps = record.get("steps", b"")
        if jsontext.first_byte(steps) != BRACKET or "agent" not in record:
            return Match.NO
        try:
            items = jsontext.decode_array(steps)
            if not items or jsontext.first_byte(items[0]) != BRACE:
                return Match.NO
            first = jsontext.decode_object(items[0])
        except (ValueError, RecursionError):
            return Match.NO
        result = "source" in first and ("message" in first or "step_id" in first)
        return Match.SHAPE if result else Match.NO

    def read(self, record: RawRecord, builder: RowBuilder, losses: Losses) -> None:
        """Convert a record into a trajectory, and one more for each embedded one."""
        from adp.converters.atif.read import AtifReader

        AtifReader(record, builder, losses).read()

    def write(
        self, trajectory: Trajectory, losses: Losses, flavour: str | None = None
    ) -> dict[str, Any]:
        """Convert a trajectory with its branches into a record."""
        from adp.converters.atif.flavours import make_strict
        from adp.converters.atif.write import AtifWriter

        writer = AtifWriter(trajectory, losses)
        record = writer.record()
        if flavour in (None, "as-read"):
            if writer.native:
                return record
            flavour = k.HARBOR
        early = int(bool(trajectory.early_observations))
        return make_strict(record, flavour or k.HARBOR, losses, early)

    def write_side_files(self, trajectory: Trajectory) -> dict[str, bytes]:
        """The files of its trial, by their paths beside the trajectory's own file."""
        return trial.write_files(trajectory)


CONVERTER = Atif()
