"""Spans of OpenTelemetry: OTLP, and spans as exporters, Phoenix and Logfire write them singly.

Conventions read: GenAI in its three generations, OpenInference, OpenLLMetry, the Vercel AI SDK,
Logfire with Pydantic AI, Langfuse's and LangSmith's attributes, Claude Code, Copilot. A file is one
record, since the spans of a conversation may be in any of its lines. Records of logs are read
where they tell of models or tools: as events of their span, or else as spans.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from msgspec import Raw

from adp.converters.kit.drafts import TrajectoryDraft
from adp.converters.kit.lines import log_lines
from adp.converters.kit.session import word
from adp.converters.kit.source_object import SourceObject
from adp.converters.reading import BRACE, BRACKET, begins
from adp.converters.spans.attributes import classify, is_claude, take
from adp.converters.spans.blocks import items_of, plain, unwrapped
from adp.converters.spans.events import add_events, lift_details, log_event
from adp.converters.spans.other_spans import is_other_span
from adp.converters.spans.otlp_values import (
    IDS,
    LOG_TIMES,
    is_span,
    open_span,
    plain_attributes,
    take_ids,
)
from adp.converters.spans.runs import SpanLog, SpanReader
from adp.converters.spans.tables import CONVERSATION
from adp.converters.spans.tree import TraceSpan, take_id, take_times
from adp_schema import jsontext
from adp_schema.builder import RowBuilder
from adp_schema.errors import RecordError
from adp_schema.losses import Losses
from adp_schema.model import Trajectory
from adp_schema.protocols import Match, RawRecord

_LISTS = {
    **dict.fromkeys(("resourceSpans", "resource_spans", "batches"), "spans"),
    **dict.fromkeys(("resourceLogs", "resource_logs"), "logRecords"),
}
"""Lists of resources -> what their scopes hold."""
_SCOPES = ("scopeSpans", "scope_spans", "instrumentationLibrarySpans", "scopeLogs",
           "scope_logs")  # fmt: skip
_SCOPE_KEYS = frozenset(_SCOPES)
_MARKED = ("gen_ai.", "claude_code.")
"""Beginnings of the names of events that tell of models and agents."""
_MARKS = {**dict.fromkeys(_LISTS, tuple(mark.encode() for mark in _MARKED)),
          "resourceSpans": (b"",), "resource_spans": (b"",),
          "batches": (b'"scopeSpans"',)}  # fmt: skip
"""What a list must hold to be of this format."""
_HOLDERS = ("spans", "data", "traces")
"""Lists in which services give spans, or traces of spans."""


class OtlpLog(SpanLog):
    """The spans of a file."""

    constants: ClassVar[tuple[str, ...]] = (
        *CONVERSATION, *IDS["trace"], "gen_ai.agent.id", "gen_ai.agent.name",
        "gen_ai.agent.version", "gen_ai.agent.description", "gen_ai.agent.call.id",
        "gen_ai.system", "gen_ai.provider.name", "llm.provider", "llm.system", "user.id",
        "model_request_parameters", "server.address", "server.port", "ai.model.provider",
        "ai.settings.maxRetries", "resource.name", "ai.telemetry.functionId", "flags",
        "llm.invocation_parameters",
    )  # fmt: skip

    def __init__(self, builder: RowBuilder, losses: Losses) -> None:
        super().__init__(builder, losses)
        self.spans: list[TraceSpan] = []
        self.records: list[tuple[SourceObject, dict[str, Raw]]] = []

    def lines(self, record: RawRecord) -> list[TraceSpan]:
        """The spans of all lines."""
        for source, broken in log_lines(record, self.builder, self.losses):
            if broken:
                self.left.append(("line", broken))
            else:
                self._document(source)
        self._place_records()
        if not self.spans:
            raise RecordError("no line holds a span")
        for span in self.spans:
            for name, value in lift_details(span).items():
                self.score(span.trace, name, value)
            classify(span, self.losses)
        return self.spans

    def _document(self, source: SourceObject) -> None:
        """A line: resources with their spans or records, a span, or an object that holds spans."""
        if is_span(source.values):
            self.spans.append(open_span(source, {}))
            return
        if source.first("trace") == BRACE:
            self._document(source.take_child("trace"))
        if not _SCOPE_KEYS.isdisjoint(source.values):
            logs = "scopeLogs" in source or "scope_logs" in source
            self._resource(source, "logRecords" if logs else "spans")
            return
        for key, items in _LISTS.items():
            for resource in source.objects(key):
                self._resource(resource, items)
        for key in _HOLDERS:
            for inner in source.objects(key):
                self._document(inner)
        self.left.extend(source.rest().items())

    def _resource(self, resource: SourceObject, items: str) -> None:
        shared = (
            {"resource": plain_attributes(resource, "resource")} if "resource" in resource else {}
        )
        before = len(self.spans) + len(self.records)
        listed = next((key for key in _SCOPES if resource.first(key) == BRACKET), _SCOPES[0])
        for scope in resource.objects(listed):
            keys = [it for it in ("scope", "instrumentationLibrary") if it in scope]
            about = [plain_attributes(scope, key) for key in keys]
            also = {**shared, "scope": about[-1]} if about else shared
            rows = scope.objects(items) or scope.objects("log_records")
            if not rows and "scope" in also:
                self.left.append(("scope", also["scope"]))
            for source in rows:
                if items == "spans":
                    self.spans.append(open_span(source, also))
                else:
                    self.records.append((source, also))
            self.left.extend(scope.rest().items())
        self.left.extend(resource.rest().items())
        self.left += shared.items() if len(self.spans) + len(self.records) == before else ()

    def _place_records(self) -> None:
        """Records of logs become events of their span, or spans where there is none."""
        by_id = {(span.trace, span.span_id): span for span in self.spans if span.span_id}
        events: dict[int, list[Raw]] = {}
        for source, shared in self.records:
            name, attributes = log_event(source)
            written = {key: source.values[key] for key in IDS["span"] if key in source}
            ids = take_ids(source)
            place = ids.get("trace", ""), ids.get("span", "")
            if place not in by_id and not name.startswith(_MARKED):
                self.left.append(("log record", plain({**written, **source.rest()})))
            elif not place[1]:
                sessions = (attributes.word(key) for key in CONVERSATION if key in attributes)
                trace = place[0] or next(sessions, "")
                self._record_alone(source, attributes, (trace, ""), name, shared)
            else:
                if place not in by_id:
                    copy, empty = (SourceObject(None, source.path, self.losses) for _ in "ab")
                    copy.values = {key: source.values[key] for key in LOG_TIMES if key in source}
                    copy.adopt("attributes", empty)
                    by_id[place] = self._record_alone(copy, empty, place, "", shared)
                for key, value in shared.items():
                    if by_id[place].shared.get(key) != value:
                        by_id[place].shared[f"log {key}"] = value
                take_id(source, *IDS["trace"])
                events.setdefault(id(by_id[place]), []).append(plain(source.rest()))
        for span in self.spans:
            if id(span) in events:
                add_events(span, events[id(span)])

    def _record_alone(
        self, source: SourceObject, attributes: SourceObject, place: tuple[str, str], name: str,
        shared: dict[str, Raw],
    ) -> TraceSpan:  # fmt: skip
        """A span made of a record whose span is not there."""
        times = take_times(source, LOG_TIMES, ())
        span = TraceSpan(source, attributes, place[1], place[0], None, name, **times, shared=shared)
        self.spans.append(span)
        return span

    def take(self, span: TraceSpan) -> None:
        """Take what the conventions say."""
        take(span)

    def instruction(self, span: TraceSpan) -> str | None:
        """The prompt that begins an interaction with Claude Code."""
        return span.attributes.text("user_prompt", "prompt") if is_claude(span) else None

    def complete(self, run: TrajectoryDraft, spans: list[TraceSpan]) -> None:
        """Keep with the first trajectory what stands in the file beside its spans."""
        resource = unwrapped(run.extra.get("resource"))
        values = SourceObject(resource, "$", self.losses).child("attributes")
        service = values.word("service.name")
        if run.columns.get("agent_name") is None and not service.startswith("unknown_service"):
            run.columns["agent_name"] = service or None
        names = [word(run.extra, "gen_ai.agent.version")]  # where all spans have the same
        names += [it.attributes.word("gen_ai.agent.version") for it in spans]
        run.columns["agent_version"] = next((name for name in names if name), None)


class OtlpReader(SpanReader):
    """The format ``otlp``."""

    name = "otlp"
    title = "OpenTelemetry spans of models and agents"
    log = OtlpLog
    recognised = "resourceSpans, a resource with scopeSpans, or a span with its ids and attributes"
    written_anew = True
    flavours = ("all-messages", "new-messages")
    versions = (
        "OTLP as JSON and protobuf, single spans, exports of Jaeger and rows of ClickHouse, with "
        "the conventions GenAI, OpenInference, OpenLLMetry, Vercel AI SDK and Logfire; writes "
        "GenAI 0.1.0 as OTLP JSON, a trace a trajectory; of new-messages each span has the "
        "messages since the turn before it only"
    )

    def sniff(self, record: Mapping[str, Raw]) -> Match:
        """``resourceSpans``, records of logs about models, or a span with a context."""
        for key in _LISTS:
            data = bytes(record.get(key, b""))
            if data[:1] == b"[" and any(mark in data for mark in _MARKS[key]):
                return Match.STAMP
        if _is_resource(record):
            return Match.STAMP
        if begins(record.get("trace"), BRACE):
            trace = jsontext.decode_object(record["trace"])
            if not _LISTS.keys().isdisjoint(trace):
                return self.sniff(trace)
        for key in _HOLDERS:
            items = items_of(record.get(key))
            if begins(record.get(key), BRACKET) and items and begins(items[0], BRACE):
                return self.sniff(jsontext.decode_object(items[0]))
        if "attributes" in record or "context.span_id" in record or is_other_span(record):
            return Match.STAMP if is_span(record) else Match.NO
        return Match.NO

    def write(
        self, trajectory: Trajectory, losses: Losses, flavour: str | None = None
    ) -> list[dict[str, Any]]:
        """Convert a trajectory into a trace, the only line of its file."""
        from adp.converters.writers.otlp import write_trace

        return write_trace(trajectory, losses, flavour)


def _is_resource(record: Mapping[str, Raw]) -> bool:
    """Whether it is a resource with its spans, which stands alone; or with logs about models."""
    for key in _SCOPE_KEYS & record.keys():
        data = bytes(record[key])
        marks = [mark.encode() for mark in _MARKED] if "ogs" in key else [b'"spans"']
        if data[:1] == b"[" and any(mark in data for mark in marks):
            return True
    return False


CONVERTER = OtlpReader()
