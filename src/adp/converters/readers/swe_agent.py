"""Trajectories of SWE-agent: ``.traj`` files of all versions.

A file tells a run twice. ``history`` is what the model saw, with the exact calls of function
calling; ``trajectory`` has the actions as commands, their whole output, state and times. Both
become one run. The input of each turn (``query``, once ``messages``) is kept as ranges of the
history, so only what a history processor changed is there in full.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from msgspec import Raw

from adp.converters.kit.chat import MessagePool, chat_turn
from adp.converters.kit.commands import set_status, shell_call
from adp.converters.kit.drafts import ObservationDraft, StepDraft, append_extra, merge_extra
from adp.converters.kit.session import LogReader, SessionLog, first_item, inner, word
from adp.converters.kit.source_object import SourceObject, embedded
from adp.converters.kit.usage import UsageKeys, set_totals
from adp.converters.reading import QUOTE
from adp_schema import jsontext
from adp_schema.protocols import Match

_TOTALS = UsageKeys(
    prompt=("tokens_sent",), written=("tokens_received",), cost=("instance_cost", "total_cost")
)


class SweAgentRun(SessionLog):
    """One run, with its other attempts."""

    agent: ClassVar[str | None] = "swe-agent"

    def line(self, source: SourceObject) -> None:
        """Read a run, and its attempts when it had several."""
        attempts = source.objects("attempts")
        whole = {key: bytes(source.values.get(key, b"")) for key in ("history", "trajectory")}
        self._messages(source)
        self._info(source.child("info"))
        self._replay(source)
        self.run.columns["session_id"] = source.text("session_id")
        for number, attempt in enumerate(attempts):
            same = [_same(attempt.values.get(key), text) for key, text in whole.items()]
            if all(same):  # the best one stands above its list, too
                attempt.drop(*whole)
                self.run.columns["attempt"] = number
                append_extra(self.run.extra, "attempts", attempt.rest())
                continue
            main = self.run
            self.run = main.branch(0, "attempt", agent_name=self.agent, attempt=number)
            self.line(attempt)
            self.run = main
        self.run.extra.update(source.rest())

    def _messages(self, source: SourceObject) -> None:
        pool = MessagePool()
        raws = source.values.get("history")
        history, entries = source.objects("history"), source.objects("trajectory")
        if history and raws is not None:
            for raw in jsontext.decode_array(raws):
                pool.add(raw)
        place = 0
        output: ObservationDraft | None = None
        was_demo = False
        for message in history:
            role, demo = message.word("role"), bool(message.flag("is_demo"))
            if role == "assistant":
                at = None if demo else _place_of(message, entries, place)
                for refused in entries[place:at] if at is not None else []:
                    self._entry(refused, pool)
                place = place if at is None else at + 1
                entry = None if at is None else entries[at]
                output, was_demo = self._turn(message, entry, pool), demo
            elif role == "tool" or (role == "user" and output is not None and demo == was_demo):
                self._output(message, output)
                output = None
                continue
            else:
                step = self.run.step("system" if role == "system" else "user")
                self._fill(message, step)
            if demo:
                self.run.steps[-1].columns["is_copied_context"] = True
        for entry in entries[place:]:
            self._entry(entry, pool)

    def _fill(self, message: SourceObject, step: StepDraft) -> None:
        self.run.constant(message, "agent")
        chat_turn(message, step, self.blocks)
        step.extra.update(message.rest())

    def _turn(
        self, message: SourceObject, entry: SourceObject | None, pool: MessagePool
    ) -> ObservationDraft | None:
        """A turn of the model: its message, and what ``trajectory`` says about it."""
        step = self.run.step("agent", "llm_turn")
        action, thought = message.text("action"), message.text("thought")
        self._fill(message, step)
        text = step.parts.columns().get("text", "")
        if action and step.calls:
            step.calls[0].extra["action"] = action
        elif action:
            step.call(shell_call(action, text))
        if thought is not None and thought != text:
            if action and thought in text and step.calls[0].columns.get("origin"):
                step.columns["prose"] = thought
            else:
                step.extra["thought"] = thought
        if entry is None:
            return self._expect(step) if step.calls else None
        for key, known in (("action", action), ("thought", thought), ("response", text)):
            entry.drop_text(key, known)
        return self._rest(entry, step, pool)

    def _entry(self, entry: SourceObject, pool: MessagePool) -> None:
        """A turn that is not in the history: a refused answer, or there is no history."""
        step = self.run.step("agent", "llm_turn")
        text = entry.text("response")
        if text is not None:
            step.parts.text(self.builder.text(text))
        thought, action = entry.text("thought"), entry.text("action")
        if action:
            step.call(shell_call(action, text or ""))
        if thought is not None and thought != text:
            step.extra["thought"] = thought
        self._rest(entry, step, pool)

    def _rest(self, entry: SourceObject, step: StepDraft, pool: MessagePool) -> ObservationDraft:
        for key in ("query", "messages"):
            if messages := entry.items(key):
                step.extra[key] = pool.references(messages)
        draft = self._expect(step)
        text = entry.text("observation")
        if text is not None:
            draft.parts.text(self.builder.text(text))
        state = entry.word("state")
        if state and embedded(state, entry.path, self.losses):
            draft.columns["structured"] = entry.text("state")
            draft.extra["state"] = "json_string"
        else:
            draft.columns["structured"] = entry.json_object("state")
        seconds = entry.values.get("execution_time")
        time = entry.number("execution_time") if step.calls else None
        if time is not None:
            step.calls[0].columns["duration_ms"] = time * 1000
            step.calls[0].extra["execution_time"] = seconds
            entry.drop("execution_time")
        merge_extra(step.extra, entry.rest())
        return draft

    def _expect(self, step: StepDraft) -> ObservationDraft:
        """The output of a turn, which answers its call."""
        call_id = step.calls[0].columns.get("call_id") if step.calls else None
        return self.run.observe({}, answers=call_id, by_order=bool(step.calls))

    def _output(self, message: SourceObject, draft: ObservationDraft | None) -> None:
        """What the model was shown of an output."""
        if draft is None:
            draft = self.run.observe({}, by_order=True)
        ids = message.items("tool_call_ids")
        words = [jsontext.decode_value(it) for it in ids if jsontext.first_byte(it) == QUOTE]
        if len(words) == len(ids) == 1:
            draft.answers = words[0]
        elif ids:
            draft.extra["tool_call_ids"] = ids
        whole = draft.parts.columns().get("text")
        content = message.values.get("content")
        if whole is not None and content is not None and jsontext.first_byte(content) == QUOTE:
            seen = message.text("content")
            if seen != whole:
                draft.columns["visible_text"] = seen
        elif whole is None:
            self.blocks.result(message.take("content"), draft, message.path)
        self.run.constant(message, "agent")
        if message.word("role") == ("tool" if ids else "user"):
            message.drop("role")
        merge_extra(draft.extra, message.rest())

    def _info(self, info: SourceObject) -> None:
        columns = self.run.columns
        set_status(info.text("exit_status"), columns)
        columns["final_answer"] = info.text("submission")
        if info.word("swe_agent_version"):
            columns["agent_version"] = info.text("swe_agent_version")
        stats = info.json_object("model_stats")
        if stats is None:
            return
        columns["final_metrics"] = stats
        set_totals(embedded(stats, "$.info.model_stats", self.losses), columns, _TOTALS)

    def _replay(self, source: SourceObject) -> None:
        """Task and model, of the settings that the run is repeated with; they stay in extra."""
        raw = source.values.get("replay_config")
        text = source.word("replay_config") or ("" if raw is None else bytes(raw).decode())
        config = embedded(text, "$.replay_config", self.losses)
        problem = inner(config.values, "problem_statement")
        model = word(inner(inner(config.values, "agent"), "model"), "name")
        columns, name = self.run.columns, self.record.source_file.rsplit("/", 1)[-1]
        task = word(problem, "id") or (name.removesuffix(".traj") if name.endswith(".traj") else "")
        if task:
            columns["task_id"] = task
            columns["source_id"] = task
            if instruction := word(problem, "text"):
                self.builder.task({"task_id": task, "instruction": instruction})
        if model:
            columns["agent_model"] = model


def _same(raw: Raw | None, text: bytes) -> bool:
    return raw is not None and jsontext.one_line(raw) == jsontext.one_line(text)


def _place_of(message: SourceObject, entries: list[SourceObject], start: int) -> int | None:
    """The entry of ``trajectory`` that a message of the history is."""
    action, texts = message.word("action"), (message.word("content"), message.word("thought"))
    for place in range(start, len(entries)):
        entry = entries[place]
        if entry.word("action") != action:
            continue
        if entry.word("thought") == texts[1] or entry.word("response") in texts:
            return place
    return None


class SweAgentReader(LogReader):
    """The format ``swe_agent``."""

    name = "swe_agent"
    title = "Trajectories of SWE-agent"
    container = "json"
    recognised = "history with agent and role, mostly beside trajectory and info"
    versions = "reads .traj files of all versions, and demonstrations"
    log = SweAgentRun

    def sniff(self, record: Mapping[str, Raw]) -> Match:
        """Messages with the agent that they belong to, or turns with an action and its output."""
        first = first_item(record, "history") or first_item(record, "trajectory")
        if "history" in record and {"role", "agent"} <= set(first):
            return Match.STAMP
        entry = {"action", "observation", "response", "thought"} <= set(first)
        return Match.STAMP if entry else Match.NO


CONVERTER = SweAgentReader()
