"""ShareGPT: what the rows are, edits, pairs, media, wrong records and real files."""

from __future__ import annotations

import base64
import copy
import json
from pathlib import Path
from typing import Any

import pytest

from adp.converters.export import export
from adp.converters.registry import formats
from adp.converters.run import ConvertOptions, convert
from adp.converters.sharegpt import CONVERTER
from adp_schema import jsontext
from adp_schema.errors import RecordError
from adp_schema.losses import Losses
from adp_schema.model import Observation, Step, Trajectory
from adp_schema.protocols import Match
from adp_schema.store import Store
from tests.roundtrip import read_one, write_one

DATA = Path(__file__).parents[2].parent / "shared" / "data"
FILES = [
    *sorted(DATA.glob("formats/sharegpt/*.json")),
    *sorted(DATA.glob("formats/hermes_fc/*.json")),
    *sorted(DATA.glob("formats/toolace/*.json")),
    *sorted(DATA.glob("datasets/glaive_sharegpt_demo/*.json")),
    *sorted(DATA.glob("datasets/eto/*.json")),
    *sorted(DATA.glob("datasets/agentinstruct_*/*.json")),
    *sorted(DATA.glob("datasets/toolbench/*conversations*")),
    *sorted(DATA.glob("datasets/toolbench/derived*")),
    *sorted(DATA.glob("adp_atif/*/sample_sft/sweagent.json")),
    *(
        DATA / "adp_v1" / name / "sample_raw.json"
        for name in (
            *("agenttuning_alfworld", "agenttuning_db", "agenttuning_os", "agenttuning_webshop"),
            *("codeactinstruct", "llava_plus", "orca_agentinstruct"),
        )
        if DATA.exists()
    ),
]
PNG = base64.b64encode(b"\x89PNG\r\n\x1a\n" + bytes(range(80))).decode()
HERMES = 'I look.\n<tool_call>\n{"name": "go", "arguments": {"x": 1.0}}\n</tool_call>'
TWO = '[{"name": "f", "arguments": {"a": 1}}, {"name": "g", "arguments": {"b": 2}}]'
JOINT = "\n</tool_response>\n<tool_response>\n"


def dump(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()


def turn(role: str, value: Any, **more: Any) -> dict[str, Any]:
    return {"from": role, "value": value, **more}


def record(*turns: Any, **columns: Any) -> dict[str, Any]:
    return {"conversations": list(turns), **columns}


def read(value: Any) -> Trajectory:
    """Read a record; the branch of a pair hangs from its main line, as in an export."""
    run, *branches = read_one(CONVERTER, value if isinstance(value, bytes) else dump(value))
    run.branches = branches
    return run


def same(*turns: Any, **columns: Any) -> Trajectory:
    """Read a record, check that it is written as it was, and return it."""
    data, losses = dump(record(*turns, **columns)), Losses()
    run = read(data)
    assert write_one(CONVERTER, run, losses) == data
    assert (losses.items, run.losses) == ([], None)
    return run


def written(run: Trajectory, losses: Losses | None = None) -> Any:
    return json.loads(write_one(CONVERTER, run, losses))


def results(run: Trajectory) -> list[Observation]:
    return [*run.early_observations, *(row for step in run.steps for row in step.observations)]


# ---- sniff ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "match"),
    [
        (record(turn("human", "a")), Match.SHAPE),
        (record(), Match.SHAPE),
        (record({"role": "user", "content": "a"}), Match.SHAPE),
        ({"conversation": [turn("human", "a")]}, Match.SHAPE),
        ({"dialog": [turn("human", "a")]}, Match.SHAPE),
        ({"conversations": json.dumps([turn("human", "a")])}, Match.SHAPE),
        ({"messages": [turn("human", "a")]}, Match.SHAPE),
        ({"messages": [{"role": "user", "content": "a"}]}, Match.NO),
        ({"messages": []}, Match.NO),
        ({"messages": [{"role": "user"}], "conversations": [turn("human", "a")]}, Match.NO),
        ({"messages": None, "conversations": [turn("human", "a")]}, Match.SHAPE),
        ({"conversations": "text"}, Match.NO),
        ({"conversations": [1]}, Match.NO),
        ({"conversations": [{"text": "a"}]}, Match.NO),
        ({"conversations": {"from": "human"}}, Match.NO),
        ({"turns": [turn("human", "a")]}, Match.NO),
    ],
)
def test_sniff_and_no_tie(value, match):
    fields = jsontext.decode_object(dump(value))
    assert CONVERTER.sniff(fields) is match
    if match is not Match.NO:
        assert formats.get("openai_chat").sniff(fields) is Match.NO


