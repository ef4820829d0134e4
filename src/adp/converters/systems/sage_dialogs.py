"""SAGE's dialogs for fine-tuning (``agent_sft``): a goal, turns, and the tools that they use.

A turn of a tool names the tool, so the turn of the assistant before it gets a call of it; the
source says no arguments. Several turns of tools in a row answer several calls. Source: the
generator and the schema of ``agent_sft`` in isage-data.

``$shape`` of a call: ``made``: it comes from the turn of the tool. Of a result: ``result``: its
payload was a JSON string.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from msgspec import Raw

from adp.converters.format import Format
from adp.converters.json_objects import JsonObject, arrange
from adp.converters.reading import BRACE, BRACKET, QUOTE, begins
from adp.converters.systems.objects import (
    call_of,
    function_columns,
    listed,
    listed_texts,
    object_of,
    record_object,
    report_content,
    result_columns,
    without_marks,
    written_text,
)
from adp.converters.unwritten_columns import report_columns
from adp.converters.writing import is_seen, leave_out, report_beside, spoken_text
from adp_schema import extra_column, jsontext, media
from adp_schema.extra_column import Extra, original, unpack
from adp_schema.losses import Losses
from adp_schema.model import Columns, Observation, Step, Trajectory
from adp_schema.protocols import Match, RawRecord

if TYPE_CHECKING:
    from adp_schema.builder import RowBuilder

NAME = "sage_dialogs"
DIALOG = ("dialog_id", "goal", "turns", "target_tools", "metadata", "split")
TURN = ("role", "tool_id", "content", "result")
SOURCES = {"user": "user", "assistant": "agent", "system": "system"}
_ROLES = {source: role for role, source in SOURCES.items()}

_RUN = frozenset({"source_id", "split"})
_STEP = frozenset({"source", "kind", "text"})
_CALL = frozenset({"name"})
_RESULT = frozenset({"name", "text", "structured"})


class SageDialogs(Format):
    """The format ``sage_dialogs``."""

    name = NAME
    title = "SAGE dialogs (agent_sft)"
    recognised = "`dialog_id`, `turns` and `target_tools`"
    versions = "Reads and writes dialogs of isage-data 0.2."

    def sniff(self, record: Mapping[str, Raw]) -> Match:
        """Turns with the tools that they use."""
        keys = {"dialog_id", "turns", "target_tools"} <= set(record)
        return Match.STAMP if keys and begins(record["turns"], BRACKET) else Match.NO

    def read(self, record: RawRecord, builder: RowBuilder, losses: Losses) -> None:
        """Convert a dialog into one trajectory."""
        top = record_object(record, losses)
        turns = listed(top, "turns")
        task = _task(top.values)
        name = top.text("dialog_id")
        columns: Columns = {"source_id": name, "task_id": name, "split": top.text("split")}
        form = top.end(DIALOG)
        columns["extra"] = extra_column.pack(top.values, shape=form)
        builder.trajectory({key: value for key, value in columns.items() if value is not None})
        if task.get("task_id") is not None:
            builder.task(task)
        _Dialog(turns, builder, losses).read()

    def write(
        self, trajectory: Trajectory, losses: Losses, flavour: str | None = None
    ) -> dict[str, Any]:
        """Convert a trajectory into a dialog."""
        return _Writer(trajectory, losses).record()


def _task(values: Mapping[str, Raw]) -> Columns:
    """The row of the table of tasks."""
    task: Columns = {}
    for column, key in (("task_id", "dialog_id"), ("instruction", "goal"), ("split", "split")):
        if begins(values.get(key), QUOTE):
            task[column] = jsontext.decode_value(values[key])
    names = listed_texts(values.get("target_tools"))
    if names is not None:
        task["expected_calls"] = jsontext.text_of([{"name": name} for name in names])
    raw = values.get("metadata")
    about = object_of(raw)
    if begins(about.get("difficulty"), QUOTE):
        task["difficulty"] = jsontext.decode_value(about["difficulty"])
    return without_marks(task)


class _Dialog:
    """The turns of a dialog while they are read."""

    def __init__(self, turns: list[Raw], builder: RowBuilder, losses: Losses) -> None:
        self._turns = [JsonObject(raw, f"$.turns[{n}]", losses) for n, raw in enumerate(turns)]
        self._builder = builder

    def read(self) -> None:
        place, turns = 0, self._turns
        while place < len(turns):
            turn = turns[place]
            if _is_tool(turn):  # none of these answers a turn of the assistant
                self._result(turn)
                place += 1
                continue
            is_agent = self._step(turn)
            place += 1
            results = []
            while is_agent and place < len(turns) and _is_tool(turns[place]):
                results.append(turns[place])
                place += 1
            for result in results:
                name = _text(result.values.get("tool_id"))
                columns: Columns = {"kind": "function", "name": name}
                columns["extra"] = extra_column.pack(shape={"made": True})
                self._builder.call(columns)
            for result in results:
                self._result(result, by_order=True)

    def _step(self, turn: JsonObject) -> bool:
        role = _text(turn.values.get("role"))
        source = SOURCES.get(role or "", "environment")
        if role in SOURCES:
            turn.take("role")
        kind = "llm_turn" if source == "agent" else "message"
        columns: Columns = {"source": source, "kind": kind}
        text = turn.text("content")
        if text is not None:
            columns["text"] = self._builder.text(text)
        columns["extra"] = extra_column.pack(turn.values, shape=turn.end(TURN))
        self._builder.step(columns)
        return source == "agent"

    def _result(self, turn: JsonObject, *, by_order: bool = False) -> None:
        columns: Columns = {"source": "environment"}
        turn.take("role")
        columns["name"], text = turn.text("tool_id"), turn.text("content")
        if text is not None:
            columns["text"] = self._builder.text(text)
        payload = _text(turn.values.get("result"))
        if payload is not None and payload[:1] in "{[" and payload and jsontext.is_valid(payload):
            if not jsontext.has_mark(payload) and "\n" not in payload:
                columns["structured"] = turn.text("result")
                turn.form["result"] = "json_string"
        elif turn.first("result") in (BRACE, BRACKET):
            columns["structured"] = jsontext.one_line(turn.take("result"))
        columns["extra"] = extra_column.pack(turn.values, shape=turn.end(TURN))
        self._builder.observation(columns, by_order=by_order)


def _is_tool(turn: JsonObject) -> bool:
    return _text(turn.values.get("role")) == "tool"


def _text(raw: Raw | None) -> str | None:
    return jsontext.decode_value(raw) if begins(raw, QUOTE) else None


class _Writer:
    """Writes one dialog."""

    def __init__(self, run: Trajectory, losses: Losses) -> None:
        self._run, self._losses = run, losses
        self._native = run.source_format == NAME

    def record(self) -> dict[str, Any]:
        run, extra = self._run, self._extra(self._run)
        turns: list[Any] = [self._result(row, f"$.early_observations[{n}]")
                            for n, row in enumerate(run.early_observations)]  # fmt: skip
        for number, step in enumerate(run.steps):
            turns += self._turn(step, f"$.steps[{number}]")
        known: dict[str, Any] = {"turns": turns}
        known["dialog_id"] = written_text(run, run, "source_id", extra)
        known["split"] = written_text(run, run, "split", extra)
        same = run.task_id == run.source_id
        carried = _RUN | {"task_id"} if same else _RUN
        report_columns(run, self._carried(carried), "$", self._losses)
        if not self._native:
            known["dialog_id"] = known["dialog_id"] or jsontext.string(run.trajectory_id or "")
            asked = next((s.text for s in run.steps if s.source == "user"), None)
            goal = run.task.instruction if run.task is not None else None
            known["goal"] = jsontext.string(goal or asked or "")
            used = {call.name for step in run.steps for call in step.calls if call.name}
            known["target_tools"] = [jsontext.string(name) for name in sorted(used)]
            known["metadata"] = {"num_turns": len(turns)}
            report_beside(run, self._losses)
        return arrange(known, extra.fields, extra.shape, DIALOG)

    def _extra(self, row: Any) -> Extra:
        extra = unpack(row.extra)
        return extra if self._native else Extra(escaped=extra.escaped)

    def _carried(self, columns: frozenset[str]) -> frozenset[str]:
        return columns | {"extra"} if self._native else columns

    def _turn(self, step: Step, path: str) -> list[Any]:
        """The turn of a step, and those of its results."""
        results = [self._result(row, f"{path}.observations[{n}]")
                   for n, row in enumerate(step.observations)]  # fmt: skip
        answered = {row.call for row in step.observations if row.call_step == step.step}
        for n, call in enumerate(step.calls):
            report_columns(
                call,
                self._carried(function_columns(call, _CALL)),
                f"{path}.calls[{n}]",
                self._losses,
            )
            if call.call not in answered and call.name is not None:
                reason = "only the turn of its result would name the tool"
                self._losses.add(f"{path}.calls[{n}].name", reason)
        if not self._native and not is_seen(step):
            leave_out(step, path, self._losses)
            return results
        extra = self._extra(step)
        report_content(step, path, self._losses)
        report_columns(step, self._carried(_STEP), path, self._losses)
        known: dict[str, Any] = {}
        if "role" not in extra.fields:
            known["role"] = _ROLES.get(step.source or "user", "user")
            if step.source not in _ROLES:
                self._losses.add(f"{path}.source", f"{step.source} is written as the role user")
        known["content"] = written_text(self._run, step, "text", extra)
        if not self._native:
            text = spoken_text(step, extra) or ""
            known["content"] = jsontext.string(media.restore(text, self._run.media))
        return [arrange(known, extra.fields, extra.shape, TURN), *results]

    def _result(self, row: Observation, path: str) -> Any:
        """The turn of a result."""
        extra, run = self._extra(row), self._run
        report_content(row, path, self._losses)
        report_columns(row, self._carried(result_columns(run, row, _RESULT)), path, self._losses)
        known: dict[str, Any] = {"role": "tool"}
        known["tool_id"] = written_text(run, row, "name", extra)
        known["content"] = written_text(run, row, "text", extra)
        payload = original(row, "structured", extra)
        if payload is not None:
            is_text = extra.shape.get("result") == "json_string" or not self._native
            known["result"] = jsontext.string(payload) if is_text else jsontext.raw(payload)
        if not self._native:
            call = call_of(run, row)
            name = call.name if call is not None else None
            known["tool_id"] = known["tool_id"] or jsontext.string(name or "")
            known["content"] = known["content"] or ""
        return arrange(known, extra.fields, extra.shape, TURN)


CONVERTER = SageDialogs()
