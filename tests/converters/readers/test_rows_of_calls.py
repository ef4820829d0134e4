"""Rows for fine-tuning whose fields hold the calls: xLAM, LLaMA-Factory 1."""

from __future__ import annotations

import json
from collections import Counter

import pytest

from tests.converters.readers.real_files import Rows, real
from tests.converters.readers.samples_store import example


def lines(path):
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".jsonl":
        return [json.loads(line) for line in text.splitlines()]
    return json.loads(text)


def decoded(value):
    return json.loads(value) if isinstance(value, str) else value


def test_answers_of_xlam_are_calls():
    rows = example("xlam", "rows.jsonl")
    (run,) = rows["trajectories"]
    assert json.loads(run["tools"])[0]["parameters"]["kind"]["type"] == "str, optional"
    assert [(call["name"], json.loads(call["arguments"])) for call in rows["tool_calls"]] == [
        ("giveaways", {"kind": "beta"}), ("giveaways", {"kind": "game", "page": 2}),
    ]  # fmt: skip
    chat = example("xlam", "rows.jsonl", 1)
    assert [step["source"] for step in chat["steps"]] == ["user", "agent", "user", "agent"]
    assert chat["tool_calls"][0]["step"] == 3
    assert example("xlam", "rows.jsonl", 2)["tool_calls"] == []


def test_values_of_llama_factory():
    rows = example("llamafactory_v1", "rows.jsonl")
    turn = rows["steps"][2]
    assert (turn["reasoning"], turn["loss_weight"]) == ("I look twice at it.", 0.5)
    calls = rows["tool_calls"]
    assert json.loads(calls[0]["arguments"]) == {"at": "cat.png", "deep": True}
    assert (calls[1]["call_id"], calls[1]["arguments_kind"]) == ("c-9", "json_string")
    assert calls[2]["arguments_raw"] == "look at it {again}"
    assert rows["observations"][0]["call"] == 0
    assert rows["media"][0]["uri"] == "https://example.org/cat.png"
    assert json.loads(rows["trajectories"][0]["tools"])[0]["function"]["name"] == "look"


def test_pairs_of_llama_factory():
    rows = example("llamafactory_v1", "rows.jsonl", 1)
    main, branch = rows["trajectories"]
    assert (branch["parent_id"], branch["parent_step"]) == (main["trajectory_id"], 1)
    (pair,) = rows["pairs"]
    assert (pair["chosen_id"], pair["rejected_id"]) == (
        main["trajectory_id"], branch["trajectory_id"],
    )  # fmt: skip
    assert (pair["context_up_to"], pair["chosen_to"], pair["rejected_to"]) == (1, 2, 2)
    assert [step["text"] for step in rows["steps"]] == [
        "Translate this to English.", "The house is red.", "The houses are red?",
    ]  # fmt: skip


@pytest.mark.parametrize(
    "path", real("formats/xlam/*.json", "datasets/xlam60k/*.jsonl",
                 "datasets/hammer/test.original.toolalpaca.head3.json",
                 "datasets_new/hammer_tests/apibank_l2.rows0+40.json")
)  # fmt: skip
def test_real_rows_of_xlam(path, tmp_path):
    rows = Rows([path], tmp_path / "store", format="xlam")
    answers = [decoded(row["answers"]) for row in lines(path)]
    calls = [call for answer in answers for call in answer]
    assert rows.count("trajectories", "tools is not null") == len(answers)
    stored = rows.all("select name, arguments from tool_calls")
    assert Counter((it["name"], it["arguments"]) for it in stored) == Counter(
        (call["name"], json.dumps(call["arguments"], ensure_ascii=False)) for call in calls
    )
    queries = [row["query"] for row in lines(path)]
    messages = [it for query in queries if isinstance(query, list) for it in query]
    results = sum(message["role"] == "tool" for message in messages)
    single = sum(isinstance(query, str) for query in queries)
    assert rows.count("steps") == single + len(messages) - results + len(answers)
    assert rows.count("observations") == results


@pytest.mark.parametrize("path", real("formats/llamafactory_v1/*.jsonl"))
def test_real_rows_of_llama_factory(path, tmp_path):
    rows = Rows([path], tmp_path / "store")
    data = lines(path)
    messages = [it for row in data for it in row.get("messages") or row["chosen_messages"]]
    pairs = [row for row in data if "rejected_messages" in row]
    values = Counter(part["type"] for message in messages for part in message["content"])
    assert rows.count("pairs") == len(pairs)
    assert rows.count("tool_calls") == values["tool_call"]
    results = sum(message["role"] == "tool" for message in messages)
    assert rows.count("observations", "call is not null") == results
    main = "seq in (select seq from trajectories where parent_id is null)"
    assert rows.count("steps", main) == len(messages) - results
    assert rows.count("steps", "reasoning is not null") == values["reasoning"]
