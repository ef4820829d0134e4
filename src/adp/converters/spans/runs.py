"""The spans of a record, sorted into conversations, agents and their subagents."""

from __future__ import annotations

from typing import Any, ClassVar

from msgspec import Raw

from adp.converters.format import Format
from adp.converters.kit.drafts import StepDraft, TrajectoryDraft, emit, merge_extra
from adp.converters.kit.times import number_time
from adp.converters.reading import NUMBER, tools_text
from adp.converters.spans.blocks import items_of, plain, unwrapped
from adp.converters.spans.trajectories import AgentRun
from adp.converters.spans.tree import AGENT, LLM, TOOL, TraceSpan, link, owners, settle
from adp_schema import jsontext
from adp_schema.builder import RowBuilder
from adp_schema.errors import RecordError
from adp_schema.losses import Losses
from adp_schema.protocols import RawRecord


class SpanLog:
    """Spans of a record while they become trajectories. A format subclasses it.

    The spans of all traces of one conversation are one trajectory; a trace without a conversation
    is one by itself.

    Attributes:
        constants: keys of spans, and of their attributes, that are mostly the same in all of them.
        left: what stands beside the spans; the first trajectory keeps it.
        scores: name -> score, by trace; they are the rewards of its trajectory.
    """

    constants: ClassVar[tuple[str, ...]] = ()

    def __init__(self, builder: RowBuilder, losses: Losses) -> None:
        self.builder = builder
        self.losses = losses
        self.left: list[tuple[str, Any]] = []
        self.scores: dict[str, dict[str, Raw]] = {}

    def lines(self, record: RawRecord) -> list[TraceSpan]:
        """The spans of a record.

        Raises:
            RecordError: there is none.
        """
        raise NotImplementedError

    def score(self, trace: str, name: str, value: Raw | None) -> None:
        """Note a score, if it is a number; the first of a name counts."""
        if value is not None and jsontext.first_byte(value) in NUMBER:
            self.scores.setdefault(trace, {}).setdefault(name, value)

    def take(self, span: TraceSpan) -> None:
        """Take from a span of a model or a tool what it says; what is left becomes ``extra``."""

    def instruction(self, span: TraceSpan) -> str | None:
        """Take what a user said from a span that is neither of a model nor of a tool."""
        return None

    def complete(self, run: TrajectoryDraft, spans: list[TraceSpan]) -> None:
        """Add what a format says about a whole trajectory."""

    def read(self, spans: list[TraceSpan]) -> None:
        """Write the trajectories.

        Raises:
            RecordError: there is no span.
        """
        if not spans:
            raise RecordError("the record holds no span")
        ordered = link(spans)
        settle(ordered)
        heads = owners(ordered)
        for members in _conversations(ordered):
            run = self._run(members, heads)
            for key, value in self.left:
                merge_extra(run.extra, {key: value})
            self.left = []
            rewards: dict[str, Raw] = {}
            for trace in dict.fromkeys(span.trace for span in members):
                rewards = self.scores.get(trace, {}) | rewards
            if rewards:
                run.columns["rewards"] = jsontext.text_of(rewards)
            self.complete(run, members)
            emit(run, self.builder)

    def _run(self, spans: list[TraceSpan], heads: dict[int, TraceSpan | None]) -> TrajectoryDraft:
        run = TrajectoryDraft()
        conversation = next((it.conversation for it in spans if it.conversation), None)
        run.columns["source_id"] = conversation or spans[0].trace or None
        run.columns["session_id"] = conversation
        _set_times(run, spans)
        _set_error(run, spans)
        agents = [it.agent for it in spans if it.agent and heads[id(it)] is None]
        run.columns["agent_name"] = agents[0] if agents else None
        models = [it.attributes.word("gen_ai.request.model") for it in spans if it.kind == AGENT]
        run.columns["agent_model"] = next((model for model in models if model), None)
        scopes: dict[int | None, AgentRun] = {None: AgentRun(run, self.builder, self.losses)}
        places: dict[int, tuple[AgentRun, StepDraft, int]] = {}
        for span in spans:
            scope = self._scope(heads[id(span)], heads, scopes, places)
            self._share(span, run)
            if span.kind == LLM:
                self.take(span)
                step = scope.turn(span)
                merge_extra(step.extra, span.source.rest())
                self._about_model(scope, step, span)
            elif span.kind == TOOL:
                self.take(span)
                step, call = scope.tool(span)
                places[id(span)] = scope, step, call
            else:
                step = scope.event(span, self.instruction(span))
            places.setdefault(id(span), (scope, step, -1))
        for scope in scopes.values():
            _set_tools(scope)
        return run

    def _scope(
        self,
        head: TraceSpan | None,
        heads: dict[int, TraceSpan | None],
        scopes: dict[int | None, AgentRun],
        places: dict[int, tuple[AgentRun, StepDraft, int]],
    ) -> AgentRun:
        """The scope of the agent that a span belongs to; of a subagent, a branch and a link."""
        known = scopes.get(None if head is None else id(head))
        if known is not None or head is None:
            return known or scopes[None]
        above = head.above
        outer_head = heads[id(head)] if head.kind == TOOL else (
            None if above is None else heads[id(above)])  # fmt: skip
        outer = self._scope(outer_head, heads, scopes, places)
        run = TrajectoryDraft(keeps=0, kind="subagent")
        agent = next((it.agent for it in head.below if it.kind == AGENT), None) or head.agent
        run.columns |= {"source_id": head.span_id or None, "agent_name": agent or head.name}
        run.columns["session_id"] = outer.run.columns.get("session_id")
        outer.run.branches.append(run)
        tool: TraceSpan | None = head
        while tool is not None and id(tool) not in places:
            tool = tool.above
        if tool is not None:
            _, step, call = places[id(tool)]
            called = {} if call < 0 else {"call": call}
            outer.run.link("subagent", step, target_id=head.span_id or None, **called)
        scope = scopes[id(head)] = AgentRun(run, self.builder, self.losses)
        return scope

    def _about_model(self, scope: AgentRun, step: StepDraft, span: TraceSpan) -> None:
        run = scope.active.run
        model = step.columns.get("model")
        if model is not None:
            run.columns["agent_model"] = scope.run.columns["agent_model"] = model
        if span.tools is not None:
            offered = [bytes(it) for it in items_of(span.tools)]
            known = {bytes(it) for it in scope.reader.tools}
            if not scope.reader.tools:
                scope.reader.tools.extend(items_of(span.tools))
            elif any(it not in known for it in offered) or len(offered) != len(known):
                step.extra["tools"] = span.tools

    def _share(self, span: TraceSpan, run: TrajectoryDraft) -> None:
        """Keep what spans have in common with the trajectory, and else with the span."""
        for key, value in span.shared.items():
            first = run.extra.setdefault(key, value)
            if bytes(first) != bytes(value):
                span.source.values[f"span {key}"] = value
        run.constant(span.source, *self.constants)
        run.constant(span.attributes, *self.constants)