# ---- what the rows are ---------------------------------------------------------------------


def test_roles():
    run = same(
        turn("system", "s"),
        turn("human", "u"),
        turn("gpt", "a"),
        turn("Human", "u"),
        turn("bard", "a"),
        turn("critic", "c"),
        turn("observation", "o"),
        turn("ipython", "o"),
    )
    assert [step.source for step in run.steps] == [
        *("system", "user", "agent", "user", "agent", "environment"),
    ]
    assert [row.text for row in results(run)] == ["o", "o"]


def test_keys_of_turns():
    run = same(
        {"role": "user", "content": "u", "x": [1.0]},
        {"value": "v", "from": "gpt", "name": "ann", "reasoning": "why"},
        {"from": "human", "content": "c", "value": None, "role": None},
        {"from": "gpt"},
        {"from": "gpt", "value": None},
        {"from": "gpt", "value": ["a", {"type": "text", "value": "b"}]},
        {"from": "gpt", "value": 7},
    )
    assert [step.text for step in run.steps] == ["u", "v", "c", None, None, "a", None]
    assert (run.steps[1].actor, run.steps[1].reasoning) == ("ann", "why")


def test_columns_of_the_record():
    run = same(
        turn("human", "a"), id=7, system="be brief", tools="[{}]", model="m", reward=1, kto_tag=True
    )
    assert (run.source_id, run.agent_model, run.reward, run.tools) == ("7", "m", 1.0, "[{}]")
    assert run.tools_origin == "recorded"
    assert (run.steps[0].source, run.steps[0].text) == ("system", "be brief")
    assert run.success is True
    assert same(turn("human", "a"), tools=[{"a": 1}]).tools == '[{"a":1}]'
    for tools in (None, "", "no list", {"a": 1}):
        assert same(turn("human", "a"), tools=tools, system=None).tools is None


@pytest.mark.parametrize("key", ["loss", "weight", "train", "loss_weight"])
def test_weights_in_the_loss(key):
    values = [True, False, None, 0.5, 1, "x"]
    run = same(*(turn("gpt", "a", **{key: value}) for value in values))
    assert [step.loss_weight for step in run.steps] == [1.0, 0.0, None, 0.5, 1.0, None]


def test_tools_in_the_system_text():
    text = 'In <tools></tools>: <tools> [{"name": "f"}] </tools>'
    for run in (same(turn("system", text)), same(turn("human", "a"), system=text)):
        assert (run.tools, run.tools_origin) == ('[{"name": "f"}]', "parsed")
    lines = '<tools>\n{"name": "f"}\n{"name": "g"}\n</tools>'
    assert same(turn("system", lines)).tools == '[{"name": "f"}, {"name": "g"}]'
    assert same(turn("system", "<tools>[{'name': 'f'}]</tools>")).tools is None
    assert same(turn("human", text)).tools is None
    assert same(turn("system", text), tools="[]").tools == "[]"


# ---- calls and results ---------------------------------------------------------------------


