"""Requests to Anthropic's Messages API, and its replies.

Either alone, or both in the wrappers of logs and batches, a streamed reply as its events. Sources:
the reference of the API; replies that were recorded by SDKs.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from msgspec import Raw

from adp.converters.exchanges.reader import ExchangeReader
from adp.converters.kit.session import word
from adp_schema.losses import Losses
from adp_schema.model import Trajectory

_KEYS = frozenset(
    {"model", "max_tokens", "system", "messages", "tools", "tool_choice", "metadata", "stream",
     "stop_sequences", "temperature", "thinking", "top_k", "top_p", "container", "mcp_servers",
     "context_management", "output_config", "service_tier", "betas", "anthropic_version",
     "anthropic_beta", "output_format", "cache_control", "speed", "inference_geo"}
)  # fmt: skip
"""Keys of a request."""


class AnthropicMessages(ExchangeReader):
    """The format ``anthropic_messages``."""

    name = "anthropic_messages"
    title = "Requests to Anthropic's Messages API, and replies"
    recognised = (
        "a reply of the type message with a list of blocks, or messages with Anthropic's tools, "
        "system prompt or blocks"
    )
    written_anew = True
    versions = (
        "reads requests, replies, both together, and lines of batches; writes a request with its "
        "last reply a line"
    )
    api: ClassVar[str] = "anthropic"

    def is_request(self, record: Mapping[str, Raw]) -> bool:
        """A request in a wrapper, or one whose keys are all of the API."""
        return "messages" not in record or (
            (set(record) <= _KEYS or "max_tokens" in record)
            and not word(record, "id").startswith("T-")
        )

    def write(
        self, trajectory: Trajectory, losses: Losses, flavour: str | None = None
    ) -> dict[str, Any]:
        """Convert a trajectory into a request and its last reply."""
        from adp.converters.writers.anthropic_messages import write_exchange

        return write_exchange(trajectory, losses)


CONVERTER = AnthropicMessages()
