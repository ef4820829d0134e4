"""Spans, what they mean, and the tree that they make."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from msgspec import Raw

from adp.converters.kit.source_object import SourceObject
from adp.converters.kit.times import time_of
from adp.converters.reading import BRACKET, QUOTE
from adp_schema import jsontext
from adp_schema.model import Columns

LLM, TOOL, AGENT, EVENT = "llm", "tool", "agent", "event"


@dataclass(slots=True)
class SpanCall:
    """What a span of a tool says about its call.

    Attributes:
        name: the tool.
        call_id: id of the call.
        arguments: as written.
        result: as written; None when it was not recorded.
        error: whether it failed; None when unknown.
    """

    name: str | None = None
    call_id: str | None = None
    arguments: Raw | None = None
    result: Raw | None = None
    error: bool | None = None


@dataclass(eq=False)
class TraceSpan:
    """A span.

    A dialect sets ``kind``, ``conversation`` and ``agent`` when it classifies a span, which takes
    nothing from it, and the rest when it takes a model's turn or a tool from it.

    Attributes:
        source: what is left of the span.
        attributes: what is left of its attributes; the same object as ``source`` where a format
            knows no attributes.
        span_id: its id; empty when there is none.
        trace: id of its trace.
        parent: id of the span that it is part of.
        name: its name.
        start: nanoseconds since 1970; None when it has no time.
        end: the same.
        start_text: the start as written, where it was taken from the span.
        zoned: whether its times have a zone.
        kind: LLM, TOOL, AGENT or EVENT.
        conversation: id of the conversation that its trace belongs to.
        agent: name of the agent.
        has_messages: whether it holds messages, for agents whose model calls were not recorded.
        is_empty: whether it is of a model, and tells nothing of what was said.
        columns: of its step.
        prompt: messages that the model got, the system prompt first.
        answers: messages that it gave, a list for each choice; empty when not recorded.
        tools: definitions of tools.
        use: the call, of a tool.
        shared: values that many spans have in common, such as ``resource``.
        above: the span that it is part of.
        below: its parts.
        depth: number of spans above it.
    """

    source: SourceObject
    attributes: SourceObject
    span_id: str
    trace: str
    parent: str | None
    name: str
    start: int | None
    end: int | None
    start_text: str | None = None
    zoned: bool = True
    kind: str = EVENT
    conversation: str | None = None
    agent: str | None = None
    has_messages: bool = False
    is_empty: bool = False
    columns: Columns = field(default_factory=dict)
    prompt: list[Raw] = field(default_factory=list)
    answers: list[list[Raw]] = field(default_factory=list)
    tools: Raw | None = None
    use: SpanCall = field(default_factory=SpanCall)
    shared: dict[str, Raw] = field(default_factory=dict)
    above: TraceSpan | None = None
    below: list[TraceSpan] = field(default_factory=list)
    depth: int = 0

    def order(self) -> tuple[int, int, int, str, bytes]:
        """Its place in time; equal times go by depth, end and id, whatever the order in a file."""
        end = self.start if self.end is None else self.end
        values = b"".join(bytes(value) for value in self.source.values.values())
        return self.start or 0, self.depth, end or 0, self.span_id, values

    def failed(self) -> bool:
        """Whether its status says so."""
        status = self.source.values.get("status") or self.source.values.get("status_code")
        word = b"" if status is None else bytes(status).upper()
        return b"ERROR" in word or b'"CODE":2' in word.replace(b" ", b"")


def take_id(source: SourceObject, *keys: str) -> str:
    """Take the first id; one that cannot be stored as it is stays, too."""
    for key in keys:
        if name := source.word(key):
            if not jsontext.has_mark(name):
                source.drop(key)
            return name
    return ""


def nanoseconds(raw: Raw | None) -> int | None:
    """The time that a JSON value is, in nanoseconds since 1970; None for no time."""
    time, text, _ = time_of(raw)
    if time is None or (text is not None and text[-1:].isdigit() and "e" in text.lower()):
        return None
    if text is not None and text.isdigit() and len(text) > 18:
        return int(text)
    return round(time.timestamp() * 1_000_000) * 1000


def take_times(
    source: SourceObject, starts: tuple[str, ...], ends: tuple[str, ...]
) -> dict[str, Any]:
    """The fields of a span that are about time; its end stays where it is."""
    for key in starts:
        raw = _digits(source.values.get(key))
        start = nanoseconds(raw)
        if start is None:
            continue
        _, text, zoned = time_of(raw)
        if source.first(key) == QUOTE:
            text = source.word(key)
        if source.first(key) != BRACKET:
            source.drop(key)
        end = next((it for name in ends if (it := nanoseconds(_digits(source.values.get(name))))
                    is not None), None)  # fmt: skip
        return {"start": start, "end": end, "start_text": text, "zoned": zoned}
    return {"start": None, "end": None}


def _digits(raw: Raw | None) -> Raw | None:
    """A time in digits: of a string of them, or of seconds and nanoseconds apart."""
    first = 0 if raw is None else jsontext.first_byte(raw)
    if raw is None or first not in (QUOTE, BRACKET):
        return raw
    if first == QUOTE:
        text = jsontext.decode_value(raw)
        return jsontext.raw(text) if _NUMBER.fullmatch(text) else raw
    items = jsontext.decode_array(raw)
    if len(items) == 2 and all(bytes(it).isdigit() for it in items):
        whole, rest = (int(bytes(it)) for it in items)
        return jsontext.raw(str(whole * 1_000_000_000 + rest))
    return None


_NUMBER = re.compile(r"[1-9][0-9]{8,19}")


def link(spans: Iterable[TraceSpan]) -> list[TraceSpan]:
    """Join spans to a tree, and return them in the order of time.

    A span that is there twice stands under the fuller one of the two; a circle of parents is cut.
    """
    known: dict[tuple[str, str], TraceSpan] = {}
    anywhere: dict[str, TraceSpan] = {}
    by_id = sorted(spans, key=lambda it: (it.trace, it.span_id, -len(it.attributes.values),
                                          it.order()))  # fmt: skip
    for span in by_id:
        first = known.setdefault((span.trace, span.span_id), span)
        anywhere.setdefault(span.span_id, span)
        if first is not span and span.span_id:
            span.kind, span.parent = EVENT, span.span_id
    for span in by_id:
        if span.parent:
            above = known.get((span.trace, span.parent)) or anywhere.get(span.parent)
            if above is not None and not _is_below(above, span):
                span.above = above
                above.below.append(span)
    for span in by_id:
        outer = list(ancestors(span))
        span.depth = len(outer)
        span.agent = span.agent or next((it.agent for it in outer if it.agent), None)
    return sorted(by_id, key=TraceSpan.order)


def _is_below(span: TraceSpan, other: TraceSpan) -> bool:
    return span is other or any(above is other for above in ancestors(span))


def ancestors(span: TraceSpan) -> Iterable[TraceSpan]:
    """The spans above one, the nearest first."""
    above = span.above
    while above is not None:
        yield above
        above = above.above


def settle(spans: list[TraceSpan]) -> None:
    """Decide between spans that tell of the same thing.

    Of calls of models in each other the inner one counts, unless it alone tells nothing of what was
    said, as the span of a client's own has it; of tools the outer one; but a tool with calls of
    models below it is an agent, which has tools.
    """
    for span in spans:
        outer = next((it for it in ancestors(span) if it.kind != EVENT), None)
        if span.kind == LLM and outer is not None and outer.kind == LLM:
            alone = sum(it.kind == LLM for it in outer.below) == 1
            idle = span if alone and span.is_empty and not outer.is_empty else outer
            idle.kind = EVENT
    busy = {id(above) for it in spans if it.kind == LLM for above in ancestors(it)}
    for span in spans:
        outer = next((it for it in ancestors(span) if it.kind != EVENT), None)
        inside = outer is not None and outer.kind == TOOL and id(outer) not in busy
        if span.kind == TOOL and inside:
            span.kind = EVENT
    thinking = {id(above) for it in spans if it.kind == LLM for above in (it, *ancestors(it))}
    for span in reversed(spans):
        if span.kind == AGENT and span.has_messages and id(span) not in thinking:
            span.kind = LLM
            thinking.update(id(above) for above in (span, *ancestors(span)))


def owners(spans: list[TraceSpan]) -> dict[int, TraceSpan | None]:
    """The span whose own run of the model each span belongs to; None for the main one.

    A tool that has models or agents below it runs a subagent; so does an agent below another
    agent that calls a model itself.
    """
    calling = {id(_near(it)) for it in spans if it.kind == LLM}
    busy = {id(above) for it in spans if it.kind in (LLM, AGENT) for above in ancestors(it)}
    heads: dict[int, TraceSpan | None] = {}
    for span in sorted(spans, key=lambda it: it.depth):
        above = span.above
        head = None if above is None else heads.get(id(above))
        if above is not None and above.kind == TOOL and id(above) in busy:
            head = above
        if span.kind == AGENT and _is_subagent(span, calling):
            head = span
        heads[id(span)] = head
    return heads


def _near(span: TraceSpan) -> TraceSpan | None:
    return next((it for it in ancestors(span) if it.kind in (AGENT, TOOL)), None)


def _is_subagent(span: TraceSpan, calling: set[int]) -> bool:
    for above in ancestors(span):
        if above.kind == TOOL:
            return False
        if above.kind == AGENT and id(above) in calling:
            return True
    return False
