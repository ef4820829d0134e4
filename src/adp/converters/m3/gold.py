"""Reference data: a task, and the run that solves it.

Three forms are read: with ``merged_query`` and one flat list (old), with a list a turn and
``turns``, and without ``turns`` and with a null ``plan`` (before thoughts were added).

The items of a turn become steps: ``input`` one of the user, ``output`` a call with its ``plan`` as
reasoning and its ``agent`` as actor, ``response`` an observation, ``answer`` the answer.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from msgspec import Raw

from adp.converters.json_objects import JsonObject
from adp.converters.m3 import keys as k
from adp.converters.m3.tools import offered
from adp.converters.reading import (
    BRACE,
    BRACKET,
    NULL,
    QUOTE,
    argument_columns,
    begins,
    opaque_columns,
)
from adp.converters.scalars import is_null
from adp_schema import extra_column, jsontext
from adp_schema.losses import Losses
from adp_schema.model import Columns
from adp_schema.protocols import RawRecord

if TYPE_CHECKING:
    from adp_schema.builder import RowBuilder

_ASKED = ("turns", "doc_collections", "merged_query", "num_hops")
GOLD = (
    *("sample_id", "tools", "trajectory", "tool_availability_policy", "tool_usage_policy"),
    "final_answer_policy",
)
"""The keys that columns take, in the order in which they are written when none is known."""

ASK = ("input",)
ACT = ("plan", "question", "agent", "output")
ANSWER = ("plan", "answer", "raw_answer")
RESPONSE = ("response",)
OUTPUT = ("name", "arguments")


def is_gold(record: Mapping[str, Raw]) -> bool:
    """Whether a record is one of reference data."""
    listed = jsontext.first_byte(record.get("trajectory", b"")) == BRACKET
    return listed and "sample_id" in record and any(key in record for key in _ASKED)


def read_gold(record: RawRecord, builder: RowBuilder, losses: Losses) -> bool:
    """Convert a record of reference data; False when it is none."""
    data = record.data
    if jsontext.first_byte(data.lstrip()) != BRACE or not is_gold(jsontext.decode_object(data)):
        return False
    if b"\n" in data:
        data = jsontext.one_line(data).encode("utf-8")
    top = JsonObject(data, "$", losses)
    task = task_columns(top.values)
    columns = _head(top)
    turns = _turns(top)
    form = top.end(GOLD)
    form["gold"] = True
    columns["extra"] = extra_column.pack(top.values, shape=form)
    builder.trajectory(columns)
    for turn in turns:
        for n, (raw, path) in enumerate(turn):
            _item(raw, path, builder, losses, starts=n == 0)
    if task.get("task_id") is not None:
        builder.task(task)
    builder.finish()
    return True


def _head(top: JsonObject) -> Columns:
    """The columns of the trajectory."""
    columns: Columns = {"tags": ["reference"]}
    if top.first("sample_id") == QUOTE:
        columns["task_id"] = top.text("sample_id")
    elif top.first("sample_id") and top.first("sample_id") in b"-0123456789":
        columns["task_id"] = bytes(top.take("sample_id")).decode("ascii")
        top.form["number"] = True
    columns["source_id"] = columns.get("task_id")
    tools = offered(top.values["tools"]) if "tools" in top.values else None
    if tools is not None:
        columns["tools"], columns["tools_origin"] = tools, "recorded"
        top.take("tools")
    for key, column in k.POLICIES.items():
        columns[column] = top.text(key)
    return columns


def _turns(top: JsonObject) -> list[list[tuple[Raw, str]]]:
    """The items of the run by turns, with their paths."""
    raw = top.take("trajectory")
    items = jsontext.decode_array(raw)
    nested = [
        jsontext.decode_array(item) if jsontext.first_byte(item) == BRACKET else []
        for item in items
    ]
    if nested and all(nested):
        return [
            [(result, f"$.trajectory[{n}][{m}]") for m, result in enumerate(turn)]
            for n, turn in enumerate(nested)
        ]
    top.form["flat"] = True
    return [[(item, f"$.trajectory[{n}]") for n, item in enumerate(items)]]


def _item(raw: Raw, path: str, builder: RowBuilder, losses: Losses, *, starts: bool) -> None:
    """Add one item of the run."""
    # A question begins a turn, and nothing else does.
    odd = {"turn": True} if starts else {}
    item = JsonObject(raw, path, losses) if jsontext.first_byte(raw) == BRACE else None
    if item is not None and item.first("input") == QUOTE:
        text = builder.text(item.text("input") or "")
        columns: Columns = {"source": "user", "kind": "message", "text": text}
        _step(item, ASK, {} if starts else {"turn": False}, columns, builder)
    elif item is not None and not starts and _is_response(item):
        _response(item, builder)
    elif item is not None and item.first("output") == BRACE:
        _act(item, odd, builder, losses)
    elif item is not None and item.first("answer") == QUOTE:
        columns = {"source": "agent", "kind": "llm_turn", "reasoning": item.text("plan")}
        columns["text"] = builder.text(item.text("answer") or "")
        _step(item, ANSWER, odd, columns, builder)
    else:
        columns = {"source": "environment", "kind": "event", **opaque_columns(raw)}
        columns["extra"] = extra_column.pack(None, shape=odd)
        builder.step(columns)


def _is_response(item: JsonObject) -> bool:
    return item.first("response") not in (0, NULL) and item.first("output") == 0


def _step(
    item: JsonObject,
    order: tuple[str, ...],
    form: dict[str, Any],
    columns: Columns,
    builder: RowBuilder,
) -> None:
    form = {**form, **item.end(order)}
    columns["extra"] = extra_column.pack(item.values, shape=form)
    builder.step(columns)


def _act(item: JsonObject, first: dict[str, Any], builder: RowBuilder, losses: Losses) -> None:
    """A turn of the agent with a call."""
    columns: Columns = {"source": "agent", "kind": "llm_turn"}
    columns["reasoning"], columns["actor"] = item.text("plan"), item.text("agent")
    output = item.inner("output", losses)
    assert output is not None
    call: Columns = {"kind": "function", "name": output.text("name")}
    if output.first("arguments") not in (0, NULL):
        value = output.take("arguments")
        call |= argument_columns(value)
    item.close("output", output, OUTPUT)
    _step(item, ACT, first, columns, builder)
    builder.call(call)


def _response(item: JsonObject, builder: RowBuilder) -> None:
    """What came back."""
    columns: Columns = {"source": "environment"}
    if item.first("response") == QUOTE:
        columns["text"] = builder.text(item.text("response") or "")
    else:
        columns |= opaque_columns(item.take("response"))
    form = item.end(RESPONSE)
    columns["extra"] = extra_column.pack(item.values, shape=form)
    builder.observation(columns, by_order=True)


# ---- the task ------------------------------------------------------------------------------


def task_columns(values: Mapping[str, Raw]) -> Columns:
    """The row of the table of tasks, from the first level of a record."""
    columns: Columns = {"task_id": _id(values.get("sample_id"))}
    turns = _task_turns(values)
    columns["turns"] = jsontext.text_of(turns)
    queries = [turn["query"] for turn in turns if turn.get("query") is not None]
    if queries and jsontext.first_byte(queries[0]) == QUOTE:
        columns["instruction"] = jsontext.decode_value(queries[0])
    columns["answers"] = jsontext.text_of([turn["gold_answer"] for turn in turns])
    columns["expected_calls"] = jsontext.text_of(_expected(values["trajectory"]))
    columns["gold_trajectory"] = jsontext.one_line(values["trajectory"])
    config = {key: values[key] for key in ("doc_collections", "API_info") if key in values}
    if config:
        columns["environment_config"] = jsontext.one_line(jsontext.encode(config))
    if jsontext.first_byte(values.get("type", b"")) == QUOTE:
        columns["difficulty"] = jsontext.decode_value(values["type"])
    return {
        name: jsontext.mend_json(value)[0] if jsontext.has_mark(value) else value
        for name, value in columns.items()
        if value is not None
    }


def _id(raw: Raw | None) -> str | None:
    if raw is None or is_null(raw):
        return None
    text = bytes(raw).decode("utf-8")
    return jsontext.decode_value(raw) if jsontext.first_byte(raw) == QUOTE else text


def _task_turns(values: Mapping[str, Raw]) -> list[dict[str, Any]]:
    """Query and answers of each turn: as they are told, else from the run."""
    if jsontext.first_byte(values.get("turns", b"")) == BRACKET:
        taken_fields = [
            jsontext.decode_object(raw) if jsontext.first_byte(raw) == BRACE else {}
            for raw in jsontext.decode_array(values["turns"])
        ]
        return [_turn(turn, "query", "answer") for turn in taken_fields]
    if "merged_query" in values:
        return [_turn(values, "merged_query", "answer")]
    out = []
    for turn in _nested(values["trajectory"]):
        ask = next((item["input"] for item in turn if "input" in item), None)
        end = next((item for item in reversed(turn) if "answer" in item), {})
        out.append({**_turn(end, "", "answer"), "query": ask})
    return out


def _turn(values: Mapping[str, Raw], query: str, answer: str) -> dict[str, Any]:
    return {
        "query": values.get(query),
        "gold_answer": values.get(answer),
        "raw_answer": values.get("raw_answer"),
        "was_truncated": values.get("was_raw_answer_truncated"),
    }


def _nested(raw: Raw) -> list[list[dict[str, Raw]]]:
    """The items of a run by turns, those that are objects."""
    items = jsontext.decode_array(raw)
    nested = [jsontext.decode_array(item) for item in items if jsontext.first_byte(item) == BRACKET]
    turns = nested if len(nested) == len(items) else [items]
    return [
        [jsontext.decode_object(item) for item in turn if jsontext.first_byte(item) == BRACE]
        for turn in turns
    ]


def _expected(raw: Raw) -> list[dict[str, Raw]]:
    """The calls of the reference run."""
    calls = [item["output"] for turn in _nested(raw) for item in turn if "output" in item]
    outputs = [jsontext.decode_object(call) for call in calls if begins(call, BRACE)]
    return [{key: output[key] for key in OUTPUT if key in output} for output in outputs]
