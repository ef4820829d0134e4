"""Traces of Langfuse: a trace with its observations, and rows of traces, observations and scores.

Keys are those of its API, or the same in snake case, as its exports to files have them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import ClassVar

from msgspec import Raw

from adp.converters.kit.drafts import TrajectoryDraft, append_extra, merge_extra
from adp.converters.kit.lines import log_lines
from adp.converters.kit.session import word
from adp.converters.kit.source_object import SourceObject
from adp.converters.kit.usage import UsageKeys, set_usage
from adp.converters.reading import BRACE, BRACKET, begins
from adp.converters.spans.attributes import classify
from adp.converters.spans.blocks import items_of, opened, plain, unwrapped
from adp.converters.spans.payloads import (
    set_cost,
    take_request,
    take_response,
    take_tools,
    take_use,
)
from adp.converters.spans.runs import SpanLog, SpanReader
from adp.converters.spans.tables import USE
from adp.converters.spans.tree import AGENT, EVENT, LLM, TOOL, TraceSpan, take_id, take_times
from adp_schema import jsontext
from adp_schema.builder import RowBuilder
from adp_schema.errors import RecordError
from adp_schema.losses import Losses
from adp_schema.protocols import Match, RawRecord

_TYPES = {
    "GENERATION": LLM, "TOOL": TOOL, "AGENT": AGENT,
    **dict.fromkeys(("SPAN", "EVENT", "CHAIN", "RETRIEVER", "EVALUATOR", "EMBEDDING", "GUARDRAIL"),
                    EVENT),
}  # fmt: skip
_USAGE = UsageKeys(
    prompt=("input", "input_tokens", "prompt_tokens", "promptTokens"),
    written=("output", "output_tokens", "completion_tokens", "completionTokens"),
    cached=("input_cached_tokens", "cache_read_input_tokens", "input_cache_read",
            "prompt_details.cache_read", "input_cached", "cached_tokens"),
    cache_write=("cache_creation_input_tokens", "input_cache_creation",
                 "prompt_details.cache_write", "input_cache_write"),
    reasoning=("output_reasoning_tokens", "completion_details.reasoning", "output_reasoning",
               "reasoning_tokens"),
)  # fmt: skip
_COUNTS = {
    "tokens_in": ("inputUsage", "promptTokens", "prompt_tokens"),
    "tokens_out": ("outputUsage", "completionTokens", "completion_tokens"),
}
"""Counts beside the record of the usage, in older exports."""
_CAMEL = re.compile(r"(?<=[a-z0-9])([A-Z])")


def _names(key: str) -> tuple[str, str]:
    return key, _CAMEL.sub(lambda match: f"_{match.group(1).lower()}", key)


class LangfuseLog(SpanLog):
    """The observations of one file, with their traces and scores."""

    constants: ClassVar[tuple[str, ...]] = (
        "traceId", "trace_id", "projectId", "project_id", "environment", "release", "version",
        "public", "bookmarked",
    )  # fmt: skip

    def __init__(self, builder: RowBuilder, losses: Losses) -> None:
        super().__init__(builder, losses)
        self.traces: dict[str, list[SourceObject]] = {}
        self.records: dict[str, list[Raw]] = {}
        self.spans: list[TraceSpan] = []

    def lines(self, record: RawRecord) -> list[TraceSpan]:
        """The observations of all documents or rows."""
        for source, broken in log_lines(record, self.builder, self.losses):
            if broken:
                self.left.append(("line", broken))
            else:
                self._document(source)
        for span in self.spans:
            for trace in self.traces.get(span.trace, []):
                span.conversation = _get(trace, "sessionId") or span.conversation
        if not self.spans:
            raise RecordError("the record holds no observation", "$.observations")
        return self.spans

    def _document(self, source: SourceObject) -> None:
        """A trace with its observations, a row of any table, or a page of rows of the API."""
        trace = _get(source, "traceId")
        if source.first("data") == BRACKET:
            for row in source.objects("data"):
                self._document(row)
            self.left.extend(source.rest().items())
        elif trace and ("startTime" in source or "start_time" in source):
            self.spans.append(self.span(source))
        elif trace and "value" in source:
            self._score(trace, plain(source.values))
        else:
            self.spans.extend(map(self.span, source.objects("observations")))
            listed = [source.child("trace")] if source.first("trace") == BRACE else []
            for row in listed or source.objects("traces"):
                self._trace(row)
            if listed:
                self.left.extend(source.rest().items())
            else:
                self._trace(source)

    def _trace(self, source: SourceObject) -> None:
        self.traces.setdefault(source.word("id"), []).append(source)
        for score in source.items("scores"):
            self._score(source.word("id"), score)

    def _score(self, trace: str, raw: Raw) -> None:
        self.records.setdefault(trace, []).append(raw)
        score = SourceObject(raw, "$.scores", self.losses)
        self.score(trace, score.word("name"), score.values.get("value"))

    def span(self, source: SourceObject) -> TraceSpan:
        """An observation."""
        metadata = SourceObject(unwrapped(source.values.get("metadata")), "$", self.losses)
        attributes = SourceObject(unwrapped(metadata.values.get("attributes")), "$", self.losses)
        times = take_times(source, _names("startTime"), _names("endTime"))
        parent = _get(source, "parentObservationId") or None
        span = TraceSpan(source, attributes, take_id(source, "id"), _get(source, "traceId"), parent,
                    source.word("name"), **times)  # fmt: skip
        kind = source.word("type").upper()
        if attributes:
            classify(span, Losses())
        if kind in _TYPES and (kind != "SPAN" or span.kind == LLM):
            span.kind = _TYPES[kind]
        elif kind not in _TYPES:
            self.losses.unknown(f"observation type {kind or 'without a type'}")
        output = SourceObject(unwrapped(source.values.get("output")), "$", self.losses)
        if span.kind == EVENT and kind == "SPAN" and opened(output).word("tool_call_id"):
            span.kind = TOOL
        span.has_messages = False
        span.conversation = _get(source, "sessionId") or span.conversation
        if span.kind == AGENT:
            span.agent = span.agent or span.name or None
        return span

    def take(self, span: TraceSpan) -> None:
        """Take the request and the response, or the call and its result."""
        source = span.source
        if span.kind == TOOL:
            self._take_use(span)
            return
        span.columns["model"] = source.text("model", *_names("providedModelName"))
        _take_usage(span)
        take_tools(span, span.attributes, "gen_ai.tool.definitions", "ai.prompt.tools")
        take_request(span, source, "input")
        take_response(span, source, "output")
        take_tools(span, source, *_names("toolDefinitions"))

    def _take_use(self, span: TraceSpan) -> None:
        source, use, attributes = span.source, span.use, span.attributes
        use.name = attributes.word("gen_ai.tool.name") or attributes.word("tool.name") or (
            span.name.removeprefix("execute_tool ").removeprefix("running tool: ")
            .removeprefix("tool.")) or None  # fmt: skip
        ids = (attributes.word(key) for key in USE["call_id"])
        use.call_id = next((name for name in ids if name), None)
        take_use(span, source, "input", "output")
        use.arguments = unwrapped(use.arguments)
        use.error = True if source.word("level") == "ERROR" else None

    def complete(self, run: TrajectoryDraft, spans: list[TraceSpan]) -> None:
        """Add what the traces say."""
        known = {span.trace for span in self.spans}
        for name in [name for name in self.traces if name not in known]:
            for trace in self.traces.pop(name):
                merge_extra(run.extra, {"other trace": plain(trace.rest())})
        for name in [name for name in self.records if name not in known]:
            run.extra.setdefault("other scores", []).extend(self.records.pop(name))
        names = dict.fromkeys(span.trace for span in spans)
        if run.columns["session_id"] is None:
            run.columns["source_id"] = next(iter(names)) or None
        for name in names:
            for trace in self.traces.pop(name, []):
                self._about(run, trace)
            for raw in self.records.pop(name, []):
                append_extra(run.extra, "scores", raw)

    def _about(self, run: TrajectoryDraft, trace: SourceObject) -> None:
        tags = trace.values.get("tags")
        words = jsontext.decode_value(tags) if begins(tags, BRACKET) else []
        if words and all(isinstance(it, str) for it in words) and "tags" not in run.columns:
            run.columns["tags"] = words
            trace.drop("tags")
        merge_extra(run.extra, {"trace": plain(trace.rest())})


def _get(source: SourceObject, key: str) -> str:
    return next((source.word(name) for name in _names(key) if source.word(name)), "")


def _take_usage(span: TraceSpan) -> None:
    source, columns = span.source, span.columns
    keys = (*_names("usageDetails"), "usage")
    key = next((key for key in keys if len(source.values.get(key, b"")) > 2), "")
    inner = unwrapped(source.values.get(key))
    if begins(inner, BRACE):
        source.drop(key)
        record = SourceObject(inner, f"{source.path}.{key}", source.losses)
        columns["usage"] = jsontext.one_line(inner)
        set_usage(record, columns, _USAGE)
        apart = (columns.get("tokens_cached") or 0) + (columns.get("tokens_cache_write") or 0)
        plainly = (columns.get("tokens_in") or 0) + (columns.get("tokens_out") or 0)
        if apart and "tokens_in" in columns and record.integer_at("total") == plainly + apart:
            columns["tokens_in"] += apart
    for column, names in _COUNTS.items():
        numbers = [source.integer_at(name) for name in names]
        if column not in columns and any(numbers):
            columns[column] = max(number or 0 for number in numbers)
    costs = next((it for it in _names("costDetails") if it in source), "")
    record = SourceObject(unwrapped(source.values.get(costs)), source.path, source.losses)
    totals = ("totalCost", "calculatedTotalCost", "total_cost")
    set_cost(span, record.values.get("total"), *(source.values.get(key) for key in totals))


class LangfuseReader(SpanReader):
    """The format ``langfuse``."""

    name = "langfuse"
    title = "Traces of Langfuse"
    log = LangfuseLog
    recognised = "a trace with observations, or an observation with a traceId and a type"
    versions = "traces of its API and screens, and rows of its exports"

    def sniff(self, record: Mapping[str, Raw]) -> Match:
        """Traces and rows of observations."""
        page = items_of(record.get("data"))
        if begins(record.get("data"), BRACKET) and page and begins(page[0], BRACE):
            return self.sniff(jsontext.decode_object(page[0]))
        row = bool({"traceId", "trace_id"} & set(record)) and word(record, "type") in _TYPES
        if row and bool({"startTime", "start_time"} & set(record)):
            return Match.STAMP
        observations = record.get("observations")
        if observations is None or jsontext.first_byte(observations) != BRACKET:
            return Match.NO
        known = {"trace", "traces", "sessionId", "userId", "timestamp"} & set(record)
        return Match.STAMP if known and b'"trace' in bytes(observations) else Match.NO


CONVERTER = LangfuseReader()
