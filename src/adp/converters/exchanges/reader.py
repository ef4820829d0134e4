"""Formats whose record is a request to a model, its reply, or both."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from msgspec import Raw

from adp.converters.exchanges.apis import ModelApis, take_error
from adp.converters.exchanges.wrappers import Exchange, kinds_of_record, open_exchange
from adp.converters.format import Format
from adp.converters.kit.drafts import StepDraft, merge_extra
from adp.converters.kit.session import SessionLog
from adp.converters.kit.source_object import SourceObject
from adp.converters.kit.times import take_end, take_start
from adp.converters.reading import BRACE
from adp_schema import jsontext
from adp_schema.builder import RowBuilder
from adp_schema.errors import RecordError
from adp_schema.losses import Losses
from adp_schema.protocols import Match, RawRecord, SkipRecordError

_UNANSWERED = frozenset({"expired", "canceled"})
"""Results of requests in a batch of Anthropic's that no model saw."""

REPLY_ONLY = "reply only"
"""Tag of a trajectory that has a reply, and not the request that it answers."""
_TRACES = frozenset(
    {"traceId", "trace_id", "run_type", "dotted_order", "observations", "op_name", "span_id",
     "responses_create_params", "trajectory", "steps", "simulations", "instance_id", "info",
     "fncall_messages", "latency_sec", "scope", "log", "sequence_number",
     "session", "stats", "backing_model", "epoch", "generationStatus"}
)  # fmt: skip
"""Keys of records in which other formats wrap requests and replies."""


class ExchangeLog(SessionLog):
    """One request with its reply.

    Attributes:
        api: the API, see `adp.converters.exchanges.apis.reply_kind`.
        session_keys: keys of the wrapper that name the session.
    """

    api = ""
    session_keys: ClassVar[tuple[str, ...]] = ("session_id", "conversation_id", "thread_id")

    def read_lines(self) -> None:
        """Read the request, then the reply."""
        if jsontext.first_byte(self.record.data) != BRACE:
            raise RecordError("expected an object")
        source = SourceObject(self.record.data, "$", self.losses)
        self.apis = ModelApis(self.blocks)
        exchange = open_exchange(source)
        if exchange.kind not in ("", self.api):
            raise RecordError(f"it is a record of another API: {exchange.kind}")
        self.exchange(exchange)
        columns = self.run.columns
        columns["source_id"] = source.name("custom_id") or source.name("request_id")
        if exchange.record is not exchange.reply:
            columns["source_id"] = columns["source_id"] or source.name("id")
        if columns["source_id"] is None and exchange.reply is not None:
            step = next((it for it in self.run.steps if it.columns.get("response_id")), None)
            columns["source_id"] = step.columns["response_id"] if step is not None else None
        session = source.name(*self.session_keys)
        columns["session_id"] = session or columns.get("session_id")
        take_start(source, columns, "startTime", "start_time", "started_at")
        take_end(source, columns, "endTime", "end_time", "ended_at")
        merge_extra(self.run.extra, source.rest())
        merge_extra(self.run.extra, exchange.rest())

    def exchange(self, exchange: Exchange) -> None:
        """Read an exchange.

        Args:
            exchange: the request and the reply.

        Raises:
            RecordError: there is neither.
            SkipRecordError: there is only an error.
        """
        if exchange.request is not None:
            self.apis.request(exchange.request, exchange.request_kind)
        if exchange.reply is not None:
            self.reply(exchange)
        else:
            self._no_reply(exchange)

    def reply(self, exchange: Exchange) -> StepDraft | None:
        """Read the reply of an exchange."""
        if exchange.request is None:
            self.run.columns["tags"] = [REPLY_ONLY]
        return exchange.read_reply(self.apis)

    def _no_reply(self, exchange: Exchange) -> None:
        record = exchange.record
        places = [record.child(key) for key in ("result", "response")]
        places += [place.child("body") for place in places]
        for place in [record, *places]:
            if place.word("type") in _UNANSWERED and exchange.request is None:
                raise SkipRecordError(f"the request was not answered: {place.word('type')}")
            if place.first("error") not in (0, 0x6E):
                if exchange.request is None:
                    raise SkipRecordError("it holds an error and no reply of a model")
                take_error(place, self.run.columns)
                return
        if exchange.request is None:
            raise RecordError("there is neither a request nor a reply")


class ExchangeReader(Format):
    """A format of one API.

    Attributes:
        api: the API, see `adp.converters.exchanges.apis.reply_kind`.
    """

    container = "jsonl"
    api: ClassVar[str]

    def sniff(self, record: Mapping[str, Raw]) -> Match:
        """A reply of this API, or a request in a wrapper."""
        if not _TRACES.isdisjoint(record):
            return Match.NO
        if b'"output_text"' in bytes(record.get("content", b"")):
            return Match.NO  # an item of Responses by itself, as early logs of Codex have them
        request, reply = kinds_of_record(record, Losses())
        if (reply or request) != self.api:
            return Match.NO
        if not reply and "model" not in record and {"input", "inputs"} & set(record):
            return Match.NO  # a row for training, such as that of a preference
        return Match.STAMP if reply or self.is_request(record) else Match.NO

    def is_request(self, record: Mapping[str, Raw]) -> bool:
        """Whether a record without a reply is a request of this API, and of no other format."""
        return "messages" not in record

    def read(self, record: RawRecord, builder: RowBuilder, losses: Losses) -> None:
        """Read one exchange."""
        log = ExchangeLog(record, builder, losses)
        log.api = self.api
        log.read()
