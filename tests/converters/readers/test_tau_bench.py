"""tau-bench and tau2-bench: both sides of a conversation, tasks, rewards with their parts."""

from __future__ import annotations

import gzip
import json

import pytest

from adp.converters.registry import formats
from adp_schema import jsontext
from adp_schema.protocols import Match
from tests.converters.readers.real_files import Rows, real
from tests.converters.readers.samples_store import example
from tests.fuzz.leaves import read_lines
from tests.fuzz.readers import EXAMPLES

RESULTS = json.loads((EXAMPLES / "tau2" / "results.json").read_text(encoding="utf-8"))


def test_a_row_of_the_first_version():
    rows = example("tau_bench", "rows.jsonl")
    (run,) = rows["trajectories"]
    assert (run["source_id"], run["task_id"], run["attempt"]) == ("7_2", "7", 2)
    assert (run["reward"], run["success"]) == (1.0, True)
    assert json.loads(run["rewards"]) == {"r_actions": 1.0, "r_outputs": 0.5}
    assert [step["source"] for step in rows["steps"]] == [
        "system", "user", "agent", "agent", "user",
    ]  # fmt: skip
    (task,) = rows["tasks"]
    assert task["instruction"] == "You are Ann. Book a flight."
    assert json.loads(task["expected_calls"])[0]["kwargs"] == {"to": "OSL", "bags": 2}
    assert example("tau_bench", "rows.jsonl", 1)["trajectories"][0]["success"] is False


def of(rows, source_id, table):
    run = next(it for it in rows["trajectories"] if it["source_id"] == source_id)
    return [it for it in rows[table] if it["trajectory_id"] == run["trajectory_id"]]


def test_simulations_with_their_checks():
    rows = example("tau2", "results.json")
    first, second = rows["trajectories"]
    assert (first["task_id"], first["attempt"], first["agent_model"]) == (
        "t-1", 1, "example/model-5",
    )  # fmt: skip
    assert (first["reward"], first["success"], first["terminated"]) == (1.0, True, True)
    assert json.loads(first["rewards"]) == {"DB": 1.0, "ACTION": 0.5}
    assert json.loads(first["judge"])["db_check"] == {"db_match": True, "db_reward": 1.0}
    assert first["total_cost_usd"] == 0.0125
    results = [json.loads(it["extra"]).get("results") for it in (first, second)]
    assert results[0]["info"]["seed"] == 301
    assert results[1] is None
    assert second["error_type"] == "too_many_errors"
    tasks = {task["task_id"]: task for task in rows["tasks"]}
    assert json.loads(tasks["t-1"]["reward_spec"]) == ["DB", "ACTION"]
    assert tasks["t-2"]["instruction"] == "Ask for the price."


def test_both_sides_call_tools():
    rows = example("tau2", "results.json")
    calls = of(rows, "sim-1", "tool_calls")
    assert [(call["call_id"], call.get("requestor")) for call in calls] == [
        ("call_u1", None), ("call_u2", None), ("call_u3", "user"),
    ]  # fmt: skip
    results = of(rows, "sim-1", "observations")
    assert [it["call_id"] for it in results] == ["call_u1", "call_u2", "call_u3"]
    assert [it["is_error"] for it in results] == [False, True, False]
    steps = of(rows, "sim-1", "steps")
    assert [step.get("llm_call_count") for step in steps] == [0, None, None, None, None, None]
    assert [step.get("tokens_in") for step in steps] == [None, None, 310, 350, None, None]
    assert steps[2]["duration_ms"] == 1500.0


def test_speech_of_ticks_is_joined():
    rows = example("tau2", "results.json")
    steps = of(rows, "sim-2", "steps")
    assert [(step["source"], step.get("text")) for step in steps] == [
        ("system", "# Knowledge policy"), ("agent", "Welcome to the telephone line. Yes?"),
        ("user", "The price"), ("agent", None), ("user", None),
    ]  # fmt: skip
    assert [it["call_id"] for it in of(rows, "sim-2", "observations")] == ["call_v1"]


