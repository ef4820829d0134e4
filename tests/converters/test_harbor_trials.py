"""Trials of Harbor with the native log of an agent: the outcome joins the log's trajectory."""

from __future__ import annotations

import json
import shutil
import tarfile

import pytest

import adp
from tests.fuzz.readers import EXAMPLES

RESULT = {
    "task_name": "fix-the-bug",
    "trial_name": "fix-the-bug__1",
    "started_at": "2026-01-02T03:04:05Z",
    "finished_at": "2026-01-02T03:14:05.500Z",
    "agent_info": {"name": "an-agent", "version": "2", "model_info": {"name": "m"}},
    "agent_result": {"n_input_tokens": 90, "n_cache_tokens": 10, "n_output_tokens": 5,
                     "cost_usd": 0.25},
    "verifier_result": {"rewards": {"reward": 1.0, "style": 0.5}},
    "exception_info": {"exception_type": "AgentTimeoutError", "exception_message": "too late"},
}  # fmt: skip
LINES = [
    {"type": "session", "version": 3, "id": "s1", "cwd": "/w", "timestamp": "2026-01-02T03:04:06Z"},
    {"type": "message", "id": "a", "parentId": None, "message": {"role": "user", "content": "hi"}},
]


def trial(folder, log="agent/pi.jsonl", result=RESULT):
    """The folder of a trial with a log of Pi, in a job."""
    files = {
        f"job/t1/{log}": "".join(json.dumps(line) + "\n" for line in LINES),
        "job/t1/result.json": json.dumps(result),
        "job/t1/config.json": '{"trial_name": "fix-the-bug__1", "trials_dir": "job"}',
        "job/t1/verifier/reward.txt": "1\n",
        "job/config.json": '{"job_name": "job", "jobs_dir": "jobs", "agents": []}',
    }
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return folder


def run(source, out):
    """The store, and the only trajectory of it."""
    store = adp.convert([str(source)], str(out))
    (row,) = store.query("select * from all_trajectories").to_pylist()
    return store, row


@pytest.mark.parametrize("packed", [False, True])
def test_the_outcome_joins_a_native_log(tmp_path, packed):
    source = trial(tmp_path / "in")
    if packed:
        with tarfile.open(tmp_path / "trials.tar.gz", "w:gz") as archive:
            archive.add(source, "trials")
        source = tmp_path / "trials.tar.gz"
    store, row = run(source, tmp_path / "store")
    assert (row["source_format"], row["task_id"]) == ("pi", "fix-the-bug")
    assert (row["reward"], json.loads(row["rewards"])) == (1.0, {"reward": 1, "style": 0.5})
    assert (row["error_type"], row["error_message"]) == ("AgentTimeoutError", "too late")
    assert (row["agent_name"], row["agent_version"], row["agent_model"]) == ("pi", "2", "m")
    assert row["started_at"].isoformat() == "2026-01-02T03:04:06+00:00"
    assert row["started_text"] is None
    assert row["ended_text"] == RESULT["finished_at"]
    assert (row["total_tokens_in"], row["total_tokens_cached"]) == (90, 10)
    assert (row["total_tokens_out"], row["total_cost_usd"]) == (5, 0.25)
    kept = json.loads(row["extra"])["harbor_trial"]
    assert kept["result.json"] == RESULT
    # Of an archive, texts are no inputs.
    texts = [] if packed else ["verifier/reward.txt"]
    assert sorted(kept) == ["config.json", "result.json", *texts]
    counts = store.manifest.counts
    assert counts.rejected == 1  # the settings of the job
    assert counts.records == counts.used + 1 == 4 + len(texts)


def test_a_log_of_a_program_is_written_without_the_trial(tmp_path):
    run(trial(tmp_path / "in"), tmp_path / "store")
    report = adp.export(str(tmp_path / "store"), "pi", str(tmp_path / "out"))
    (path,) = (tmp_path / "out").rglob("*.jsonl")
    assert "fix-the-bug" not in path.read_text()
    assert any("harbor_trial" in loss for loss in report.losses)


def test_where_there_is_a_trajectory_it_takes_all(tmp_path):
    folder = trial(tmp_path / "in")
    step = {"step_id": 1, "source": "user", "message": "hi"}
    agent = {"name": "a", "version": "1"}
    atif = {"schema_version": "ATIF-v1.7", "session_id": "s", "agent": agent, "steps": [step]}
    (folder / "job/t1/agent/trajectory.json").write_text(json.dumps(atif))
    _, row = run(folder, tmp_path / "store")
    assert (row["source_format"], row["reward"]) == ("atif", 1.0)
    assert "agent/pi.jsonl" in json.loads(row["extra"])["trial"]


@pytest.mark.parametrize(
    ("log", "result"),
    [
        ("agent/pi.jsonl", {"task_name": "x", "answer": 3}),
        ("logs/pi.jsonl", RESULT),
        ("agent/sessions/s/subagents/pi.jsonl", RESULT),
    ],
)
def test_other_results_are_not_joined(tmp_path, log, result):
    _, row = run(trial(tmp_path / "in", log, result), tmp_path / "store")
    assert row["reward"] is None
    assert "harbor_trial" not in (row["extra"] or "")


def test_a_log_that_counts_tokens_keeps_its_own(tmp_path):
    folder = trial(tmp_path / "in")
    shutil.copy(EXAMPLES / "pi" / "session.jsonl", folder / "job/t1/agent/pi.jsonl")
    store = adp.convert([str(folder)], str(tmp_path / "store"))
    rows = store.query("select reward, parent_id, total_tokens_in from all_trajectories")
    for row in rows.to_pylist():
        assert row["reward"] == (1.0 if row["parent_id"] is None else None)
        assert row["total_tokens_in"] is None
