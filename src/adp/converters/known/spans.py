"""Traces of observability tools that no format reads."""

from __future__ import annotations

from adp.converters.known.signature import TEXT, KnownFormat, first, has

FORMATS: tuple[KnownFormat, ...] = (
    KnownFormat(
        "weave", "Weave calls", first(has("inputs", "summary", op_name=TEXT, trace_id=TEXT))
    ),
)
