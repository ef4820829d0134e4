"""Runs of LangSmith: rows of its exports, and the posts and patches that its clients send."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from msgspec import Raw

from adp.converters.exchanges.langchain_messages import role_of
from adp.converters.kit.drafts import TrajectoryDraft
from adp.converters.kit.lines import log_lines
from adp.converters.kit.session import word
from adp.converters.kit.source_object import SourceObject
from adp.converters.kit.usage import set_usage
from adp.converters.reading import BRACE, BRACKET, NULL, begins
from adp.converters.spans.blocks import items_of, opened, unwrapped
from adp.converters.spans.payloads import (
    LANGCHAIN,
    set_cost,
    take_request,
    take_response,
    take_tools,
    take_use,
)
from adp.converters.spans.runs import SpanLog, SpanReader
from adp.converters.spans.tree import AGENT, EVENT, LLM, TOOL, TraceSpan, take_id, take_times
from adp_schema import jsontext
from adp_schema.errors import RecordError
from adp_schema.losses import Losses
from adp_schema.protocols import Match, RawRecord

_TYPES = {
    "llm": LLM, "chat_model": LLM, "tool": TOOL,
    **dict.fromkeys(("chain", "retriever", "prompt", "parser", "embedding"), EVENT),
}  # fmt: skip
_THREADS = ("thread_id", "session_id", "conversation_id")


class LangsmithLog(SpanLog):
    """The runs of one file."""

    constants: ClassVar[tuple[str, ...]] = ("trace_id", "session_name", "session_id")

    def lines(self, record: RawRecord) -> list[TraceSpan]:
        """The runs of all lines; what a patch says is added to the run that was posted."""
        runs: dict[str, SourceObject] = {}
        for number, (source, broken) in enumerate(log_lines(record, self.builder, self.losses)):
            posts, patches = source.objects("post"), source.objects("patch")
            for post, patch in zip(posts, patches, strict=False):
                if "id" not in patch and len(posts) == len(patches) and "id" in post:
                    patch.values["id"] = post.values["id"]
            listed = [*posts, *patches, *source.objects("runs")]
            if broken:
                self.left.append(("line", broken))
            elif listed:
                for run in listed:
                    _add(runs, run, f"#{number}")
                self.left.extend(source.rest().items())
            elif source.word("run_type"):
                _add(runs, source, f"#{number}")
            else:
                self.left.extend(source.rest().items())
        if not runs:
            raise RecordError("the record holds no run")
        return [self.span(run) for run in runs.values()]

    def span(self, source: SourceObject) -> TraceSpan:
        """A run."""
        extra = source.parsed("extra")
        metadata = extra.child("metadata")
        name, kind = take_id(source, "id"), source.word("run_type")
        parent = source.word("parent_run_id") or source.word("parent_id") or None
        times = take_times(source, ("start_time",), ("end_time",))
        trace = source.word("trace_id") or name
        span = TraceSpan(source, metadata, name, trace, parent, source.word("name"), **times)
        stats = SourceObject(source.values.get("feedback_stats"), source.path, self.losses)
        for feedback, raw in stats.values.items():
            value = SourceObject(raw, source.path, self.losses).values.get("avg")
            self.score(trace, feedback, value)
        if kind not in _TYPES:
            self.losses.unknown(f"run type {kind}")
        span.kind = _TYPES.get(kind, EVENT)
        if kind == "chain" and parent is None and _messages(source):
            span.kind, span.has_messages = AGENT, True  # a graph, whose state is the whole run
        span.conversation = next(
            (metadata.word(key) for key in _THREADS if metadata.word(key)), None
        )
        return span

    def take(self, span: TraceSpan) -> None:
        """Take the inputs and outputs of a model or of a tool."""
        source = span.source
        failed = source.first("error") not in (0, NULL)
        if span.kind == TOOL:
            self._take_use(span)
            span.use.error = True if failed else span.use.error
            return
        if source.word("run_type") == "chain":
            *span.prompt, last = _messages(source)
            span.answers = [[last]]
            source.parsed("outputs").drop("messages")
            return
        settings = source.parsed("extra").child("invocation_params")
        span.columns["model"] = span.attributes.word("ls_model_name") or settings.word("model") or (
            settings.word("model_name")) or None  # fmt: skip
        take_tools(span, settings, "tools")
        outputs = source.parsed("outputs")
        usage = outputs.json_object("usage_metadata")
        if usage is not None:
            span.columns["usage"] = usage
            record = SourceObject(Raw(usage.encode()), "usage", self.losses)
            set_usage(record, span.columns, LANGCHAIN)
        for column, key in (("tokens_in", "prompt_tokens"), ("tokens_out", "completion_tokens")):
            if span.columns.get(column) is None:
                span.columns[column] = source.integer_at(key)
        set_cost(span, source.values.get("total_cost"))
        if "outputs" not in source and outputs:
            source.adopt("outputs", SourceObject(None, "$", self.losses))
            source.values["outputs"] = Raw(jsontext.encode(outputs.rest()))
        take_request(span, source, "inputs")
        take_response(span, source, "outputs")

    def _take_use(self, span: TraceSpan) -> None:
        source, use = span.source, span.use
        use.name = span.name or None
        take_use(span, source, "inputs", "outputs")
        use.arguments = _alone(use.arguments, "input", self.losses)
        result = _alone(use.result, "output", self.losses)
        if result is not None and result is not use.result:
            source.values["outputs"] = result
            take_use(span, source, "", "outputs")

    def complete(self, run: TrajectoryDraft, spans: list[TraceSpan]) -> None:
        """Say what the outermost run says of the whole."""
        root = ([it for it in spans if it.above is None] or spans)[-1]
        if error := root.source.word("error"):
            run.columns["error_type"], run.columns["error_message"] = "error", error
        run.columns["task_id"] = root.source.word("reference_example_id") or None
        if root.kind != LLM:
            run.columns["total_tokens_in"] = root.source.integer_at("prompt_tokens")
            run.columns["total_tokens_out"] = root.source.integer_at("completion_tokens")


def _messages(source: SourceObject) -> list[Raw]:
    """The messages that a run gave, the last one by the model; none for any other run."""
    raw = unwrapped(source.values.get("outputs"))
    outputs = SourceObject(raw, source.path, source.losses)
    messages = items_of(outputs.values.get("messages"))
    last = opened(SourceObject(messages[-1], "$", source.losses)) if messages else outputs
    spoken = last.word("role") or role_of(last.word("type"))
    listed = begins(outputs.values.get("messages"), BRACKET)
    return messages if listed and spoken in ("assistant", "ai") else []


def _alone(raw: Raw | None, key: str, losses: Losses) -> Raw | None:
    """The value under the only key of an object, where that is what it is called."""
    source = SourceObject(unwrapped(raw), "$", losses)
    return source.take(key) if set(source.values) == {key} else raw


def _add(
    runs: dict[str, SourceObject], run: SourceObject, name: str, above: SourceObject | None = None
) -> None:
    """Add a run with those inside it."""
    children = run.objects("child_runs")
    run_id = run.word("id") or name
    if above is not None:
        outer = above.values.get("id")
        ids = {"parent_run_id": outer, "trace_id": above.values.get("trace_id", outer)}
        run.values |= {key: raw for key, raw in ids.items() if raw is not None and key not in run}
    for number, child in enumerate(children):
        _add(runs, child, f"{name}.{number}", run)
    _merge(runs, run_id, run)


def _merge(runs: dict[str, SourceObject], name: str, run: SourceObject) -> None:
    """Add a run, or what a patch says about it."""
    first = runs.setdefault(name, run)
    if first is run:
        return
    for key, raw in run.values.items():
        known = first.values.get(key)
        if (
            known is not None
            and bytes(known) != bytes(raw)
            and bytes(known) not in (b"{}", b"null")
        ):
            first.values[f"posted {key}"] = known
        if bytes(raw) != b"null" or known is None:
            first.values[key] = raw


class LangsmithReader(SpanReader):
    """The format ``langsmith``."""

    name = "langsmith"
    title = "Runs of LangSmith"
    log = LangsmithLog
    recognised = "a run_type beside inputs or a trace_id, or a list of posts of such runs"
    versions = "runs of its exports, and the batches of its clients"

    def sniff(self, record: Mapping[str, Raw]) -> Match:
        """Runs, and batches of them."""
        if word(record, "run_type") in _TYPES:
            known = {"trace_id", "dotted_order", "parent_run_id", "session_name"} & set(record)
            return Match.STAMP if known else Match.NO
        for key in ("post", "patch"):
            raw = record.get(key)
            if raw is not None and jsontext.first_byte(raw) == BRACKET:
                items = jsontext.decode_array(raw)
                if items and jsontext.first_byte(items[0]) == BRACE:
                    known = {"run_type", "dotted_order"} & set(jsontext.decode_object(items[0]))
                    return Match.STAMP if known else Match.NO
        return Match.NO


CONVERTER = LangsmithReader()
