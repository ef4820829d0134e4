"""Spans of OpenTelemetry: OTLP JSON, and spans as exporters and Phoenix write them pair by pair.

Conventions read: GenAI in its three generations, OpenInference, OpenLLMetry, the Vercel AI SDK,
Logfire with Pydantic AI, Langfuse's and LangSmith's attributes, Claude Code, Copilot. An OTLP file
is pair record, since the spans of pair conversation may be in any of its lines.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

from msgspec import Raw

from adp.converters.format import Format
from adp.converters.kit.drafts import TrajectoryDraft, merge_extra
from adp.converters.kit.lines import log_lines
from adp.converters.kit.otlp_values import take_attributes
from adp.converters.kit.source_object import SourceObject
from adp.converters.kit.span_attributes import classify, is_claude, take
from adp.converters.kit.span_blocks import plain, unwrapped
from adp.converters.kit.span_runs import SpanLog
from adp.converters.kit.span_tables import CONVERSATION
from adp.converters.kit.span_tree import TraceSpan, take_times
from adp.converters.reading import BRACE, BRACKET
from adp_schema import jsontext
from adp_schema.builder import RowBuilder
from adp_schema.errors import RecordError
from adp_schema.losses import Losses
from adp_schema.protocols import Match, RawRecord

_RESOURCES = ("resourceSpans", "resource_spans", "batches")
_SCOPES = ("scopeSpans", "scope_spans", "instrumentationLibrarySpans")
_IDS = {
    "span": ("spanId", "span_id", "context.span_id"),
    "trace": ("traceId", "trace_id", "context.trace_id"),
    "parent": ("parentSpanId", "parent_span_id", "parent_id", "parentId"),
}
_STARTS = (
    "startTimeUnixNano",
    "start_time_unix_nano",
    "start_time",
    "startTime",
    "start_timestamp",
)
_ENDS = ("endTimeUnixNano", "end_time_unix_nano", "end_time", "endTime", "end_timestamp")


class OtlpLog(SpanLog):
    """The spans of pair file."""

    constants: ClassVar[tuple[str, ...]] = (
        *CONVERSATION, *_IDS["trace"], "gen_ai.agent.id", "gen_ai.agent.name",
        "gen_ai.agent.version", "gen_ai.agent.description", "gen_ai.agent.call.id",
        "gen_ai.system", "gen_ai.provider.name", "llm.provider", "llm.system", "user.id",
        "model_request_parameters", "server.address", "server.port", "ai.model.provider",
        "ai.settings.maxRetries", "resource.name", "ai.telemetry.functionId", "flags",
        "llm.invocation_parameters",
    )  # fmt: skip

    def __init__(self, builder: RowBuilder, losses: Losses) -> None:
        super().__init__(builder, losses)
        self.left: list[tuple[str, Any]] = []

    def lines(self, record: RawRecord) -> list[TraceSpan]:
        """The spans of all lines.

        Raises:
            RecordError: none of them holds a span.
        """
        spans: list[TraceSpan] = []
        for source, broken in log_lines(record, self.builder, self.losses):
            if broken:
                self.left.append(("line", broken))
                continue
            before = len(spans)
            listed = next((key for key in _RESOURCES if source.first(key) == BRACKET), None)
            if listed is not None:
                for resource in source.objects(listed):
                    spans.extend(self._of_resource(resource))
            elif _is_span(source.values):
                spans.append(self.span(source, {}))
            rest = source.rest() if len(spans) == before or listed is not None else {}
            self.left.extend(rest.items())
        if not spans:
            raise RecordError("no line holds a span")
        return spans

    def _of_resource(self, resource: SourceObject) -> Iterator[TraceSpan]:
        shared = {"resource": _shared(resource, self.losses)} if "resource" in resource else {}
        any_span = False
        listed = next((key for key in _SCOPES if resource.first(key) == BRACKET), "scopeSpans")
        for scope in resource.objects(listed):
            also = dict(shared)
            for key in ("scope", "instrumentationLibrary"):
                if key in scope:
                    also["scope"] = _shared(scope, self.losses, key)
            for source in scope.objects("spans"):
                any_span = True
                yield self.span(source, also)
            self.left.extend(scope.rest().items())
        self.left.extend(resource.rest().items())
        if not any_span:
            self.left.extend(shared.items())

    def span(self, source: SourceObject, shared: dict[str, Raw]) -> TraceSpan:
        """A span of OTLP, or of an exporter that writes pair by pair."""
        attributes = take_attributes(source, self.losses)
        shared = dict(shared)
        for key in ("resource", "scope", "instrumentationScope", "instrumentationLibrary"):
            if source.first(key) == BRACE:
                shared[key] = _shared(source, self.losses, key)
                source.drop(key)
        for key in ("events", "links"):
            if listed := source.objects(key):
                for event in listed:
                    take_attributes(event, self.losses)
                source.values[key] = plain([event.rest() for event in listed])
        ids = dict(_ids(source))
        parent = ids.get("parent") or attributes.word("virtual_parent.genai") or None
        times = take_times(source, _STARTS, _ENDS)
        span = TraceSpan(source, attributes, ids.get("span", ""), ids.get("trace", ""), parent,
                         source.word("name"), **times, shared=shared)  # fmt: skip
        if "openinference.span.kind" not in attributes and source.word("span_kind").isupper():
            attributes.values["openinference.span.kind"] = source.values.pop("span_kind")
        classify(span, self.losses)
        return span

    def take(self, span: TraceSpan) -> None:
        """Take what the conventions say."""
        take(span)

    def instruction(self, span: TraceSpan) -> str | None:
        """The prompt that begins an interaction with Claude Code."""
        return span.attributes.text("user_prompt") if is_claude(span) else None

    def complete(self, run: TrajectoryDraft, spans: list[TraceSpan]) -> None:
        """Keep with the first trajectory what stands in the file beside its spans."""
        left, self.left = self.left, []
        for key, value in left:
            merge_extra(run.extra, {key: value})
        resource = unwrapped(run.extra.get("resource"))
        values = SourceObject(resource, "$", self.losses).child("attributes")
        service = values.word("service.name")
        if run.columns.get("agent_name") is None and not service.startswith("unknown_service"):
            run.columns["agent_name"] = service or None
        names = [it.attributes.word("gen_ai.agent.version") for it in spans]
        run.columns["agent_version"] = next((name for name in names if name), None)


def _shared(source: SourceObject, losses: Losses, key: str = "resource") -> Raw:
    """A resource or a scope, with plain attributes."""
    raw = source.take(key)
    inner = SourceObject(raw, f"{source.path}.{key}", losses)
    if not inner:
        return raw if raw is not None else Raw(b"null")
    take_attributes(inner, losses)
    return plain(inner.rest())


def _is_span(values: Mapping[str, Raw]) -> bool:
    context = b"".join(bytes(values[key]) for key in ("context", "spanContext") if key in values)
    inside = b'"trace_id"' in context or b'"traceId"' in context or "context.trace_id" in values
    plainly = bool({"trace_id", "traceId"} & set(values)) and bool(
        {"span_id", "spanId"} & set(values)
    )
    return inside or (plainly and "name" in values)


def _ids(source: SourceObject) -> Iterator[tuple[str, str]]:
    context = source.child("context") or source.child("spanContext")
    for what, keys in _IDS.items():
        for place in (source, context):
            name = next((place.word(key) for key in keys if place.word(key)), "")
            if name:
                if what == "span":
                    place.drop(next(key for key in keys if place.word(key)))
                yield what, name
                break


class OtlpReader(Format):
    """The format ``otlp``."""

    name = "otlp"
    title = "OpenTelemetry spans of models and agents"
    container = "session"
    gathers_rows = True
    recognised = "a list of resourceSpans, or a span with its context and attributes"
    versions = (
        "OTLP JSON and single spans, with the conventions GenAI, OpenInference, OpenLLMetry, "
        "Vercel AI SDK and Logfire; protobuf files: let the Collector's file exporter write JSON"
    )

    def sniff(self, record: Mapping[str, Raw]) -> Match:
        """``resourceSpans``, or a span with a context."""
        if any(
            key in record and jsontext.first_byte(record[key]) == BRACKET for key in _RESOURCES[:2]
        ):
            return Match.STAMP
        batches = record.get("batches")
        if batches is not None and b'"scopeSpans"' in bytes(batches):
            return Match.STAMP
        if "attributes" in record or "context.span_id" in record:
            return Match.STAMP if _is_span(record) else Match.NO
        return Match.NO

    def read(self, record: RawRecord, builder: RowBuilder, losses: Losses) -> None:
        """Read the spans of a file."""
        log = OtlpLog(builder, losses)
        log.read(log.lines(record))


CONVERTER = OtlpReader()
