"""ADP v1 JSON: exact round trips, edits, wrong records, and writing from other formats."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest

from adp.converters.adp_v1 import CONVERTER
from adp_schema import jsontext
from adp_schema.errors import RecordError
from adp_schema.losses import Losses
from adp_schema.model import Trajectory
from adp_schema.protocols import Match
from tests.converters.adp_v1_records import (
    API,
    CODE,
    ENV,
    IMAGE,
    PNG,
    SAY,
    USER,
    WEB,
    assert_same,
    dump,
    read,
    record,
    record_with,
    without,
)
from tests.roundtrip import read_one, write_one

DATA = Path(__file__).parents[2].parent / "shared" / "data"
SAMPLES = sorted(DATA.glob("adp_v1/*/sample_std.json"))
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
    run = assert_same(
        record(
            {"tool_call_id": "a", **API},
            {"tool_call_id": "b", **API},
            {"tool_call_id": "b", **ENV},
            {"tool_call_id": "a", **ENV},
            {"tool_call_id": "none", **ENV},
            ENV,
        )
    )
    steps = [(o.call_step, o.call_id, o.native_call_id) for s in run.steps for o in s.observations]
    assert steps == [(1, "b", None), (0, "a", None), (None, None, "none"), (None, None, None)]


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
    assert_same(record_with(item))


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
    data = record_with('{"class_":"message_action","content":"a","\\ud83d":1}')
    run = read(data)
    assert run_losses(run)[0]["path"] == "$.content[0].\ufffd"
    assert json.loads(write_one(CONVERTER, run))["content"][0]["\ufffd"] == 1


# ---- wrong records -------------------------------------------------------------------------


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
