"""Whole runs from ``infer_agent.json``: collected, scored, written as M3 writes them."""

from __future__ import annotations

import json
import os
import re
from dataclasses import dataclass

import pytest

from adp.cli.main import main
from adp.workflows.m3_run import read_m3_run
from adp_schema.errors import InputError, UsageError
from adp_schema.store import Store
from tests.rollouts.environments.test_m3 import TURNS, tool
from tests.rollouts.policies.chat_server import Handler, message, serving
from tests.rollouts.readers.test_infer_agent import SHIPPED
from tests.rollouts.searching.elastic_server import elastic_server

WRONG = '<think>I try.</think><Action>{"name": "nothing", "arguments": {}}</Action>'
COUNT = WRONG.replace("nothing", "count").replace("{}", '{"garden": "mill"}')
OWNER = COUNT.replace("count", "owner")


def reference(count):
    """Reference data in the shape that M3 ships."""
    facts = [
        {"query": "How many trees?", "answer": "Twelve.", "raw_answer": "[[12]]"},
        {"query": "And the owner?", "answer": "Ada", "raw_answer": "[['Ada']]"},
    ]
    tools = [tool(name, "garden")["function"] for name in ("count", "owner")]
    return [
        {
            "sample_id": str(number), "tools": tools, "doc_collections": ["gardens"],
            "num_turns": 2, "num_hops": [2, 1], "type": "(API-RAG)(API)", "trajectory": TURNS,
            "tool_availability_policy": "both_api_rag", "tool_usage_policy": "",
            "turns": facts,
        }
        for number in range(count)
    ]  # fmt: skip


def say_as_agent(handler: Handler, body):
    """An agent that calls a tool of its own making once, and answers what it has read."""
    text = json.dumps(body["messages"])
    last = body["messages"][-1]["content"]
    if "You judge a run" in last:
        right = last.rpartition("[final answer] ")[2].split("\n")[0]
        reply = f"Conclusion: {'yes' if f'[reference answers] {right}' in last else 'no'}"
    elif "You watch an agent" in text or "You compare" in text:
        reply = "Thought: no\nConclusion: no"
    elif "You write down the thought" in text:
        reply = "I follow what was seen."
    elif last.startswith("How many") or last.startswith("And"):
        reply = WRONG
    elif "trees" in last:
        reply = "<think>seen</think><FINAL>Twelve.</FINAL>"
    elif "Ada" in last:
        reply = "<think>seen</think><FINAL>Ada</FINAL>"
    else:
        reply = OWNER if "And the owner?" in text else COUNT
    handler.send(200, message(content=reply))


@dataclass
class Ended:
    exit_code: int
    output: str


@pytest.fixture
def cli(capsys, monkeypatch):
    """Calls the command line in this process."""
    monkeypatch.setenv("COLUMNS", "200")

    def call(*words):
        code = main(list(words))
        done = capsys.readouterr()
        return Ended(code, done.out if "--json" in words else done.out + done.err)

    return call


@pytest.fixture
def run(tmp_path, monkeypatch, cli):
    """Writes a configuration and runs a command with it against a server."""
    (tmp_path / "gold.json").write_text(json.dumps(reference(3)))
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("LLM_PROVIDER", raising=False)

    def call(*words, **changes):
        config = {**SHIPPED, "path_to_env_data": "gold.json", **changes}
        (tmp_path / "infer_agent.json").write_text(json.dumps(config))
        with serving(say_as_agent) as server:
            monkeypatch.setenv("OPENAI_BASE_URL", server.url)
            result = cli(*words, "--config", "infer_agent.json")
            return result, [seen.body for seen in server.seen]

    return call


@pytest.fixture
def elastic():
    with elastic_server() as server:
        yield server


def trajectories(path):
    store = Store.open(str(path))
    table = store.scan("trajectories").sort("seq").collect()
    mains = table.filter(table["parent_id"].is_null())
    return [store.get(name) for name in mains["trajectory_id"]], table


@pytest.mark.parametrize("mode", [None, "ground_truth", "random", "informed"])
def test_each_mode_is_collected_scored_and_written_as_m3_does(run, cli, tmp_path, mode):
    result, asked = run("collect", "-o", "out", "--no-times", expert_assist_mode=mode)
    assert result.exit_code == 0, result.output
    runs, table = trajectories("out")
    assert len(runs) == 3
    assert all(entry.success for entry in runs)
    actors = {step.actor for entry in runs for step in entry.steps if step.actor}
    assert actors == {
        None: set(), "ground_truth": {"expert"}, "random": {"agent", "expert"},
        "informed": {"agent", "expert"},
    }[mode]  # fmt: skip
    assert bool(asked) == (mode != "ground_truth")
    judged = ["You judge a run" in body["messages"][-1]["content"] for body in asked]
    assert any(judged) == (mode != "ground_truth")
    assert "ES_USERNAME and ES_PASSWORD are not both set" in result.output
    assert (len(table) > 3) == (mode == "informed")
    assert "api_config" in result.output
    again, asked = run("collect", "-o", "out", "--no-times", expert_assist_mode=mode)
    assert (again.exit_code, asked) == (0, [])
    assert "3 done before + 0 done now" in again.output
    scored = cli("score", "out", "--with", "m3")
    assert re.search(r"completion +1 ", scored.output)
    written = cli("export", "out", "--to", "m3", "-o", "files")
    assert written.exit_code == 0, written.output
    files = sorted((tmp_path / "files" / "both_api_rag").glob("trajectory_*.json"))
    assert len(files) == 3
    value = json.loads(files[0].read_text())
    steps = list(value["interactions"].values())
    assert steps[-1]["output"]["content"].endswith("<FINAL>Ada</FINAL>")
    metadata = json.loads((files[0].parent / "metadata_0.json").read_text())
    assert metadata["success"] is True
    if mode is not None:
        assert metadata["expert_assistance"]["mode"] == mode
    if mode == "informed":
        assert any(step["alternate_trace"] for step in steps)


