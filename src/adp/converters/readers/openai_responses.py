"""Requests to OpenAI's Responses API, stored responses, and lists of items.

Either alone, or both in the wrappers of logs and batches. One turn of the model per response;
results are joined to calls by ``call_id``. Sources: the reference of the API; responses that were
recorded by SDKs.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from msgspec import Raw

from adp.converters.exchanges.reader import ExchangeReader
from adp_schema.losses import Losses
from adp_schema.model import Trajectory


class OpenAIResponses(ExchangeReader):
    """The format ``openai_responses``."""

    name = "openai_responses"
    title = "Requests to OpenAI's Responses API, and responses"
    recognised = "an object response with a list output, or a list input of items with a model"
    written_anew = True
    versions = (
        "reads requests, responses, both together, and lines of batches; writes a request with its "
        "last response a line"
    )
    api: ClassVar[str] = "responses"

    def is_request(self, record: Mapping[str, Raw]) -> bool:
        """A request in a wrapper, or a model with items or instructions."""
        raw = bytes(record.get("input", b""))
        return "input" not in record or raw.startswith(b"[{") or "instructions" in record

    def write(
        self, trajectory: Trajectory, losses: Losses, flavour: str | None = None
    ) -> dict[str, Any]:
        """Convert a trajectory into a request and its last response."""
        from adp.converters.writers.openai_responses import write_exchange

        return write_exchange(trajectory, losses)


CONVERTER = OpenAIResponses()
