"""Writing reference data: from the steps of the run and the keys that the trajectory keeps."""

from __future__ import annotations

from typing import Any

from adp.converters.json_objects import arrange, members
from adp.converters.m3 import gold as g
from adp.converters.m3 import keys as k
from adp.converters.m3.model_text import same_json
from adp.converters.m3.tools import bare
from adp.converters.m3.write_parts import Item, M3Parts
from adp.converters.unwritten_columns import report_columns
from adp.converters.writing import string
from adp_schema import jsontext
from adp_schema.arrow import json_columns
from adp_schema.extra_column import original, unpack
from adp_schema.losses import Losses
from adp_schema.model import Observation, Step, Trajectory
from adp_schema.parts import resolve

_RUN = frozenset({"task_id", "source_id", "tools", "tags", "extra", *k.POLICIES.values()})
_STEP = frozenset({"source", "kind", "text", "content", "reasoning", "actor", "extra"})
_CALL = frozenset({"kind", "name", "arguments", "arguments_raw"})
_RESULT = frozenset({"source", "text", "content", "extra"})


def was_gold(run: Trajectory) -> bool:
    """Whether a trajectory was read from reference data."""
    return run.source_format == k.NAME and bool(unpack(run.extra).shape.get("gold"))


def write_gold(run: Trajectory, losses: Losses) -> dict[str, Any]:
    """Convert the trajectory of a task."""
    parts_writer = M3Parts(run, losses, native=True)
    extra = unpack(run.extra)
    report_columns(run, _RUN, "$", losses)
    known: Item = {}
    task_id = original(run, "task_id", extra)
    if task_id is not None:
        number = extra.shape.get("number") and jsontext.is_valid(task_id)
        known["sample_id"] = jsontext.raw(task_id) if number else jsontext.string(task_id)
    if run.tools is not None:
        tools = bare(run.tools)
        known["tools"] = jsontext.raw(run.tools) if tools is None else tools
    turns = _turns(parts_writer, run)
    flat = extra.shape.get("flat")
    known["trajectory"] = [item for turn in turns for item in turn] if flat else turns
    for key, column in k.POLICIES.items():
        policy = parts_writer.text(run, column, extra)
        known[key] = None if policy is None else jsontext.string(policy)
    out = arrange(known, extra.fields, extra.shape, g.GOLD)
    _report(run, out, losses)
    return out


def _turns(parts_writer: M3Parts, run: Trajectory) -> list[list[Any]]:
    turns: list[list[Any]] = []
    for index, row in enumerate(run.early_observations):
        report_columns(row, frozenset(), f"$.early_observations[{index}]", parts_writer.losses)
    for index, step in enumerate(run.steps):
        path = f"$.steps[{index}]"
        starts = unpack(step.extra).shape.get("turn", step.source == "user")
        if starts or not turns:
            turns.append([])
        turns[-1].append(_item(parts_writer, step, path))
        for n, row in enumerate(step.observations):
            turns[-1].append(_response(parts_writer, row, f"{path}.observations[{n}]"))
    return turns


def _item(parts_writer: M3Parts, step: Step, path: str) -> Any:
    extra = parts_writer.extra(step)
    report_columns(step, _STEP, path, parts_writer.losses)
    parts = resolve(original(step, "content", extra), step.text)
    if len(parts) == 1 and parts[0].type == "opaque":
        return parts[0].value
    text = string(parts_writer.text(step, "text", extra))
    kept = dict(extra.fields)
    if step.source == "user":
        return arrange({"input": text}, kept, extra.shape, g.ASK)
    known: Item = {"plan": string(parts_writer.text(step, "reasoning", extra))}
    if not step.calls:
        known["answer"] = text
        if step.actor is not None:
            known["agent"] = string(original(step, "actor", extra))
        return arrange(known, kept, extra.shape, g.ANSWER)
    known["agent"] = string(original(step, "actor", extra))
    for n, call in enumerate(step.calls):
        where = f"{path}.calls[{n}]"
        report_columns(call, _CALL if n == 0 else frozenset(), where, parts_writer.losses)
    call = step.calls[0]
    call_extra = unpack(call.extra)
    output: Item = {"name": string(original(call, "name", call_extra))}
    written = original(call, "arguments", call_extra)
    loose = original(call, "arguments_raw", call_extra)
    if written is not None or loose is not None:
        value = written if written is not None else loose
        as_text = call.arguments_kind in ("json_string", "invalid")
        output["arguments"] = jsontext.string(value) if as_text else jsontext.raw(value)
    output = {key: value for key, value in output.items() if value is not None}
    child = members(kept.pop("output", None)) or {}
    known["output"] = arrange(output, child, extra.shape.get("output") or {}, g.OUTPUT)
    if text is not None:
        known["answer"] = text
    return arrange(known, kept, extra.shape, g.ACT)


def _response(parts_writer: M3Parts, row: Observation, path: str) -> Any:
    extra = parts_writer.extra(row)
    report_columns(row, _RESULT, path, parts_writer.losses)
    parts = resolve(original(row, "content", extra), row.text)
    if len(parts) == 1 and parts[0].type == "opaque":
        value: Any = parts[0].value
    else:
        value = string(parts_writer.text(row, "text", extra))
    return arrange({"response": value}, extra.fields, extra.shape, g.RESPONSE)


def _report(run: Trajectory, out: Item, losses: Losses) -> None:
    """Report columns of the task that the record, written from the steps, does not say."""
    task = run.task
    if task is None:
        return
    data = jsontext.encode(out)
    if not jsontext.is_valid(data):
        data = jsontext.sanitise(data)
    values = jsontext.decode_object(data)
    task_columns = g.task_columns(values) if g.is_gold(values) else {}
    extra = unpack(task.extra)
    names = {
        name
        for name, value in task_columns.items()
        if any(
            value == stored
            or (name in json_columns("tasks") and stored is not None and same_json(value, stored))
            for stored in (getattr(task, name), original(task, name, extra))
        )
    }
    report_columns(task, frozenset(names), "$.task", losses)
