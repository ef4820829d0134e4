"""From ATIF to trajectories.

Every version is read alike, and leniently: what a column cannot hold stays in ``extra``, and
only what leaves no trajectory is an error.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import Raw

from adp.converters.atif import keys as k
from adp.converters.atif import trial
from adp.converters.atif.content import read_message, summary_of
from adp.converters.atif.early_observations import early_results
from adp.converters.atif.extra_columns import BLANK
from adp.converters.atif.extra_keys import read_beside
from adp.converters.atif.origin import named_pair, take_pairs
from adp.converters.atif.totals import take_totals
from adp.converters.atif.values import lift_code, spread
from adp.converters.json_objects import JsonObject, read_time, write_time
from adp.converters.reading import (
    BRACE,
    BRACKET,
    NULL,
    QUOTE,
    argument_columns,
    drop_nulls,
    take_text,
)
from adp.converters.via_atif import FORM, MADE
from adp_schema import extra_column, jsontext
from adp_schema.arrow import json_columns
from adp_schema.builder import RowBuilder
from adp_schema.errors import RecordError
from adp_schema.losses import Losses
from adp_schema.model import Columns
from adp_schema.protocols import RawRecord

_NUMBERED = "numbered"
"""In the form of a trajectory whose steps keep their numbers, as nothing writes them again."""
_BOUNDARIES = frozenset({"replace", "append", "truncate"})


class AtifReader:
    """Reads one record: a trajectory and those that are embedded in it.

    Args:
        record: the record, with the files of its trial.
        builder: takes the rows.
        losses: takes what is not kept.
    """

    def __init__(self, record: RawRecord, builder: RowBuilder, losses: Losses) -> None:
        self._record = record
        self._builder = builder
        self._losses = losses
        self._turns: list[Columns] = []
        self._ids: list[str] = []
        self._root = record.source_file.removesuffix(trial.MAIN)
        self._kept: Mapping[str, Any] = {}
        self._form: dict[str, Any] = {}

    def read(self) -> None:
        """Convert the record.

        Raises:
            RecordError: there is no trajectory in it.
        """
        data = self._record.data
        if b"\n" in data:
            # On one line every object is as long as its keys and values say (see lost_keys).
            data = msgspec.json.format(data, indent=0)
        self._trajectory(Raw(data), "$", {}, self._record.side_files)

    def read_item(self, raw: Raw, path: str, relation: Columns, kept: Mapping[str, Any]) -> str:
        """Convert a trajectory that is a part of the record, and give its id.

        Args:
            raw: the trajectory.
            path: where it is in the record.
            relation: columns of a subagent's, which say whose it is.
            kept: what stands beside it, for ``extra``.

        Raises:
            RecordError: it has no steps.
        """
        self._kept, self._form = kept, {_NUMBERED: True}
        self._trajectory(raw, path, relation, {})
        return self._ids[0]

    def _trajectory(
        self, raw: Raw, path: str, relation: Columns, files: Mapping[str, bytes]
    ) -> None:
        top = JsonObject(raw, path, self._losses)
        columns: Columns = dict(relation)
        steps = top.items("steps", "steps")
        if steps is None:
            raise RecordError("there are no steps", f"{path}.steps")
        embedded = top.items("subagent_trajectories", "trajectories")
        if embedded == []:
            top.form["subagent_trajectories"] = "empty"
        _ids(top, columns)
        columns["source_version"] = top.text("schema_version")
        self._agent(top, columns)
        take_totals(top, columns)
        columns["notes"] = top.text("notes")
        continued = top.text("continued_trajectory_ref")
        usual: Columns = {"embedded": embedded or []}
        if relation:
            usual = {"branch_kind": "subagent", "limit": columns.pop("parent_step")}
        read_beside(top, "trajectories", columns, usual, self._losses)
        pairs = take_pairs(top.form)
        form = top.end(k.TRAJECTORY, ("steps",))
        spread(top)
        key = trial.free_key(top.values)
        kept, self._kept, form = self._kept, {}, form | self._form
        for name, value in kept.items():
            while name in top.values:
                name += "_"
            top.values[name] = value
        result = trial.read_files(self._root, files, self._losses)
        if result.files:
            top.values[key] = Raw(jsontext.encode(result.files))
            form["own"] = [*form.get("own", ()), key]
            form["trial"] = {"key": key, "layouts": result.layouts}
            values = {name: value for name, value in columns.items() if value is not None}
            columns = {**result.columns, **values}
        self._turns = result.turns(sum(map(_is_turn, steps)))
        columns["extra"] = extra_column.pack(top.values, shape=form)
        self._builder.trajectory(columns)
        early = early_results(steps[0]) if steps else []
        for index, step in enumerate(steps):
            reader = _Step(self._builder, self._losses, self._turns, form)
            if early and index == 0:
                reader.results(early, -1, f"{path}.steps[0]")
            else:
                reader.read(step, index, path)
        if continued is not None:
            column = "target_id" if "target_path" in form.get(MADE, ()) else "target_path"
            add_link(self._builder, {"kind": "continuation", column: continued})
        limit = self._builder.next_step  # how many steps a branch shares, it says itself
        parent = self._builder.finish()
        self._ids.append(parent)
        for index, item in enumerate(embedded or []):
            branch = {"parent_id": parent, "branch_kind": "subagent", "parent_step": limit}
            self._trajectory(item, f"{path}.subagent_trajectories[{index}]", branch, {})
        for pair in pairs:
            self._builder.pair(named_pair(pair, self._ids))

    def _agent(self, top: JsonObject, columns: Columns) -> None:
        if top.first("agent") in (0, NULL):
            return
        agent = top.inner("agent", self._losses)
        if agent is None:
            raise RecordError("expected an object", f"{top.path}.agent")
        for key, column in k.AGENT_COLUMNS.items():
            columns[column] = agent.text(key)
            if columns[column] == k.UNKNOWN:
                columns[column] = None
                agent.form.setdefault("unknown", []).append(key)
        if agent.first("tool_definitions") == BRACKET:
            columns["tools"] = jsontext.one_line(agent.take("tool_definitions"))
            columns["tools_origin"] = "recorded"
        top.close("agent", agent, k.AGENT)


def add_link(builder: RowBuilder, columns: Columns) -> None:
    """Add a link; its texts may hold what no column can."""
    extra_column.mend_row(columns, json_columns("links"))
    builder.link(columns)


def _is_turn(raw: Raw) -> bool:
    """Whether a step is one that a model wrote in this run."""
    if jsontext.first_byte(raw) != BRACE:
        return False
    step = jsontext.decode_object(raw)
    made = bytes(step.get("llm_call_count", b"")) == b"0"
    copied = bytes(step.get("is_copied_context", b"")) == b"true"
    return bytes(step.get("source", b"")) == b'"agent"' and not made and not copied


def _ids(top: JsonObject, columns: Columns) -> None:
    """Ids of the trajectory and of its session; the session's stands in for a missing one."""
    columns["session_id"] = top.text("session_id")
    columns["source_id"] = top.text("trajectory_id")
    if columns["source_id"] is None and columns["session_id"] is not None:
        columns["source_id"] = columns["session_id"]
        top.form["id"] = "session_id"


