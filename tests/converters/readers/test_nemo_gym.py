"""NeMo Gym: the run in the output of the response, rewards, rows that are not trained."""

from __future__ import annotations

import json
from collections import Counter

import pytest

from tests.converters.readers.real_files import Rows, real
from tests.converters.readers.samples_store import example


def test_the_output_of_the_response_is_the_run():
    rows = example("nemo_gym", "rollouts.jsonl")
    (run,) = rows["trajectories"]
    assert (run["source_id"], run["task_id"], run["attempt"]) == ("17_3", "17", 3)
    assert (run["agent_name"], run["agent_model"]) == ("simple_agent", "model-n-exact")
    assert (run["reward"], run["success"], run["final_answer"]) == (1.0, True, "42")
    assert json.loads(run["rewards"]) == {"library_reward": 0.5}
    assert (run["total_tokens_in"], run["total_tokens_cached"]) == (310, 128)
    assert [step["source"] for step in rows["steps"]] == [
        "system", "user", "agent", "agent", "user", "agent",
    ]  # fmt: skip
    turn = rows["steps"][2]
    assert turn["reasoning"] == "I add them with the tool."
    assert (turn["prompt_token_ids"], turn["completion_token_ids"]) == ([1, 2, 3], [4, 5])
    assert turn["logprobs"] == [-0.25, -0.5]
    assert rows["observations"][0]["call_id"] == "call_n1"
    (task,) = rows["tasks"]
    assert (task["instruction"], task["answers"]) == ("What is 21 + 21, please?", '"42"')


def test_masked_rows_are_not_trained():
    rows = example("nemo_gym", "rollouts.jsonl", 1)
    (run,) = rows["trajectories"]
    assert (run["success"], run["truncated"], run["error_type"]) == (False, True, "server_error")
    assert run["task_id"] == "x__x-9"
    weights = [(step["source"], step.get("loss_weight")) for step in rows["steps"]]
    assert weights == [("user", None), ("agent", 0.0)]
    assert "loss_weight" not in example("nemo_gym", "rollouts.jsonl", 0)["steps"][2]


def test_runs_of_other_agents_are_branches():
    rows = example("nemo_gym", "rollouts.jsonl", 2)
    main, helper = rows["trajectories"]
    assert (main["reward"], "success" in main, main["terminated"]) == (-0.5, False, True)
    assert (helper["branch_kind"], helper["source_id"]) == ("subagent", "helper")
    assert rows["tool_calls"][0]["trajectory_id"] == helper["trajectory_id"]
    assert rows["links"][0]["target_id"] == "helper"


@pytest.mark.parametrize(
    "path",
    real("formats_new/nemo_gym_rollouts/*.jsonl", "datasets_new/nemo_gym_*/*rollouts*.jsonl"),
)
def test_real_files(path, tmp_path):
    lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    rows = Rows([path], tmp_path / "store")
    items = [item for line in lines for item in line["response"]["output"]]
    kinds = Counter(item["type"] for item in items)
    inputs = [item for line in lines if isinstance(line["responses_create_params"]["input"], list)
              for item in line["responses_create_params"]["input"]]  # fmt: skip
    kinds.update(item.get("type", "message") for item in inputs)
    assert rows.count("trajectories") == len(lines)
    assert rows.count("tool_calls") == kinds["function_call"]
    assert rows.count("observations") == kinds["function_call_output"]
    assert rows.count("observations", "call is not null") == kinds["function_call_output"]
    assert rows.value("select sum(reward) from trajectories") == sum(it["reward"] for it in lines)
    texts = "\n".join(
        it["text"] for it in rows.all("select text from steps where text is not null")
    )
    for item in items:
        if item["type"] == "message" and isinstance(item["content"], list):
            assert all(part["text"] in texts for part in item["content"])
    usages = [line["response"].get("usage") for line in lines]
    sums = rows.total("tokens_out") + rows.value(
        "select coalesce(sum(total_tokens_out), 0) from trajectories"
    )
    assert sums == sum(usage["output_tokens"] for usage in usages if usage)
