"""What the Cline CLI prints with ``--json``, since version 3: events of the agent.

The texts of a turn come in pieces, and whole at their end; the pieces are kept as events. A tool
begins with its input and ends with its output.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from msgspec import Raw

from adp.converters.kit.blocks import call_columns
from adp.converters.kit.drafts import StepDraft, append_extra, merge_extra
from adp.converters.kit.session import LogReader, SessionLog, inner, word
from adp.converters.kit.source_object import SourceObject
from adp.converters.kit.usage import set_totals, take_usage
from adp.converters.readers.cline_sessions import USAGE, with_results
from adp_schema import jsontext
from adp_schema.protocols import Match

_PIECES = frozenset({"content_start", "content_update", "iteration_end", "done", "notice", "usage"})


class ClinePrinted(SessionLog):
    """What one run printed."""

    agent: ClassVar[str | None] = "cline"
    handlers: ClassVar[Mapping[str, str]] = {"agent_event": "event", "run_result": "end"}
    kept: ClassVar[frozenset[str]] = frozenset({"hook_event", "run_start", "error"})
    time_keys: ClassVar[tuple[str, ...]] = ("ts",)

    def set_up(self) -> None:
        """No turn has begun."""
        self._step: StepDraft | None = None

    def event(self, source: SourceObject) -> None:
        """An event of the agent, by its type and by the type of its content."""
        event = source.child("event")
        kind, content = event.word("type"), event.word("contentType")
        if kind == "iteration_start":
            self._step = self.begin_step(source, "agent")
            merge_extra(self._step.extra, source.rest())
            return
        step = self._step
        if step is not None and kind == "usage" and "usage" not in step.columns:
            record = SourceObject(None, event.path, self.losses)
            record.values = {"usage": jsontext.raw(jsontext.text_of(event.values))}
            event.values = {}
            take_usage(record, "usage", step.columns, USAGE)
        elif step is not None and kind == "content_start" and content == "tool":
            columns = call_columns(event.text("toolName"), event.name("toolCallId"),
                                   event.take("input"))  # fmt: skip
            step.call(columns, source.rest())
            return
        elif step is not None and kind == "content_end" and content == "tool":
            self._result(source, event)
            return
        elif step is not None and kind == "content_end" and content in ("text", "reasoning"):
            text = event.text(content)
            add = step.parts.text if content == "text" else step.parts.reasoning
            if text:
                add(self.builder.text(text))
        else:
            if kind not in _PIECES:
                self.losses.unknown(f"event {kind or 'without a type'}")
            self.keep(source)
            return
        if rest := source.rest_lines():
            append_extra(step.extra, "events", rest)

    def _result(self, source: SourceObject, event: SourceObject) -> None:
        """The end of a tool."""
        draft = self.begin_result(source, event.name("toolCallId"))
        draft.columns["name"] = event.text("toolName")
        draft.columns["duration_ms"] = event.number("durationMs")
        block = {"content": event.take("output")}
        wrapped = with_results(jsontext.raw(jsontext.text_of([block])))
        (result,) = SourceObject(b'{"it":%s}' % bytes(wrapped), event.path, self.losses).objects(
            "it"
        )
        if result.flag("is_error"):
            draft.columns["is_error"] = True
        self.blocks.result(result.take("content"), draft, f"{event.path}.output")
        draft.extra.update(source.rest())

    def end(self, source: SourceObject) -> None:
        """How the run ended, and what it took."""
        columns = self.run.columns
        set_totals(source.peek("usage"), columns, USAGE)
        columns["stop_reason"] = source.word("finishReason") or None
        columns["final_answer"] = source.word("text") or None
        columns["agent_model"] = source.peek("model").word("id") or None
        self.keep(source)


class ClinePrintedReader(LogReader):
    """The format ``cline_printed``."""

    name = "cline_printed"
    title = "The output of the Cline CLI"
    recognised = "a line agent_event or hook_event with a ts, or a run_result"
    versions = "reads what cline --json prints in version 3"
    log = ClinePrinted

    def sniff(self, record: Mapping[str, Raw]) -> Match:
        """An event with the time of its line."""
        kind = word(record, "type")
        if not word(record, "ts"):
            return Match.NO
        known = (kind == "agent_event" and "type" in inner(record, "event")) or (
            kind == "hook_event" and "hookEventName" in record
        ) or (kind == "run_result" and "finishReason" in record)  # fmt: skip
        return Match.STAMP if known else Match.NO


CONVERTER = ClinePrintedReader()
