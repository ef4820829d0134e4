"""Inspect AI: model events are the truth; pools, attachments, branches, edits and scores."""

from __future__ import annotations

import json
import zipfile
import zlib
from pathlib import Path

import pyarrow as pa
import pytest

from tests.converters.readers.samples_store import convert, example, real
from tests.fuzz.leaves import read_lines

EXAMPLE = Path(__file__).parent / "examples" / "inspect" / "sum-1_epoch_1.json"


def of(rows, trajectory_id, table="steps"):
    return [row for row in rows[table] if row["trajectory_id"] == trajectory_id]


@pytest.fixture(scope="module")
def rows():
    return example("inspect", "log.json")


def test_each_sample_is_a_trajectory(rows):
    mains = [it for it in rows["trajectories"] if "parent_id" not in it]
    assert [it["source_id"] for it in mains] == ["eval-1/sum-1_1", "eval-1/2_2", "eval-1/3_1"]
    assert [it["task_id"] for it in mains] == ["sums/sum-1", "sums/2", "sums/3"]
    assert [it["attempt"] for it in mains] == [0, 1, 0]
    assert [it["success"] for it in mains] == [True, False, False]
    assert [(it["truncated"], it["terminated"]) for it in mains] == [
        (False, True),
        (True, False),
        (False, False),
    ]
    assert mains[2]["error_type"] == "ValueError"
    assert ["log" in json.loads(it["extra"]) for it in mains] == [True, False, False]
    assert [json.loads(task["answers"]) for task in rows["tasks"]] == [["three", "3"], "3", "yes"]


def test_scores_become_rewards(rows):
    main = rows["trajectories"][0]
    expected = {"graded": 1.0, "parts.sum": 1.0, "parts.name": 0.5, "length": 12.0}
    assert json.loads(main["rewards"]) == expected
    assert (main["reward"], main["final_answer"]) == (1.0, "three")
    assert "names the sum" in json.loads(main["judge"])["graded"]["explanation"]


def test_messages_stand_once_and_a_compaction_is_an_edit(rows):
    main = rows["trajectories"][0]["trajectory_id"]
    steps = of(rows, main)
    kinds = [step["kind"] for step in steps if step["kind"] != "event"]
    assert kinds == [
        "message",
        "message",
        "llm_turn",
        "llm_turn",
        "context_edit",
        "message",
        "llm_turn",
    ]
    assert steps[0]["text"].startswith("You are a careful")
    turns = [step for step in steps if step["kind"] == "llm_turn"]
    assert turns[0]["reasoning"] == "I add first."
    assert [turn["tokens_in"] for turn in turns] == [130, 140, 40]
    assert turns[0]["tokens_cached"] == 100
    assert turns[2]["reasoning"] == "It is clear."
    assert json.loads(turns[1]["extra"])["input"] == [[0, 5]]
    assert json.loads(rows["trajectories"][0]["extra"])["messages"] == [[0, 2], [8, 10]]


def test_results_and_what_their_events_say(rows):
    main = rows["trajectories"][0]["trajectory_id"]
    results = {it["call_id"]: it for it in of(rows, main, "observations")}
    assert (results["call_1"]["text"], results["call_1"]["duration_ms"]) == ("3", 125.0)
    assert (results["call_2"]["is_error"], results["call_2"]["error_type"]) == (True, "parsing")
    assert results["call_2"]["text"] == "x is no integer"
    assert (results["call_3"]["text"], results["ws_1"]["text"]) == ("three", "three")


def test_agents_in_tools_and_scorers_are_branches(rows):
    main, helper, scorer = rows["trajectories"][:3]
    assert [it["agent_name"] for it in (helper, scorer)] == ["helper", "graded"]
    assert {helper["branch_kind"], scorer["branch_kind"]} == {"subagent"}
    assert [link["target_id"] for link in of(rows, main["trajectory_id"], "links")] == [
        helper["source_id"],
        scorer["source_id"],
    ]
    assert [step["text"] for step in of(rows, helper["trajectory_id"])] == ["name 3", "three"]


def test_pools_and_results_that_no_model_saw(rows):
    main = next(it for it in rows["trajectories"] if it.get("source_id") == "eval-1/2_2")
    steps = of(rows, main["trajectory_id"])
    assert [step["source"] for step in steps] == ["user", "agent", "agent", "environment"]
    results = of(rows, main["trajectory_id"], "observations")
    assert [it["text"] for it in results] == ["3", "x is no integer", "9"]
    assert json.loads(main["extra"])["message_pool"][0]["id"] == "m-never"


def test_a_sample_beside_its_header():
    header = {"eval": {"eval_id": "e", "task": "sums", "model": "example/model-3"}}
    sides = {"x.eval/header.json": json.dumps(header).encode()}
    main = read_lines("inspect", EXAMPLE.read_bytes(), sides).rows["trajectories"][0]
    assert (main["source_id"], main["agent_model"]) == ("e/sum-1_1", "example/model-3")
    assert main["total_tokens_in"] == 324


