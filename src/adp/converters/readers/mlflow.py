"""Traces of MLflow, versions 2 and 3: what is known of a trace, and its spans.

Attributes of spans are strings of JSON, also where the value is a plain string.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from msgspec import Raw

from adp.converters.kit.drafts import TrajectoryDraft, merge_extra
from adp.converters.kit.lines import log_lines
from adp.converters.kit.session import inner
from adp.converters.kit.source_object import SourceObject
from adp.converters.kit.usage import UsageKeys, set_usage
from adp.converters.reading import BRACE, QUOTE
from adp.converters.spans.blocks import items_of, unwrapped
from adp.converters.spans.otlp_values import open_span
from adp.converters.spans.payloads import (
    set_cost,
    take_request,
    take_response,
    take_tools,
    take_use,
)
from adp.converters.spans.runs import SpanLog, SpanReader
from adp.converters.spans.tree import AGENT, EVENT, LLM, TOOL, TraceSpan
from adp_schema import jsontext
from adp_schema.builder import RowBuilder
from adp_schema.errors import RecordError
from adp_schema.losses import Losses
from adp_schema.protocols import Match, RawRecord

_TYPES = {
    "CHAT_MODEL": LLM, "LLM": LLM, "TOOL": TOOL, "AGENT": AGENT,
    **dict.fromkeys(("CHAIN", "RETRIEVER", "EMBEDDING", "RERANKER", "PARSER", "MEMORY", "WORKFLOW",
                     "TASK", "GUARDRAIL", "EVALUATOR", "UNKNOWN"), EVENT),
}  # fmt: skip
_USAGE = UsageKeys(
    prompt=("input_tokens",),
    written=("output_tokens",),
    cached=("cache_read_input_tokens",),
    cache_write=("cache_creation_input_tokens",),
)


class MlflowLog(SpanLog):
    """The traces of a file."""

    constants: ClassVar[tuple[str, ...]] = ("trace_id", "mlflow.traceRequestId")

    def __init__(self, builder: RowBuilder, losses: Losses) -> None:
        super().__init__(builder, losses)
        self.traces: dict[str, list[SourceObject]] = {}

    def lines(self, record: RawRecord) -> list[TraceSpan]:
        """The spans of all traces."""
        spans: list[TraceSpan] = []
        for row, broken in log_lines(record, self.builder, self.losses):
            source = row
            if row.first("trace") == QUOTE and (trace := row.take_child("trace")):
                source = trace  # a row of a data frame, which holds the trace as text
                self.left.extend(row.rest().items())
            info, data = source.child("info"), source.child("data")
            spans_here = [self.span(it) for it in data.objects("spans")]
            if broken:
                self.left.append(("line", broken))
            elif not spans_here:
                self.left.extend(source.rest().items())
            else:
                session = info.child("trace_metadata").word("mlflow.trace.session") or info.child(
                    "request_metadata").word("mlflow.trace.session")  # fmt: skip
                for span in spans_here:
                    span.conversation = session or None
                self.traces.setdefault(spans_here[0].trace, []).append(source)
                for raw in items_of(info.values.get("assessments")):
                    assessment = SourceObject(raw, "$.info.assessments", self.losses)
                    name = assessment.word("assessment_name") or assessment.word("name")
                    value = assessment.child("feedback").values.get("value")
                    self.score(spans_here[0].trace, name, value)
                spans.extend(spans_here)
        if not spans:
            raise RecordError("the trace holds no span", "$.data.spans")
        return spans

    def span(self, source: SourceObject) -> TraceSpan:
        """A span."""
        span = open_span(source, {})
        kind = _text(span.attributes, "mlflow.spanType") or source.word("span_type")
        if kind and kind not in _TYPES:
            self.losses.unknown(f"span type {kind}")
        span.kind = _TYPES.get(kind, EVENT)
        if span.kind == AGENT:
            span.agent = span.name or None
        return span

    def take(self, span: TraceSpan) -> None:
        """Take the inputs and outputs of a model or of a tool."""
        place = span.attributes if "mlflow.spanInputs" in span.attributes else span.source
        keys = ("mlflow.spanInputs", "mlflow.spanOutputs")
        if place is span.source:
            keys = ("inputs", "outputs")
        for key in keys:
            if (raw := _decoded(place.values.get(key))) is not None:
                place.values[key] = raw
        if span.kind == TOOL:
            span.use.name = span.name or None
            span.use.error = True if span.failed() else None
            take_use(span, place, *keys)
            return
        attributes = span.attributes
        model = next(
            (key for key in ("mlflow.llm.model", "mlflow.chat.model") if key in attributes), ""
        )
        span.columns["model"] = _text(attributes, model) or None
        if span.columns["model"]:
            attributes.drop(model)
        usage = unwrapped(attributes.values.get("mlflow.chat.tokenUsage"))
        if usage is not None and jsontext.first_byte(usage) == BRACE:
            attributes.drop("mlflow.chat.tokenUsage")
            span.columns["usage"] = jsontext.one_line(usage)
            set_usage(SourceObject(usage, "usage", self.losses), span.columns, _USAGE)
        costs = SourceObject(
            unwrapped(attributes.values.get("mlflow.llm.cost")), "cost", self.losses
        )
        set_cost(span, costs.values.get("total_cost"))
        take_tools(span, attributes, "mlflow.chat.tools")
        take_request(span, place, keys[0])
        take_response(span, place, keys[1])

    def complete(self, run: TrajectoryDraft, spans: list[TraceSpan]) -> None:
        """Add what is known of the traces."""
        for name in dict.fromkeys(span.trace for span in spans):
            for source in self.traces.pop(name, []):
                info = source.child("info")
                if run.columns["session_id"] is None:
                    run.columns["source_id"] = info.word("trace_id") or info.word("request_id") or (
                        run.columns["source_id"])  # fmt: skip
                merge_extra(run.extra, source.rest())


def _decoded(raw: Raw | None) -> Raw | None:
    """A value that stands in a string of JSON."""
    if raw is None or jsontext.first_byte(raw) != QUOTE:
        return raw
    text = jsontext.decode_value(raw)
    return jsontext.raw(text) if jsontext.is_valid(text) and not jsontext.has_mark(text) else raw


def _text(attributes: SourceObject, key: str) -> str:
    raw = _decoded(attributes.values.get(key))
    return (
        jsontext.decode_value(raw) if raw is not None and jsontext.first_byte(raw) == QUOTE else ""
    )


class MlflowReader(SpanReader):
    """The format ``mlflow``."""

    name = "mlflow"
    title = "Traces of MLflow"
    log = MlflowLog
    recognised = "an info with a trace_id or request_id beside data with spans"
    versions = "traces of MLflow 2 and 3, as Trace.to_json writes them, and rows of its data frames"

    def sniff(self, record: Mapping[str, Raw]) -> Match:
        """``info`` and ``data.spans``."""
        row = bytes(record.get("trace", b""))
        if row[:1] == b'"' and all(key in row for key in (b'\\"info\\"', b'\\"spans\\"')):
            return Match.STAMP
        known = bool({"trace_id", "request_id"} & set(inner(record, "info")))
        return Match.STAMP if known and "spans" in inner(record, "data") else Match.NO


CONVERTER = MlflowReader()
