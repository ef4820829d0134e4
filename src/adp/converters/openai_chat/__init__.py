"""OpenAI chat completions: rows with ``messages`` and perhaps ``tools``, JSON or Parquet.

How a message becomes rows: system, developer, user and assistant messages are steps; tool and
function messages are observations that arrive after the step before them. Whatever no column
holds stays in ``extra``, and the form of each object in ``extra.$shape`` (see `keys`).
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


class OpenAIChat(Format):
    """The format ``openai_chat``."""

    name = "openai_chat"
    holds_text_actions = True
    title = "OpenAI chat messages and tools, one row a conversation"
    recognised = "A list `messages` (or a JSON string of one) whose items have a `role`."
    versions = (
        "Reads chat completions with `tool_calls`, the old `function_call`, custom tools, and the "
        "dialects of open data sets; writes the dialect that was read, and `tool_calls` from "
        "other formats."
    )

    def sniff(self, record: Mapping[str, Raw]) -> Match:
        """A list ``messages`` (or a JSON string of one) whose items have a role."""
        messages = record.get("messages")
        if messages is None:
            return Match.NO
        try:
            if jsontext.first_byte(messages) == 0x22:
                messages = Raw(jsontext.decode_value(messages).encode())
            items = jsontext.decode_array(messages)
            first = jsontext.decode_object(items[0]) if items else {"role": messages}
        except (ValueError, RecursionError):
            return Match.NO
        return Match.SHAPE if "role" in first else Match.NO

    def read(self, record: RawRecord, builder: RowBuilder, losses: Losses) -> None:
        """Convert a row into one trajectory."""
        from adp.converters.openai_chat.read import read_record

        read_record(record, builder, losses)

    def write(
        self, trajectory: Trajectory, losses: Losses, flavour: str | None = None
    ) -> dict[str, Any]:
        """Convert a trajectory into a row."""
        from adp.converters.openai_chat.write import write_record

        return write_record(trajectory, losses)


CONVERTER = OpenAIChat()
