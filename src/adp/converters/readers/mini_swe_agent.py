"""Runs of mini-swe-agent: ``.traj.json`` files of versions 1 and 2, and early bare lists.

Commands are calls of ``bash``: structured ones of version 2, or the one code block of a message.
What a command printed is in ``extra.raw_output`` of the message that shows it to the model. Models
of the Responses API have whole responses in the place of messages. Sources: the code of 1.0 to 2.4.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from msgspec import Raw

from adp.converters.exchanges.apis import CHAT, ModelApis
from adp.converters.kit.chat import chat_result, chat_turn, drop_repeated
from adp.converters.kit.commands import fenced, set_status, shell_call
from adp.converters.kit.drafts import ObservationDraft, StepDraft, TrajectoryDraft, emit
from adp.converters.kit.session import LogReader, SessionLog, inner, word
from adp.converters.kit.source_object import SourceObject
from adp.converters.kit.times import take_time
from adp.converters.kit.usage import take_usage
from adp_schema import jsontext
from adp_schema.parts import Parts
from adp_schema.protocols import Match

_FENCES = ("```bash", "```mswea_bash_command", "```sh\n", "```\n")
_MARKS = ("COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT", "MINI_SWE_AGENT_FINAL_OUTPUT")
_KEYS = frozenset({"role", "content", "extra"})


class MiniSweAgentRun(SessionLog):
    """The runs of a file: documents, or one run that is a bare list of messages."""

    agent: ClassVar[str | None] = "mini-swe-agent"

    def read(self) -> None:
        """Read each document as a run, or all messages as one."""
        loose = 0
        for source, broken in self.sources():
            if broken or "messages" not in source:
                self.entry(source, broken)
                loose += 1
            else:
                main = self.run
                self._document(source)
                emit(self.run, self.builder)
                self.run = self.blocks.run = main
        if loose:
            emit(self.run, self.builder)

    def line(self, source: SourceObject) -> None:
        """A message of an early run."""
        self._message(source)

    def _document(self, source: SourceObject) -> None:
        self.run = self.blocks.run = TrajectoryDraft(columns={"agent_name": self.agent})
        columns = self.run.columns
        columns["task_id"] = columns["source_id"] = source.name("instance_id")
        columns["source_version"] = source.text("trajectory_format")
        for message in source.objects("messages"):
            self._message(message)
        self._info(source.child("info"))
        self.run.extra.update(source.rest())

    def _info(self, info: SourceObject) -> None:
        columns = self.run.columns
        set_status(info.text("exit_status"), columns)
        columns["final_answer"] = info.text("submission")
        columns["agent_version"] = info.text("mini_version")
        stats = info.child("model_stats")
        columns["total_cost_usd"] = stats.number("instance_cost")
        model = word(inner(info.child("config").values, "model"), "model_name")
        columns["agent_model"] = (
            model or word(info.values, "model_name") or columns.get("agent_model")
        )
        if info.word("traceback") or info.word("exception_str"):
            columns["error_message"] = info.text("exception_str") or info.text("traceback")

    # ---- messages --------------------------------------------------------------------------

    def _message(self, message: SourceObject) -> None:
        extra = message.take_child("extra")
        draft = self._draft(message, extra)
        if draft.columns.get("timestamp") is None:
            take_time(extra, draft.columns, "timestamp")
        if rest := extra.rest():
            draft.extra["extra"] = rest

    def _draft(self, message: SourceObject, extra: SourceObject) -> StepDraft | ObservationDraft:
        role = message.word("role")
        if message.word("object") == "response":
            return self._response(message, extra)
        if message.word("type").endswith("_output"):
            ModelApis(self.blocks).items.item(message)
            steps = self.run.steps
            return self._output(extra, (steps[-1].observations if steps else self.run.early)[-1])
        if role == "tool":
            return self._output(extra, chat_result(message, self.blocks))
        if role == "assistant":
            return self._turn(message, extra)
        if role == "user" and self._is_answer():
            draft = self.run.observe({}, by_order=True)
            self.blocks.result(message.take("content"), draft, f"{message.path}.content")
            message.drop("role")
            draft.extra = message.rest()
            return self._output(extra, draft)
        return self._prompt(message, role)

    def _prompt(self, message: SourceObject, role: str) -> StepDraft:
        if role == "exit":  # the end of the run, which no model saw
            step = self.run.step("environment", "event", visibility="none")
        else:
            step = self.run.step(role if role in ("system", "user") else "environment")
            if step.columns["source"] == "environment":
                self.losses.unknown(f"role {role or 'without a name'}")
        chat_turn(message, step, self.blocks)
        step.extra.update(message.rest())
        return step

    def _is_answer(self) -> bool:
        """Whether the next message of the user shows what a command of the text printed."""
        step = self.run.steps[-1] if self.run.steps else None
        return step is not None and len(step.calls) > len(step.observations)

    def _output(self, extra: SourceObject, draft: ObservationDraft) -> ObservationDraft:
        """What a command printed; the model saw it in a template."""
        draft.columns["exit_code"] = extra.integer("returncode", bits=32)
        if extra.word("exception_info"):
            draft.columns["is_error"] = True
            draft.columns["error_type"] = extra.text("exception_type")
        shown = draft.parts.columns()
        if shown and "content" not in shown and (text := extra.text("raw_output")) is not None:
            if shown.get("text") != text:
                draft.columns["visible_text"] = shown.get("text")
            draft.parts = Parts()
            draft.parts.text(self.builder.text(text))
        return draft

    def _turn(self, message: SourceObject, extra: SourceObject) -> StepDraft:
        step = self.run.step("agent", "llm_turn")
        written = dict(message.values)
        chat_turn(message, step, self.blocks)
        text = step.parts.columns().get("text", "")
        actions = extra.objects("actions")
        if not step.calls:
            self._commands(step, actions, text)
        self._actions(extra, actions, step)
        self._reply(extra, step, written)
        step.extra.update(message.rest())
        return step

    def _actions(self, extra: SourceObject, actions: list[SourceObject], step: StepDraft) -> None:
        """The commands and the cost of a turn; what its calls say is dropped."""
        rests = []
        for number, action in enumerate(actions):
            known = step.calls[number].columns if number < len(step.calls) else {}
            rests.append(_unsaid(action, known))
        if any(rests):
            extra.values["actions"] = jsontext.raw(jsontext.text_of(rests))
        step.columns["cost_usd"] = extra.number("cost")

    def _commands(self, step: StepDraft, actions: list[SourceObject], text: str) -> None:
        """Commands that stand in the text: those that were run, or the only code block."""
        blocks = [(code, span) for code, span in fenced(text) if _is_shell(text, span)]
        spans = {code.strip(): span for code, span in blocks}
        commands = [command for it in actions if (command := it.word("command"))]
        if not commands and len(blocks) == 1:
            commands = [blocks[0][0].strip()]
        for command in commands:
            step.call(shell_call(command, text, spans.get(command.strip())))
        if len(commands) == 1 and (span := spans.get(commands[0].strip())):
            step.columns["prose"] = (text[: span[0]] + text[span[1] :]).strip()

    def _reply(self, extra: SourceObject, step: StepDraft, written: Mapping[str, Raw]) -> None:
        """What the API said beside the message, which it repeats."""
        reply = extra.child("response")
        step.columns["response_id"] = reply.text("id")
        step.columns["model"] = reply.text("model")
        if step.columns["model"]:
            self.run.columns["agent_model"] = step.columns["model"]
        take_usage(reply, "usage", step.columns, CHAT)
        rests: list[dict[str, Any]] = []
        for choice in reply.objects("choices"):
            drop_repeated(choice.child("message"), written)
            step.columns.setdefault("stop_reason", choice.text("finish_reason"))
            rests.append(choice.rest())
        if any(rests):
            reply.values["choices"] = jsontext.raw(jsontext.text_of(rests))

    def _response(self, message: SourceObject, extra: SourceObject) -> StepDraft:
        """A response of the Responses API, in the place of a message."""
        message.drop("object")
        step = ModelApis(self.blocks).reply(message, "responses")
        if step is None:
            step = self.run.step("agent", "llm_turn")
        self._actions(extra, extra.objects("actions"), step)
        step.extra.update(message.rest())
        return step


def _is_shell(text: str, span: tuple[int, int]) -> bool:
    return text.startswith(_FENCES, span[0])


def _unsaid(action: SourceObject, call: Mapping[str, Any]) -> dict[str, Any]:
    """What an action says that its call does not."""
    action.drop_text("tool_call_id", call.get("call_id"))
    arguments = call.get("arguments")
    stated = call.get("arguments_raw")
    if arguments is not None:
        stated = word(inner({"it": jsontext.raw(arguments)}, "it"), "command")
    action.drop_text("command", stated)
    return action.rest()


class MiniSweAgentReader(LogReader):
    """The format ``mini_swe_agent``."""

    name = "mini_swe_agent"
    title = "Runs of mini-swe-agent"
    recognised = "trajectory_format, or info of the agent; of a bare list its words for the end"
    versions = "reads versions 1 (also bare lists of messages) and 2, chat and Responses API"
    log = MiniSweAgentRun

    def sniff(self, record: Mapping[str, Raw]) -> Match:
        """The version, what the agent says about a run, or a prompt or an output of version 1."""
        if word(record, "trajectory_format").startswith("mini-swe-agent"):
            return Match.STAMP
        info = inner(record, "info")
        if "messages" in record and (
            "mini_version" in info or {"exit_status", "model_stats"} <= set(info)
        ):
            return Match.STAMP
        if word(record, "role") not in ("system", "user") or set(record) - _KEYS:
            return Match.NO
        text = word(record, "content")
        marked = any(mark in text for mark in _MARKS) or text.startswith("<returncode>")
        return Match.STAMP if marked else Match.NO


CONVERTER = MiniSweAgentReader()
