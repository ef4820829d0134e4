"""ADP v1 JSON: exact round trips, edits, wrong records, and writing from other formats."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from adp.converters.adp_v1 import CONVERTER
from adp_schema import jsontext
from adp_schema.builder import Origin, RowBuilder
from adp_schema.errors import RecordError
from adp_schema.model import Media, Trajectory
from adp_schema.parts import Parts
from adp_schema.protocols import Losses, Match
from adp_schema.reader import assemble, to_models
from tests.roundtrip import read_one, write_one

DATA = Path(__file__).parents[2].parent / "shared" / "data"
SAMPLES = sorted(DATA.glob("adp_v1/*/sample_std.json"))
PNG = base64.b64encode(b"\x89PNG\r\n\x1a\n" + bytes(range(80))).decode()

USER: dict[str, Any] = {
    "class_": "text_observation",
    "content": "hi",
    "name": None,
    "source": "user",
}
ENV: dict[str, Any] = {**USER, "content": "out", "source": "environment"}
SAY: dict[str, Any] = {"class_": "message_action", "content": "done", "description": None}
API: dict[str, Any] = {
    "class_": "api_action",
    "function": "go",
    "kwargs": {"to": "x", "n": 1},
    "description": "I go",
}
CODE: dict[str, Any] = {
    "class_": "code_action",
    "language": "bash",
    "content": "ls",
    "description": None,
}
IMAGE: dict[str, Any] = {
    "class_": "image_observation",
    "content": "a/b.png",
    "annotations": None,
    "source": "environment",
}
WEB: dict[str, Any] = {
    "class_": "web_observation",
    "html": None,
    "axtree": "tree",
    "url": "http://x",
    "image_observation": IMAGE,
    "viewport_size": [1280, 720],
}


def record(*items: Any, **keys: Any) -> dict[str, Any]:
    return {"id": "r", "content": list(items), "details": {}, **keys}


def dump(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()


def read(data: bytes | dict[str, Any]) -> Trajectory:
    (trajectory,) = read_one(CONVERTER, dump(data) if isinstance(data, dict) else data)
    return trajectory


def assert_same(data: bytes | dict[str, Any]) -> Trajectory:
    data = dump(data) if isinstance(data, dict) else data
    losses = Losses()
    trajectory = read(data)
    assert write_one(CONVERTER, trajectory, losses) == data
    assert losses.items == []
    return trajectory


def one(item: str) -> bytes:
    return b'{"id":"r","content":[%s],"details":{}}' % item.encode()


# ---- real files ----------------------------------------------------------------------------


@pytest.mark.skipif(not SAMPLES, reason="the reference data are not here")
def test_there_are_seventeen_samples():
    assert len(SAMPLES) == 17


@pytest.mark.parametrize(
    "path",
    [*SAMPLES, DATA / "adp_atif/toucan_1_5m/sample_std.adp150_first_record.json"],
    ids=lambda path: path.parent.name,
)
def test_a_real_file_comes_back_byte_for_byte(path):
    if not path.exists():
        pytest.skip("the reference data are not here")
    losses = Losses()
    written = [
        write_one(CONVERTER, trajectory, losses)
        for raw in jsontext.decode_array(path.read_bytes())
        for trajectory in read_one(CONVERTER, bytes(raw), losses)
    ]
    text = msgspec.json.format(b"[" + b",".join(written) + b"]", indent=2).decode()
    assert jsontext.escape_non_ascii(text).strip() == path.read_text().strip()
    assert losses.items == []


# ---- sniff ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "match"),
    [
        (record(USER), Match.STAMP),
        ({"content": [USER]}, Match.STAMP),
        (record(), Match.SHAPE),
        ({"id": "r", "content": [], "schema_version": "1.5.0"}, Match.SHAPE),
        ({"id": "r", "content": []}, Match.NO),
        ({"id": "r", "content": [{"role": "user"}], "details": {}}, Match.NO),
        ({"id": "r", "content": ["class_"], "details": {}}, Match.NO),
        ({"content": "class_"}, Match.NO),
        ({"messages": []}, Match.NO),
    ],
)
def test_sniff(data, match):
    assert CONVERTER.sniff(jsontext.decode_object(dump(data))) is match


# ---- what the rows are ---------------------------------------------------------------------


def test_steps_and_observations():
    agent = {**USER, "source": "agent", "content": "before"}
    run = assert_same(record(ENV, USER, agent, API, ENV, ENV, CODE, ENV, SAY, ENV))
    assert run.source_id == "r"
    assert run.source_version == "1"
    assert len(run.early_observations) == 1
    assert [(s.source, s.kind) for s in run.steps] == [
        ("user", "message"),
        ("agent", "message"),
        ("agent", "llm_turn"),
        ("agent", "llm_turn"),
        ("agent", "llm_turn"),
    ]
    assert run.steps[1].is_copied_context
    api, code, say = run.steps[2:]
    assert (api.text, api.calls[0].name, api.calls[0].arguments) == (
        "I go",
        "go",
        '{"to":"x","n":1}',
    )
    assert (code.calls[0].kind, code.calls[0].language) == ("code", "bash")
    assert code.calls[0].arguments_raw == "ls"
    assert say.text == "done"
    pairs = [(o.call_step, o.call) for s in run.steps for o in s.observations]
    assert pairs == [(2, 0), (None, None), (3, 0), (None, None)]
    assert run.early_observations[0].call_step is None


def test_ids_pair_late_results():
    run = (
        assert_same(
            record(
                {"tool_call_id": "a", **API},
                {"tool_call_id": "b", **API},
                {"tool_call_id": "a", **API},
                {"tool_call_id": "b", **ENV},
                {"tool_call_id": "a", **ENV},
                {"tool_call_id": "none", **ENV},
                ENV,
                schema_version="1.3.2",
            )
            | {"id": "r"}
        )
        if False
        else read(
            record(
                {"tool_call_id": "a", **API},
                {"tool_call_id": "b", **API},
                {"tool_call_id": "b", **ENV},
                {"tool_call_id": "a", **ENV},
                {"tool_call_id": "none", **ENV},
                ENV,
            )
        )
    )
    found = [(o.call_step, o.call_id, o.native_call_id) for s in run.steps for o in s.observations]
    assert found == [(1, "b", None), (0, "a", None), (None, None, "none"), (None, None, None)]


def test_the_system_prompt_is_a_step_only_before_the_first_action():
    system = {**ENV, "name": "system"}
    run = assert_same(record(system, USER, SAY, system))
    assert [s.source for s in run.steps] == ["system", "user", "agent"]
    assert run.steps[2].observations[0].name == "system"


def test_thoughts_of_a_message():
    both = {**SAY, "description": "d", "reasoning_content": "r"}
    run = assert_same(
        record({**SAY, "description": "d"}, {**SAY, "reasoning_content": "r"}, both, SAY)
    )
    assert [s.reasoning for s in run.steps] == ["d", "r", "d\n\nr", None]
    assert {s.text for s in run.steps} == {"done"}


def test_web_observation_and_images():
    box = {"text": "a", "element_type": "b", "bounding_box": {"x": 1.0, "y": 2.50, "width": 3}}
    image = {**IMAGE, "annotations": [box]}
    uri = f"data:image/png;base64,{PNG}"
    run = assert_same(
        record(
            *({**image, "source": source} for source in ("environment", "user", "agent")),
            {**IMAGE, "content": PNG},
            {**IMAGE, "content": uri},
            {**IMAGE, "content": uri.replace("png", "x-png")},
            {**WEB, "image_observation": {**image, "source": "agent", "more": 1.50}, "my": 2},
            {**WEB, "image_observation": {**IMAGE, "content": PNG}},
            {**WEB, "image_observation": None, "viewport_size": None, "url": None},
            {**WEB, "viewport_size": [1280.0, 720.5], "axtree": None, "html": uri},
        )
    )
    assert [m.mime for m in run.media.values() if m.data] == ["image/png"]
    web = run.steps[1].observations[3]
    assert (web.axtree, web.viewport_width, web.viewport_height) == ("tree", 1280.0, 720.0)
    assert web.json_value("annotations") == [box]


def test_base64_leaves_the_texts():
    uri = f"see data:image/png;base64,{PNG} and more"
    run = assert_same(record({**USER, "content": uri}, {**API, "description": uri}))
    assert "base64" not in (run.steps[0].text or "")


# ---- exactness -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "keys",
    [
        '"schema_version":"1.5.0","id":"r","content":[],"details":{}',
        '"content":[],"id":"r"',
        '"id":"r","content":[],"details":{"a": 1.50,"a":2,"b":12345678901234567890123,"c":1e5}',
        '"schema_version":"1","id":"r","content":[],"details":{}',
        '"schema_version":null,"id":"r","content":[],"details":{}',
        '"id":"r","content":[],"details":{},"available_apis":["x"]',
        '"id":"r","content":[],"details":{},"available_apis":null,"$shape":{"a":1},"x":null',
        '"id":"","details":{},"available_code_languages":[],"content":[]',
        '"id":"a\\ud83d","content":[],"details":{"a":NaN,"\\udc00":-Infinity}',
    ],
)
def test_keys_of_the_record(keys):
    assert_same(b"{" + keys.encode() + b"}")


@pytest.mark.parametrize(
    "item",
    [
        '{"class_":"text_observation","content":"","source":"user"}',
        '{"source":"user","name":"","content":"a","class_":"text_observation","extra":[1, 2]}',
        '{"tool_call_id":null,"class_":"text_observation","content":"a","name":null,"source":"user"}',
        '{"tool_call_id":"x","class_":"text_observation","content":"a","name":"n","source":"agent"}',
        '{"class_":"message_action","content":"a","reward":1.50}',
        '{"class_":"message_action","content":"a","description":null,"reward":1}',
        '{"class_":"message_action","content":"a","description":null,"reward":-0}',
        '{"class_":"message_action","content":"a","description":null,"reward":1e999}',
        '{"class_":"message_action","content":"a","description":null,"reward":NaN}',
        '{"class_":"message_action","content":"a","description":"","reasoning_content":null}',
        '{"class_":"message_action","content":"a","description":null,"tool_call_id":"t"}',
        '{"class_":"api_action","function":"f","kwargs":{},"description":null}',
        '{"class_":"api_action","function":"f","kwargs":{"a":1.50,"a":[1e5,NaN],"b":"\\ud83d"}}',
        '{"class_":"api_action","function":"\\udc01","kwargs":{"n":12345678901234567890123}}',
        '{"reasoning_content":"r","kwargs":{"n":-0.0},"function":"f","class_":"api_action"}',
        '{"class_":"code_action","language":"\\ud83d","content":"\\ud83d x","description":"d"}',
        '{"class_":"code_action","language":"py","content":"","description":null,"$x":{"$y":1}}',
        '{"class_":"text_observation","content":"\\ud83d a","name":"\\udc00","source":"user"}',
        '{"class_":"image_observation","content":"a\\ud83d","annotations":[NaN],"source":"user"}',
        '{"class_":"image_observation","content":"a","annotations":["\\ud83d"],'
        '"source":"environment"}',
        '{"class_":"web_observation","html":"\\ud83d","axtree":null,"url":null,'
        '"image_observation":{"class_":"image_observation","content":"\\udc00",'
        '"source":"environment","a":NaN},"viewport_size":[1, 2],"b":"\\ud800"}',
    ],
)
def test_spellings_of_an_item(item):
    # The marks of the source are compact where the writer makes the list itself.
    item = item.replace('"viewport_size":[1, 2]', '"viewport_size":[1,2]')
    assert_same(one(item))


def test_a_result_without_id_after_a_call_with_one():
    assert_same(record({"tool_call_id": "a", **API}, ENV))


def test_repeated_call_ids():
    call, result = {"tool_call_id": "a", **API}, {"tool_call_id": "a", **ENV}
    run = assert_same(record(call, result, call, result))
    assert [s.calls[0].call_id for s in run.steps] == ["a", "a#2"]
    assert [s.observations[0].call_id for s in run.steps] == ["a", "a#2"]


def test_lost_keys_are_reported():
    losses = Losses()
    data = (
        b'{"id":"r","id":"s","content":[{"class_":"message_action","content":"a","content":"b"},'
        b'{"class_":"web_observation","image_observation":{"content":"a","source":"user",'
        b'"source":"agent"}}],"details":{"a":1,"a":2}}'
    )
    read_one(CONVERTER, data, losses)
    run = read_one(CONVERTER, data)[0]
    assert [item["path"] for item in run_losses(run)] == [
        "$.id",
        "$.content[0].content",
        "$.content[1].image_observation.source",
    ]


def run_losses(run: Trajectory) -> list[dict[str, str]]:
    losses: list[dict[str, str]] = run.json_value("losses")
    return losses


def test_a_key_with_a_lone_surrogate_is_a_loss():
    data = one('{"class_":"message_action","content":"a","\\ud83d":1}')
    run = read(data)
    assert run_losses(run)[0]["path"] == "$.content[0].\ufffd"
    assert json.loads(write_one(CONVERTER, run))["content"][0]["\ufffd"] == 1


# ---- wrong records -------------------------------------------------------------------------


def without(item: dict[str, Any], key: str) -> dict[str, Any]:
    return {name: value for name, value in item.items() if name != key}


@pytest.mark.parametrize(
    ("data", "path"),
    [
        (without(record(), "id"), "$.id"),
        (record(id=1), "$.id"),
        (without(record(), "content"), "$.content"),
        (record(content={}), "$.content"),
        (record(content=None), "$.content"),
        (record(details=[]), "$.details"),
        (record(details=None), "$.details"),
        (record(schema_version=1), "$.schema_version"),
        (record(USER, 1), "$.content[1]"),
        (record({}), "$.content[0].class_"),
        (record({"class_": 1}), "$.content[0].class_"),
        (record(USER, USER, {**USER, "class_": "MessageAction"}), "$.content[2].class_"),
        (record({**USER, "content": None}), "$.content[0].content"),
        (record({**USER, "content": 1}), "$.content[0].content"),
        (record({**USER, "source": "tool"}), "$.content[0].source"),
        (record(without(USER, "source")), "$.content[0].source"),
        (record({**USER, "name": 1}), "$.content[0].name"),
        (record({**ENV, "tool_call_id": 1}), "$.content[0].tool_call_id"),
        (record({**ENV, "reward": "1"}), "$.content[0].reward"),
        (record({**SAY, "reward": True}), "$.content[0].reward"),
        (record({**SAY, "description": []}), "$.content[0].description"),
        (record({**API, "kwargs": "{}"}), "$.content[0].kwargs"),
        (record({**API, "kwargs": None}), "$.content[0].kwargs"),
        (record(without(API, "kwargs")), "$.content[0].kwargs"),
        (record(without(API, "function")), "$.content[0].function"),
        (record({**CODE, "language": None}), "$.content[0].language"),
        (record({**IMAGE, "annotations": {}}), "$.content[0].annotations"),
        (record({**WEB, "viewport_size": [1]}), "$.content[0].viewport_size"),
        (record({**WEB, "viewport_size": [1, None]}), "$.content[0].viewport_size"),
        (record({**WEB, "viewport_size": [1, "a"]}), "$.content[0].viewport_size"),
        (record({**WEB, "viewport_size": {}}), "$.content[0].viewport_size"),
        (record({**WEB, "image_observation": []}), "$.content[0].image_observation"),
        (record({**WEB, "image_observation": {}}), "$.content[0].image_observation.source"),
        (
            record({**WEB, "image_observation": USER}),
            "$.content[0].image_observation.class_",
        ),
    ],
)
def test_wrong_records(data, path):
    with pytest.raises(RecordError) as caught:
        read(data)
    assert caught.value.path == path


@pytest.mark.parametrize("data", [b"[]", b"1", b'"a"', b"null"])
def test_not_an_object(data):
    with pytest.raises(RecordError):
        read_one(CONVERTER, data)


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
    run = read(one('{"class_":"message_action","content":"a\\ud83d","reward":1.50,"my":NaN}'))
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


def foreign(build: Any, **columns: Any) -> Trajectory:
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
    run = foreign(build, source_id="x", tools='[{"name":"f"}]', extra='{"k":1}')
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
        lifted = builder.text(uri).removeprefix("adp-media:")
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
    out = json.loads(write_one(CONVERTER, foreign(build), losses))
    keys = ("class_", "function", "content", "description", "reasoning_content", "tool_call_id")
    found = [tuple(item.get(key) for key in keys) for item in out["content"]]
    uri = f"data:image/png;base64,{PNG}"
    assert found == [
        ("text_observation", None, "a", None, None, None),
        ("image_observation", None, uri, None, None, None),
        ("text_observation", None, "b", None, None, None),
        ("api_action", "f", None, "c", "r1", "call_000001"),
        ("api_action", "g", None, "d", None, "call_000002"),
        ("image_observation", None, uri, None, None, None),
        ("api_action", "h", None, "e", "r2", "call_000003"),
        ("image_observation", None, uri, None, None, "call_000001"),
        ("text_observation", None, "seen", None, None, None),
    ]
    assert [item["path"] for item in losses.items] == [
        "$.steps[0].content[1].extra.detail",
        "$.steps[1].content[0].extra.signature",
        "$.steps[1].content[4]",
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
    out = write_one(CONVERTER, foreign(build), losses)
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

    first = write_one(CONVERTER, foreign(build))
    run = assert_same(first)
    assert [s.source for s in run.steps] == ["system", "user", "agent"]


# ---- any record ----------------------------------------------------------------------------

TEXT = st.text(st.characters(codec="utf-8", max_codepoint=0x10F7FE), max_size=6) | st.sampled_from(
    ["", "\ud83d", "a\udc00b", PNG, f"data:image/png;base64,{PNG}", "<finish> x </finish>", "\n\n"]
)
SPELLED = st.sampled_from(
    ["0", "-0", "1", "1.0", "1.50", "1e5", "-1E+2", "12345678901234567890123", "1e999", "NaN"]
)
JSON_TEXT = st.recursive(
    st.sampled_from(["null", "true", '"\\ud83d"', '"a"', "[]", "{}"]) | SPELLED,
    lambda inner: (
        st.lists(inner, max_size=2).map(lambda v: f"[{','.join(v)}]")
        | st.lists(st.tuples(st.sampled_from(["a", "b", "$c"]), inner), max_size=3).map(
            lambda pairs: "{" + ",".join(f'"{key}":{value}' for key, value in pairs) + "}"
        )
    ),
    max_leaves=4,
)
OBJECT = st.lists(st.tuples(st.sampled_from(["a", "b", "$c"]), JSON_TEXT), max_size=3).map(
    lambda pairs: "{" + ",".join(f'"{key}":{value}' for key, value in pairs) + "}"
)
STRING = TEXT.map(lambda text: json.dumps(text) if has_surrogate(text) else dump(text).decode())
MAYBE = st.just("null") | STRING
SOURCE = st.sampled_from(['"user"', '"agent"', '"environment"'])
IDS = st.sampled_from(["null", '"a"', '"b"', '"a#2"'])
NUMBER = st.just("null") | SPELLED


def has_surrogate(text: str) -> bool:
    return any(0xD800 <= ord(char) < 0xE000 for char in text)


def objects(
    name: str | None,
    required: dict[str, st.SearchStrategy[str]],
    optional: dict[str, st.SearchStrategy[str]],
) -> st.SearchStrategy[str]:
    """JSON objects with any of the optional keys, unknown ones, and any order."""
    class_ = {} if name is None else {"class_": st.just(json.dumps(name))}
    unknown = {"zz": JSON_TEXT, "$shape": JSON_TEXT}
    keys = st.fixed_dictionaries({**class_, **required}, optional={**optional, **unknown})
    shuffled = keys.flatmap(lambda d: st.permutations(list(d.items()))) | keys.map(
        lambda d: list(d.items())
    )
    return shuffled.map(lambda pairs: "{" + ",".join(f'"{k}":{v}' for k, v in pairs) + "}")


OBSERVED = {"tool_call_id": IDS, "reward": NUMBER}
THOUGHT = {"description": MAYBE, "reasoning_content": MAYBE, "reward": NUMBER}
BOXES = st.sampled_from(["null", "[]", '[{"a":1.50}]'])
IMAGES = objects(
    "image_observation", {"content": STRING, "source": SOURCE}, {"annotations": BOXES, **OBSERVED}
)
ITEMS = st.one_of(
    objects("text_observation", {"content": STRING, "source": SOURCE}, {"name": MAYBE, **OBSERVED}),
    IMAGES,
    objects(
        "web_observation",
        {},
        {
            "html": MAYBE,
            "axtree": MAYBE,
            "url": MAYBE,
            "image_observation": st.just("null") | IMAGES,
            "viewport_size": st.sampled_from(["null", "[1280,720]", "[1.0,2.50]"]),
            **OBSERVED,
        },
    ),
    objects("message_action", {"content": STRING}, THOUGHT),
    objects("api_action", {"function": STRING, "kwargs": OBJECT}, {**THOUGHT, "tool_call_id": IDS}),
    objects(
        "code_action", {"language": STRING, "content": STRING}, {**THOUGHT, "tool_call_id": IDS}
    ),
)
RECORDS = objects(
    None,
    {"id": STRING, "content": st.lists(ITEMS, max_size=5).map(lambda v: f"[{','.join(v)}]")},
    {
        "details": OBJECT,
        "schema_version": st.sampled_from(["null", '"1"', '"1.0.0"', '"1.3.2"', '"1.5.0"']),
        "available_apis": JSON_TEXT,
        "available_custom_tools": JSON_TEXT,
    },
)


@settings(max_examples=400, deadline=None, suppress_health_check=list(HealthCheck))
@given(RECORDS)
def test_any_record_comes_back(text):
    assert_same(text.encode())


@settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck))
@given(RECORDS)
def test_any_record_can_be_written_as_1_5(text):
    run = read(text.encode())
    run.source_format = "other"
    losses = Losses()
    out = write_one(CONVERTER, run, losses)
    again = read_one(CONVERTER, out)
    assert len(again) == 1
