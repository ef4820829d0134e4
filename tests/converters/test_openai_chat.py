"""OpenAI chat: what the rows are, edits, wrong records, real files and Parquet."""

from __future__ import annotations

import base64
import copy
import datetime
import decimal
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from adp.converters.export import export
from adp.converters.openai_chat import CONVERTER
from adp.converters.run import ConvertOptions, convert
from adp_schema import jsontext
from adp_schema.errors import RecordError
from adp_schema.losses import Losses
from adp_schema.model import Observation, Step, Trajectory
from adp_schema.protocols import Match
from adp_schema.store import Store
from tests.roundtrip import read_one, write_one

DATA = Path(__file__).parents[2].parent / "shared" / "data"
PNG = base64.b64encode(b"\x89PNG\r\n\x1a\n" + bytes(range(80))).decode()


def dump(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()


def read(data: Any, losses: Losses | None = None) -> Trajectory:
    (trajectory,) = read_one(CONVERTER, data if isinstance(data, bytes) else dump(data), losses)
    return trajectory


def same(*messages: Any, **columns: Any) -> Trajectory:
    """Read a record, check that it is written as it was, and return it."""
    data = dump({"messages": list(messages), **columns})
    losses = Losses()
    trajectory = read(data)
    assert write_one(CONVERTER, trajectory, losses) == data
    assert (losses.items, trajectory.losses) == ([], None)
    return trajectory


def user(content: Any = "hi", **more: Any) -> dict[str, Any]:
    return {"role": "user", "content": content, **more}


def call(call_id: str | None, name: str = "go", arguments: Any = "{}") -> dict[str, Any]:
    out = {"type": "function", "function": {"name": name, "arguments": arguments}}
    return out if call_id is None else {"id": call_id, **out}


def agent(*calls: Any, content: Any = None, **more: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": content, "tool_calls": list(calls), **more}


def tool(call_id: str | None, content: Any = "out", **more: Any) -> dict[str, Any]:
    ids = {} if call_id is None else {"tool_call_id": call_id}
    return {"role": "tool", **ids, "content": content, **more}


def observations(run: Trajectory) -> list[Observation]:
    return [*run.early_observations, *(row for step in run.steps for row in step.observations)]


def pairs(run: Trajectory) -> list[tuple[int | None, int | None]]:
    return [(row.call_step, row.call) for row in observations(run)]


# ---- sniff ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("record", "match"),
    [
        ({"messages": [user()]}, Match.SHAPE),
        ({"messages": []}, Match.SHAPE),
        ({"messages": json.dumps([user()])}, Match.SHAPE),
        ({"messages": "text"}, Match.NO),
        ({"messages": {"role": "user"}}, Match.NO),
        ({"messages": [1]}, Match.NO),
        ({"messages": None}, Match.NO),
        ({"messages": [{"from": "human", "value": "a"}]}, Match.NO),
        ({"conversations": [user()]}, Match.NO),
    ],
)
def test_sniff(record, match):
    assert CONVERTER.sniff(jsontext.decode_object(dump(record))) is match


# ---- what the rows are ---------------------------------------------------------------------


def test_roles_and_columns():
    run = same(
        {"role": "system", "content": "s"},
        {"role": "developer", "content": "d"},
        user("u", name="ann"),
        agent(call("a", "go", '{"x": 1.0}'), content="text", reasoning_content="why", weight=0.5),
        tool("a", name="go"),
        {"role": "critic", "content": "c"},
        id="r1",
    )
    assert [(s.source, s.kind) for s in run.steps] == [
        ("system", "message"),
        ("system", "message"),
        ("user", "message"),
        ("agent", "llm_turn"),
        ("environment", "message"),
    ]
    step = run.steps[3]
    assert (run.source_id, run.steps[2].actor) == ("r1", "ann")
    assert (step.text, step.reasoning, step.loss_weight) == ("text", "why", 0.5)
    result = step.calls[0]
    assert (result.call_id, result.kind, result.name, result.requestor) == (
        "a",
        "function",
        "go",
        "agent",
    )
    assert (result.arguments, result.arguments_kind) == ('{"x": 1.0}', "json_string")
    row = step.observations[0]
    assert (row.text, row.name, row.call_step, row.call, row.call_id) == ("out", "go", 3, 0, "a")


def test_columns_of_the_trajectory():
    tools = [{"type": "function", "function": {"name": "go", "parameters": {"b": 1, "a": 1.50}}}]
    run = same(user(), tools=tools, instance_id="t", model="m", resolved=True, reward=1, x=[1])
    assert (run.task_id, run.agent_model, run.success, run.reward) == ("t", "m", True, 1.0)
    assert run.json_value("tools") == tools
    assert run.tools_origin == "recorded"
    assert run.json_value("extra")["x"] == [1]
    assert same(user(), id=7).source_id == "7"
    assert same(user(), tools=json.dumps(tools)).json_value("tools") == tools
    assert same(user(), functions=tools).json_value("tools") == tools
    assert same(user()).tools is None
    assert same(user(), reward="high", success="yes", tools=None).reward is None


@pytest.mark.parametrize(
    ("content", "text"),
    [
        *(("", ""), (None, None), ([], None), ([{"type": "text", "text": "a"}], "a")),
        *((["a", {"type": "text", "text": "b"}], "a\n\nb"), ({"a": 1}, None), (1, None)),
        ([{"type": "text", "text": "a", "cache_control": {"type": "x"}}], "a"),
        ([{"text": "a", "type": "text"}, {"type": "refusal", "refusal": "no"}], "a"),
    ],
)
def test_content(content, text):
    assert same(user(content)).steps[0].text == text
    assert same(agent(call("a")), tool("a", content)).steps[0].observations[0].text == text


def test_content_may_be_absent():
    assert same({"role": "assistant", "tool_calls": [call("a")]}).steps[0].text is None
    assert same({"role": "tool", "tool_call_id": "a"}).early_observations[0].text is None


@pytest.mark.parametrize("calls", [None, []])
def test_no_calls(calls):
    run = same({"role": "assistant", "content": "a", "tool_calls": calls})
    assert run.steps[0].calls == []


def test_images_and_sounds():
    uri = f"data:image/png;base64,{PNG}"
    image = {"type": "image_url", "image_url": {"url": uri, "detail": "low"}}
    jpeg = {"type": "image_url", "image_url": {"url": uri.replace("png", "jpeg", 1)}}
    web = {"type": "image_url", "image_url": {"url": "https://x.org/a.png"}}
    sound = {"type": "input_audio", "input_audio": {"data": PNG[:40], "format": "wav"}}
    text = {"type": "text", "text": f"see {uri}"}
    run = same(user([text, image, {"type": "text", "text": "b"}, jpeg, web, sound]))
    assert "base64" not in (run.steps[0].text or "")
    assert "base64" not in (run.steps[0].content or "")
    kinds = [part["type"] for part in run.steps[0].json_value("content")]
    assert kinds == ["text", "media", "text", "media", "media", "media"]
    assert len(run.media) == 3


def test_the_same_bytes_with_two_media_types():
    same(user(f"data:a/b;base64,{PNG} data:a/c;base64,{PNG}"))
    same(user(f"data:a/b;base64,{PNG}"), user(f"data:a/c;base64,{PNG}"))


@pytest.mark.parametrize(
    ("written", "kind", "arguments", "raw"),
    [
        ('{"a": 1.0, "a": 2}', "json_string", '{"a": 1.0, "a": 2}', None),
        ("{bad", "invalid", None, "{bad"),
        ("", "invalid", None, ""),
        ("{'a': 1}", "invalid", None, "{'a': 1}"),
        ("[1]", "json_string", "[1]", None),
        ({"a": 1, "b": None}, "object", '{"a":1,"b":null}', None),
        ([1], "object", "[1]", None),
        (5, "object", "5", None),
        (None, None, None, None),
    ],
)
def test_arguments(written, kind, arguments, raw):
    result = same(agent(call("a", "go", written))).steps[0].calls[0]
    assert (result.arguments_kind, result.arguments, result.arguments_raw) == (kind, arguments, raw)


def test_arguments_keep_their_characters():
    text = '{"n":12345678901234567890123,"b":1e5, "b":-0.0,"s":"\\u0041"}'
    data = b'{"messages":[%s]}' % dump(agent(call("a", "go", "ARGS"))).replace(
        b'"ARGS"', text.encode()
    )
    run = read(data)
    assert run.steps[0].calls[0].arguments == text
    assert write_one(CONVERTER, run) == data


def test_unusual_calls():
    run = same(
        agent({"id": "a", "name": "go", "arguments": {}}, {"name": "go", "type": "function"}),
        agent({"id": "b", "type": "custom", "custom": {"name": "sh", "input": "ls {"}}),
        agent({"function": {"arguments": "{}", "name": "go", "x": 1}, "index": 0, "id": None}),
        {"role": "assistant", "content": None, "function_call": {"name": "old", "arguments": "{}"}},
        {"role": "function", "name": "old", "content": "4"},
        tool_choice="auto",
    )
    names = [[item.name for item in step.calls] for step in run.steps]
    assert names == [["go", "go"], ["sh"], ["go"], ["old"]]
    assert (run.steps[1].calls[0].arguments_raw, run.steps[1].calls[0].arguments_kind) == (
        "ls {",
        "text",
    )
    assert pairs(run) == [(3, 0)]


def test_calls_in_a_string():
    listed = [call("a", "go", {"b": 1})]
    message = {"role": "assistant", "content": "", "tool_calls": json.dumps(listed)}
    assert same(message).steps[0].calls[0].name == "go"
    message["tool_calls"] = json.dumps(listed, separators=(",", ":"))
    assert same(message).steps[0].calls[0].arguments == '{"b":1}'


# ---- pairing -------------------------------------------------------------------------------


def test_parallel_calls_late_results_and_another_order():
    run = same(agent(call("a"), call("b"), call("c")), tool("c"), user(), tool("a"), tool("b"))
    assert pairs(run) == [(0, 2), (0, 0), (0, 1)]
    assert [row.step for row in observations(run)] == [0, 1, 1]


def test_results_without_ids_pair_by_order_and_name():
    run = same(
        agent(call(None, "f"), call(None, "g"), call(None, "f")),
        tool(None, name="g"),
        tool(None),
        tool(None),
        tool(None),
    )
    assert pairs(run) == [(0, 1), (0, 0), (0, 2), (None, None)]
    assert [item.call_id for item in run.steps[0].calls] == [None, None, None]


def test_a_result_without_id_after_a_call_with_one_gets_no_id():
    run = same(agent(call("a")), tool(None))
    assert (pairs(run), observations(run)[0].call_id) == ([(0, 0)], "a")
    same(agent(call("a")), {"role": "tool", "tool_call_id": None, "content": "x"})
    same(agent(call("a")), {"role": "tool", "tool_call_id": 7, "content": "x"})


def test_repeated_ids_are_made_unique():
    run = same(agent(call("x"), call("x")), tool("x"), tool("x"), agent(call("x")), tool("x"))
    calls = [item for step in run.steps for item in step.calls]
    assert [(c.call_id, c.native_id) for c in calls] == [("x", None), ("x#2", "x"), ("x#3", "x")]
    assert pairs(run) == [(0, 0), (0, 1), (1, 0)]
    assert [(row.call_id, row.native_call_id) for row in observations(run)] == [
        *(("x", None), ("x#2", "x"), ("x#3", "x")),
    ]


def test_empty_ids():
    run = same(agent(call(""), call("")), tool(""), tool(""))
    assert [item.call_id for item in run.steps[0].calls] == ["", "#2"]
    assert pairs(run) == [(0, 0), (0, 1)]
    same(tool(""))


def test_ids_that_are_no_strings():
    run = same(agent({"id": 7, **call(None)}, {"id": None, **call(None)}), tool("7"))
    assert [item.call_id for item in run.steps[0].calls] == [None, None]
    assert pairs(run) == [(None, None)]


def test_results_without_calls_and_calls_without_results():
    run = same(tool("a"), user(), agent(call("a")), agent(call("b")), tool("z"), tool("b"))
    assert len(run.early_observations) == 1
    assert pairs(run) == [(None, None), (None, None), (2, 0)]
    assert [row.native_call_id for row in observations(run)] == ["a", "z", None]


def test_an_id_of_an_answered_call_that_comes_again():
    run = same(agent(call("a")), tool("a"), tool("a"))
    assert pairs(run) == [(0, 0), (0, 0)]


# ---- messages in a string ------------------------------------------------------------------


@pytest.mark.parametrize("ascii_only", [True, False])
@pytest.mark.parametrize(
    "layout", [{"separators": (",", ":")}, {"separators": (", ", ": ")}, {"indent": 2}]
)
def test_messages_in_a_string(layout, ascii_only):
    listed = [user("caf\xe9 \u2028"), agent(call("a", "go", {"x": 1}), content="b"), tool("a")]
    text = json.dumps(listed, ensure_ascii=ascii_only, **layout)
    data = dump({"messages": text})
    run = read(data)
    assert (run.losses, len(run.steps)) == (None, 2)
    assert write_one(CONVERTER, run) == data


def test_messages_in_a_string_that_is_laid_out_by_hand():
    data = dump({"messages": '[ {"role":"user",  "content":"a"} ]'})
    losses = Losses()
    run = read(data, losses)
    assert run.json_value("losses")[0]["path"] == "$.messages"
    written = json.loads(write_one(CONVERTER, run))
    assert json.loads(written["messages"]) == [user("a")]


# ---- losses and wrong records --------------------------------------------------------------


def test_lost_keys_are_reported():
    data = (
        b'{"messages":[{"role":"user","content":"a","content":"b"},'
        b'{"role":"assistant","content":"","tool_calls":[{"id":"a","id":"b","type":"function",'
        b'"function":{"name":"f","name":"g","arguments":"{}"}}]}],"x":1,"x":2}'
    )
    assert [item["path"] for item in read(data).json_value("losses")] == [
        *("$.x", "$.messages[0].content", "$.messages[1].tool_calls[0].id"),
        "$.messages[1].tool_calls[0].function.name",
    ]


def test_a_lost_key_that_is_as_long_as_the_spaces_would_be():
    data = b'{"messages":[{"role":"user","name":1,"content":"","weight":1,"name":2}]}'
    assert read(data).json_value("losses")[0]["path"] == "$.messages[0].name"


@pytest.mark.parametrize(
    ("data", "path"),
    [
        ({}, "$.messages"),
        ({"messages": None}, "$.messages"),
        ({"messages": {}}, "$.messages"),
        ({"messages": "text"}, "$.messages"),
        ({"messages": [user(), 1]}, "$.messages[1]"),
        ({"messages": [None]}, "$.messages[0]"),
        ({"messages": [{"content": "a"}]}, "$.messages[0].role"),
        ({"messages": [{"role": None, "content": "a"}]}, "$.messages[0].role"),
        ({"messages": [user(), agent(1)]}, "$.messages[1].tool_calls[0]"),
        ({"messages": [{**agent(), "tool_calls": {}}]}, "$.messages[0].tool_calls"),
        ({"messages": [{**agent(), "tool_calls": "x"}]}, "$.messages[0].tool_calls"),
        ([], "$"),
        (1, "$"),
    ],
)
def test_wrong_records(data, path):
    with pytest.raises(RecordError) as caught:
        read(data)
    assert caught.value.path == path


@pytest.mark.parametrize(
    "message",
    [
        '{"role":"assistant","content":1e999,"reasoning":1e999,"name":1e999}',
        '{"role":"tool","content":NaN,"tool_call_id":1e999}',
        '{"role":"user","content":NaN,"name":NaN,"weight":NaN}',
        '{"role":"user","content":[{"type":"x","a":NaN},"\\ud83d",{"type":"text","text":"\\udc00"}]}',
        '{"role":"assistant","tool_calls":[{"id":NaN,"function":{"name":NaN,"arguments":NaN}}]}',
        '{"role":"assistant","tool_calls":[{"function":{"name":"f","x":NaN,"\\u0061":"\\ud83d"}}]}',
        '{"role":"user","content":"\\ud83d","name":"\\udc00\\ud800","x":"\\ud83d"}',
        '{"role":"tool","tool_call_id":"\\ud83d","content":"\\u0000\\u2028\\ud83d\\ude00\\ud83d"}',
        '{"role":"user","content":[{"type":"image_url","image_url":{"url":"\\ud83d"}}]}',
        '{"role":"user","content":[{"type":"text","text":"a","$form":"string","$keys":1}]}',
        '{"role":"user","content":[{"type":"image_url","image_url":{"url":"a","url":"b"}}]}',
        '{"role":"","content":"a"}',
        '{"role":"user","content":"a","weight":0.50}',
        '{"role":"user","content":"a","weight":1.0,"$shape":{"keys":[]},"$null":["x"]}',
    ],
)
def test_spellings(message):
    data = b'{"messages":[%s]}' % message.encode()
    written = write_one(CONVERTER, read(data))
    as_read = {"parse_float": str, "parse_int": str, "parse_constant": str}
    pair_lists: Any = {**as_read, "object_pairs_hook": list}
    assert json.loads(written, **pair_lists) == json.loads(data, **pair_lists)


def test_a_key_with_a_lone_surrogate_is_a_loss():
    run = read(b'{"messages":[{"role":"user","content":"a","\\ud83d":1}]}')
    assert run.json_value("losses")[0]["path"] == "$.messages[0].\ufffd"


# ---- edits ---------------------------------------------------------------------------------

CONVERSATION = {
    "id": "r",
    "messages": [
        {"role": "system", "content": "be good", "$x": 1},
        user([{"type": "text", "text": "look"}, {"type": "image_url", "image_url": {"url": "u"}}]),
        agent(call("a", "go", '{"to": "x", "n": 1.50}'), content="I go", weight=1.0),
        tool("a", name="go"),
        agent(call("b", "go", {"to": "y"}), call("b", "see", ""), content=""),
        tool("b", "first"),
        tool("b", ["second", "third"]),
        {"role": "assistant", "content": "done", "reasoning": "well", "tool_calls": None},
    ],
    "tools": [{"type": "function", "function": {"name": "go", "parameters": {}}}],
    "reward": 0.5,
}


def _drop(run: Trajectory) -> None:
    del run.steps[2]


def _rename(run: Trajectory) -> None:
    run.steps[3].calls[0].name = "walk"


def _argument_string(run: Trajectory) -> None:
    run.steps[2].calls[0].arguments = '{"to":"z"}'


def _argument_object(run: Trajectory) -> None:
    run.steps[3].calls[0].arguments = '{"to":"z"}'


def _invalid_arguments(run: Trajectory) -> None:
    run.steps[3].calls[1].arguments_raw = "{"


def _text(run: Trajectory) -> None:
    run.steps[2].text = "I walk"


def _text_of_parts(run: Trajectory) -> None:
    run.steps[1].text = "look here"


def _result(run: Trajectory) -> None:
    run.steps[2].observations[0].text = "other"


def _weight(run: Trajectory) -> None:
    run.steps[2].loss_weight = 0.25


def _reasoning(run: Trajectory) -> None:
    run.steps[4].reasoning = "hm"


def _reward(run: Trajectory) -> None:
    run.reward = 1.0


def _role(message: dict[str, Any]) -> Any:
    return message["role"]


@pytest.mark.parametrize(
    ("edit", "change"),
    [
        (_drop, lambda r: r["messages"].__delitem__(slice(2, 4))),
        (
            _rename,
            lambda r: r["messages"][4]["tool_calls"][0]["function"].update(name="walk"),
        ),
        (
            _argument_string,
            lambda r: r["messages"][2]["tool_calls"][0]["function"].update(arguments='{"to":"z"}'),
        ),
        (
            _argument_object,
            lambda r: r["messages"][4]["tool_calls"][0]["function"].update(arguments={"to": "z"}),
        ),
        (
            _invalid_arguments,
            lambda r: r["messages"][4]["tool_calls"][1]["function"].update(arguments="{"),
        ),
        (_text, lambda r: r["messages"][2].update(content="I walk")),
        (_text_of_parts, lambda r: r["messages"][1]["content"][0].update(text="look here")),
        (_result, lambda r: r["messages"][3].update(content="other")),
        (_weight, lambda r: r["messages"][2].update(weight=0.25)),
        (_reasoning, lambda r: r["messages"][7].update(reasoning="hm")),
        (_reward, lambda r: r.update(reward=1)),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_an_edit_shows_and_nothing_else_changes(edit, change):
    run = read(CONVERSATION)
    assert run.raw == []
    assert write_one(CONVERTER, run) == dump(CONVERSATION)
    expected = copy.deepcopy(CONVERSATION)
    change(expected)
    if edit is _drop:
        run.steps[2].observations.clear()
    edit(run)
    assert write_one(CONVERTER, run) == dump(expected)


def test_an_edit_wins_over_the_characters_of_the_source():
    data = b'{"messages":[{"role":"user","content":"\\ud83d","weight":1.50,"name":"\\udc00"}]}'
    run = read(data)
    step: Step = run.steps[0]
    step.text, step.loss_weight, step.actor = "new", 2.0, "ann"
    assert json.loads(write_one(CONVERTER, run))["messages"] == [user("new", weight=2, name="ann")]


# ---- files ---------------------------------------------------------------------------------

FILES = [
    *DATA.glob("datasets/toucan_like/*.json"),
    *DATA.glob("datasets/swe_smith_trajectories/*.json"),
    *DATA.glob("datasets/nnetnav_wa/*.json"),
    *DATA.glob("datasets/fireact/gpt_format*"),
    *DATA.glob("datasets/lumos_reconstructed/*.jsonl"),
    *DATA.glob("adp_atif/enterpriselab/sample_sft/openhands_sdk.excerpt.json"),
    *DATA.glob("formats/llamafactory_v1/*_sft_*.jsonl"),
    *DATA.glob("formats/llamafactory_v1/reason_*.jsonl"),
    *DATA.glob("formats/dataclaw/*.jsonl"),
    *(
        DATA / "adp_v1" / name / "sample_raw.json"
        for name in ("code_feedback", "mini-coder", "nnetnav-wa", "swe-smith", "toucan_1_5m")
        if DATA.exists()
    ),
]


def records(path: Path) -> list[Any]:
    """All records of a file, with numbers as spelled, keys in order and repeated keys."""
    spelled: Any = {"parse_float": str, "parse_int": str, "parse_constant": str}
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".jsonl":
        lines = text.splitlines()
        return [json.loads(line, object_pairs_hook=list, **spelled) for line in lines if line]
    value: list[Any] = json.loads(text, object_pairs_hook=list, **spelled)
    return value


@pytest.mark.skipif(not DATA.exists(), reason="the reference data are not here")
def test_all_files_are_there():
    assert len(FILES) == 16


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_a_real_file_comes_back(path, tmp_path):
    store = tmp_path / "store"
    manifest = convert([str(path)], str(store), options=ConvertOptions(format="openai_chat"))
    assert manifest.counts.rejected == 0
    assert manifest.losses == {}
    report = export(Store.open(str(store)), "openai_chat", str(tmp_path / "out"))
    assert report.losses == {}
    (written,) = [file for file in (tmp_path / "out").rglob("*") if file.is_file()]
    assert records(written) == records(path)
    assert len(records(path)) == manifest.counts.used > 0
    style = json.loads(Store.open(str(store)).scan("sources").collect()["style"][0])
    if not style.get("irregular"):
        assert written.read_bytes() == path.read_bytes()


FUNCTION = pa.struct([("name", pa.string()), ("arguments", pa.string())])
CALL = pa.struct([("id", pa.string()), ("type", pa.string()), ("function", FUNCTION)])
MESSAGE = pa.struct(
    [
        ("role", pa.string()),
        ("content", pa.string()),
        ("name", pa.string()),
        ("tool_call_id", pa.string()),
        ("tool_calls", pa.list_(CALL)),
    ]
)
NONE: dict[str, Any] = {field.name: None for field in MESSAGE}
ROW: list[dict[str, Any]] = [
    {**NONE, **user()},
    {**NONE, **agent(call("a", "go", '{"x": 1.0}'))},
    {**NONE, **tool("a", "out \u2028\n")},
    {**NONE, **agent(content="done")},
]


def _table() -> pa.Table:
    count = 3
    when = datetime.datetime(2024, 5, 6, 7, 8, 9, 123456)
    zone = when.replace(tzinfo=datetime.UTC)
    columns: dict[str, pa.Array] = {
        "messages": pa.array([ROW, [], ROW[:1]], pa.list_(MESSAGE)),
        "tools": pa.array([json.dumps([call(None)]), None, "[]"]),
        "id": pa.array([1, 2, 3], pa.int64()),
        "reward": pa.array([0.1, float("nan"), None], pa.float64()),
        "resolved": pa.array([True, None, False]),
        "when": pa.array([when, None, when], pa.timestamp("us")),
        "zoned": pa.array([zone] * count, pa.timestamp("ms", tz="UTC")),
        "seconds": pa.array([when.replace(microsecond=0)] * count, pa.timestamp("s")),
        "day": pa.array([when.date(), None, when.date()], pa.date32()),
        "blob": pa.array([b"\x00\xff", b"", None], pa.binary()),
        "price": pa.array([decimal.Decimal("1.50"), None, decimal.Decimal("-2.00")]),
        "scores": pa.array([[0.5, None], [], [float("inf"), -0.0]], pa.list_(pa.float64())),
        "small": pa.array([0.1, 1e-7, -0.0], pa.float32()),
        "nothing": pa.nulls(count),
        "$odd": pa.array(["\u2028", "", "\U0001f600"]),
    }
    return pa.table(columns)


@pytest.mark.parametrize("form", ["struct", "spaced", "compact"])
def test_parquet_comes_back(form, tmp_path):
    table = _table()
    if form != "struct":
        separators = (",", ":") if form == "compact" else (", ", ": ")
        texts = [json.dumps(rows, separators=separators) for rows in ([*ROW], [], ROW[:1])]
        table = table.set_column(0, "messages", pa.array(texts))
    source = tmp_path / "in" / "rows.parquet"
    source.parent.mkdir()
    pq.write_table(table, source)
    table = pq.read_table(source)
    manifest = convert([str(source)], str(tmp_path / "store"))
    assert (manifest.counts.used, manifest.counts.rejected, manifest.losses) == (3, 0, {})
    store = Store.open(str(tmp_path / "store"))
    run = next(iter(store.trajectories()))
    assert [step.source for step in run.steps] == ["user", "agent", "agent"]
    assert run.steps[1].calls[0].arguments == '{"x": 1.0}'
    assert run.steps[1].observations[0].call_step == 1
    report = export(store, "openai_chat", str(tmp_path / "out"))
    assert report.losses == {}
    back = pq.read_table(tmp_path / "out" / "rows.parquet")
    assert back.schema == table.schema
    # NaN differs from itself, so its text is compared.
    assert str(back.to_pylist()) == str(table.to_pylist())
    assert back.drop_columns("reward").equals(table.drop_columns("reward"))