class _Step:
    """Reads one step with its calls and results."""

    def __init__(
        self, builder: RowBuilder, losses: Losses, turns: list[Columns], form: dict[str, Any]
    ) -> None:
        self._builder = builder
        self._losses = losses
        self._turns = turns
        self._made, self._is_numbered = FORM in form, _NUMBERED in form
        self._has_texts = "timestamp_text" not in form.get(MADE, ())
        self._calls: list[Columns] = []
        self._answered: dict[str, int] = {}

    def read(self, raw: Raw, index: int, path: str) -> None:
        """Convert the step with this index."""
        step = JsonObject(raw, f"{path}.steps[{index}]", self._losses)
        if step.first("source") != QUOTE:
            raise RecordError("expected a source", f"{step.path}.source")
        turn = self._turns.pop(0) if self._turns and _is_turn(raw) else {}
        columns = self._columns(step, index)
        calls = step.items("tool_calls", "calls")
        if calls == []:
            step.form["tool_calls"] = "empty"
        results = self._results(step)
        _metrics(step, columns, self._losses)
        self._context(step, columns, results)
        usual = {"source": columns["source"], "kind": columns["kind"]}
        read_beside(step, "steps", columns, usual, self._losses)
        form = step.end(k.STEP, ("step_id", "source"))
        spread(step)
        if turn and not any(columns.get(name) is not None for name in turn):
            columns |= turn
            form["trial"] = True
        columns["extra"] = extra_column.pack(step.values, shape=form)
        at = self._builder.step(columns)
        for number, item in enumerate(calls or []):
            self._call(item, f"{step.path}.tool_calls[{number}]")
        self.results(results, at, step.path)

    def results(self, items: list[Raw], at: int, path: str) -> None:
        """Convert the results of a step, whose number and path are given."""
        for number, item in enumerate(items):
            self._result(item, at, f"{path}.observation.results[{number}]")

    def _columns(self, step: JsonObject, index: int) -> Columns:
        columns: Columns = {}
        if "step_id" in step.values:
            number = jsontext.unmark_json(jsontext.one_line(step.take("step_id")))
            if self._is_numbered or number != str(index + 1):
                step.form["step_id"] = number
        written = jsontext.decode_value(step.values["source"])
        columns["source"] = "environment"
        if written in ("system", "user", "agent"):
            columns["source"] = written
            step.take("source")
        columns["kind"] = k.USUAL_KINDS.get(columns["source"], "message")
        if (text := step.text("timestamp")) is not None:
            columns["timestamp_text"] = text
            columns["timestamp"], zoned = read_time(text)
            columns["timestamp_zone_known"] = zoned
            if not self._has_texts and text == write_time(
                columns["timestamp"], None, zoned=zoned is not False
            ):
                del columns["timestamp_text"]
        columns["model"] = step.text("model_name")
        columns["reasoning_effort"] = step.text("reasoning_effort")
        if step.first("reasoning_effort") and step.first("reasoning_effort") in b"-0123456789":
            columns["reasoning_effort"] = bytes(step.take("reasoning_effort")).decode("ascii")
            step.form["effort"] = "number"
        if self._made and bytes(step.values.get("message", b"")) == b'""':
            # The record was made of another format, where a step may have no text.
            step.take("message")
            step.form[BLANK] = True
        elif "message" in step.values and step.first("message") != NULL:
            read_message(step.take("message"), columns, step.form, self._builder)
        reasoning = step.text("reasoning_content")
        columns["reasoning"] = None if reasoning is None else self._builder.text(reasoning)
        columns["is_copied_context"] = step.flag("is_copied_context")
        columns["llm_call_count"] = step.number("llm_call_count", bits=32)
        return columns

    def _results(self, step: JsonObject) -> list[Raw]:
        if step.first("observation") in (0, NULL):
            return []
        child = step.inner("observation", self._losses)
        if child is None:
            raise RecordError("expected an object", f"{step.path}.observation")
        results = child.items("results", "results")
        if results == []:
            child.form["empty"] = True
        step.close("observation", child, k.OBSERVATION)
        return results or []

    def _context(self, step: JsonObject, columns: Columns, results: list[Raw]) -> None:
        """A step that says how the context was edited."""
        raw = step.values.get("extra")
        if raw is None or jsontext.first_byte(raw) != BRACE:
            return
        context = jsontext.decode_object(raw).get("context_management")
        if context is None or jsontext.first_byte(context) != BRACE:
            return
        boundary = jsontext.decode_object(context).get("boundary")
        columns["kind"] = "context_edit"
        if boundary is None or jsontext.first_byte(boundary) != QUOTE:
            return
        word = jsontext.decode_value(boundary)
        if word not in _BOUNDARIES:
            return
        columns["edit_boundary"] = word
        if word == "replace":
            columns["edit_summary"] = summary_of(results)

    def _call(self, raw: Raw, path: str) -> None:
        call = JsonObject(raw, path, self._losses)
        columns: Columns = {"kind": "function", "call_id": call.text("tool_call_id")}
        columns["name"] = call.text("function_name")
        first = call.first("arguments")
        if first not in (0, NULL):
            value = call.take("arguments")
            columns |= argument_columns(value)
        read_beside(call, "tool_calls", columns, {"kind": "function"}, self._losses)
        if columns["kind"] == "code":
            lift_code(columns)
        columns["extra"] = _pack(call, k.CALL)
        native = columns.get("call_id")
        number = self._builder.call(columns)
        self._calls.append({"native": native, "call": number, "call_id": columns.get("call_id")})

    def _result(self, raw: Raw, at: int, path: str) -> None:
        result = JsonObject(raw, path, self._losses)
        columns: Columns = {"source": "environment"}
        answers = result.text("source_call_id")
        if "content" in result.values and result.first("content") != NULL:
            read_message(result.take("content"), columns, result.form, self._builder)
        refs: list[Raw] = []
        if result.first("subagent_trajectory_ref") not in (0, NULL):
            refs_raw = result.take("subagent_trajectory_ref")
            columns["subagent"] = jsontext.one_line(refs_raw)
            if jsontext.first_byte(refs_raw) == BRACKET:
                refs = jsontext.decode_array(refs_raw)
        usual = {"source": "environment"}
        read_beside(result, "observations", columns, usual, self._losses)
        columns["extra"] = _pack(result, k.RESULT)
        again = self._again(answers)
        if again is not None:
            columns |= {"call_step": at, "call": again["call"], "call_id": again["call_id"]}
            if again["call_id"] != answers:
                columns["native_call_id"] = answers
            answers = None
        self._builder.observation(columns, answers=answers)
        for ref in refs:
            self._subagent(ref, at, columns)

    def _again(self, answers: str | None) -> Columns | None:
        """The call of this step that a further result with its id answers."""
        if answers is None:
            return None
        calls = [call for call in self._calls if call["native"] == answers]
        count = self._answered[answers] = self._answered.get(answers, 0) + 1
        return calls[-1] if calls and count > len(calls) else None

    def _subagent(self, raw: Raw, at: int, result: Columns) -> None:
        """Note that a result refers to the trajectory of a subagent."""
        if jsontext.first_byte(raw) != BRACE:
            return
        ref = jsontext.decode_object(raw)
        columns: Columns = {"kind": "subagent", "step": at}
        if result.get("call_step") == at:
            columns["call"] = result["call"]
        for key, column in (
            ("trajectory_id", "target_id"),
            ("trajectory_path", "target_path"),
            ("session_id", "target_session_id"),
        ):
            columns[column] = take_text(ref, key)
        drop_nulls(ref)
        columns["extra"] = extra_column.pack(ref)
        add_link(self._builder, columns)


def _pack(source: JsonObject, order: tuple[str, ...]) -> str | None:
    """The column ``extra`` of an object."""
    form = source.end(order)
    spread(source)
    return extra_column.pack(source.values, shape=form)


def _metrics(step: JsonObject, columns: Columns, losses: Losses) -> None:
    raw = step.values.get("metrics", Raw())
    if jsontext.first_byte(raw) != BRACE or jsontext.lost_keys(raw, jsontext.decode_object(raw)):
        return
    metrics = step.inner("metrics", losses)
    assert metrics is not None
    for key, column in k.TOKEN_COLUMNS.items():
        columns[column] = metrics.number(key, bits=64)
    columns["cost_usd"] = metrics.number("cost_usd")
    if columns["cost_usd"] is None and "cost_usd" not in metrics.names:
        columns["cost_usd"] = metrics.number("cost")
        if columns["cost_usd"] is not None:
            metrics.form["cost"] = "cost"
    for key in k.ID_COLUMNS:
        columns[key] = metrics.integers(key)
    columns["logprobs"] = metrics.floats("logprobs")
    step.close("metrics", metrics, k.METRICS)
