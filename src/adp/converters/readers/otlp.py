"""Spans of OpenTelemetry: OTLP, and spans as exporters, Phoenix and Logfire write them singly.

Conventions read: GenAI in its three generations, OpenInference, OpenLLMetry, the Vercel AI SDK,
Logfire with Pydantic AI, Langfuse's and LangSmith's attributes, Claude Code, Copilot. A file is one
record, since the spans of a conversation may be in any of its lines. Records of logs are read
where they tell of models or tools: as events of their span, or else as spans.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

from msgspec import Raw

from adp.converters.format import Format
from adp.converters.kit.drafts import TrajectoryDraft, merge_extra
from adp.converters.kit.lines import log_lines
from adp.converters.kit.otlp_values import take_attributes
from adp.converters.kit.session import word
from adp.converters.kit.source_object import SourceObject
from adp.converters.kit.span_attributes import classify, is_claude, take
from adp.converters.kit.span_blocks import items_of, plain, unwrapped
from adp.converters.kit.span_events import add_events, lift_details, log_event
from adp.converters.kit.span_runs import SpanLog
from adp.converters.kit.span_tables import CONVERSATION
from adp.converters.kit.span_tree import TraceSpan, take_id, take_times
from adp.converters.reading import BRACE, BRACKET, begins
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
_MARKS = {**dict.fromkeys(_LISTS, (b"gen_ai.", b"claude_code.")), "batches": (b'"scopeSpans"',),
          "resourceSpans": (b"",), "resource_spans": (b"",)}  # fmt: skip
"""What a list must hold to be of this format."""
_HOLDERS = ("spans", "data", "traces")
"""Lists in which services give spans, or traces of spans."""
_LOG_TIMES = ("timeUnixNano", "time_unix_nano", "observedTimeUnixNano")
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
    """The spans of a file."""

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
        self.spans: list[TraceSpan] = []
        self.records: list[tuple[SourceObject, dict[str, Raw]]] = []
        self.scores: dict[str, dict[str, Raw]] = {}

    def lines(self, record: RawRecord) -> list[TraceSpan]:
        """The spans of all lines.

        Raises:
            RecordError: none of them holds a span.
        """
        for source, broken in log_lines(record, self.builder, self.losses):
            if broken:
                self.left.append(("line", broken))
            else:
                self._document(source)
        self._place_records()
        if not self.spans:
            raise RecordError("no line holds a span")
        for span in self.spans:
            if scores := lift_details(span):
                self.scores.setdefault(span.trace, {}).update(scores)
            classify(span, self.losses)
        return self.spans

    def _document(self, source: SourceObject) -> None:
        """A line: resources with their spans or records, a span, or an object that holds spans."""
        if _is_span(source.values):
            self.spans.append(self.span(source, {}))
            return
        if source.first("trace") == BRACE:
            self._document(source.take_child("trace"))
        for key, items in _LISTS.items():
            for resource in source.objects(key):
                self._resource(resource, items)
        for key in _HOLDERS:
            for inner in source.objects(key):
                self._document(inner)
        self.left.extend(source.rest().items())

    def _resource(self, resource: SourceObject, items: str) -> None:
        shared = {"resource": _shared(resource, self.losses)} if "resource" in resource else {}
        before = len(self.spans) + len(self.records)
        listed = next((key for key in _SCOPES if resource.first(key) == BRACKET), _SCOPES[0])
        for scope in resource.objects(listed):
            also = dict(shared)
            for key in ("scope", "instrumentationLibrary"):
                if key in scope:
                    also["scope"] = _shared(scope, self.losses, key)
            for source in scope.objects(items) or scope.objects("log_records"):
                if items == "spans":
                    self.spans.append(self.span(source, also))
                else:
                    self.records.append((source, also))
            self.left.extend(scope.rest().items())
        self.left.extend(resource.rest().items())
        if len(self.spans) + len(self.records) == before:
            self.left.extend(shared.items())

    def _place_records(self) -> None:
        """Records of logs become events of their span, or spans where there is none."""
        by_id = {(span.trace, span.span_id): span for span in self.spans if span.span_id}
        events: dict[int, list[Raw]] = {}
        for source, shared in self.records:
            name, attributes = log_event(source)
            ids = dict(_ids(source))
            place = ids.get("trace", ""), ids.get("span", "")
            if not place[1] and not name.startswith(("gen_ai.", "claude_code.")):
                self.left.append(("log record", plain(source.rest())))
            elif not place[1]:
                session = next((attributes.word(key) for key in CONVERSATION if key in attributes),
                               "")  # fmt: skip
                self._record_alone(source, attributes, (place[0] or session, ""), name, shared)
            else:
                if place not in by_id:
                    copy, empty = (SourceObject(None, source.path, self.losses) for _ in "ab")
                    copy.values = {key: source.values[key] for key in _LOG_TIMES if key in source}
                    copy.adopt("attributes", empty)
                    by_id[place] = self._record_alone(copy, empty, place, "", shared)
                for key, value in shared.items():
                    if by_id[place].shared.get(key) != value:
                        by_id[place].shared[f"log {key}"] = value
                take_id(source, *_IDS["trace"])
                events.setdefault(id(by_id[place]), []).append(plain(source.rest()))
        for span in self.spans:
            if id(span) in events:
                add_events(span, events[id(span)])

    def _record_alone(
        self, source: SourceObject, attributes: SourceObject, place: tuple[str, str], name: str,
        shared: dict[str, Raw],
    ) -> TraceSpan:  # fmt: skip
        """A span made of a record whose span is not there."""
        times = take_times(source, _LOG_TIMES, ())
        span = TraceSpan(source, attributes, place[1], place[0], None, name, **times, shared=shared)
        self.spans.append(span)
        return span

    def span(self, source: SourceObject, shared: dict[str, Raw]) -> TraceSpan:
        """A span of OTLP, or of an exporter that writes spans singly."""
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
                         source.word("name") or source.word("span_name"), **times,
                         shared=shared)  # fmt: skip
        if "openinference.span.kind" not in attributes and source.word("span_kind").isupper():
            attributes.values["openinference.span.kind"] = source.values.pop("span_kind")
        return span

    def take(self, span: TraceSpan) -> None:
        """Take what the conventions say."""
        take(span)

    def instruction(self, span: TraceSpan) -> str | None:
        """The prompt that begins an interaction with Claude Code."""
        return span.attributes.text("user_prompt", "prompt") if is_claude(span) else None

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
        names = [word(run.extra, "gen_ai.agent.version")]  # where all spans have the same
        names += [it.attributes.word("gen_ai.agent.version") for it in spans]
        run.columns["agent_version"] = next((name for name in names if name), None)
        rewards: dict[str, Raw] = {}
        for trace in dict.fromkeys(span.trace for span in spans):
            rewards |= self.scores.get(trace, {})
        if rewards:
            run.columns["rewards"] = jsontext.text_of(rewards)


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
    return inside or (plainly and bool({"name", "span_name"} & set(values)))


def _ids(source: SourceObject) -> Iterator[tuple[str, str]]:
    context = source.child("context") or source.child("spanContext")
    for what, keys in _IDS.items():
        for place in (source, context):
            name = next((place.word(key) for key in keys if place.word(key)), "")
            if name:
                yield what, take_id(place, *keys) if what == "span" else name
                break


class OtlpReader(Format):
    """The format ``otlp``."""

    name = "otlp"
    title = "OpenTelemetry spans of models and agents"
    container = "session"
    gathers_rows = True
    recognised = "a list of resourceSpans, or a span with its context and attributes"
    written_anew = True
    versions = (
        "OTLP as JSON and protobuf, and single spans, with the conventions GenAI, OpenInference, "
        "OpenLLMetry, Vercel AI SDK and Logfire; writes GenAI 0.1.0 as OTLP JSON, a trace a "
        "trajectory"
    )

    def sniff(self, record: Mapping[str, Raw]) -> Match:
        """``resourceSpans``, records of logs about models, or a span with a context."""
        for key in _LISTS:
            data = bytes(record.get(key, b""))
            if data[:1] == b"[" and any(mark in data for mark in _MARKS[key]):
                return Match.STAMP
        for key in _HOLDERS:
            items = items_of(record.get(key))
            if begins(record.get(key), BRACKET) and items and begins(items[0], BRACE):
                return self.sniff(jsontext.decode_object(items[0]))
        if "attributes" in record or "context.span_id" in record:
            return Match.STAMP if _is_span(record) else Match.NO
        return Match.NO

    def read(self, record: RawRecord, builder: RowBuilder, losses: Losses) -> None:
        """Read the spans of a file."""
        log = OtlpLog(builder, losses)
        log.read(log.lines(record))

    def write(
        self, trajectory: Trajectory, losses: Losses, flavour: str | None = None
    ) -> list[dict[str, Any]]:
        """Convert a trajectory into a trace, the only line of its file."""
        from adp.converters.writers.otlp import write_trace

        return write_trace(trajectory, losses)


CONVERTER = OtlpReader()
