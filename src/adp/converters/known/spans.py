"""Traces of observability tools: spans and runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from adp.converters.known.head import Head
from adp.converters.known.signature import (
    KnownFormat,
    Row,
    first,
    has,
    inner,
    is_text,
    items,
    text,
)

_LANGFUSE = {
    *("SPAN", "GENERATION", "EVENT", "AGENT", "TOOL", "CHAIN", "RETRIEVER", "EVALUATOR"),
    *("EMBEDDING", "GUARDRAIL"),
}


def _spans(row: Row) -> Iterator[Row]:
    """The spans of an OTLP export."""
    for resource in items(row, "resourceSpans"):
        for scope in items(resource, "scopeSpans") + items(resource, "instrumentationLibrarySpans"):
            yield from items(scope, "spans")


def _attributes(head: Head) -> frozenset[str] | None:
    """The attribute names of the spans of a file; None when it holds no spans."""
    result: set[str] = set()
    seen = False
    for row in head.rows:
        if "resourceSpans" in row:
            seen = True
            for span in _spans(row):
                result.update(str(item.get("key")) for item in items(span, "attributes"))
        elif "spanContext" in row or has(row, "context", "span_kind", "attributes"):
            seen = True
            result.update(inner(row, "attributes"))
    return frozenset(result) if seen else None


def _dialect(names: frozenset[str]) -> str:
    """Which convention the attributes follow; some exporters write two, the own one counts."""
    if any(name.startswith("openinference.") for name in names):
        return "openinference"
    if any(name.startswith(("ai.operationId", "ai.prompt", "ai.toolCall")) for name in names):
        return "vercel"
    if any(name.startswith("traceloop.") for name in names):
        return "openllmetry"
    if any(name.startswith("gen_ai.") for name in names):
        return "genai"
    return "other"


def _spans_of(dialect: str) -> Callable[[Head], bool]:
    def test(head: Head) -> bool:
        names = _attributes(head)
        return names is not None and _dialect(names) == dialect

    return test


def _is_observation(row: Row) -> bool:
    return has(row, "traceId", "startTime") and text(row, "type") in _LANGFUSE


def _langfuse(row: Row) -> bool:
    observations: list[Any] = items(row, "observations") + items(
        inner(row, "trace"), "observations"
    )
    return _is_observation(row) or (
        ("trace" in row or "timestamp" in row) and any(map(_is_observation, observations))
    )


def _langsmith(row: Row) -> bool:
    runs = items(row, "post") + items(row, "patch") or [row]
    return has(runs[0], "run_type", "inputs") and (
        "dotted_order" in runs[0] or "trace_id" in runs[0]
    )


def _mlflow(row: Row) -> bool:
    info = inner(row, "info")
    return ("trace_id" in info or "request_id" in info) and "spans" in inner(row, "data")


def _weave(row: Row) -> bool:
    return is_text(row, "op_name", "trace_id") and has(row, "inputs", "summary")


FORMATS: tuple[KnownFormat, ...] = (
    KnownFormat("otlp_genai", "OpenTelemetry spans (GenAI)", _spans_of("genai")),
    KnownFormat(
        "otlp_openinference", "OpenTelemetry spans (OpenInference)", _spans_of("openinference")
    ),
    KnownFormat("otlp_vercel", "OpenTelemetry spans (Vercel AI SDK)", _spans_of("vercel")),
    KnownFormat("otlp_openllmetry", "OpenTelemetry spans (OpenLLMetry)", _spans_of("openllmetry")),
    KnownFormat("otlp", "OpenTelemetry spans", _spans_of("other")),
    KnownFormat("langfuse", "a Langfuse trace", first(_langfuse)),
    KnownFormat("langsmith", "LangSmith runs", first(_langsmith)),
    KnownFormat("mlflow", "an MLflow trace", first(_mlflow)),
    KnownFormat("weave", "Weave calls", first(_weave)),
)
