"""LangChain's messages and LangSmith's runs: what examples mean, and real files counted."""

from __future__ import annotations

import json

import pytest

from tests.converters.readers.stores import EXAMPLES, convert, load, real, rows

RUNS = [
    path for path in real("formats/langsmith", "formats_new/langsmith") if path.suffix == ".json"
]


def test_a_state_of_a_graph(tmp_path):
    convert(EXAMPLES / "langchain_messages" / "state.json", tmp_path / "s")
    [run] = rows(tmp_path / "s", "trajectories")
    assert (run["session_id"], run["agent_model"]) == ("thread-4", "model-t")
    steps = rows(tmp_path / "s", "steps")
    assert [it["source"] for it in steps] == ["system", "user", "agent", "agent"]
    turn = steps[2]
    assert (turn["tokens_in"], turn["tokens_cached"], turn["tokens_cache_write"]) == (40, 8, 3)
    assert (turn["response_id"], turn["stop_reason"]) == ("chatcmpl-7", "tool_calls")
    # Calls stand a second time in additional_kwargs.
    assert [it["name"] for it in rows(tmp_path / "s", "tool_calls")] == ["find", "price"]
    answers = rows(tmp_path / "s", "observations")
    assert [(it["call_id"], it["is_error"]) for it in answers] == [
        ("call_2", True),
        ("call_1", False),
    ]
    assert steps[3]["reasoning"] == "Nine it is."


def test_a_list_of_messages(tmp_path):
    convert(EXAMPLES / "langchain_messages" / "messages.json", tmp_path / "s")
    steps = rows(tmp_path / "s", "steps")
    assert [(it["source"], it["kind"]) for it in steps] == [
        ("user", "message"),
        ("agent", "llm_turn"),
        ("environment", "event"),
    ]
    assert steps[1]["model"] == "model-u"


def test_the_root_of_a_graph_says_what_holds_for_the_whole(tmp_path):
    convert(EXAMPLES / "langsmith" / "langgraph.jsonl", tmp_path / "s")
    [run] = rows(tmp_path / "s", "trajectories")
    assert (run["session_id"], run["task_id"]) == ("thread-9", "example-3")
    assert json.loads(run["rewards"]) == {"correct": 0.75}
    assert (run["total_tokens_in"], run["total_tokens_out"]) == (90, 19)
    steps = [it for it in rows(tmp_path / "s", "steps") if it["kind"] != "event"]
    assert [it["source"] for it in steps] == ["user", "agent", "agent"]
    assert [it["duration_ms"] for it in steps] == [None, 2000, 2000]
    assert [it["tokens_in"] for it in steps] == [None, 30, 60]
    assert [it["stop_reason"] for it in steps] == [None, "tool_calls", "stop"]
    assert steps[2]["cost_usd"] == 0.002
    calls = rows(tmp_path / "s", "tool_calls")
    assert [(it["call_id"], it["status"]) for it in calls] == [
        ("toolu_1", None),
        ("toolu_2", "invalid"),
    ]
    [answer] = rows(tmp_path / "s", "observations")
    assert (answer["call_id"], answer["duration_ms"]) == ("toolu_1", 1000)


def test_runs_inside_runs(tmp_path):
    convert(EXAMPLES / "langsmith" / "tree.json", tmp_path / "s")
    main, judge = rows(tmp_path / "s", "trajectories")
    assert judge["parent_id"] == main["trajectory_id"]
    steps = [it for it in rows(tmp_path / "s", "steps") if it["kind"] != "event"]
    turns = [it for it in steps if it["trajectory_id"] == main["trajectory_id"]]
    assert [it["source"] for it in turns] == ["system", "user", "agent", "agent"]
    assert [it["response_id"] for it in turns[2:]] == ["c-1", "c-2"]
    [answer] = rows(tmp_path / "s", "observations")
    assert (answer["call_id"], answer["text"]) == ("call_1", "the sum is two")
    assert [it["text"] for it in steps[-2:]] == ["Rate the answer: two", "ten of ten points"]


def test_a_root_alone_is_the_trajectory(tmp_path):
    lines = (EXAMPLES / "langsmith" / "langgraph.jsonl").read_text("utf-8").splitlines()
    [root] = [line for line in lines if json.loads(line)["name"] == "LangGraph"]
    (tmp_path / "root.jsonl").write_text(root + "\n", "utf-8")
    convert(tmp_path / "root.jsonl", tmp_path / "s")
    steps = rows(tmp_path / "s", "steps")
    assert [it["source"] for it in steps] == ["user", "agent", "agent"]
    assert steps[-1]["text"] == "It is sunny in Oslo."
    assert [it["call_id"] for it in rows(tmp_path / "s", "tool_calls")] == ["toolu_1", "toolu_2"]
    [answer] = rows(tmp_path / "s", "observations")
    assert (answer["call_id"], answer["text"]) == ("toolu_1", "sunny and warm")


@pytest.mark.parametrize("path", RUNS, ids=lambda path: path.name)
def test_real_batches(path, tmp_path):
    convert(path, tmp_path / "s")
    raw = load(path)
    [post], [patch] = raw["post"], raw["patch"]
    steps = rows(tmp_path / "s", "steps")
    prompts = [it["content"] for it in post["inputs"]["messages"]]
    reply = patch["outputs"]["choices"][0]["message"]["content"]
    assert [it["text"] for it in steps] == [*prompts, reply]
    usage = patch["outputs"]["usage_metadata"]
    assert steps[-1]["tokens_in"] == usage["input_tokens"]
    assert steps[-1]["tokens_out"] == usage["output_tokens"]
    assert rows(tmp_path / "s", "trajectories")[0]["source_id"] == post["id"]
