"""ADP v1 JSON: the first interchange format of agent trajectories, 1 and 1.0 to 1.5.

A record has a list ``content`` of actions and observations, each with its ``class_``:

- ``text_observation`` and ``image_observation`` from ``user`` become a user's step, from
  ``agent`` a copied step of the agent, from ``environment`` an observation (before the first
  action, one with the name ``system`` becomes the system step);
- ``web_observation`` becomes an observation;
- ``message_action`` becomes a step of the agent, ``api_action`` and ``code_action`` a step
  with one call;
- ``description`` is the text of a step that calls, and the reasoning of one that only speaks.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Raw

from adp.converters.format import Format
from adp_schema import jsontext
from adp_schema.errors import RecordError
from adp_schema.losses import Losses
from adp_schema.model import Trajectory
from adp_schema.protocols import Match, RawRecord

if TYPE_CHECKING:
    from adp_schema.builder import RowBuilder


class AdpV1(Format):
    """Reads ADP v1 JSON of every version; writes what it read, and 1.5.0 from other formats."""

    name = "adp_v1"
    title = "ADP v1 JSON, versions 1 and 1.0 to 1.5: a list of actions and observations"
    container = "json_array"
    recognised = "A list `content` whose first item has a `class_`."
    versions = (
        "Reads 1 (without `schema_version`) and 1.0.0 to 1.5.0; writes the version that was read, "
        "and 1.5.0 from other formats."
    )

    def sniff(self, record: Mapping[str, Raw]) -> Match:
        """A record is recognised by the ``class_`` of its first item."""
        content = record.get("content")
        if content is None or jsontext.first_byte(content) != ord("["):
            return Match.NO
        try:
            items = jsontext.decode_array(content)
            if items:
                return Match.STAMP if "class_" in jsontext.decode_object(items[0]) else Match.NO
        except (msgspec.DecodeError, UnicodeDecodeError):
            return Match.NO
        known = "id" in record and ("details" in record or "schema_version" in record)
        return Match.SHAPE if known else Match.NO

    def read(self, record: RawRecord, builder: RowBuilder, losses: Losses) -> None:
        """Convert a record into one trajectory.

        Raises:
            RecordError: the record is wrong; it names the JSON path.
        """
        from adp.converters.adp_v1.read import AdpV1Reader

        try:
            AdpV1Reader(builder, losses, marked=record.marked).read(record.data)
        except UnicodeDecodeError:
            raise RecordError("the text is not UTF-8") from None

    def write(
        self, trajectory: Trajectory, losses: Losses, flavour: str | None = None
    ) -> dict[str, Any]:
        """Convert a trajectory into a record."""
        from adp.converters.adp_v1.write import AdpV1Writer

        return AdpV1Writer(trajectory, losses).record()


CONVERTER = AdpV1()
