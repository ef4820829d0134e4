"""Results of tau2-bench: simulations in one document, or in files beside ``results.json``.

Both sides call tools: calls of the simulated user have ``requestor`` user. Of voice simulations
the speech of ticks that follow each other is one step. What the document says about all of them
stands with the first simulation. Sources: the data model of tau2-bench until August 2026.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from msgspec import Raw

from adp.converters.kit.chat import chat_turn, drop_repeated
from adp.converters.kit.drafts import ObservationDraft, StepDraft, TrajectoryDraft, emit
from adp.converters.kit.rewards import set_named
from adp.converters.kit.session import LogReader, SessionLog, first_item, inner, word
from adp.converters.kit.source_object import SourceObject, embedded
from adp.converters.kit.times import take_end, take_start, take_time
from adp.converters.kit.usage import OPENAI, take_usage
from adp.converters.readers.tau2_ticks import SIDES, TickReader, rest_of
from adp.converters.reading import BRACE, NULL
from adp_schema import extra_column, jsontext
from adp_schema.model import Columns
from adp_schema.protocols import Match, SkipRecordError

_LIMITS = frozenset({"max_steps", "timeout", "context_window_exceeded"})
_ENDS = frozenset({"user_stop", "agent_stop"})


class Tau2Results(SessionLog):
    """One document with simulations, or one simulation with the document beside it."""

    agent: ClassVar[str | None] = "tau2"

    def read(self) -> None:
        """Read each simulation.

        Raises:
            SkipRecordError: there is none.
        """
        for source, broken in self.sources():
            if not broken and "simulations" not in source and "task_id" in source:
                results = self._results()
                self._all(results, [source], self._is_first(source, results))
            elif broken or not (simulations := source.objects("simulations")):
                raise SkipRecordError("it holds no simulation")
            else:
                self._all(source, simulations, True)

    def _results(self) -> SourceObject:
        """The document beside the folder of simulations."""
        for path, data in self.record.side_files.items():
            return embedded(data.decode("utf-8", "replace"), path, self.losses)
        return SourceObject(None, "$", self.losses)

    def _is_first(self, simulation: SourceObject, results: SourceObject) -> bool:
        entry = first_item(results.values, "simulation_index")
        return not entry or entry.get("id") == simulation.values.get("id")

    def _all(self, results: SourceObject, runs: list[SourceObject], has_rest: bool) -> None:
        info = results.values.get("info")
        about = SourceObject(info, "$.info", self.losses)
        domain = word(inner(about.values, "environment_info"), "domain_name")
        left = [task.rest() for task in results.objects("tasks") if not self._task(task, domain)]
        if left:
            results.values["tasks"] = jsontext.raw(jsontext.text_of(left))
        for number, simulation in enumerate(runs):
            self._simulation(simulation, about)
            if has_rest and not number and (rest := results.rest()):
                self.run.extra["results"] = rest
            emit(self.run, self.builder)

    def _task(self, source: SourceObject, domain: str) -> bool:
        """Add a task; False for one without an id."""
        task: Columns = {"task_id": source.name("id"), "environment": domain or None}
        if task["task_id"] is None:
            return False
        scenario = source.child("user_scenario")
        task["instruction"] = scenario.text("instructions") or scenario.child("instructions").text(
            "task_instructions"
        )
        criteria = source.child("evaluation_criteria")
        task["expected_calls"] = criteria.json_list("actions")
        task["answers"] = criteria.json_list("communicate_info")
        task["reward_spec"] = criteria.json("reward_basis")
        task["tests"] = criteria.json("env_assertions")
        task["environment_config"] = source.json_object("initial_state")
        task["extra"] = extra_column.pack(source.rest())
        self.builder.task({key: value for key, value in task.items() if value is not None})
        return True

    # ---- a simulation ----------------------------------------------------------------------

    def _simulation(self, source: SourceObject, about: SourceObject) -> None:
        self.run = self.blocks.run = TrajectoryDraft()
        columns, agent = self.run.columns, inner(about.values, "agent_info")
        columns["agent_name"] = word(agent, "implementation") or self.agent
        columns["agent_model"] = word(agent, "llm") or None
        columns["agent_version"] = word(about.values, "git_commit") or None
        columns["source_id"] = source.name("id")
        columns["task_id"] = source.name("task_id")
        columns["attempt"] = source.integer("trial", bits=32)
        take_start(source, columns, "start_time", "timestamp")
        take_end(source, columns, "end_time")
        columns["total_cost_usd"] = source.number("agent_cost")
        if source.word("policy"):
            self.blocks.content(source.take("policy"), self.run.step("system"), "$.policy")
        messages = source.objects("messages")
        for number, message in enumerate(messages):
            self._message(message, is_first=not number)
        if not messages:
            self._ticks(source.objects("ticks"))
        self._outcome(source)
        self.run.extra.update(source.rest())

    def _outcome(self, source: SourceObject) -> None:
        columns = self.run.columns
        reason = source.text("termination_reason")
        columns["stop_reason"] = reason
        columns["truncated"], columns["terminated"] = reason in _LIMITS, reason in _ENDS
        if reason is not None and reason.endswith(("error", "errors")):
            columns["error_type"] = reason
        checks = SourceObject(source.values.get("reward_info"), "$.reward_info", self.losses)
        columns["judge"] = source.json_object("reward_info")
        columns["reward"] = checks.number("reward")
        if columns["reward"] is not None:
            columns["success"] = columns["reward"] == 1
        set_named(columns, inner(checks.values, "reward_breakdown"))

    # ---- messages --------------------------------------------------------------------------

    def _message(self, message: SourceObject, *, is_first: bool) -> None:
        role = message.word("role")
        if role == "tool":
            parts = message.objects("tool_messages")
            drafts = [self._result(part) for part in parts or [message]]
            message.drop("role")
            if parts and (rest := message.rest()):
                drafts[-1].extra["message"] = rest
            return
        is_agent = role == "assistant"
        source = "agent" if is_agent else role if role in ("user", "system") else "environment"
        step = self.run.step(source, "llm_turn" if is_agent else "message")
        if source == "environment":
            self.losses.unknown(f"role {role or 'without a name'}")
        take_time(message, step.columns, "timestamp")
        if is_agent:
            self._costs(message, step, is_first)
        chat_turn(message, step, self.blocks)
        step.extra.update(message.rest())

    def _costs(self, message: SourceObject, step: StepDraft, is_first: bool) -> None:
        """Tokens and cost of the agent; those of the simulated user stay with what it said."""
        written = dict(message.values)
        if is_first and not any(message.first(key) == BRACE for key in ("usage", "raw_data")):
            # The greeting that every conversation begins with.
            step.columns["llm_call_count"] = 0
        step.columns["cost_usd"] = message.number("cost")
        take_usage(message, "usage", step.columns, OPENAI)
        seconds = message.number("generation_time_seconds")
        if seconds is not None:
            step.columns["duration_ms"] = seconds * 1000
            message.values["generation_time_seconds"] = written["generation_time_seconds"]
        reply = message.child("raw_data")
        step.columns["stop_reason"] = reply.text("finish_reason")
        step.columns["model"] = reply.text("model")
        drop_repeated(reply.child("message"), written)

    def _result(self, source: SourceObject) -> ObservationDraft:
        """The result of a call of either side; its id is that of the call."""
        draft = self.run.observe({"is_error": source.flag("error")}, answers=source.name("id"))
        take_time(source, draft.columns, "timestamp")
        if source.first("content") not in (0, NULL):
            self.blocks.result(source.take("content"), draft, f"{source.path}.content")
        if source.word("requestor") == "assistant":
            source.drop("requestor")
        if source.word("role") == "tool":
            source.drop("role")
        draft.extra = source.rest()
        return draft

    def _ticks(self, ticks: list[SourceObject]) -> None:
        """What both sides say and call at the same time."""
        reader = TickReader(self.blocks)
        for tick in ticks:
            for side in SIDES:
                reader.speech(tick.child(f"{side}_chunk"), side)
                reader.calls(tick, side)
                for result in tick.objects(f"{side}_tool_results"):
                    reader.end()
                    self._result(result)
        reader.end()
        if rests := rest_of(ticks):
            self.run.extra["ticks"] = rests


class Tau2Reader(LogReader):
    """The format ``tau2``."""

    name = "tau2"
    title = "Results of tau2-bench"
    container = "json"
    recognised = "info and simulations, or one: a task_id, a termination_reason, messages or ticks"
    versions = "reads text and voice runs, in one document or with a file for each simulation"
    log = Tau2Results

    def sniff(self, record: Mapping[str, Raw]) -> Match:
        """All results, or one simulation."""
        first = first_item(record, "simulations")
        results = _is_simulation(first) or ("info" in record and _is_run(first))
        empty = bytes(record.get("simulations", b"")) == b"[]" and {"info", "tasks"} <= set(record)
        return Match.STAMP if results or empty or _is_simulation(record) else Match.NO

    def side_files(self, source_file: str) -> tuple[str, ...]:
        """The document beside the folder that a simulation is in."""
        root, middle, _ = source_file.rpartition("simulations/")
        return (f"{root}results.json",) if middle and (not root or root.endswith("/")) else ()


def _is_simulation(values: Mapping[str, Raw]) -> bool:
    return "termination_reason" in values and _is_run(values)


def _is_run(values: Mapping[str, Raw]) -> bool:
    return "task_id" in values and not {"messages", "ticks"}.isdisjoint(values)


CONVERTER = Tau2Reader()
