"""Writing: a trajectory into a log of Inspect AI with one sample.

Each turn of the model is an event that refers to the messages before it, which stand once in a
pool. What is known of success and reward becomes scores.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from adp.converters.json_objects import write_time
from adp.converters.unwritten_columns import report_columns
from adp.converters.writers.api_parts import ApiPart, is_model_call
from adp.converters.writers.api_writer import STEP, ApiWriter
from adp.converters.writers.inspect_sample import (
    evaluation_id,
    limit_of,
    message_content,
    model_usage,
    sample_id,
    scores_of,
    stop_of,
    task_name,
    tool_info,
    turn_usage,
)
from adp.converters.writers.tool_definitions import tool_definitions
from adp.converters.writing import string
from adp_schema import jsontext
from adp_schema.ids import digest
from adp_schema.losses import Losses
from adp_schema.model import Observation, Step, Trajectory

_RUN = ("source_id", "session_id", "task_id", "attempt", "agent_name", "agent_model", "tools",
        "started_at", "started_text", "ended_at", "ended_text", "success", "reward", "rewards",
        "final_answer", "judge", "truncated", "terminated", "stop_reason", "error_type",
        "error_message", "total_tokens_in", "total_tokens_out", "total_tokens_cached",
        "total_cost_usd")  # fmt: skip
_TURN = STEP | {
    *("model", "stop_reason", "timestamp", "timestamp_text", "duration_ms", "usage", "tokens_in"),
    *("tokens_out", "tokens_cached", "tokens_cache_write", "tokens_reasoning", "cost_usd"),
}
_ERRORS = frozenset(
    {"parsing", "timeout", "unicode_decode", "permission", "file_not_found", "is_a_directory",
     "limit", "approval", "cancelled", "sandbox_unavailable", "unknown"}
)  # fmt: skip
_ROLES = {"agent": "assistant", "system": "system"}


def write_log(run: Trajectory, losses: Losses) -> dict[str, Any]:
    """Convert one trajectory; what the format has no place for is reported."""
    return LogWriter(run, losses).log()


class LogWriter(ApiWriter):
    """Writes the log of one trajectory."""

    name = "inspect"
    exact = False

    def __init__(self, run: Trajectory, losses: Losses) -> None:
        super().__init__(run, losses)
        self._tools = [tool_info(tool) for tool in tool_definitions(run, losses)]
        self._messages: list[dict[str, Any]] = []
        self._events: list[dict[str, Any]] = []
        self._used = 0
        self._output: dict[str, Any] | None = None

    def log(self) -> dict[str, Any]:
        """The log: about the evaluation, its totals, and its sample."""
        run = self.run
        self.head(*_RUN)
        self.kept(run, "$")
        name = sample_id(run, self.losses)
        sample = self._sample(name)
        evaluation = evaluation_id(run, name, sample["epoch"], self.losses)
        model = self.model()
        created = run.started_at or run.ended_at or datetime(1970, 1, 1, tzinfo=UTC)
        dataset = {"name": string(run.dataset or "")}
        about = {
            "eval_id": string(evaluation),
            "run_id": digest((run.trajectory_id or "").encode("utf-8", "surrogatepass")),
            "created": string(write_time(created, None)),
            "task": string(task_name(run)),
            "task_version": 0,
            "dataset": {**dataset, "samples": 1, "sample_ids": [sample["id"]]},
            "model": string(model),
            "model_args": {},
            "config": {},
        }
        if run.agent_name is not None:
            about["solver"] = string(run.agent_name)
        status = "success" if "error" not in sample else "error"
        totals = {"total_samples": 1, "completed_samples": int(status == "success")}
        usage = sample.get("model_usage")
        return {
            "version": 2,
            "status": status,
            "eval": about,
            "results": {**totals, "scores": []},
            "stats": {} if usage is None else {"model_usage": usage},
            "samples": [sample],
        }

    # ---- the sample ------------------------------------------------------------------------

    def _sample(self, name: str) -> dict[str, Any]:
        run = self.run
        self._read_rows()
        sample: dict[str, Any] = {
            "id": string(name),
            "epoch": 1 if run.attempt is None else run.attempt + 1,
            **self._task(),
            "messages": self._messages,
        }
        if self._output is not None:
            sample["output"] = self._output
        if scores := scores_of(run, self.losses):
            sample["scores"] = scores
        sample |= limit_of(run, self.losses)
        if usage := model_usage(run):
            sample["model_usage"] = {self.model(): usage}
        times = {"started_at": self.time(run, "$", "started_at", "started_text"),
                 "completed_at": self.time(run, "$", "ended_at", "ended_text"),
                 "uuid": run.session_id}  # fmt: skip
        sample |= {key: string(value) for key, value in times.items() if value is not None}
        sample["events"] = self._events
        if self._events:
            sample["events_data"] = {"messages": self._messages[: self._used], "calls": []}
        return sample

    def _task(self) -> dict[str, Any]:
        """What was asked, and what is right."""
        task = self.run.task
        if task is None:
            first = next((it for it in self.run.steps if it.source == "user" and it.text), None)
            return {"input": string((first.text if first else None) or ""), "target": ""}
        carried = frozenset({"task_id", "instruction", "answers", "extra"})
        report_columns(task, carried, "$.task", self.losses)
        self.kept(task, "$.task")
        answers = task.json_value("answers")
        texts = answers if isinstance(answers, list) else [answers]
        if not all(isinstance(text, str) for text in texts) and answers is not None:
            self.losses.add("$.task.answers", "what is no text is written as the text of its JSON")
            answers = task.answers
        return {"input": string(task.instruction or ""), "target": answers or ""}

    # ---- messages and events ---------------------------------------------------------------

    def _read_rows(self) -> None:
        for row, path in self.rows():
            if isinstance(row, Observation):
                self._result(row, path)
            elif is_model_call(row):
                self._turn(row, path)
            else:
                self.report(row, path, STEP)
                self._messages.append(self._message(row, path))

    def _message(self, step: Step, path: str) -> dict[str, Any]:
        self.kept(step, path)
        if step.source == "environment":
            self.losses.add(f"{path}.source", "environment is written as the role user")
        parts = self.parts(step, path)
        message = {
            "role": _ROLES.get(step.source or "", "user"),
            "content": message_content([part for part in parts if part.kind != "call"]),
        }
        kinds = [part.kind == "call" for part in parts]
        if kinds != sorted(kinds):
            self.losses.add(f"{path}.content", "calls stand behind all else")
        calls = [self._call(part, step) for part in parts if part.kind == "call"]
        if calls and step.source == "agent":
            message["tool_calls"] = calls
        return message

    def _call(self, part: ApiPart, step: Step) -> dict[str, Any]:
        call = part.call
        name = self.call_id(part, step)
        if call is not None:
            self.kept(call, part.path)
        if step.source != "agent":
            for column in ("name", "arguments", "arguments_raw"):
                self.losses.add(f"{part.path}.{column}", "only the model calls tools")
        return {"id": name, "function": self.call_name(call),
                "arguments": self.arguments(part), "type": "function"}  # fmt: skip

    def _turn(self, step: Step, path: str) -> None:
        """The event of a turn of the model, which refers to the messages before it."""
        self.report(step, path, _TURN)
        message = self._message(step, path)
        model = string(step.model or self.model())
        if step.model is not None:
            message["model"] = model
        choice = {"message": message, **stop_of(step, path, self.losses)}
        output: dict[str, Any] = {"model": model, "choices": [choice]}
        content = message["content"]
        output["completion"] = content if not isinstance(content, list) else string(step.text or "")
        if usage := turn_usage(step, path, self.losses):
            output["usage"] = usage
        self._used = len(self._messages)
        event: dict[str, Any] = {"event": "model", "working_start": 0}
        event |= self._times(step, path, "timestamp")
        before = [[0, self._used]] if self._used else []
        event |= {"model": model, "input": [], "input_refs": before, "tools": self._tools,
                  "tool_choice": "auto", "config": {}, "output": output}  # fmt: skip
        self._events.append(event)
        self._messages.append(message)
        self._output = output

    def _times(self, row: Step | Observation, path: str, key: str) -> dict[str, Any]:
        time = self.time(row, path, "timestamp", "timestamp_text")
        times = {} if time is None else {key: string(time)}
        if row.duration_ms is None:
            return times
        return {**times, "working_time": row.duration_ms / 1000}

    def _result(self, row: Observation, path: str) -> None:
        """A message with the result, and the event of its call."""
        answered = self.answered(row, path)
        parts = self.parts(row, path)
        content = message_content(parts)
        if answered is None:
            self.report_result(row, path)
            self.kept(row, path)
            self._messages.append({"role": "user", "content": content})
            return
        self.report_result(row, path, "name", "timestamp", "timestamp_text", "duration_ms",
                           *(("is_error", "error_type") if row.is_error else ()))  # fmt: skip
        self.kept(row, path)
        name = string(self.result_name(row))
        message = {"role": "tool", "content": content, "tool_call_id": answered, "function": name}
        event: dict[str, Any] = {"event": "tool", "working_start": 0, "id": answered,
                                 "function": name, "arguments": self._arguments(row),
                                 "result": content}  # fmt: skip
        if row.is_error:
            kind = row.error_type if row.error_type in _ERRORS else "unknown"
            if row.error_type not in (None, kind):
                self.losses.add(f"{path}.error_type", "the format does not know it")
            message["error"] = event["error"] = {"type": kind, "message": string(row.text or "")}
        self._messages.append(message)
        self._events.append(event | self._times(row, path, "completed"))

    def _arguments(self, row: Observation) -> Any:
        call = self.answered_call(row)
        text = None if call is None else call.arguments
        return jsontext.raw(text) if text is not None and text.lstrip()[:1] == "{" else {}