def test_a_turn_of_calls():
    run = same(
        turn("human", "u"),
        turn("function_call", f"<think>\nhm\n</think>\n\n{TWO}"),
        turn("observation", f"one{JOINT}two"),
        turn("gpt", "done"),
    )
    step = run.steps[1]
    assert step.text == f"<think>\nhm\n</think>\n\n{TWO}"
    assert (step.prose, step.reasoning) == ("<think>\nhm\n</think>", None)
    assert [(call.name, call.arguments) for call in step.calls] == [
        ("f", '{"a": 1}'),
        ("g", '{"b": 2}'),
    ]
    assert {call.origin for call in step.calls} == {"parsed_from_text"}
    spans = [step.text[call.span_start : call.span_end] for call in step.calls]
    assert "".join(spans) == TWO
    assert [(row.text, row.call_step, row.call) for row in results(run)] == [
        ("one", 1, 0),
        ("two", 1, 1),
    ]


def test_calls_in_tags():
    run = same(
        turn("gpt", HERMES),
        turn("tool", '<tool_response>\n{"name": "go", "content": 1}\n</tool_response>'),
        turn("gpt", "<tool_call>{'name': 'f', 'arguments': {'x': None}}</tool_call>"),
        turn("human", HERMES),
    )
    first, second, output = run.steps
    assert (first.prose, first.calls[0].name, first.calls[0].arguments) == (
        *("I look.", "go"),
        '{"x": 1.0}',
    )
    assert second.calls[0].arguments_kind == "python_literal"
    assert (second.calls[0].arguments, second.calls[0].arguments_raw) == (None, "{'x': None}")
    row = first.observations[0]
    assert (row.name, row.call, row.text) == ("go", 0, '{"name": "go", "content": 1}')
    assert (output.calls, output.prose) == ([], None)


@pytest.mark.parametrize("value", ["no JSON", '{"x": 1}', "[1]", "", '{"name": "f"'])
def test_a_turn_of_calls_without_one(value):
    run = same(turn("function_call", value))
    assert (run.steps[0].text, run.steps[0].calls, run.steps[0].prose) == (value, [], None)


def test_results_are_split_only_when_as_many_calls_wait():
    tags = "<tool_response>a</tool_response>\n<tool_response> b </tool_response>\n"
    call = turn("function_call", TWO)
    assert [row.text for row in results(same(call, turn("tool", tags)))] == ["a", "b"]
    assert [row.text for row in results(same(turn("tool", tags)))] == [tags]
    run = same(call, turn("tool", "a"), turn("tool", f"b{JOINT}c"))
    assert [(row.text, row.call) for row in results(run)] == [
        ("a", 0),
        (f"b{JOINT}c", 1),
    ]


def test_lone_surrogates():
    data = (
        b'{"conversations":[{"from":"gpt","value":"\\ud83d<tool_call>{\\"name\\": \\"f\\"}'
        b'</tool_call>"},{"from":"gpt","value":"<tool_call>{\\"name\\": \\"\\\\ud83d\\"}'
        b'</tool_call>"}]}'
    )
    run = read(data)
    assert [call.name for step in run.steps for call in step.calls] == ["f", "\ufffd"]
    assert write_one(CONVERTER, run) == data


# ---- media ---------------------------------------------------------------------------------


def test_media():
    uri = f"data:image/png;base64,{PNG}"
    run = same(
        turn("human", "<image>\nWhat? <video>"),
        turn("gpt", "That."),
        turn("human", "a <image><image> b"),
        images=["a.png", uri, "a.png"],
        videos=["v.mp4"],
    )
    assert [part["type"] for part in run.steps[0].json_value("content")] == [
        *("media", "text", "media"),
    ]
    assert len(run.media) == 3
    assert "base64" not in (run.extra or "")
    assert same(turn("human", "<image>"), image="x.jpg").steps[0].text is None


@pytest.mark.parametrize(
    "columns",
    [
        {"images": ["a.png", "b.png"]},
        {"images": []},
        {"images": [{"path": "a.png"}]},
        {"images": ["a.png"], "image": "b.png"},
        {"images": None},
    ],
)
def test_media_that_do_not_fit_the_texts(columns):
    same(turn("human", "<image> text"), **columns)
    run = same(turn("function_call", '{"name": "<image>"}'), images=["a.png"])
    assert run.steps[0].calls[0].name == "<image>"


