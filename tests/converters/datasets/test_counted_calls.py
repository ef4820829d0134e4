"""Calls of real rows against a plain count over the raw files, which knows nothing of dialects."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.converters.datasets.stores import arguments, converted, records, table
from tests.samples import ROOT

OLD, NEW = ROOT / "datasets", ROOT / "datasets_new"


def names(store: Any) -> Counter[str]:
    return Counter(call["name"] for call in table(store, "tool_calls"))


def agent_texts(path: Path, key: str = "conversations") -> list[str]:
    """What agents say in the chats of a file."""
    return [
        turn.get("value", turn.get("content")) or ""
        for row in records(path)
        for turn in (json.loads(row[key]) if isinstance(row[key], str) else row[key])
        if turn.get("from", turn.get("role")) in ("gpt", "assistant")
    ]


def split_top(text: str) -> list[str]:
    """The parts of a text between commas that no bracket and no quote holds."""
    parts, depth, quote, part = [], 0, "", ""
    for letter in text:
        if quote:
            quote = "" if letter == quote else quote
        elif letter in "\"'":
            quote = letter
        else:
            depth += (letter in "([{") - (letter in ")]}")
        if letter == "," and not depth and not quote:
            parts.append(part.strip())
            part = ""
        else:
            part += letter
    return [*parts, part.strip()]


def test_toolace(tmp_path):
    path = NEW / "fc_sft_fixtures" / "toolace_sample.jsonl"
    store = converted(tmp_path, path)
    expected: Counter[str] = Counter()
    for row in records(path):
        declared = re.findall(r'"name": "([^"]+)", "description"', row["system"])
        for turn in row["conversations"]:
            if turn["from"] == "assistant" and re.match(r"\[[^\[{]+\(", turn["value"]):
                for part in split_top(turn["value"].strip()[1:-1]):
                    expected[max((it for it in declared if part.startswith(it)), key=len)] += 1
    assert names(store) == expected
    assert expected


def test_glaive(tmp_path):
    paths = (OLD / "glaive_raw" / "two_records.jsonl",
             NEW / "fc_sft_fixtures" / "glaive_sample.jsonl")  # fmt: skip
    store = converted(tmp_path, *paths)
    chats = [row["chat"] for path in paths for row in records(path)]
    expected = Counter(
        name for chat in chats for name in re.findall(r'<functioncall> \{"name": "(\w+)"', chat)
    )
    assert names(store) == expected
    assert sum(expected.values()) == sum(chat.count("<functioncall>") for chat in chats)
    answered = [it for it in table(store, "observations") if it["call"] is not None]
    assert len(answered) == sum(chat.count("FUNCTION RESPONSE:") for chat in chats)


def test_xlam(tmp_path):
    path = OLD / "xlam60k" / "row0.jsonl"
    store = converted(tmp_path, path)
    expected = [call for row in records(path) for call in json.loads(row["answers"])]
    calls = table(store, "tool_calls")
    assert [(it["name"], arguments(it)) for it in calls] == [
        (it["name"], it["arguments"]) for it in expected
    ]


def actions_of(node: dict[str, Any]) -> list[str]:
    """The actions in an answer tree of ToolBench, each once, that were given an input."""
    below = [name for child in node["children"] for name in actions_of(child)]
    if node["node_type"] != "Action":
        return below
    inputs = [it for it in node["children"] if it["node_type"] == "Action Input"]
    return [node["description"]] * len(inputs) + below


TREES = (OLD / "toolbench" / "answer.G1.57_ChatGPT_DFS_woFilter_w2.json",
         NEW / "toolbench_trees" / "102_ChatGPT_DFS_woFilter_w2.json")  # fmt: skip


@pytest.mark.parametrize("path", TREES, ids=lambda path: path.parent.name)
def test_toolbench_trees(tmp_path, path):
    """Each node of the tree is a call once, though several branches begin with it."""
    store = converted(tmp_path, path)
    (tree,) = records(path)
    assert names(store) == Counter(actions_of(tree["tree"]["tree"]))
    (run,) = (it for it in table(store, "trajectories") if it["parent_id"] is None)
    assert run["success"] == (tree["win"] and tree["answer_generation"]["valid_data"])


def test_toolllama_rows_are_not_counted_twice(tmp_path):
    path = OLD / "toolbench" / "derived.toolllama_dfs_shape.json"
    store = converted(tmp_path, path)
    rows = [row["conversations"] for row in records(path)]
    longest = [row for row in rows if not any(row == it[: len(row)] != it for it in rows)]
    assert len(table(store, "trajectories")) == len(longest) < len(rows)
    spoken = [turn["value"] for row in longest for turn in row if turn["from"] == "assistant"]
    expected = Counter(re.search(r"\nAction: (.*)", text)[1] for text in spoken)
    assert names(store) == expected
    for run in table(store, "trajectories"):
        assert len(json.loads(run["tools"])) == longest[0][0]["value"].count(
            "'parameters': {'type'"
        )


AGENTINSTRUCT = {
    "alfworld": r"ACTION: ",
    "os": r"Act: bash|(?m:^bash\s*\n```bash)",
    "webshop": r"Action:\s*(?:search|click)\[",
    "db": r"Action: Operation",
}


@pytest.mark.parametrize("name", AGENTINSTRUCT)
def test_agentinstruct(tmp_path, name):
    (path,) = (OLD / f"agentinstruct_{name}").glob("*.json") if OLD.is_dir() else (OLD / name,)
    store = converted(tmp_path, path)
    spoken = agent_texts(path)
    assert spoken
    expected = sum(bool(re.search(AGENTINSTRUCT[name], text)) for text in spoken)
    assert sum(names(store).values()) == expected


def test_alfworld_rows_that_end_on_an_action(tmp_path):
    path = NEW / "adp_agenttuning_alfworld_336" / "sample_raw.rows40+60.json"
    store = converted(tmp_path, path)
    rows = [row["conversations"] for row in records(path)]
    acts = re.compile(r"ACTION: (?!Task (?:succeeded|failed)\.)")  # which only claims that it ends
    spoken = sum(bool(acts.search(turn["content"])) for row in rows for turn in row[2:])
    open_ended = sum(bool(acts.search(row[-1]["content"])) for row in rows)
    assert sum(names(store).values()) == spoken
    linked = [it for it in table(store, "observations") if it["call"] is not None]
    assert len(linked) == spoken - open_ended


def test_eto(tmp_path):
    path = OLD / "eto" / "sample_raw.eto.head3.json"
    store = converted(tmp_path, path)
    expected = Counter(
        match[1] for text in agent_texts(path) if (match := re.search(r"\nAction: (\w+)\[", text))
    )
    assert names(store) == expected
    assert [it["reward"] for it in table(store, "trajectories")] == [
        row["reward"] for row in records(path)
    ]


def test_codeact(tmp_path):
    path = NEW / "adp_codeactinstruct_older" / "sample_raw.json"
    store = converted(tmp_path, path)
    spoken = agent_texts(path)
    programs = [
        it for text in spoken for it in re.findall(r"<execute>\s*(.*?)\s*</execute>", text, re.S)
    ]
    calls = table(store, "tool_calls")
    assert [it["arguments_raw"].strip() for it in calls if it["kind"] == "code"] == programs
    assert len(calls) == len(programs)


SWE_SMITH = (OLD / "swe_smith_trajectories" / "sample_raw.swe-smith.head2.json",
             NEW / "adp_swe_smith_older" / "sample_raw.json",
             NEW / "swe_smith_ft_xml" / "ft_xml_example.jsonl")  # fmt: skip


@pytest.mark.parametrize("path", SWE_SMITH, ids=lambda path: path.parent.name)
def test_swe_smith(tmp_path, path):
    store = converted(tmp_path, path)
    spoken = agent_texts(path, "messages")
    called = re.compile(r"^<function=(\w+)>$", re.MULTILINE)
    assert names(store) == Counter(name for text in spoken for name in called.findall(text))
    given = re.compile(r"^<parameter=(\w+)>", re.MULTILINE)
    written = Counter(name for text in spoken for name in given.findall(text))
    assert (
        Counter(name for call in table(store, "tool_calls") for name in arguments(call)) == written
    )


def test_fireact(tmp_path):
    path = NEW / "fireact_more" / "hotpotqa_multimethod.rows300+60.jsonl"
    store = converted(tmp_path, path)
    spoken = agent_texts(path, "messages")
    lines = [
        line for text in spoken for line in re.findall(r"^Action: (\w+)\[", text, re.MULTILINE)
    ]
    assert names(store) == Counter(lines)
    ends = [row["messages"][-1]["content"].rsplit(" ", 1)[1] for row in records(path)]
    wins = [{"True": True, "1": True, "False": False, "0": False}[it] for it in ends]
    assert [it["success"] for it in table(store, "trajectories")] == wins
    assert {True, False} == set(wins)


def test_rlla(tmp_path):
    path = NEW / "toolrl_rlla_sft" / "rlla_sft.rows0+60.json"
    store = converted(tmp_path, path)
    blocks = [
        block
        for row in records(path)
        for block in re.findall(r"<tool_call>\n(.*?)\n</tool_call>", row["output"], re.DOTALL)
    ]
    lines = [json.loads(line) for block in blocks for line in block.split("\n")]
    calls = table(store, "tool_calls")
    assert [(it["name"], arguments(it)) for it in calls] == [
        (it["name"], it["parameters"]) for it in lines
    ]


def test_webdancer(tmp_path):
    path = NEW / "webdancer" / "sample_traj.rows0+24.jsonl"
    store = converted(tmp_path, path)
    spoken = agent_texts(path, "messages")
    assert sum(names(store).values()) == sum(text.count("<tool_call>") for text in spoken)
    assert all(it["call"] is not None for it in table(store, "observations"))
    answers = [re.findall(r"<answer>\s*(.*?)\s*</answer>", text, re.DOTALL) for text in spoken]
    ends = [it["final_answer"] for it in table(store, "trajectories")]
    assert [it for it in ends if it] == [it for match in answers for it in match]


def test_judged_runs_of_toolalpaca(tmp_path):
    path = NEW / "toolalpaca_eval_outputs" / "ToolAlpaca7b.rows0+5.json"
    store = converted(tmp_path, path)
    (outputs,) = records(path)
    rows = [row for value in outputs.values() if isinstance(value, list) for row in value]
    prompts = [row["input"][0]["content"] for row in rows]
    solutions = [it.rpartition("## AI Assistant's Solution")[2] for it in prompts]
    called = [re.findall(r"^\d+\. Function: (.+)$", it, re.MULTILINE) for it in solutions]
    assert names(store) == Counter(name for match in called for name in match)
    words = [{row["process_correctness"], row["final_response_correctness"]} for row in rows]
    wins = [False if "No" in it else True if it == {"Yes"} else None for it in words]
    assert [it["success"] for it in table(store, "trajectories")] == wins


def test_ui_s1(tmp_path):
    path = NEW / "ui_s1_android_control" / "android_control_train_example.jsonl"
    store = converted(tmp_path, path)
    steps = [step["action_content"] for row in records(path) for step in row["steps"]]
    calls = table(store, "tool_calls")
    assert [{"action": it["name"], **arguments(it)} for it in calls] == steps
    assert len(table(store, "observations")) == len(steps)  # the screen before each action


def test_task_files_keep_the_expected_calls(tmp_path):
    path = NEW / "agentbench_kg_rl" / "kg_rl_all.rows0+60.json"
    store = converted(tmp_path, path)
    tasks = {task["task_id"]: task for task in table(store, "tasks")}
    for row in records(path):
        task = tasks[row["qid"]]
        assert json.loads(task["gold_trajectory"]) == row["actions"]
        calls = json.loads(task["expected_calls"])
        assert [it["name"] for it in calls] == [text.split("(")[0] for text in row["actions"]]
        values = [",".join(map(str, it["arguments"].values())) for it in calls]
        assert [it.replace(" ", "") for it in values] == [
            text[text.index("(") + 1 : -1].replace(" ", "") for text in row["actions"]
        ]
    assert not table(store, "tool_calls")
