"""Trajectories of SAGE's collector: a line a run, with thought, action and observation a step.

An action becomes a call, its thought reasoning and its observation the result. The action
``error`` is no call: the collector writes it where it failed. Source: ``AgentTrajectory`` of SAGE's
``finetune.agent``; no row of it was published.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from msgspec import Raw

from adp.converters.format import Format
from adp.converters.json_objects import JsonObject, read_time
from adp.converters.reading import BRACKET, NULL_VALUE, QUOTE, argument_columns, begins
from adp.converters.systems.objects import (
    listed,
    listed_texts,
    object_of,
    record_object,
    without_marks,
)
from adp.converters.systems.sage_keys import EMPTY, ENDS, ERROR, FAILED, NAME, RUN, STEP
from adp_schema import extra_column, jsontext
from adp_schema.losses import Losses
from adp_schema.model import Columns, Trajectory
from adp_schema.protocols import Match, RawRecord

if TYPE_CHECKING:
    from adp_schema.builder import RowBuilder


class SageTrajectories(Format):
    """The format ``sage_trajectories``."""

    name = NAME
    title = "Trajectories of SAGE's collector (AgentTrajectory)"
    recognised = "`trajectory_id`, `instruction` and `steps` with `action` and `action_input`"
    versions = "Reads and writes what SAGE's code writes; no row of it was published."

    def sniff(self, record: Mapping[str, Raw]) -> Match:
        """A run whose steps have actions with inputs."""
        if not {"trajectory_id", "instruction", "steps"} <= set(record):
            return Match.NO
        if not begins(record["steps"], BRACKET):
            return Match.NO
        steps = jsontext.decode_array(record["steps"])
        first = object_of(steps[0]) if steps else {}
        named = {"action", "action_input"} <= set(first)
        return Match.STAMP if named or (not steps and "available_tools" in record) else Match.NO

    def read(self, record: RawRecord, builder: RowBuilder, losses: Losses) -> None:
        """Convert a line into one trajectory."""
        _read(record_object(record, losses), builder, losses)

    def write(
        self, trajectory: Trajectory, losses: Losses, flavour: str | None = None
    ) -> dict[str, Any]:
        """Convert a trajectory into a line."""
        from adp.converters.systems.sage_trajectories_write import SageWriter

        return SageWriter(trajectory, losses).record()


def _read(top: JsonObject, builder: RowBuilder, losses: Losses) -> None:
    columns: Columns = {"source_id": top.text("trajectory_id"), "task_id": top.text("task_id")}
    instruction = top.text("instruction")
    task = _task(columns["task_id"], instruction, top.values)
    steps = listed(top, "steps")
    columns["success"], columns["reward"] = top.flag("success"), top.number("total_reward")
    for key, column in (("start_time", "started"), ("end_time", "ended")):
        _time(top, key, column, columns)
    names = listed_texts(top.values.get("available_tools"))
    if names is not None:
        tools = [{"type": "function", "function": {"name": name}} for name in names]
        columns |= {"tools": jsontext.text_of(tools), "tools_origin": "recorded"}
        top.take("available_tools")
    read = [_Step(raw, n, losses) for n, raw in enumerate(steps)]
    columns |= _outcome(read)
    form = top.end(RUN, always=_drop_empty(top, RUN))
    columns["extra"] = extra_column.pack(top.values, shape=form)
    builder.trajectory({key: value for key, value in columns.items() if value is not None})
    if task.get("task_id") is not None:
        builder.task(task)
    if instruction is not None:
        text = builder.text(instruction)
        builder.step({"source": "user", "kind": "message", "text": text})
    for step in read:
        step.add(builder)


def _drop_empty(item: JsonObject, order: tuple[str, ...]) -> tuple[str, ...]:
    """Take away values that are written without being told to; the keys that are written so."""
    names = tuple(key for key in EMPTY if key in order)
    for key in names:
        raw = item.values.get(key)
        if raw == EMPTY[key]:
            del item.values[key]
        elif raw == NULL_VALUE:
            item.form.setdefault("null", []).append(key)
    return names


def _time(item: JsonObject, key: str, column: str, columns: Columns) -> None:
    text = item.text(key)
    if text is None:
        return
    names = ("timestamp", "timestamp_text", "timestamp_zone_known")
    if column != "timestamp":
        names = (f"{column}_at", f"{column}_text", "time_zone_known")
    time, known = read_time(jsontext.replace_surrogates(text))
    columns[names[0]], columns[names[1]] = time, text
    if known is False:
        columns[names[2]] = False


class _Step:
    """A step while it is read."""

    def __init__(self, raw: Raw, number: int, losses: Losses) -> None:
        item = JsonObject(raw, f"$.steps[{number}]", losses)
        self.action = item.text("action")
        self.answer = self._answer(item.values.get("action_input"))
        self.columns: Columns = {"source": "agent", "kind": "llm_turn"}
        self.columns["reasoning"] = item.text("thought")
        self.columns["reward"] = item.number("reward")
        _time(item, "timestamp", "timestamp", self.columns)
        self.call: Columns | None = None
        if self.action == ERROR:
            self.columns |= {"source": "environment", "kind": "event", "visibility": "none"}
            item.form["action"] = ERROR
        elif self.action is not None:
            self.call = {"kind": "function", "name": self.action}
            if item.first("action_input") not in (0, 0x6E):
                self.call |= argument_columns(item.take("action_input"))
        self.observation = item.text("observation")
        always = ("step_id", *_drop_empty(item, STEP))
        if item.values.get("step_id") == NULL_VALUE:
            item.form.setdefault("null", []).append("step_id")
        elif item.values.get("step_id") == Raw(str(number).encode()):
            item.take("step_id")
        form = item.end(STEP, always=always)
        self.columns["extra"] = extra_column.pack(item.values, shape=form)

    @staticmethod
    def _answer(raw: Raw | None) -> str | None:
        """The answer that a call of ``finish`` gives."""
        values = object_of(raw)
        given = values.get("answer")
        return jsontext.decode_value(given) if begins(given, QUOTE) else None

    def add(self, builder: RowBuilder) -> None:
        """Add its rows."""
        columns = {key: value for key, value in self.columns.items() if value is not None}
        if columns.get("reasoning"):
            columns["reasoning"] = builder.text(columns["reasoning"])
        builder.step(columns)
        if self.call is not None:
            builder.call({"kind": "function", **self.call})
        if self.observation is not None:
            result: Columns = {"source": "environment", "text": builder.text(self.observation)}
            if self.observation.startswith(FAILED):
                result["is_error"] = True
            builder.observation(result, by_order=True)


def _outcome(steps: list[_Step]) -> Columns:
    """What the last step says of the run."""
    if not steps:
        return {}
    last = steps[-1]
    if last.action == ERROR:
        return {"error_type": ERROR, "error_message": last.observation}
    return {"final_answer": last.answer} if last.action in ENDS else {}


def _task(task_id: str | None, instruction: str | None, values: Mapping[str, Raw]) -> Columns:
    """The row of the table of tasks: which tools a right run calls, and with what."""
    task: Columns = {"task_id": task_id, "instruction": instruction}
    raw = values.get("ground_truth")
    truth = object_of(raw)
    names = listed_texts(truth.get("expected_tools"))
    if names is not None:
        given = truth.get("expected_args")
        arguments = object_of(given)
        calls = [{"name": n, "arguments": arguments.get(n, Raw(b"{}"))} for n in names]
        task["expected_calls"] = jsontext.text_of(calls)
    return without_marks(task)


CONVERTER = SageTrajectories()