# ---- pairs ---------------------------------------------------------------------------------

CHOSEN, REJECTED = turn("gpt", "good"), turn("function_call", '{"name": "f", "arguments": {}}')


def test_a_preference_pair():
    run = same(turn("human", "u"), chosen=CHOSEN, rejected=REJECTED, system="s")
    (branch,) = run.branches
    assert [step.text for step in run.steps] == ["s", "u", "good"]
    assert (branch.parent_id, branch.parent_step, branch.branch_kind) == (
        run.trajectory_id,
        2,
        "alternate",
    )
    assert [(step.step, step.calls[0].name) for step in branch.steps] == [(2, "f")]


@pytest.mark.parametrize(
    ("chosen", "rejected"),
    [(CHOSEN, "text"), ([CHOSEN], [REJECTED]), (CHOSEN, turn("tool", "a")), ({}, {})],
)
def test_what_is_no_pair_stays(chosen, rejected):
    run = same(turn("human", "u"), chosen=chosen, rejected=rejected)
    assert (run.branches, len(run.steps)) == ([], 1)


def test_the_row_of_a_pair(tmp_path):
    source = tmp_path / "pairs.jsonl"
    line = dump(record(turn("human", "u"), chosen=CHOSEN, rejected=REJECTED, id="p")) + b"\n"
    source.write_bytes(line * 2)
    convert([str(source)], str(tmp_path / "store"))
    store = Store.open(str(tmp_path / "store"))
    first, second = store.scan("pairs").collect().to_dicts()
    assert (first["chosen_id"], first["chosen_from"], first["chosen_to"]) == ("pairs/p", 1, 2)
    assert second["chosen_id"] == "pairs/p#2"
    runs = {run.trajectory_id: run for run in store.trajectories()}
    for row in (first, second):
        branch = runs[row["rejected_id"]]
        assert branch.parent_id == row["chosen_id"]
        assert branch.steps[0].step == row["rejected_from"]


def test_a_pair_without_its_branch():
    run, losses = read(record(turn("human", "u"), chosen=CHOSEN, rejected=REJECTED)), Losses()
    run.branches = []
    assert "rejected" not in written(run, losses)
    assert [item["path"] for item in losses.items] == ["$.branches"]


# ---- edits ---------------------------------------------------------------------------------

EDITED = record(
    turn("human", "u", x=1),
    turn("function_call", '<think>a</think>{"arguments":{"a" : 1.0},"name":"f"}'),
    turn("observation", "one"),
    turn("gpt", "two <tool_call>{'name': 'g', 'arguments': {'b': None}}</tool_call>\nend"),
    turn("tool", "<tool_response>{'name': 'g', 'content': 1}</tool_response>"),
    turn("gpt", "done", loss=True),
    system='<tools>[{"name": "f"}]</tools>',
    id="r",
    kto_tag=False,
)


def edited(change: Any) -> Any:
    run = read(EDITED)
    assert written(run) == EDITED
    change(run)
    losses = Losses()
    out = written(run, losses)
    assert losses.items == []
    return out


def changed(path: list[Any], old: str, new: str) -> Any:
    """The record with a piece of one text replaced."""
    out = copy.deepcopy(EDITED)
    inner = out
    for key in path[:-1]:
        inner = inner[key]
    assert inner[path[-1]].count(old) == 1
    inner[path[-1]] = inner[path[-1]].replace(old, new)
    return out


