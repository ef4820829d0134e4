"""Traces of observability tools: spans and runs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from adp.converters.known.head import Head
from adp.converters.known.signature import (
    TEXT,
    KnownFormat,
    Test,
    both,
    either,
    first,
    has,
    objects,
    some,
    word,
)

_LANGFUSE = word(
    *("SPAN", "GENERATION", "EVENT", "AGENT", "TOOL", "CHAIN", "RETRIEVER", "EVALUATOR"),
    *("EMBEDDING", "GUARDRAIL"),
)


def _spans(row: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The spans of an OTLP export."""
    for resource in objects(row.get("resourceSpans")):
        for scopes in ("scopeSpans", "instrumentationLibrarySpans"):
            for scope in objects(resource.get(scopes)):
                yield from objects(scope.get("spans"))


def _attributes(head: Head) -> frozenset[str] | None:
    """The attribute names of the spans of a file; None when it holds no spans."""
    result: set[str] = set()
    seen = False
    for row in head.rows:
        if "resourceSpans" in row:
            seen = True
            for span in _spans(row):
                result.update(str(item.get("key")) for item in objects(span.get("attributes")))
        elif "spanContext" in row or has("context", "span_kind", "attributes")(row):
            seen = True
            attributes = row.get("attributes")
            result.update(attributes if isinstance(attributes, dict) else ())
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


def _spans_of(dialect: str) -> Test:
    def test(head: Head) -> bool:
        names = _attributes(head)
        return names is not None and _dialect(names) == dialect

    return test


_OBSERVATION = has("traceId", "startTime", type=_LANGFUSE)
_OBSERVATIONS = has(observations=some(_OBSERVATION))
_LANGSMITH_RUN = both(has("run_type", "inputs"), either(has("dotted_order"), has("trace_id")))

FORMATS: tuple[KnownFormat, ...] = (
    KnownFormat("otlp_genai", "OpenTelemetry spans (GenAI)", _spans_of("genai")),
    KnownFormat(
        "otlp_openinference", "OpenTelemetry spans (OpenInference)", _spans_of("openinference")
    ),
    KnownFormat("otlp_vercel", "OpenTelemetry spans (Vercel AI SDK)", _spans_of("vercel")),
    KnownFormat("otlp_openllmetry", "OpenTelemetry spans (OpenLLMetry)", _spans_of("openllmetry")),
    KnownFormat("otlp", "OpenTelemetry spans", _spans_of("other")),
    KnownFormat(
        "langfuse",
        "a Langfuse trace",
        first(
            either(
                _OBSERVATION,
                has(trace=_OBSERVATIONS),
                both(either(has("trace"), has("timestamp")), _OBSERVATIONS),
            )
        ),
    ),
    KnownFormat(
        "langsmith",
        "LangSmith runs",
        first(
            either(
                _LANGSMITH_RUN, has(post=first(_LANGSMITH_RUN)), has(patch=first(_LANGSMITH_RUN))
            )
        ),
    ),
    KnownFormat(
        "mlflow",
        "an MLflow trace",
        first(has(info=either(has("trace_id"), has("request_id")), data=has("spans"))),
    ),
    KnownFormat(
        "weave", "Weave calls", first(has("inputs", "summary", op_name=TEXT, trace_id=TEXT))
    ),
)