def test_a_simulation_beside_its_document():
    simulation, settings = RESULTS["simulations"][1], dict(RESULTS)
    del settings["simulations"]
    settings["simulation_index"] = [{"id": "sim-1"}, {"id": "sim-2"}]
    data = json.dumps(simulation).encode()
    side = {"run/results.json": json.dumps(settings).encode()}
    (run,) = read_lines("tau2", data, side).rows["trajectories"]
    assert (run["source_id"], run["agent_model"]) == ("sim-2", "example/model-5")
    assert "results" not in json.loads(run["extra"])


def test_folders_of_simulations(tmp_path):
    folder = tmp_path / "in" / "simulations"
    folder.mkdir(parents=True)
    for simulation in RESULTS["simulations"]:
        (folder / f"{simulation['id']}.json").write_text(json.dumps(simulation), "utf-8")
    settings = {key: value for key, value in RESULTS.items() if key != "simulations"}
    (folder.parent / "results.json").write_text(json.dumps(settings), "utf-8")
    rows = Rows([tmp_path / "in"], tmp_path / "store")
    assert rows.manifest.counts.used == rows.manifest.counts.records == 3
    assert rows.count("trajectories", "agent_model = 'example/model-5'") == 2
    assert rows.count("tasks") == 2


@pytest.mark.parametrize(
    "path", real("formats/tau_bench/*.json", "eval/tau_bench/*sample*.json.gz")
)
def test_real_files(path, tmp_path):
    data = path.read_bytes()
    document = json.loads(gzip.decompress(data) if path.suffix == ".gz" else data)
    attempts = document if isinstance(document, list) else [document]
    rows = Rows([path], tmp_path / "store")
    messages = [it for attempt in attempts for it in attempt["traj"]]
    assert rows.count("trajectories") == len(attempts)
    assert rows.count("tool_calls") == sum(len(it.get("tool_calls") or []) for it in messages)
    results = sum(it["role"] == "tool" for it in messages)
    assert rows.count("observations", "call is not null") == rows.count("observations") == results
    assert rows.count("steps") == len(messages) - results
    assert rows.value("select sum(reward) from trajectories") == sum(
        it["reward"] for it in attempts
    )
    texts = {it["text"] for it in rows.all("select text from steps")}
    texts |= {it["text"] for it in rows.all("select text from observations")}
    assert {it["content"] for it in messages if it["content"]} <= texts


def matches(name, record):
    return formats.get(name).sniff(jsontext.decode_object(json.dumps(record).encode()))


def test_results_are_recognised_without_what_older_ones_lack():
    simulations = RESULTS["simulations"]
    unended = [{k: v for k, v in simulations[0].items() if k != "termination_reason"}]
    for record in (
        {"simulations": simulations},
        {"tasks": [], "simulations": simulations},
        {"info": {}, "tasks": [], "simulations": unended},
        {"info": {}, "tasks": [], "simulations": []},
    ):
        assert matches("tau2", record) == Match.STAMP
    assert matches("tau2", {"simulations": []}) == Match.NO
    assert matches("tau2", {"simulations": unended}) == Match.NO


def test_an_attempt_that_failed_before_its_first_message(tmp_path):
    failed = {"task_id": 3, "reward": 0.0, "info": {"error": "no key"}, "traj": [], "trial": 0}
    (tmp_path / "rows.json").write_text(json.dumps([failed]), encoding="utf-8")
    rows = Rows([tmp_path / "rows.json"], tmp_path / "store")
    (run,) = rows.all("select reward, success, error_message from trajectories")
    assert run == {"reward": 0.0, "success": False, "error_message": "no key"}
    assert matches("tau_bench", {**failed, "info": {}}) == Match.NO
    talk = [{"role": "user", "content": "hi"}]
    assert matches("tau_bench", {"task_id": 3, "reward": 1, "traj": talk}) == Match.STAMP