def test_documents_come_from_elasticsearch_where_it_is_named(run, elastic, tmp_path, monkeypatch):
    for name in ("ES_USERNAME", "ES_PASSWORD"):
        monkeypatch.setenv(name, "x")
        monkeypatch.delenv(name)
    (tmp_path / ".env").write_text("ES_USERNAME=me\nES_PASSWORD=topsecret\n")
    host = f"http://127.0.0.1:{elastic.server_address[1]}"
    db = {**SHIPPED["db_config"], "host_name": host}
    result, _ = run("collect", "-o", "out", "--no-times", expert_assist_mode="ground_truth",
                    db_config=db)  # fmt: skip
    assert result.exit_code == 0, result.output
    assert {path for path, _, _ in elastic.seen} == {"/dev/_search"}
    _, headers, body = elastic.seen[0]
    assert headers["Authorization"].startswith("Basic ")
    expansion = {"model_id": ".elser_model_2", "model_text": "mill"}
    assert body == {"query": {"text_expansion": {"ml.tokens": expansion}}, "size": 1}
    seen = Store.open("out").scan("observations").collect()["text"].to_list()
    assert seen.count("ToolCallSuccessful: text b") == 3
    assert "topsecret" not in result.output
    kept = [path for path in tmp_path.rglob("*") if path.is_file() and path.name != ".env"]
    assert not any(b"topsecret" in path.read_bytes() for path in kept)


def test_a_run_is_gone_on_with_at_an_instance(run, tmp_path):
    (tmp_path / "before").mkdir()
    for number in range(2):
        outcome = {"truncated": False, "terminated": True, "success": number == 0}
        (tmp_path / "before" / f"metadata_{number}.json").write_text(json.dumps(outcome))
    result, _ = run("collect", "-o", "out", resume_instance=2, path_to_prev_run_dir="before")
    assert result.exit_code == 0, result.output
    assert "the run before: 2 instances, truncated 0, terminated 2, success 1" in result.output
    runs, _ = trajectories("out")
    assert [entry.task_id for entry in runs] == ["2"]


def test_eval_scores_the_policy_alone(run):
    result, _ = run("eval", "-o", "out", "--min", "success=1", expert_assist_mode=None)
    assert result.exit_code == 0, result.output
    assert "run_length" in result.output
    result, _ = run("eval", "-o", "out2", expert_assist_mode="informed")
    assert result.exit_code == 2
    assert "lets the policy act alone" in " ".join(result.output.split())


def test_options_of_the_call_win(run):
    result, asked = run(
        "collect", "-o", "out", "--policy", "expert", "--tasks", "test:1", expert_assist_mode=None
    )
    assert result.exit_code == 0, result.output
    assert {body["messages"][-1]["content"][:13] for body in asked} == {"You judge a r"}
    assert len(trajectories("out")[0]) == 1


def test_variables_of_the_file_are_set_where_they_are_missing(run, tmp_path, monkeypatch):
    monkeypatch.setenv("RITS_API_KEY", "mine")
    monkeypatch.setenv("OTHER_NAME", "x")
    monkeypatch.delenv("OTHER_NAME")
    (tmp_path / ".env").write_text(
        "# a line\nexport RITS_API_KEY=theirs\nOTHER_NAME='v'\n=\nx y=1\n"
    )
    result, asked = run("collect", "-o", "out", expert_assist_mode=None)
    assert result.exit_code == 0, result.output
    assert asked
    assert (os.environ["RITS_API_KEY"], os.environ["OTHER_NAME"]) == ("mine", "v")
    assert "mine" not in result.output


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "is no JSON"),
        ("[]", "no JSON object"),
        ("{}", "no infer_agent.json"),
        ("\xff", "no UTF-8"),
        (json.dumps({**SHIPPED, "path_to_env_data": "absent.json"}), "absent.json is not there"),
        (json.dumps({**SHIPPED, "path_to_env_data": 3}), "path_to_env_data"),
        (json.dumps({**SHIPPED, "horizon": "ten", "path_to_env_data": "gold.json"}), "horizon"),
    ],
)
def test_files_that_are_none(tmp_path, monkeypatch, text, words):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "gold.json").write_text(json.dumps(reference(1)))
    (tmp_path / "c.json").write_text(text, encoding="latin-1")
    with pytest.raises((InputError, UsageError), match=words):
        read_m3_run("c.json", "out")


def test_a_missing_file_and_a_missing_output(tmp_path, cli):
    with pytest.raises(InputError, match="cannot be read"):
        read_m3_run(str(tmp_path / "none.json"), "out")
    result = cli("collect", "--config", "c.json")
    assert result.exit_code == 2
