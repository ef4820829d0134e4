"""ShareGPT: rows with ``conversations``, a list of turns; the dialects of open data sets.

How a turn becomes rows: turns of the system, a human and the model are steps; results are
observations that arrive after the step before them. Calls stand in the text of a turn, as JSON or
between tags; they are found there, and the text stays whole. See `keys` for what ``extra.$shape``
says.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from msgspec import Raw

from adp.converters.format import Format
from adp.converters.sharegpt import keys as k
from adp.converters.sharegpt.via_atif import is_returned, returned
from adp_schema import jsontext
from adp_schema.losses import Losses
from adp_schema.model import Pair, Trajectory
from adp_schema.protocols import Match, RawRecord

if TYPE_CHECKING:
    from adp_schema.builder import RowBuilder


class ShareGPT(Format):
    """The format ``sharegpt``."""

    name = k.NAME
    holds_text_actions = True
    title = "ShareGPT turns (`conversations` with from and value), as LLaMA-Factory loads them"
    container = "json_array"
    recognised = (
        "A list `conversations`, `conversation` or `dialog` (or a JSON string of one) whose items "
        "have `from` or `role`; `messages` only when they have `from`."
    )
    versions = (
        "Reads turns with from/value and role/content, calls in `function_call` turns and in "
        "`<tool_call>` tags (JSON or Python literals), results in `<tool_response>` tags, "
        "preference pairs (`chosen`, `rejected`) and columns of media; writes the dialect that "
        "was read, and the one that LLaMA-Factory loads from other formats."
    )

    def embeds(self, branch: Trajectory) -> bool:
        """The rejected answer of a preference row; other branches are no part of the format."""
        return branch.source_format == self.name or (
            branch.branch_kind == "alternate" and is_returned(branch)
        )

    def sniff(self, record: Mapping[str, Raw]) -> Match:
        """A list of turns; ``messages`` with roles are OpenAI's."""
        if "role" in (_first_turn(record.get("messages")) or {}):
            return Match.NO
        for name in k.LISTS:
            first = _first_turn(record.get(name))
            if first is None:
                continue
            roles = k.ROLE_KEYS[:1] if name == "messages" else k.ROLE_KEYS
            empty = not first and name != "messages"
            if empty or any(key in first for key in roles):
                return Match.SHAPE
        return Match.NO

    def read(self, record: RawRecord, builder: RowBuilder, losses: Losses) -> None:
        """Convert a row into one trajectory, and a branch when it is a preference pair."""
        from adp.converters.sharegpt.read import read_record

        read_record(record, builder, losses)

    def pair_columns(self, trajectory: Trajectory, pair: Pair) -> frozenset[str]:
        """The columns of a pair that a row says: what reading it gives again."""
        from adp.converters.sharegpt.write import said_of_pair

        run = returned(trajectory) if is_returned(trajectory) else trajectory
        return said_of_pair(run, pair)

    def write(
        self, trajectory: Trajectory, losses: Losses, flavour: str | None = None
    ) -> dict[str, Any]:
        """Convert a trajectory into a row."""
        from adp.converters.sharegpt.write import write_record
        from adp.converters.sharegpt.write_other import OtherFormatWriter

        if is_returned(trajectory):
            return write_record(returned(trajectory), losses)
        if trajectory.source_format == self.name:
            return write_record(trajectory, losses)
        return OtherFormatWriter(trajectory, losses).record()


def _first_turn(raw: Raw | None) -> dict[str, Raw] | None:
    """The first item of a list, or of a JSON string of one; empty when there is none."""
    if raw is None or jsontext.first_byte(raw) not in b'["':
        return None
    try:
        if jsontext.first_byte(raw) == 0x22:
            raw = Raw(jsontext.decode_value(raw).encode())
        items = jsontext.decode_array(raw)
        return jsontext.decode_object(items[0]) if items else {}
    except (ValueError, RecursionError):
        return None


CONVERTER = ShareGPT()
