"""ADP v1 JSON: edits show, and other formats are written as 1.5.0."""

from __future__ import annotations

import json
from typing import Any

import pytest

from adp.converters.adp_v1 import CONVERTER
from adp_schema.builder import Origin, RowBuilder
from adp_schema.losses import Losses
from adp_schema.model import Media, Trajectory
from adp_schema.parts import Parts
from adp_schema.reader import assemble, to_models
from tests.converters.adp_v1_records import (
    API,
    CODE,
    ENV,
    PNG,
    SAY,
    USER,
    WEB,
    assert_same,
    read,
    record,
    record_with,
    without,
)
from tests.roundtrip import write_one

# ---- edits ---------------------------------------------------------------------------------


def edited(data: dict[str, Any], edit: Any) -> Any:
    run = read(data)
    edit(run)
    return json.loads(write_one(CONVERTER, run))


WHOLE = record(
    USER,
    {"tool_call_id": "a", **API, "reward": 1.5},
    {"tool_call_id": "a", **ENV},
    {**CODE, "my": 1},
    WEB,
    {**SAY, "description": "d", "reasoning_content": "r"},
    details={"k": "v"},
    schema_version="1.5.0",
)


def test_a_dropped_step_is_gone():
    out = edited(WHOLE, lambda run: run.steps.pop(2))
    expected = [item for n, item in enumerate(WHOLE["content"]) if n not in (3, 4)]
    assert out == {**WHOLE, "content": expected}


@pytest.mark.parametrize(
    ("edit", "index", "change"),
    [
        (lambda run: setattr(run.steps[1].calls[0], "name", "run"), 1, {"function": "run"}),
        (lambda run: setattr(run.steps[1].calls[0], "arguments", "{}"), 1, {"kwargs": {}}),
        (lambda run: setattr(run.steps[1].calls[0], "call_id", "z"), 1, {"tool_call_id": "z"}),
        (lambda run: setattr(run.steps[1], "reward", 2.0), 1, {"reward": 2.0}),
        (lambda run: setattr(run.steps[1], "text", "new"), 1, {"description": "new"}),
        (lambda run: setattr(run.steps[1], "reasoning", "r"), 1, {"reasoning_content": "r"}),
        (lambda run: setattr(run.steps[0], "text", "new"), 0, {"content": "new"}),
        (lambda run: setattr(run.steps[0], "source", "agent"), 0, None),
        (lambda run: setattr(run.steps[1].observations[0], "text", "n"), 2, {"content": "n"}),
        (lambda run: setattr(run.steps[1].observations[0], "name", "n"), 2, {"name": "n"}),
        (lambda run: setattr(run.steps[2].calls[0], "name", "py"), 3, {"language": "py"}),
        (lambda run: setattr(run.steps[2].calls[0], "arguments_raw", "x"), 3, {"content": "x"}),
        (lambda run: setattr(run.steps[2].observations[0], "axtree", "t"), 4, {"axtree": "t"}),
        (lambda run: setattr(run.steps[3], "text", "new"), 5, {"content": "new"}),
        (
            lambda run: setattr(run.steps[3], "reasoning", "other"),
            5,
            {"description": "other", "reasoning_content": None},
        ),
    ],
)
def test_an_edit_shows_and_nothing_else_changes(edit, index, change):
    out = edited(WHOLE, edit)
    if change is None:
        change = {"class_": "message_action", "description": None}
        expected = [without(without(USER, "name"), "source") | change, *WHOLE["content"][1:]]
    else:
        expected = list(WHOLE["content"])
        expected[index] = {**expected[index], **change}
        if change == {"reasoning_content": None, "description": "other"}:
            expected[index] = out["content"][index]
            assert out["content"][index]["description"] == "other"
            assert not out["content"][index].get("reasoning_content")
    assert out == {**WHOLE, "content": expected}