def _put(row: Any, **columns: Any) -> None:
    for name, value in columns.items():
        setattr(row, name, value)


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (
            lambda run: _put(run.steps[2].calls[0], name="new"),
            changed(["conversations", 1, "value"], '"f"', '"new"'),
        ),
        (
            lambda run: _put(run.steps[2].calls[0], arguments='{"a": 2}'),
            changed(["conversations", 1, "value"], '{"a" : 1.0}', '{"a": 2}'),
        ),
        (
            lambda run: _put(run.steps[3].calls[0], name="new"),
            changed(["conversations", 3, "value"], "'g'", "'new'"),
        ),
        (
            lambda run: _put(run.steps[3].calls[0], arguments_raw="{'b': 2}"),
            changed(["conversations", 3, "value"], "None", "2"),
        ),
        (
            lambda run: _put(run.steps[3], text=run.steps[3].text.replace("two", "2")),
            changed(["conversations", 3, "value"], "two", "2"),
        ),
        (
            lambda run: run.steps[3].calls.clear(),
            changed(
                ["conversations", 3, "value"],
                "<tool_call>{'name': 'g', 'arguments': {'b': None}}</tool_call>",
                "",
            ),
        ),
        (
            lambda run: _put(run.steps[1], text="you"),
            changed(["conversations", 0, "value"], "u", "you"),
        ),
        (
            lambda run: _put(run.steps[2].observations[0], text="1"),
            changed(["conversations", 2, "value"], "one", "1"),
        ),
        (
            lambda run: _put(run.steps[3].observations[0], name="new"),
            changed(["conversations", 4, "value"], "'g'", "'new'"),
        ),
        (
            lambda run: _put(run, tools='[{"name": "new"}]'),
            changed(["system"], '"f"', '"new"'),
        ),
        (lambda run: _put(run.steps[0], text="short"), {**EDITED, "system": "short"}),
    ],
    ids=range(11),
)
def test_an_edit_shows_and_nothing_else_changes(change, expected):
    if expected.get("system") == "short":
        # The text no longer holds the tools, so they get their column.
        expected = {**expected, "tools": '[{"name": "f"}]'}
    assert edited(change) == expected


def test_a_dropped_step_is_gone():
    expected = copy.deepcopy(EDITED)
    del expected["conversations"][1:3]
    assert edited(lambda run: run.steps.pop(2)) == expected

    def drop_last(run: Trajectory) -> None:
        run.steps[-1].loss_weight = 0.25
        run.steps.pop(1)

    expected = copy.deepcopy(EDITED)
    expected["conversations"][-1]["loss"] = 0.25
    del expected["conversations"][0]
    assert edited(drop_last) == expected


def test_a_call_that_is_added():
    run = read(record(turn("function_call", '{"name": "f"}'), turn("gpt", "text")))
    new = run.steps[0].calls[0].model_copy(update={"name": "g", "span_start": None})
    run.steps[0].calls.append(new)
    run.steps[1].calls.append(new)
    again = read(written(run))
    assert [[call.name for call in step.calls] for step in again.steps] == [["f", "g"], ["g"]]


def test_a_dropped_image_leaves_its_column():
    run = read(record(turn("human", "<image>"), turn("human", "b<image>"), images=["a", "b"]))
    del run.steps[0]
    assert written(run) == record(turn("human", "b<image>"), images=["b"])


def test_a_joined_result_that_is_dropped():
    run = read(record(turn("function_call", TWO), turn("observation", f"a{JOINT}b")))
    del run.steps[0].observations[0]
    assert written(run)["conversations"][1] == turn("observation", "b")


def test_an_edited_pair():
    run = read(record(turn("human", "u"), chosen=CHOSEN, rejected=REJECTED))
    run.steps[1].text = "better"
    run.branches[0].steps[0].calls[0].name = "g"
    out = written(run)
    assert out["chosen"]["value"] == "better"
    assert out["rejected"]["value"] == '{"name": "g", "arguments": {}}'


# ---- wrong records -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "path"),
    [
        ({}, "$.conversations"),
        ({"conversations": 1}, "$.conversations"),
        ({"conversations": "no list"}, "$.conversations"),
        ({"conversations": ["text"]}, "$.conversations[0]"),
        ({"conversations": [{"value": "a"}]}, "$.conversations[0]"),
        ({"conversations": [{"from": 1, "value": "a"}]}, "$.conversations[0]"),
        ({"dialog": [[]]}, "$.dialog[0]"),
        ([], "$"),
    ],
)
def test_a_wrong_record(value, path):
    with pytest.raises(RecordError) as caught:
        read(value)
    assert caught.value.path == path