class SpanReader(Format):
    """A format of spans: a file is one record, whose spans may be in any order.

    Attributes:
        log: what reads a record.
    """

    container = "session"
    gathers_rows = True
    log: type[SpanLog]

    def read(self, record: RawRecord, builder: RowBuilder, losses: Losses) -> None:
        """Read the spans of a file."""
        log = self.log(builder, losses)
        log.read(log.lines(record))


def _conversations(spans: list[TraceSpan]) -> list[list[TraceSpan]]:
    """The spans of each conversation, in the order of their beginnings."""
    of_trace: dict[str, str] = {}
    for span in sorted(spans, key=lambda it: (it.depth, it.order())):
        if span.conversation:
            of_trace.setdefault(span.trace, span.conversation)
    out: dict[tuple[bool, str], list[TraceSpan]] = {}
    for span in spans:
        name = of_trace.get(span.trace)
        out.setdefault((name is None, name or span.trace), []).append(span)
    return list(out.values())


def _set_times(run: TrajectoryDraft, spans: list[TraceSpan]) -> None:
    starts = [it.start for it in spans if it.start is not None]
    ends = [it.end for it in spans if it.end is not None]
    if starts:
        run.columns["started_at"] = number_time(str(min(starts)))
        run.columns["time_zone_known"] = True
    if ends:
        run.columns["ended_at"] = number_time(str(max(ends)))


def _set_error(run: TrajectoryDraft, spans: list[TraceSpan]) -> None:
    """The error of the outermost span that ended last."""
    roots = [it for it in spans if it.above is None and it.failed()]
    if roots and roots[-1] is [it for it in spans if it.above is None][-1]:
        status = roots[-1].source.child("status")
        message = status.word("message") or roots[-1].source.word("statusMessage")
        run.columns["error_message"] = message or None
        run.columns["error_type"] = roots[-1].attributes.word("error.type") or "error"


def _set_tools(scope: AgentRun) -> None:
    """The definitions of tools, as a list in OpenAI's style where they are objects."""
    if not scope.reader.tools:
        return
    inner = [unwrapped(it) for it in scope.reader.tools]
    scope.run.columns["tools"] = tools_text(plain(inner))
    scope.run.columns["tools_origin"] = "recorded"
    for branch in scope.run.branches:
        if branch.kind == "alternate":
            branch.columns.setdefault("tools", scope.run.columns["tools"])
            branch.columns.setdefault("tools_origin", "recorded")