def test_edited_numbers_and_characters_win_over_the_spelling_of_the_source():
    run = read(
        record_with('{"class_":"message_action","content":"a\\ud83d","reward":1.50,"my":NaN}')
    )
    run.steps[0].reward = 2.0
    run.steps[0].text = "b"
    assert b'"content":"b","reward":2.0,"my":NaN' in write_one(CONVERTER, run)


def test_columns_that_an_edit_fills_are_reported():
    losses = Losses()
    run = read(WHOLE)
    run.success = True
    run.steps[1].loss_weight = 0.0
    run.steps[1].calls[0].status = "ok"
    run.steps[1].observations[0].is_error = True
    CONVERTER.write(run, losses)
    assert [item["path"] for item in losses.items] == [
        "$.success",
        "$.steps[1].loss_weight",
        "$.steps[1].calls[0].status",
        "$.steps[1].observations[0].is_error",
    ]


# ---- from other formats --------------------------------------------------------------------


def other_trajectory(build: Any, **columns: Any) -> Trajectory:
    builder = RowBuilder()
    builder.begin(Origin(0, "d", {"source_format": "other", "source_hash": "00"}))
    builder.trajectory(columns)
    build(builder)
    builder.finish()
    tables = builder.tables()
    media = {blob.media_id or "": blob for blob in to_models(tables["media"], Media)}
    return next(assemble(tables["trajectories"], tables, media))


def test_writes_version_1_5_from_other_formats():
    def build(builder: RowBuilder) -> None:
        builder.step({"source": "system", "kind": "message", "text": "sys"})
        builder.step({"source": "user", "kind": "message", "text": "hi", "extra": '{"z":1}'})
        builder.step(
            {
                "source": "agent",
                "kind": "llm_turn",
                "text": "t",
                "reasoning": "r",
                "model": "m",
                "tokens_out": 3,
            }
        )
        builder.call({"kind": "function", "name": "f", "arguments": '{"a":1.50}'})
        builder.call({"kind": "mcp", "name": "g", "arguments": "[1]", "call_id": "call_000001"})
        builder.call({"kind": "code", "name": "py", "language": "py", "arguments_raw": "1+1"})
        builder.observation({"source": "environment", "text": "one"}, by_order=True)
        builder.observation(
            {"source": "environment", "text": "two", "exit_code": 1}, answers="call_000001"
        )
        builder.step({"source": "agent", "kind": "llm_turn", "text": "bye", "reasoning": "q"})

    losses = Losses()
    run = other_trajectory(build, source_id="x", tools='[{"name":"f"}]', extra='{"k":1}')
    out = write_one(CONVERTER, run, losses)
    assert b'"kwargs":{"a":1.50}' in out
    text = {"class_": "text_observation"}
    assert json.loads(out) == {
        "schema_version": "1.5.0",
        "id": "x",
        "content": [
            {**text, "content": "sys", "name": "system", "source": "environment"},
            {**text, "content": "hi", "name": None, "source": "user"},
            {
                "tool_call_id": "call_000002",
                "class_": "api_action",
                "function": "f",
                "kwargs": {"a": 1.5},
                "description": "t",
                "reasoning_content": "r",
            },
            {
                "tool_call_id": "call_000001",
                "class_": "api_action",
                "function": "g",
                "kwargs": {"arguments": "[1]"},
                "description": None,
            },
            {
                "tool_call_id": "call_000003",
                "class_": "code_action",
                "language": "py",
                "content": "1+1",
                "description": None,
            },
            {"tool_call_id": "call_000002", **ENV, "content": "one"},
            {"tool_call_id": "call_000001", **ENV, "content": "two"},
            {**SAY, "content": "bye", "reasoning_content": "q"},
        ],
        "details": {},
    }
    assert sorted(item["path"] for item in losses.items) == [
        "$.extra.k",
        "$.steps[0]",
        "$.steps[1].extra.z",
        "$.steps[2].calls[1].arguments",
        "$.steps[2].calls[1].kind",
        "$.steps[2].model",
        "$.steps[2].observations[1].exit_code",
        "$.steps[2].tokens_out",
        "$.tools",
    ]