def test_keys_that_occur_twice_are_reported():
    run = read(b'{"conversations":[{"from":"human","value":"a","value":"b"}],"id":"1","id":"2"}')
    assert [item["path"] for item in run.json_value("losses")] == [
        "$.id",
        "$.conversations[0].value",
    ]


# ---- from other formats --------------------------------------------------------------------


def written_from(*steps: Step, **columns: Any) -> tuple[dict[str, Any], list[str]]:
    """What steps of another format become, and the paths of the losses."""
    losses = Losses()
    for index, step in enumerate(steps):
        step.step = index
    run = Trajectory(source_format="other", source_id="r", **columns)
    run.steps = list(steps)
    return written(run, losses), [item["path"] for item in losses.items]


def test_two_texts_of_a_side_become_one_turn():
    out, lost = written_from(
        Step(source="user", text="a"),
        Step(source="user", text="b"),
        Step(source="agent", text="c"),
        Step(source="agent", text="d", reasoning="why"),
    )
    assert out["conversations"] == [
        turn("human", "a\n\nb"),
        turn("gpt", "c\n\n<think>\nwhy\n</think>\n\nd"),
    ]
    assert lost == ["$.steps[1]", "$.steps[3]"]


def test_a_side_that_is_missing_is_reported():
    out, lost = written_from(Step(source="agent", text="a"), Step(source="user", text="b"))
    assert [item["from"] for item in out["conversations"]] == ["gpt", "human"]
    assert lost == ["$.steps", "$.steps"]


def test_system_texts():
    out, lost = written_from(
        Step(source="system", text="a"),
        Step(source="system", text="b"),
        Step(source="user", text="u"),
        Step(source="system", text="late"),
        Step(source="agent", text="x"),
        tools="[]",
    )
    assert (out["system"], out["tools"]) == ("a\n\nb", "[]")
    assert out["conversations"][0] == turn("human", "u\n\nlate")
    assert sorted(lost) == ["$.steps[1]", "$.steps[3]", "$.steps[3].source"]


def test_branches_are_reported():
    losses = Losses()
    run = Trajectory(source_format="other", branches=[Trajectory()])
    written(run, losses)
    assert [item["path"] for item in losses.items] == ["$.branches[0]"]


# ---- real files ----------------------------------------------------------------------------


@pytest.mark.skipif(not DATA.exists(), reason="the reference data are not here")
def test_all_files_are_there():
    assert len(FILES) == 19


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_a_real_file_comes_back(path, tmp_path):
    # Some data sets have a recipe that cuts or regroups their rows.
    regrouped = any(part in ("toolbench", "llava_plus") for part in path.parts)
    options = ConvertOptions(format="sharegpt" if regrouped else None)
    manifest = convert([str(path)], str(tmp_path / "store"), options=options)
    assert manifest.counts.rejected == 0
    assert manifest.losses == {}
    store = Store.open(str(tmp_path / "store"))
    (source,) = store.scan("sources").collect().to_dicts()
    reader = json.loads(source["style"]).get("rows_of", source["source_format"])
    assert reader == "sharegpt"
    report = export(store, "sharegpt", str(tmp_path / "out"))
    assert report.losses == {}
    (out,) = [file for file in (tmp_path / "out").rglob("*") if file.is_file()]
    assert json.loads(out.read_bytes()) == json.loads(path.read_bytes())
    if not json.loads(source["style"]).get("irregular"):
        assert out.read_bytes() == path.read_bytes()


def test_the_format_can_be_told(tmp_path):
    source = tmp_path / "x.jsonl"
    source.write_bytes(dump({"messages": [{"role": "user", "content": "a"}]}) + b"\n")
    options = ConvertOptions(format="sharegpt")
    assert convert([str(source)], str(tmp_path / "store"), options=options).counts.used == 1
