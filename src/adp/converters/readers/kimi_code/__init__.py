"""Sessions of Kimi Code: ``agents/<id>/wire.jsonl``, the records of one agent of a session.

The events of a step of the loop have its id: they become one step of the agent. Call ids repeat
from turn to turn. ``turn.prompt`` says what the message after it says. Source: protocol 1.4.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from msgspec import Raw

from adp.converters.kit.chat import SOURCES, add_call
from adp.converters.kit.drafts import StepDraft, merge_extra
from adp.converters.kit.key_tables import take_columns, take_tools
from adp.converters.kit.repeats import Repeats
from adp.converters.kit.session import LogReader, SessionLog, word
from adp.converters.kit.source_object import SourceObject
from adp.converters.kit.times import take_end
from adp.converters.readers.kimi_code.loop import LoopSteps
from adp_schema.protocols import Match

HEADER = {"source_version": "protocol_version", "started_at": "created_at"}
_STAMPS = frozenset(
    {"context.append_loop_event", "context.append_message", "llm.tools_snapshot", "llm.request",
     "context.apply_compaction", "tools.set_active_tools"}
)  # fmt: skip


class KimiSession(SessionLog):
    """The records of one agent."""

    agent: ClassVar[str | None] = "kimi-code"
    time_keys: ClassVar[tuple[str, ...]] = ("time",)
    constants: ClassVar[tuple[str, ...]] = ("agentId",)
    handlers: ClassVar[Mapping[str, str]] = {
        "metadata": "metadata",
        "config.update": "config",
        "profile.bind": "config",
        "context.append_message": "message",
        "context.append_loop_event": "loop_event",
        "context.undo": "undo",
        "llm.tools_snapshot": "tools",
        "turn.prompt": "prompt",
        "turn.steer": "prompt",
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
         "agent.message.appended", "agent.turn.started", "agent.turn.ended", "prompt.completed",
         "staleGuard.cleared", "swarm_mode.enter", "swarm_mode.exit"}
    )  # fmt: skip

    notes: ClassVar[Mapping[str, Mapping[str, str]]] = {"turn.ended": {"stop_reason": "reason"}}
    edits: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "context.apply_compaction": ("replace", "summary"),
        "context.clear": ("truncate",),
    }

    def set_up(self) -> None:
        """Take the session and the agent from the path, which alone says them."""
        self.loop = LoopSteps(self)
        self._system: str | None = None
        self._prompts: list[tuple[StepDraft, Raw]] = []
        self._repeats = Repeats()
        folders = self.record.source_file.split("/")
        if len(folders) > 3 and folders[-3] == "agents":
            session, agent = folders[-4], folders[-2]
            self.run.columns["session_id"] = session
            self.run.columns["source_id"] = session if agent == "main" else f"{session}/{agent}"
            if agent != "main":
                self.link_parent(session)

    def other(self, source: SourceObject) -> None:
        """Keep a record that is no message, and only what of it is new."""
        step = self.begin_step(source, "environment", "event")
        step.columns["visibility"] = "none"
        if kind := source.word("type"):
            source.drop("type")
            step.extra["type"] = kind
        self._repeats.drop(kind, source, step.extra)
        step.extra.update(source.rest())

    def metadata(self, source: SourceObject) -> None:
        """The header."""
        if "source_version" in self.run.columns:
            self.keep(source)
            return
        take_columns(source, self.run.columns, HEADER)
        self.run.extra.update(source.rest())

    def config(self, source: SourceObject) -> None:
        """The model, its effort, and the system prompt."""
        self.loop.model = source.word("modelAlias") or self.loop.model
        self.loop.effort = source.word("thinkingEffort") or self.loop.effort
        if self.loop.model:
            self.run.columns["agent_model"] = self.loop.model
        prompt = source.word("systemPrompt")
        if prompt and prompt != self._system:
            self._system = source.text("systemPrompt")
            step = self.run.step("system", text=self.builder.text(prompt))
            merge_extra(step.extra, {"type": "systemPrompt"})
        elif prompt:
            source.drop("systemPrompt")
        self.keep(source)

    def tools(self, source: SourceObject) -> None:
        """The tools on offer."""
        take_tools(source, self.run.columns)
        self.keep(source)

    def prompt(self, source: SourceObject) -> None:
        """What the user has typed: the message that the model gets follows."""
        raw = source.take("input")
        step = self.keep(source)
        if raw is not None:
            self._prompts.append((step, raw))

    def message(self, source: SourceObject) -> None:
        """A message that was added to the context."""
        message = source.child("message")
        role = message.word("role")
        content = message.values.get("content")
        words = b"" if content is None else bytes(content)
        for prompt in [it for it in self._prompts if bytes(it[1]) == words][:1]:
            self._prompts.remove(prompt)
        if role == "tool":
            self._tool_message(source, message)
            return
        step = self.begin_step(source, SOURCES.get(role, "user"))
        if role in ("assistant", "user", "system"):
            message.drop("role")
        self.blocks.content(message.take("content"), step, f"{source.path}.message.content")
        for call in message.objects("toolCalls"):
            add_call(call, step)
        origin = message.child("origin")
        if step.columns["source"] == "user" and origin.word("kind") not in ("", "user"):
            step.columns["synthetic"] = True
        step.extra.update(source.rest())

    def _tool_message(self, source: SourceObject, message: SourceObject) -> None:
        draft = self.begin_result(source, message.name("toolCallId", "tool_call_id"),
                                  is_error=message.flag("isError"))  # fmt: skip
        message.drop("role")
        self.blocks.result(message.take("content"), draft, f"{source.path}.message.content")
        draft.extra = source.rest()

    def usage_record(self, source: SourceObject) -> None:
        """Usage that the end of the step has said already, or a whole that has no step."""
        if self.loop.latest is None:
            self.keep(source)
        else:
            merge_extra(self.loop.latest.extra, {"usage.record": source.rest()})

    def undo(self, source: SourceObject) -> None:
        """The last prompts of the user were undone, with what followed them."""
        count = source.integer_at("count") or 0
        step = self.context_edit(source, "truncate")
        self.run.roll_back(step, count)
        step.extra.update({"type": "context.undo", **source.rest()})

    def loop_event(self, source: SourceObject) -> None:
        """An event of a step of the loop."""
        if not self.loop.read(source):
            self.keep(source)

    def finish(self) -> None:
        """Read the prompts that no message repeats, and the state beside the agents."""
        for step, raw in self._prompts:
            step.columns.update(source="user", kind="message", visibility="user")
            self.blocks.content(raw, step, "$")
        for _, state in self.side_objects():
            take_end(state, self.run.columns, "updatedAt")
            self.run.extra["state"] = state.rest()


class KimiReader(LogReader):
    """The format ``kimi_code``."""

    name = "kimi_code"
    title = "Sessions of Kimi Code (wire.jsonl)"
    recognised = "a header with a protocol_version, or a record type of its own"
    versions = "reads protocols 1.4 and 1.5"
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
