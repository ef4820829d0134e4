"""Requests to OpenAI's Responses API, stored responses, and lists of items.

Either alone, or both in the wrappers of logs and batches. One turn of the model per response;
results are joined to calls by ``call_id``. A page of the items of a conversation, or of the input
of a response, is one trajectory; the API gives the newest item first unless it is asked otherwise.
Sources: the reference of the API; responses that were recorded by SDKs.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from msgspec import Raw

from adp.converters.exchanges.apis import ModelApis
from adp.converters.exchanges.conversations import items_of
from adp.converters.exchanges.reader import ExchangeLog, ExchangeReader
from adp.converters.kit.responses_items import CALLS, RESULTS
from adp.converters.kit.session import word
from adp.converters.kit.source_object import SourceObject
from adp.converters.reading import BRACE, begins
from adp_schema import jsontext
from adp_schema.builder import RowBuilder
from adp_schema.losses import Losses
from adp_schema.model import Trajectory
from adp_schema.protocols import Match, RawRecord

_ITEMS = CALLS.keys() | RESULTS | {"message", "reasoning", "compaction", "mcp_list_tools"}
_PROMPTS = frozenset({"user", "system", "developer"})


class ItemPage(ExchangeLog):
    """A page of items, ``{"object": "list", "data": [...]}``."""

    def read_lines(self) -> None:
        """Read its items, the oldest first."""
        source = SourceObject(self.record.data, "$", self.losses)
        items = items_of(source.take("data"))
        if _is_newest_first(items):
            items.reverse()
            self.run.extra["order"] = "desc"
        self.apis = ModelApis(self.blocks)
        self.apis.items.read(jsontext.raw(jsontext.text_of(items)), "$.data")
        self.run.extra.update(source.rest())


def _is_page(record: Mapping[str, Raw]) -> bool:
    """Whether a record is a list of items, of types that the API has."""
    items = items_of(record.get("data")) if word(record, "object") == "list" else []
    kinds = [_item(raw) for raw in items]
    return bool(kinds) and all(word(it, "type") in _ITEMS and "object" not in it for it in kinds)


def _item(raw: Raw) -> Mapping[str, Raw]:
    return jsontext.decode_object(raw) if begins(raw, BRACE) else {}


def _is_newest_first(items: list[Raw]) -> bool:
    """Whether a result stands before its call; else whether the prompt is last, not first."""
    calls: set[str] = set()
    answered: set[str] = set()
    prompts: list[bool] = []
    for raw in items:
        item = _item(raw)
        kind, call = word(item, "type"), word(item, "call_id")
        if (kind in CALLS and call in answered) or (kind in RESULTS and call in calls):
            return kind in CALLS
        calls |= {call} if kind in CALLS and call else set()
        answered |= {call} if kind in RESULTS and call else set()
        prompts.append(kind == "message" and word(item, "role") in _PROMPTS)
    return len(prompts) > 1 and prompts[-1] and not prompts[0]


class OpenAIResponses(ExchangeReader):
    """The format ``openai_responses``."""

    name = "openai_responses"
    title = "Requests to OpenAI's Responses API, and responses"
    recognised = "an object response with a list output, or a list input of items with a model"
    written_anew = True
    versions = (
        "reads requests, responses, both together, lines of batches, and pages of items; writes a "
        "request with its last response a line"
    )
    api: ClassVar[str] = "responses"

    def sniff(self, record: Mapping[str, Raw]) -> Match:
        """A page of items, or a request or a response."""
        return Match.STAMP if _is_page(record) else super().sniff(record)

    def read(self, record: RawRecord, builder: RowBuilder, losses: Losses) -> None:
        """Read a page of items, or one exchange."""
        first = jsontext.decode_object(record.data) if record.data[:1] == b"{" else {}
        if _is_page(first):
            ItemPage(record, builder, losses).read()
        else:
            super().read(record, builder, losses)

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
