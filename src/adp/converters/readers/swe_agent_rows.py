"""Rows that data sets made of SWE-agent's trajectories: messages as texts, and the outcome.

Sources: the columns of nebius/SWE-agent-trajectories. The system prompt stands in a key of its
own; ``mask`` says that a message is not trained.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from msgspec import Raw

from adp.converters.kit.commands import fenced, set_status, shell_call
from adp.converters.kit.session import LogReader, SessionLog, first_item
from adp.converters.kit.source_object import SourceObject
from adp_schema.protocols import Match


class SweAgentRow(SessionLog):
    """One row."""

    agent: ClassVar[str | None] = "swe-agent"

    def line(self, source: SourceObject) -> None:
        """Read a row."""
        columns = self.run.columns
        columns["task_id"] = columns["source_id"] = source.name("instance_id")
        columns["agent_model"] = source.text("model_name", "model")
        columns["success"] = source.flag("target", "resolved")
        columns["final_answer"] = source.text("generated_patch")
        set_status(source.text("exit_status"), columns)
        for message in source.objects("trajectory"):
            self._message(message)
        self.run.extra.update(source.rest())

    def _message(self, message: SourceObject) -> None:
        role = message.word("role")
        text = message.text("text", "content", "system_prompt")
        before = self.run.steps[-1] if self.run.steps else None
        if role == "user" and before is not None and before.calls and not before.observations:
            output = self.run.observe({}, by_order=True)
            output.parts.text(self.builder.text(text or ""))
            message.drop("role")
            output.extra = message.rest()
            return
        agent = role in ("ai", "assistant")
        source = "agent" if agent else "system" if role == "system" else "user"
        step = self.run.step(source, "llm_turn" if agent else "message")
        if role in ("ai", "system", "user"):
            message.drop("role")
        if text is not None:
            step.parts.text(self.builder.text(text))
        if agent and text and (blocks := fenced(text)):
            command, span = blocks[-1]
            step.call(shell_call(command, text, span))
            step.columns["prose"] = (text[: span[0]] + text[span[1] :]).strip()
        if message.flag("mask"):
            step.columns["loss_weight"] = 0.0
        step.extra = message.rest()


class SweAgentRowReader(LogReader):
    """The format ``swe_agent_rows``."""

    name = "swe_agent_rows"
    title = "Rows of SWE-agent's trajectories"
    container = "jsonl"
    recognised = "instance_id, and a trajectory of messages with role, text and system_prompt"
    versions = "reads the columns of nebius/SWE-agent-trajectories"
    log = SweAgentRow

    def sniff(self, record: Mapping[str, Raw]) -> Match:
        """Messages that have a text and a system prompt."""
        keys = set(first_item(record, "trajectory"))
        row = "instance_id" in record and {"role", "text", "system_prompt"} <= keys
        return Match.STAMP if row else Match.NO


CONVERTER = SweAgentRowReader()