def test_parts_of_other_formats_keep_every_text_and_its_order():
    def build(builder: RowBuilder) -> None:
        uri = f"data:image/png;base64,{PNG}"
        lifted = builder.text(uri).partition(";")[2]
        parts = Parts()
        parts.text("a")
        parts.media(lifted, {"detail": "low"})
        parts.text("b")
        builder.step({"source": "user", "kind": "message", **parts.columns()})
        parts = Parts()
        parts.reasoning("r1", {"signature": "s"})
        parts.text("c")
        parts.call(0)
        parts.text("d")
        parts.opaque({"o": 1})
        parts.call(1)
        parts.media(lifted)
        parts.reasoning("r2")
        parts.text("e")
        builder.step({"source": "agent", "kind": "llm_turn", **parts.columns()})
        for name in ("f", "g", "h"):
            builder.call({"kind": "function", "name": name, "arguments": "{}"})
        parts = Parts()
        parts.media(lifted)
        parts.text("seen")
        builder.observation({"source": "environment", **parts.columns()}, by_order=True)

    losses = Losses()
    out = json.loads(write_one(CONVERTER, other_trajectory(build), losses))
    keys = ("class_", "function", "content", "description", "reasoning_content", "tool_call_id")
    tuples = [tuple(item.get(key) for key in keys) for item in out["content"]]
    uri = f"data:image/png;base64,{PNG}"
    assert tuples == [
        ("text_observation", None, "a", None, None, None),
        ("image_observation", None, uri, None, None, None),
        ("text_observation", None, "b", None, None, None),
        ("api_action", "f", None, "c", "r1", "call_000001"),
        ("api_action", "g", None, "d", None, "call_000002"),
        ("image_observation", None, uri, None, None, None),
        ("api_action", "h", None, "e", "r2", "call_000003"),
        ("image_observation", None, uri, None, None, "call_000001"),
        ("text_observation", None, "seen", None, None, "call_000001"),
    ]
    assert [item["path"] for item in losses.items] == [
        "$.steps[0].content[1].extra.detail",
        "$.steps[0].content",
        "$.steps[1].content[0].extra.signature",
        "$.steps[1].content[4]",
        "$.steps[1].observations[0].content",
    ]


def test_arguments_that_are_not_an_object_are_kept_as_text():
    def build(builder: RowBuilder) -> None:
        builder.step({"source": "agent", "kind": "llm_turn"})
        for columns in (
            {"arguments_raw": "a=1", "arguments_kind": "dsl"},
            {"arguments_raw": '{"a":NaN}', "arguments_kind": "object"},
            {"arguments": '"x"', "arguments_kind": "json_string"},
            {},
        ):
            builder.call({"kind": "function", "name": "f", **columns})

    losses = Losses()
    out = write_one(CONVERTER, other_trajectory(build), losses)
    assert b'"kwargs":{"a":NaN}' in out
    kwargs = [item["kwargs"] for item in json.loads(out)["content"]]
    assert kwargs[0] == {"arguments": "a=1"}
    assert kwargs[2:] == [{"arguments": '"x"'}, {}]
    assert [item["path"] for item in losses.items] == [
        "$.steps[0].calls[0].arguments_raw",
        "$.steps[0].calls[2].arguments",
    ]


def test_what_is_written_from_other_formats_is_a_fixed_point():
    def build(builder: RowBuilder) -> None:
        builder.step({"source": "system", "kind": "message", "text": "sys"})
        builder.step({"source": "user", "kind": "message", "text": "hi", "actor": "bob"})
        builder.step({"source": "agent", "kind": "llm_turn", "reasoning": "r", "reward": 1.0})
        builder.call({"kind": "function", "name": "f", "arguments": "{}"})
        page = {"source": "environment", "axtree": "t", "url": "u", "text": "x", "name": "n"}
        builder.observation(page, by_order=True)
        builder.step({"source": "environment", "kind": "event", "text": "tick"})

    first = write_one(CONVERTER, other_trajectory(build))
    run = assert_same(first)
    assert [s.source for s in run.steps] == ["system", "user", "agent"]
