"""Sessions of Kimi Code: ``agents/<id>/wire.jsonl``, the records of one agent of a session.

The events of a step of the loop have its id: they become one step of the agent. Call ids repeat
from turn to turn. ``turn.prompt`` says what the message after it says. Source: protocol 1.4.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from msgspec import Raw

from adp.converters.kit.blocks import call_columns
from adp.converters.kit.drafts import StepDraft, merge_extra
from adp.converters.kit.repeats import Repeats
from adp.converters.kit.session import LogReader, SessionLog, word
from adp.converters.kit.source_object import SourceObject
from adp.converters.kit.times import take_end, take_start, take_time
from adp.converters.kit.usage import UsageKeys, take_usage
from adp.converters.reading import BRACE
from adp_schema import jsontext
from adp_schema.builder import RowBuilder
from adp_schema.losses import Losses
from adp_schema.protocols import Match, RawRecord

USAGE = UsageKeys(
    prompt=("inputOther",),
    written=("output",),
    cached=("inputCacheRead",),
    cache_write=("inputCacheCreation",),
    apart=True,
)
_STAMPS = frozenset(
    {"context.append_loop_event", "context.append_message", "llm.tools_snapshot", "llm.request",
     "context.apply_compaction", "tools.set_active_tools"}
)  # fmt: skip


class KimiSession(SessionLog):
    """The records of one agent."""

    agent: ClassVar[str | None] = "kimi-code"
    time_keys: ClassVar[tuple[str, ...]] = ("time",)
    handlers: ClassVar[Mapping[str, str]] = {
        "metadata": "metadata",
        "config.update": "config",
        "profile.bind": "config",
        "context.append_message": "message",
        "context.append_loop_event": "loop_event",
        "context.apply_compaction": "compaction",
        "context.clear": "clear",
        "context.undo": "undo",
        "llm.tools_snapshot": "tools",
        "turn.prompt": "prompt",
        "turn.steer": "prompt",
        "turn.ended": "turn_end",
        "usage.record": "usage_record",
    }
    kept: ClassVar[frozenset[str]] = frozenset(
        {"llm.request", "turn.cancel", "turn.started", "turn.step.started", "turn.step.completed",
         "turn.step.retrying", "tools.set_active_tools", "tools.update_store",
         "mcp.tools_discovered", "context.update_token_count", "permission.set_mode",
         "permission.record_approval_result", "plugin.session_start", "runtime.set_binding",
         "token_counting.measured", "token_counting.turn_recorded", "full_compaction.begin",
         "full_compaction.cancel", "full_compaction.complete", "micro_compaction.apply",
         "goal.create", "goal.update", "goal.clear", "plan_mode.enter", "plan_mode.cancel",
         "plan_mode.exit", "plan.revision", "task.started", "task.terminated", "skill.activate",
         "cron.add", "cron.cursor", "cron.delete", "file_history.checkpoint",
         "file_history.tracked", "forked", "interaction.request", "interaction.resolve",
         "staleGuard.cleared", "swarm_mode.enter", "swarm_mode.exit"}
    )  # fmt: skip

    def __init__(self, record: RawRecord, builder: RowBuilder, losses: Losses) -> None:
        super().__init__(record, builder, losses)
        self._model: str | None = None
        self._effort: str | None = None
        self._system: str | None = None
        self._steps: dict[str, StepDraft] = {}
        self._latest: StepDraft | None = None
        self._prompts: list[tuple[StepDraft, Raw]] = []
        self._repeats = Repeats()
        self._kind = ""
        self._take_path()

    def _take_path(self) -> None:
        """Take the session and the agent from the path, which alone says them."""
        folders = self.record.source_file.split("/")
        if len(folders) > 3 and folders[-3] == "agents":
            session, agent = folders[-4], folders[-2]
            self.run.columns["session_id"] = session
            self.run.columns["source_id"] = session if agent == "main" else f"{session}/{agent}"
            if agent != "main":
                self.run.link("subagent", target_id=session, extra='{"target":"parent"}')

    def read_lines(self) -> None:
        """Take the state of the session, which lies beside its agents."""
        super().read_lines()
        for path, data in self.record.side_files.items():
            if not jsontext.is_valid(data):
                self.losses.add(f"$side.{path}", "the file is no JSON")
            elif state := SourceObject(data, "$", self.losses):
                take_end(state, self.run.columns, "updatedAt")
                self.run.extra["state"] = state.rest()

    def line(self, source: SourceObject) -> None:
        """Take one record; the id of the agent stands with the trajectory."""
        self._kind = source.word("type")
        self.run.constant(source, "agentId")
        super().line(source)

    def other(self, source: SourceObject) -> None:
        """Keep a record that is no message, and only what of it is new."""
        step = self.run.step("environment", "event", visibility="none")
        take_time(source, step.columns, "time")
        kind = source.word("type")
        if kind:
            source.drop("type")
            step.extra["type"] = kind
        self._repeats.drop(kind, source, step.extra)
        step.extra.update(source.rest())

    def _keep(self, source: SourceObject) -> StepDraft:
        source.values["type"] = jsontext.raw(jsontext.text_of(self._kind))
        self.other(source)
        return self.run.steps[-1]

    def metadata(self, source: SourceObject) -> None:
        """The header."""
        if "source_version" in self.run.columns:
            self._keep(source)
            return
        self.run.columns["source_version"] = source.name("protocol_version")
        take_start(source, self.run.columns, "created_at")
        self.run.extra.update(source.rest())

    def config(self, source: SourceObject) -> None:
        """The model, its effort, and the system prompt."""
        self._model = source.word("modelAlias") or self._model
        self._effort = source.word("thinkingEffort") or self._effort
        if self._model:
            self.run.columns["agent_model"] = self._model
        prompt = source.word("systemPrompt")
        if prompt and prompt != self._system:
            self._system = source.text("systemPrompt")
            step = self.run.step("system", text=self.builder.text(prompt))
            merge_extra(step.extra, {"type": "systemPrompt"})
        elif prompt:
            source.drop("systemPrompt")
        self._keep(source)

    def tools(self, source: SourceObject) -> None:
        """The tools on offer."""
        if "tools" not in self.run.columns and source.first("tools") == 0x5B:
            self.run.columns["tools"] = source.json("tools")
            self.run.columns["tools_origin"] = "recorded"
        self._keep(source)

    def prompt(self, source: SourceObject) -> None:
        """What the user has typed: the message that the model gets follows."""
        raw = source.take("input")
        step = self._keep(source)
        if raw is not None:
            self._prompts.append((step, raw))

    def message(self, source: SourceObject) -> None:
        """A message that was added to the context."""
        message = source.child("message")
        role = message.word("role")
        content = message.values.get("content")
        match = next((it for it in self._prompts if content is not None
                      and bytes(it[1]) == bytes(content)), None)  # fmt: skip
        if match is not None:
            self._prompts.remove(match)
        if role == "tool":
            self._tool_message(source, message)
            return
        agent = role == "assistant"
        speaker = "agent" if agent else ("system" if role == "system" else "user")
        step = self.run.step(speaker, "llm_turn" if agent else "message")
        take_time(source, step.columns, "time")
        if role in ("assistant", "user", "system"):
            message.drop("role")
        self.blocks.content(message.take("content"), step, f"{source.path}.message.content")
        for call in message.objects("toolCalls"):
            function = call.child("function") or call
            columns = call_columns(function.text("name"), call.name("id", "toolCallId"),
                                   function.take("arguments") or function.take("args"))  # fmt: skip
            step.call(columns, call.rest())
        origin = message.child("origin")
        if speaker == "user" and origin.word("kind") not in ("", "user"):
            step.columns["synthetic"] = True
        step.extra.update(source.rest())

    def _tool_message(self, source: SourceObject, message: SourceObject) -> None:
        answers = message.name("toolCallId", "tool_call_id")
        draft = self.run.observe({"is_error": message.flag("isError")}, answers=answers,
                                 by_order=True)  # fmt: skip
        take_time(source, draft.columns, "time")
        message.drop("role")
        self.blocks.result(message.take("content"), draft, f"{source.path}.message.content")
        draft.extra = source.rest()

    def loop_event(self, source: SourceObject) -> None:
        """An event of a step of the loop."""
        event = source.child("event")
        kind = event.word("type")
        method = {"step.begin": self._begin, "content.part": self._part, "tool.call": self._call,
                  "tool.result": self._result, "step.end": self._end}.get(kind)  # fmt: skip
        if method is None:
            self.losses.unknown(f"loop event {kind or 'without a type'}")
            self._keep(source)
            return
        event.drop("type")
        method(source, event)

    def _step(self, source: SourceObject, event: SourceObject, key: str = "stepUuid") -> StepDraft:
        """The step that an event belongs to; one that was not begun begins here."""
        name = event.word(key)
        step = self._steps.get(name)
        if step is None:
            step = self.run.step("agent", "llm_turn", model=self._model, native_id=name or None)
            step.columns["reasoning_effort"] = self._effort
            held = SourceObject(None, source.path, self.losses)
            held.values = dict(source.values)
            take_time(held, step.columns, "time")
            self._steps[name] = step
        self._latest = step
        if name:
            event.drop(key)
        for number in ("turnId", "step"):
            raw = event.values.get(number)
            if raw is not None and bytes(raw) == bytes(step.extra.setdefault(number, raw)):
                event.drop(number)
        return step

    def _begin(self, source: SourceObject, event: SourceObject) -> None:
        name = event.word("uuid")
        self._steps.pop(name, None)
        step = self._step(source, event, "uuid")
        source.drop("time") if "timestamp" in step.columns else None
        merge_extra(step.extra, source.rest())

    def _part(self, source: SourceObject, event: SourceObject) -> None:
        step = self._step(source, event)
        if event.first("part") == BRACE:
            self.blocks.block(event.child("part"), step)
        else:
            self.blocks.content(event.take("part"), step, f"{source.path}.event.part")
        self._events(step, "content.part", source)

    def _events(self, step: StepDraft, kind: str, source: SourceObject) -> None:
        rest = source.rest()
        if isinstance(inner := rest.get("event"), dict) and isinstance(inner.get("part"), dict):
            del inner["part"]
        step.extra.setdefault("events", []).append({"type": kind, **rest})

    def _call(self, source: SourceObject, event: SourceObject) -> None:
        step = self._step(source, event)
        name, call_id = event.text("name"), event.name("toolCallId")
        if event.word("uuid") == call_id:
            event.drop("uuid")
        step.call(call_columns(name, call_id, event.take("args")), source.rest())

    def _result(self, source: SourceObject, event: SourceObject) -> None:
        answers = event.name("toolCallId")
        if event.word("parentUuid") == answers:
            event.drop("parentUuid")
        result = event.child("result")
        draft = self.run.observe({}, answers=answers, by_order=True)
        take_time(source, draft.columns, "time")
        draft.columns["is_error"] = result.flag("isError")
        raw = result.take("output") if result else event.take("result")
        self.blocks.result(raw, draft, f"{source.path}.event.result")
        draft.extra = source.rest()

    def _end(self, source: SourceObject, event: SourceObject) -> None:
        step = self._step(source, event, "uuid")
        take_usage(event, "usage", step.columns, USAGE)
        step.columns["stop_reason"] = event.text("finishReason")
        step.columns["response_id"] = event.text("messageId")
        step.columns["duration_ms"] = event.number("llmStreamDurationMs")
        self._events(step, "step.end", source)

    def usage_record(self, source: SourceObject) -> None:
        """Usage that the end of the step has said already, or a whole that has no step."""
        if self._latest is None:
            self._keep(source)
        else:
            merge_extra(self._latest.extra, {"usage.record": source.rest()})

    def compaction(self, source: SourceObject) -> None:
        """The context was replaced by a summary and the messages at its end."""
        step = self._edit(source, "replace")
        step.columns["edit_summary"] = source.text("summary")
        step.extra.update({"type": "context.apply_compaction", **source.rest()})

    def clear(self, source: SourceObject) -> None:
        """The context was emptied."""
        step = self._edit(source, "truncate")
        step.extra.update({"type": "context.clear", **source.rest()})

    def undo(self, source: SourceObject) -> None:
        """The last prompts, and what followed them, were taken back."""
        count = source.integer_at("count") or 0
        prompts = [
            step
            for step in self.run.steps
            if step.columns["source"] == "user" and not step.columns.get("synthetic")
        ]
        step = self._edit(source, "truncate")
        if 0 < count <= len(prompts):
            step.columns["edit_from"] = self.run.steps[0]
            step.columns["edit_to"] = prompts[-count]
        step.extra.update({"type": "context.undo", **source.rest()})

    def _edit(self, source: SourceObject, boundary: str) -> StepDraft:
        step = self.run.step("system", "context_edit", edit_boundary=boundary)
        take_time(source, step.columns, "time")
        return step

    def turn_end(self, source: SourceObject) -> None:
        """The end of a turn of the user."""
        self.run.columns["stop_reason"] = source.word("reason") or None
        self._keep(source)

    def finish(self) -> None:
        """A prompt that no message repeats says itself what the user has typed."""
        for step, raw in self._prompts:
            step.columns.update(source="user", kind="message", visibility="user")
            self.blocks.content(raw, step, "$")


class KimiReader(LogReader):
    """The format ``kimi_code``."""

    name = "kimi_code"
    title = "Sessions of Kimi Code (wire.jsonl)"
    recognised = "a header with a protocol_version, or a record type of its own"
    versions = "reads protocol 1.4"
    log = KimiSession

    def side_files(self, source_file: str) -> tuple[str, ...]:
        """The state of the session goes with its main agent."""
        folder, agents, _ = source_file.rpartition("agents/main/")
        return (f"{folder}state.json",) if agents else ()

    def sniff(self, record: Mapping[str, Raw]) -> Match:
        """The header, and the names of the records of the context and the model."""
        kind = word(record, "type")
        header = kind == "metadata" and {"protocol_version", "created_at"} <= set(record)
        return Match.STAMP if header or kind in _STAMPS else Match.NO


CONVERTER = KimiReader()
