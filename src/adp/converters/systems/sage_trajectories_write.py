"""Writing lines of SAGE's collector: a step for each call, with what came back."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any

from adp.converters.json_objects import arrange, write_time
from adp.converters.reading import NULL_VALUE
from adp.converters.scalars import write_number
from adp.converters.systems.objects import (
    function_columns,
    report_content,
    result_columns,
    written_text,
)
from adp.converters.systems.sage_keys import (
    EMPTY,
    ENDS,
    ERROR,
    FAILED,
    NAME,
    RUN,
    STEP,
)
from adp.converters.unwritten_columns import report_columns
from adp.converters.writing import is_seen, leave_out, report_beside, spoken_text
from adp_schema import jsontext, media
from adp_schema.extra_column import Extra, original, unpack
from adp_schema.losses import Losses
from adp_schema.model import Observation, Step, ToolCall, Trajectory

_RUN = frozenset(
    {
        *("source_id", "task_id", "success", "reward", "started_at", "started_text", "ended_at"),
        *("ended_text", "time_zone_known", "tools"),
    }
)
_TURN = frozenset(
    {
        *("source", "kind", "reasoning", "reward", "timestamp", "timestamp_text"),
        "timestamp_zone_known",
    }
)
_CALL = frozenset({"name", "arguments", "arguments_raw"})
_RESULT = frozenset({"text"})


Item = dict[str, Any]


class SageWriter:
    """Writes one line.

    Args:
        run: the trajectory.
        losses: takes what has no place in it.
    """

    def __init__(self, run: Trajectory, losses: Losses) -> None:
        self._run, self._losses = run, losses
        self._native = run.source_format == NAME
        self._steps: list[dict[str, Any]] = []

    def record(self) -> Item:
        """The line."""
        run, extra = self._run, self._extra(self._run)
        instruction, place = self._instruction()
        for number, step in enumerate(run.steps[place:], place):
            self._step(step, f"$.steps[{number}]")
        known: dict[str, Any] = {"steps": self._steps, "instruction": instruction}
        for key, column in (("trajectory_id", "source_id"), ("task_id", "task_id")):
            known[key] = written_text(run, run, column, extra)
        known["success"] = run.success
        known["total_reward"] = write_number(run.reward, "total_reward", extra.shape)
        known |= self._times(extra)
        known["available_tools"] = self._tools()
        if not self._native:
            usual = {"success": False, "total_reward": 0.0, "start_time": "", "end_time": ""}
            usual |= {"available_tools": [], "instruction": "", "task_id": ""}
            usual["trajectory_id"] = jsontext.string(run.trajectory_id or "")
            known = usual | {key: value for key, value in known.items() if value is not None}
        self._report()
        return self._arranged(known, extra, RUN)

    def _extra(self, row: Any) -> Extra:
        """A row's ``extra``; the form of another format means nothing here."""
        extra = unpack(row.extra)
        return extra if self._native else Extra(escaped=extra.escaped)

    def _arranged(self, known: dict[str, Any], extra: Extra, order: tuple[str, ...]) -> Item:
        """An object with the keys of the source, and the values that it usually has."""
        names, null = extra.shape.get("keys", order), extra.shape.get("null", ())
        usual = {k: v for k, v in EMPTY.items() if k in order and k in names}
        usual |= dict.fromkeys(null, NULL_VALUE)
        return arrange(known, {**usual, **extra.fields}, extra.shape, order)

    def _report(self) -> None:
        run, carried = self._run, set(_RUN)
        last = run.steps[-1] if run.steps else None
        call = last.calls[-1] if last is not None and last.calls else None
        if call is not None and call.name in ENDS and _answer(call) == run.final_answer:
            carried.add("final_answer")
        if last is not None and self._extra(last).shape.get("action") == ERROR:
            carried |= {"error_type", "error_message"}
        if self._native:
            carried.add("extra")
        if run.started_at is None and run.ended_at is None:
            carried.remove("time_zone_known")
        report_columns(run, frozenset(carried), "$", self._losses)
        if not self._native:
            report_beside(run, self._losses)

    def _instruction(self) -> tuple[Any, int]:
        """The text of the first step, where it is the user's, and how many steps it takes."""
        run = self._run
        for number, step in enumerate(run.steps):
            if step.source == "user" and is_seen(step) and not step.observations:
                report_content(step, f"$.steps[{number}]", self._losses)
                carried = frozenset({"source", "kind", "text"})
                carried = carried | {"extra"} if self._native else carried
                report_columns(step, carried, f"$.steps[{number}]", self._losses)
                for n, left in enumerate(run.steps[:number]):
                    self._leave_out(left, f"$.steps[{n}]")
                return written_text(run, step, "text", self._extra(step)), number + 1
            if step.source == "agent" or self._native:
                break
        return None, 0

    def _leave_out(self, step: Step, path: str) -> None:
        """Report a step that is no turn of the agent, with what it holds."""
        if is_seen(step):
            report_content(step, path, self._losses)
            report_columns(step, frozenset(), path, self._losses)
        else:
            leave_out(step, path, self._losses)
        for n, call in enumerate(step.calls):
            report_columns(call, frozenset(), f"{path}.calls[{n}]", self._losses)
        for n, row in enumerate(step.observations):
            report_columns(row, frozenset(), f"{path}.observations[{n}]", self._losses)
            report_content(row, f"{path}.observations[{n}]", self._losses)

    def _times(self, extra: Extra) -> Item:
        run = self._run
        zoned = run.time_zone_known is not False
        return {
            "start_time": _time(run.started_at, original(run, "started_text", extra), zoned),
            "end_time": _time(run.ended_at, original(run, "ended_text", extra), zoned),
        }

    def _tools(self) -> list[Any] | None:
        """The names of the tools on offer."""
        if self._run.tools is None:
            return None
        tools = json.loads(original(self._run, "tools", unpack(self._run.extra)))
        names = []
        for n, tool in enumerate(tools if isinstance(tools, list) else []):
            function = tool.get("function", tool) if isinstance(tool, dict) else {}
            name = function.get("name") if isinstance(function, dict) else None
            names.append(jsontext.string(name) if isinstance(name, str) else "")
            if len(function) > 1 or name is None:
                self._losses.add(f"$.tools[{n}]", "only the names of tools are written")
        return names

    # ---- steps -----------------------------------------------------------------------------

    def _step(self, step: Step, path: str) -> None:
        """Add the steps of the collector that a step makes: one for each of its calls."""
        extra = self._extra(step)
        is_error = extra.shape.get("action") == ERROR
        if not is_error and (not is_seen(step) or step.source != "agent"):
            self._leave_out(step, path)
            return
        carried = _TURN | {"extra"} if self._native else _TURN
        if is_error:
            carried |= {"visibility"}
        if step.timestamp is None:
            carried -= {"timestamp_zone_known"}
        thought = written_text(self._run, step, "reasoning", extra)
        text = None if self._native else spoken_text(step, extra)
        if text and not step.calls:
            carried |= {"text"}  # the answer
        elif text and thought is None:
            thought = jsontext.string(media.restore(text, self._run.media))
            carried |= {"text"}
        report_columns(step, carried, path, self._losses)
        report_content(step, path, self._losses)
        calls: list[ToolCall | None] = [*step.calls] or [None]
        left = list(step.observations)
        for number, call in enumerate(calls):
            rows = [row for row in left if call is None or row.call in (None, call.call)]
            rows = left if number == len(calls) - 1 else rows
            left = [row for row in left if row not in rows]
            known = self._act(call, f"{path}.calls[{number}]", text or "")
            if is_error:
                known = {"action": ERROR}
            known |= self._observed(rows, f"{path}.observations")
            if number == 0 or not self._native:
                known["thought"] = thought if number == 0 else ""
            if number == 0:
                zoned = step.timestamp_zone_known is not False
                known["reward"] = write_number(step.reward, "reward", extra.shape)
                known["timestamp"] = _time(
                    step.timestamp, original(step, "timestamp_text", extra), zoned
                )
            self._add(known, extra if number == 0 else Extra())

    def _add(self, known: dict[str, Any], extra: Extra) -> None:
        names = extra.shape.get("keys", STEP)
        taken = (*extra.fields, *extra.shape.get("null", ()))
        if "step_id" in names and "step_id" not in taken:
            known["step_id"] = len(self._steps)
        if not self._native:
            usual = {"thought": "", "action_input": {}, "observation": "", "reward": 0.0}
            known = usual | {key: value for key, value in known.items() if value is not None}
            known.setdefault("timestamp", "")
        self._steps.append(self._arranged(known, extra, STEP))

    def _act(self, call: ToolCall | None, path: str, text: str) -> Item:
        """The action and its input; a turn without a call of another format is the end."""
        if call is None:
            if self._native:
                return {}
            return {"action": ENDS[0], "action_input": {"answer": jsontext.string(text)}}
        extra = self._extra(call)
        carried = function_columns(call, _CALL)
        carried = carried | {"extra"} if self._native else carried
        report_columns(call, carried, path, self._losses)
        known = {"action": jsontext.string(original(call, "name", extra) or call.language or "")}
        value = self._input(call, extra)
        if value is not None:
            known["action_input"] = value
        return known

    def _input(self, call: ToolCall, extra: Extra) -> Any:
        """The input of an action."""
        text = original(call, "arguments", extra)
        loose = original(call, "arguments_raw", extra)
        if self._native:
            written = loose if text is None else text
            if written is None:
                return None
            is_object = call.arguments_kind == "object"
            return jsontext.raw(written) if is_object else jsontext.string(written)
        if text is not None:
            return jsontext.raw(text)
        return None if loose is None else {"input": jsontext.string(loose)}

    def _observed(self, rows: list[Observation], path: str) -> Item:
        """The observation of a step."""
        texts = []
        for n, row in enumerate(rows):
            report_content(row, f"{path}[{n}]", self._losses)
            carried = result_columns(self._run, row, _RESULT)
            carried = carried | {"is_error"} if _is_failure(row) else carried
            carried = carried | {"extra"} if self._native else carried
            report_columns(row, carried, f"{path}[{n}]", self._losses)
            texts.append(written_text(self._run, row, "text", self._extra(row)) or "")
        if not rows:
            return {}
        if len(texts) == 1:
            return {"observation": texts[0]}
        self._losses.add(path, "several results of a step become one, joined by a blank line")
        return {"observation": jsontext.string("\n\n".join(map(str, texts)))}


def _is_failure(row: Observation) -> bool:
    return bool(row.is_error) and (row.text or "").startswith(FAILED)


def _answer(call: ToolCall) -> str | None:
    values = json.loads(call.arguments) if call.arguments is not None else None
    answer = values.get("answer") if isinstance(values, dict) else None
    return answer if isinstance(answer, str) else None


def _time(time: datetime | None, text: str | None, zoned: bool) -> Any:
    written = write_time(time, text, zoned=zoned)
    written = text if written is None else written
    return None if written is None else jsontext.string(written)
