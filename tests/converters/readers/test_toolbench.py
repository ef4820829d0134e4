"""ToolBench: the way to the answer, what leaves it, turns of thought, action and input."""

from __future__ import annotations

import json

import pytest

from tests.converters.readers.real_files import Rows, real
from tests.converters.readers.samples_store import example


def of(rows, run, table):
    return [it for it in rows[table] if it["trajectory_id"] == run["trajectory_id"]]


def test_the_way_to_the_answer_is_the_trajectory():
    rows = example("toolbench", "1_DFS.json")
    main, branch = rows["trajectories"]
    assert (main["stop_reason"], main["terminated"]) == ("give_answer", True)
    assert "It snows in Oslo." in main["final_answer"]
    assert json.loads(main["tools"])[0]["name"] == "weather_for_city"
    steps = of(rows, main, "steps")
    assert [(step["source"], (step.get("text") or "")[:12]) for step in steps] == [
        ("system", "You can use "), ("user", "\nHow is the "), ("agent", "I look at th"),
        ("agent", "The forecast"),
    ]  # fmt: skip
    assert [call["name"] for call in of(rows, main, "tool_calls")] == ["weather_for_city", "Finish"]
    assert [it["is_error"] for it in of(rows, main, "observations")] == [False, False]
    assert (branch["branch_kind"], branch["parent_step"]) == ("alternate", 2)


def test_a_branch_inside_a_turn_says_the_turn_again():
    rows = example("toolbench", "1_DFS.json")
    branch = rows["trajectories"][1]
    steps = of(rows, branch, "steps")
    assert steps[0]["text"] == "I look at the weather first of all."
    first, last = of(rows, branch, "tool_calls")
    assert (first["name"], first["arguments_raw"]) == ("weather_for_city", '{"city": "Olso')
    assert last["name"] == "Finish"
    assert [it["is_error"] for it in of(rows, branch, "observations")] == [True, False]


def test_lists_that_repeat_are_references():
    extra = json.loads(example("toolbench", "1_DFS.json")["trajectories"][0]["extra"])
    assert [message["role"] for message in extra["messages"]] == [
        "system", "user", "assistant", "function", "user", "assistant",
    ]  # fmt: skip
    assert extra["train_messages"] == [[[0, 3]], [[0, 6]]]
    assert extra["compare_candidates"] == [[[1, 4]]]


def test_chains_begin_with_the_same_prompt():
    rows = example("toolbench", "2_CoT@2.json")
    main, other = rows["trajectories"]
    assert [step.get("text") for step in of(rows, main, "steps")] == [
        "What is x, after all?", "It is known without a tool.",
    ]  # fmt: skip
    assert other["parent_step"] == 1
    assert [call.get("name") for call in of(rows, other, "tool_calls")] == ["look_up", None]
    assert of(rows, other, "observations")[0]["is_error"] is True


def nodes_of(document):
    """Every node that a document has, each once."""
    todo = [document["tree"]["tree"]] if "tree" in document else []
    nodes = [node for item in document.get("trys", []) for node in item["chain"]]
    while todo:
        node = todo.pop()
        nodes.append(node)
        todo += node["children"]
    return nodes


PATTERNS = ("formats/toolbench/*.json", "eval/toolbench/G*.json", "eval/toolbench/stable*.json",
            "datasets/toolbench/answer*.json", "datasets_new/toolbench_trees/1*.json")  # fmt: skip


@pytest.mark.parametrize("path", real(*PATTERNS))
def test_real_files(path, tmp_path):
    document = json.loads(path.read_text(encoding="utf-8"))
    rows = Rows([path], tmp_path / "store")
    nodes = nodes_of(document)
    actions = [node["description"] for node in nodes if node["node_type"] == "Action"]
    names = rows.all("select name from tool_calls")
    assert sorted(it["name"] for it in names) == sorted(actions)
    outputs = [node["observation"] for node in nodes if node.get("observation")]
    texts = rows.all("select text from observations where text is not null")
    assert sorted(it["text"] for it in texts) == sorted(outputs)
    thoughts = sorted(node["description"] for node in nodes if node["node_type"] == "Thought")
    texts = rows.all("select text from steps where source = 'agent' and text is not null")
    assert sorted(it["text"] for it in texts) == thoughts
    assert rows.count("observations", "call is not null") == rows.count("observations")


def test_answers_of_tooleval():
    rows = example("tooleval", "answers.json")
    mains = [run for run in rows["trajectories"] if "parent_id" not in run]
    assert [(run["source_id"], run["agent_name"]) for run in mains] == [
        ("1103", "chatgpt_DFS"), ("79353", "chatgpt_CoT"),
    ]  # fmt: skip
    assert [step["source"] for step in of(rows, mains[0], "steps")] == [
        "system", "user", "agent", "environment",
    ]  # fmt: skip
    branches = [run for run in rows["trajectories"] if "parent_id" in run]
    assert [run["parent_step"] for run in branches] == [2, 0]
    assert [task["task_id"] for task in rows["tasks"]] == ["1103", "79353"]


@pytest.mark.parametrize("path", real("eval/toolbench/tooleval*.json"))
def test_real_answers_of_tooleval(path, tmp_path):
    document = json.loads(path.read_text(encoding="utf-8"))
    rows = Rows([path], tmp_path / "store")
    todo = [node for it in document.values() for node in it["answer"]["answer_details"]]
    roles: list[str] = []
    while todo:
        node = todo.pop()
        roles.append(node["role"])
        todo += node.get("next", [])
    assert rows.count("trajectories", "parent_id is null") == len(document)
    assert rows.count("observations") == roles.count("tool")
    assert rows.count("steps") == len(roles) - roles.count("tool")
