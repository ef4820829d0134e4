"""Rows of results of verifiers, and what they share with its traces: outcome and task."""

from __future__ import annotations

from typing import ClassVar

from adp.converters.kit.chat import chat_message
from adp.converters.kit.key_tables import take_tools
from adp.converters.kit.rewards import set_named, set_reward
from adp.converters.kit.session import SessionLog, inner
from adp.converters.kit.source_object import SourceObject
from adp.converters.reading import QUOTE
from adp_schema import jsontext
from adp_schema.model import Columns

_LIMITS = frozenset(
    {"max_turns", "max_input_tokens", "max_output_tokens", "max_total_tokens", "compaction_failed",
     "max_turns_reached", "prompt_too_long", "timeout_reached"}
)  # fmt: skip


class ResultRow(SessionLog):
    """A row of results."""

    agent: ClassVar[str | None] = "verifiers"

    def take_outcome(self, source: SourceObject) -> None:
        """How a run ended, and its figures."""
        columns = self.run.columns
        reason = source.text("stop_condition")
        columns["stop_reason"] = reason
        columns["truncated"] = source.flag("is_truncated") or reason in _LIMITS
        fine = not columns["truncated"] and reason != "error"
        columns["terminated"] = bool(source.flag("is_completed")) and fine
        columns["final_metrics"] = source.json_object("metrics")
        errors = source.objects("errors")
        if errors:
            columns["error_type"] = errors[-1].text("type")
            columns["error_message"] = errors[-1].text("message")
            source.values["errors"] = jsontext.raw(jsontext.text_of([it.rest() for it in errors]))

    def take_task(self, task_id: str | None, data: SourceObject) -> None:
        """What was asked, and the answer, of a task that has an id."""
        columns = self.run.columns
        columns["task_id"] = task_id
        if task_id is None:
            return
        task: Columns = {"task_id": task_id, "answers": data.json("answer")}
        users = [step for step in self.run.steps if step.columns["source"] == "user"]
        task["instruction"] = users[0].parts.columns().get("text") if users else None
        self.builder.task({key: value for key, value in task.items() if value is not None})

    def read_result(self, source: SourceObject) -> None:
        """A row of results: a prompt and a completion, each messages or a text."""
        columns = self.run.columns
        for key in ("tool_defs", "oai_tools"):
            if key in source and "tools" not in source:
                source.values["tools"] = source.values.pop(key)
        take_tools(source, columns)
        for key in ("prompt", "completion"):
            if source.first(key) == QUOTE:
                is_agent = key == "completion"
                kind = "llm_turn" if is_agent else "message"
                step = self.run.step("agent" if is_agent else "user", kind)
                step.parts.text(self.builder.text(source.text(key) or ""))
            for message in source.objects(key):
                chat_message(message, self.blocks)
        self.take_task(source.name("example_id"), source)
        set_reward(columns, source.number("reward"))
        usage = source.peek("token_usage")
        for key in ("input_tokens", "output_tokens"):
            number = usage.number(key)  # a mean, which is whole
            if number is not None and number.is_integer():
                columns[f"total_tokens_{'in' if key[0] == 'i' else 'out'}"] = int(number)
        metrics = inner(source.values, "metrics")
        set_named(columns, {key: raw for key, raw in metrics.items() if "reward" in key})
        self.take_outcome(source)
        if source.word("error"):
            columns["error_message"] = source.text("error")