@pytest.mark.parametrize("number", range(9))
def test_real_files(number, tmp_path):
    paths = real("formats*/inspect_ai/*.json", "inspect/**/*.json")
    logs = [it for it in paths if '"samples"' in it.read_text(encoding="utf-8")]
    if number >= len(logs):
        pytest.skip("there are fewer files")
    samples = json.loads(logs[number].read_text(encoding="utf-8"))["samples"]
    sql = convert(logs[number], tmp_path / "store", "inspect")
    assert sql("select count(*) n from trajectories")[0]["n"] == len(samples)
    events = [
        event
        for sample in samples
        for event in sample.get("events") or sample.get("transcript", {}).get("events", [])
    ]
    models = [event for event in events if event["event"] == "model"]
    turns = sql("select count(*) n, sum(tokens_out) t from steps where model is not null and usage"
                " is not null")[0]  # fmt: skip
    usages = [event["output"]["usage"] for event in models if event["output"].get("usage")]
    assert turns["n"] == len(usages)
    assert (turns["t"] or 0) == sum(usage["output_tokens"] for usage in usages)
    outputs = [choice["message"] for event in models for choice in event["output"]["choices"]]
    assert sql("select count(*) n from tool_calls")[0]["n"] == sum(
        len(message.get("tool_calls") or []) for message in outputs
    )
    tools = sum(event["event"] == "tool" for event in events)
    final = sum(m["role"] == "tool" for sample in samples for m in sample["messages"])
    assert sql("select count(*) n from observations")[0]["n"] == max(tools, final)
    lone = sum(m["role"] != "tool" for s in samples for m in s["messages"]) if models else 0
    assert sql("select count(*) n from steps")[0]["n"] >= lone


def test_a_list_of_events_is_a_run_of_no_task():
    rows = example("inspect", "events.json")
    (main,) = rows["trajectories"]
    assert "task_id" not in main
    assert json.loads(main["extra"])["expected"] == {"calls": 17}
    assert [step["source"] for step in rows["steps"]] == ["system", "user", "agent"]
    assert rows["observations"][0]["call_id"] == "call_e1"
    assert "tasks" not in rows or rows["tasks"] == []


def archive(path, samples, **members):
    """An ``.eval`` archive."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        for name, value in members.items():
            file.writestr(f"{name.replace('__', '/')}.json", json.dumps(value))
        for name, value in samples.items():
            file.writestr(f"samples/{name}.json", json.dumps(value))
    return path


def test_an_archive_is_read_whole_and_its_header_stands_once(tmp_path):
    """The first sample of the task is missing, as in a run that was stopped."""
    sample = json.loads(EXAMPLE.read_text(encoding="utf-8"))
    summary = {"id": 5, "epoch": 1, "input": "?", "target": "!"}
    about = {"eval_id": "e", "task": "sums", "model": "m", "dataset": {"sample_ids": [4, 5, 6]}}
    path = archive(
        tmp_path / "log.eval",
        {f"{number}_epoch_1": {**sample, "id": number} for number in (5, 6)},
        _journal__start={"version": 2, "eval": about},
        _journal__summaries__1=[summary, {**summary, "id": 6}],
        reductions=[{"scorer": "graded", "samples": [{"value": 0.75}]}],
    )
    sql = convert(path, tmp_path / "store")
    mains = sql(
        "select source_id, task_id, extra, losses from trajectories where parent_id is null"
    )
    assert [it["source_id"] for it in mains] == ["e/5_1", "e/6_1"]
    logs = [json.loads(it["extra"]).get("log") for it in mains]
    assert logs[0]["eval"]["dataset"]["sample_ids"] == [4, 5, 6]
    assert logs[0]["reductions"][0]["samples"] == [{"value": 0.75}]
    assert logs[1] is None
    extra = json.loads(mains[0]["extra"])
    assert extra["attachments"] == {}


def member(path, info):
    """The JSON of a member, decompressed by the kind that it says."""
    data = path.read_bytes()[info.header_offset :]
    start = 30 + int.from_bytes(data[26:28], "little") + int.from_bytes(data[28:30], "little")
    data = data[start : start + info.compress_size]
    if info.compress_type == 8:
        data = zlib.decompress(data, -15)
    elif info.compress_type == 93:
        data = pa.CompressedInputStream(pa.BufferReader(data), "zstd").read()
    return json.loads(data)


@pytest.mark.parametrize("number", range(15))
def test_real_archives(number, tmp_path):
    paths = real("formats*/inspect_ai/*.eval", "inspect/**/*.eval")
    if number >= len(paths):
        pytest.skip("there are fewer files")
    with zipfile.ZipFile(paths[number]) as file:
        infos = [info for info in file.infolist() if info.filename.startswith("samples/")]
    samples = [member(paths[number], info) for info in infos]
    sql = convert(paths[number], tmp_path / "store")
    mains = sql("select * from trajectories where parent_id is null")
    assert sorted((json.loads(it["extra"])["id"], it["attempt"] + 1) for it in mains) == sorted(
        (sample["id"], sample["epoch"]) for sample in samples
    )
    assert sum("log" in json.loads(it["extra"]) for it in mains) == 1
    calls = 0
    for sample in samples:
        messages = {}
        for event in sample.get("events", []):
            if event["event"] == "model":
                outputs = [choice["message"] for choice in event["output"]["choices"][:1]]
                messages |= {message.get("id") or id(message): message for message in outputs}
        messages = messages or dict(enumerate(sample["messages"]))
        calls += sum(len(message.get("tool_calls") or []) for message in messages.values())
    assert sql("select count(*) n from tool_calls")[0]["n"] == calls
    scored = [sample for sample in samples if sample.get("scores") or sample.get("score")]
    assert sum(it["judge"] is not None for it in mains) == len(scored)
