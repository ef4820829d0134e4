"""Trials of Harbor: the files beside a trajectory fill columns, and come back."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest

import adp
from adp.converters.atif import CONVERTER
from adp.converters.export import export
from adp_schema.builder import Origin, RowBuilder
from adp_schema.losses import Losses
from adp_schema.model import Trajectory
from adp_schema.protocols import RawRecord
from adp_schema.reader import assemble
from adp_schema.store import Store
from tests.converters.atif_records import record, step

MAIN = "jobs/t1/agent/trajectory.json"
RESULT = {
    "task_name": "fix-the-bug",
    "trial_name": "fix-the-bug__1",
    "started_at": "2026-01-02T03:04:05Z",
    "finished_at": "2026-01-02T03:14:05.500Z",
    "agent_result": {
        "rollout_details": [
            {
                "prompt_token_ids": [[1, 2], [1, 2, 3]],
                "completion_token_ids": [[4], [5, 6]],
                "logprobs": [[-0.5], [-0.25, -1.5]],
            }
        ]
    },
    "verifier_result": {"rewards": {"reward": 1.0}},
    "exception_info": None,
}
RUN = record(step(source="user"), step(), step(llm_call_count=0), step())


def read(files: dict[str, bytes], data: dict | None = None) -> tuple[Trajectory, Losses]:
    """Read a trajectory with the files of its trial, as the runner does."""
    builder, losses = RowBuilder(), Losses()
    columns = {"source_format": "atif", "source_hash": "h", "source_file": MAIN}
    builder.begin(Origin(0, "d", columns))
    text = json.dumps(data or RUN).encode()
    contents = {f"jobs/t1/{name}": content for name, content in files.items()}
    CONVERTER.read(RawRecord(text, MAIN, 1, 0, len(text), side_files=contents), builder, losses)
    tables = builder.tables()
    (run,) = assemble(tables["trajectories"], tables, {})
    return run, losses


def dumped(value, indent=2, end="") -> bytes:
    return (json.dumps(value, indent=indent) + end).encode()


def same(run: Trajectory, files: dict[str, bytes]) -> None:
    """The trajectory's file and those of the trial come back."""
    losses = Losses()
    assert json.loads(json.dumps(_plain(CONVERTER.write(run, losses)))) == RUN
    assert CONVERTER.write_side_files(run) == {f"jobs/t1/{n}": data for n, data in files.items()}
    assert losses.items == []


def _plain(written):
    from adp_schema import jsontext

    return json.loads(jsontext.encode(written))


def test_which_files_belong_to_a_trajectory():
    assert CONVERTER.side_files(MAIN) == (
        "jobs/t1/result.json",
        "jobs/t1/config.json",
        "jobs/t1/lock.json",
        "jobs/t1/exception.txt",
        "jobs/t1/verifier/reward.json",
        "jobs/t1/verifier/reward.txt",
        "jobs/t1/verifier/ctrf.json",
        "jobs/t1/verifier/test-stdout.txt",
        "jobs/t1/verifier/test-stderr.txt",
        "jobs/t1/trial.log",
        "jobs/t1/agent/**/*.jsonl",
        "jobs/t1/agent/*.trajectory.json",
    )
    assert CONVERTER.side_files("agent/trajectory.json")[0] == "result.json"
    for name in (
        "trajectory.json",
        "t1/agent/trajectory.cont-1.json",
        "t1/subagent/trajectory.json",
    ):
        assert CONVERTER.side_files(name) == ()


def test_a_result_fills_columns():
    files = {
        "result.json": dumped(RESULT, end="\n"),
        "config.json": dumped({"a": 1.50}, indent=None),
        "lock.json": b'{ "odd" :1}\n',
    }
    run, losses = read(files)
    assert losses.items == []
    assert (run.task_id, run.success, run.reward) == ("fix-the-bug", True, 1.0)
    assert json.loads(run.rewards) == {"reward": 1}
    assert run.started_at == datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
    assert run.ended_text == "2026-01-02T03:14:05.500Z"
    assert run.error_type is None
    assert [item.completion_token_ids for item in run.steps] == [None, [4], None, [5, 6]]
    assert run.steps[3].logprobs == [-0.25, -1.5]
    kept = json.loads(run.extra)["trial"]
    assert kept["result.json"]["verifier_result"] == {"rewards": {"reward": 1.0}}
    assert kept["lock.json"] == '{ "odd" :1}\n'
    same(run, files)


@pytest.mark.parametrize(
    ("rewards", "reward", "success"),
    [
        ({"reward": 0}, 0.0, False),
        ({"accuracy": 1}, 1.0, True),
        ({"reward": 0.5}, 0.5, None),
        ({"reward": 1, "style": 0.5}, 1.0, None),
        ({"a": 1, "b": 0}, None, None),
    ],
)
def test_rewards(rewards, reward, success):
    run, _ = read({"result.json": dumped({"verifier_result": {"rewards": rewards}})})
    assert (run.reward, run.success) == (reward, success)
    assert json.loads(run.rewards) == rewards


@pytest.mark.parametrize(
    ("files", "reward"),
    [
        ({"verifier/reward.txt": b"1\n"}, 1.0),
        ({"verifier/reward.json": b'{"reward": 0.25}'}, 0.25),
        ({"verifier/reward.json": b"0.5", "verifier/reward.txt": b"1"}, 0.5),
        ({"verifier/reward.txt": b"none"}, None),
        ({"result.json": b'{"verifier_result": null}', "verifier/reward.txt": b"0"}, 0.0),
    ],
)
def test_the_verifier_speaks_when_the_result_does_not(files, reward):
    run, losses = read(files)
    assert run.reward == reward
    assert losses.items == []
    same(run, files)


def test_errors():
    info = {"exception_type": "Timeout", "exception_message": "too slow"}
    run, _ = read({"result.json": dumped({"exception_info": info}), "exception.txt": b"X: y"})
    assert (run.error_type, run.error_message) == ("Timeout", "too slow")
    run, _ = read({"exception.txt": b"Traceback\n  line\na.b.Error: it: broke\n"})
    assert (run.error_type, run.error_message) == ("a.b.Error", "it: broke")
    run, _ = read({"exception.txt": b"it broke\n"})
    assert (run.error_type, run.error_message) == (None, "it broke")


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"{broken", "not valid JSON"),
        (b"\xff\xfe{}", "not UTF-8"),
        ('{"a": "\U0010ffff"}'.encode(), "were replaced"),
    ],
)
def test_a_wrong_file_is_kept_as_text_and_reported(data, reason):
    run, losses = read({"result.json": data})
    assert [item["path"] for item in losses.items][:1] == ["$.extra.trial.result.json"]
    assert reason in losses.items[0]["reason"]
    assert isinstance(json.loads(run.extra)["trial"]["result.json"], str | dict)


@pytest.mark.parametrize(
    "data",
    [
        b"[]",
        b"null",
        b'{"task_name": 1, "verifier_result": [], "exception_info": "x", "started_at": 5}',
        b'{"verifier_result": {"rewards": {"a": "b", "c": NaN, "d": true}}}',
        b'{"verifier_result": {"rewards": {"reward": 1%s}}}' % (b"0" * 400),
        b'{"task_name": "\\ud83d", "agent_result": {"rollout_details": [1]}}',
        b'{"agent_result": {"rollout_details": [{"logprobs": [["x"], [1]]}]}}',
        b'{"agent_result": {"rollout_details": [{"logprobs": [[1]]}]}}',
        b"\xef\xbb\xbf{}",
        b"",
    ],
)
def test_odd_files_lose_neither_the_run_nor_themselves(data):
    files = {"result.json": data}
    run, _ = read(files)
    assert run.reward is None
    assert all(item.logprobs is None for item in run.steps)
    same(run, files)


def test_what_the_trajectory_says_goes_first():
    data = record(step(), final_metrics={"reward": 0.5})
    run, _ = read({"result.json": dumped(RESULT)}, data)
    assert run.reward == 0.5
    assert _plain(CONVERTER.write(run, Losses())) == data


def test_an_own_key_named_trial_stays():
    data = {**RUN, "trial": {"a": 1}}
    run, _ = read({"verifier/reward.txt": b"1"}, data)
    assert _plain(CONVERTER.write(run, Losses())) == data
    assert CONVERTER.write_side_files(run) == {"jobs/t1/verifier/reward.txt": b"1"}


def test_an_edit_shows_in_the_trajectory():
    run, _ = read({"result.json": dumped(RESULT)})
    run.reward, run.success = 0.0, False
    run.steps[1].completion_token_ids = [9]
    after = _plain(CONVERTER.write(run, Losses()))
    assert after["final_metrics"] == {"reward": 0}
    assert after["extra"] == {"adp": {"success": False}}
    assert after["steps"][1]["metrics"] == {"completion_token_ids": [9]}
    assert "metrics" not in after["steps"][3]


def test_files_of_a_trial_are_written_beside_it(tmp_path):
    from adp.converters.export import export
    from tests.store_builders import write_store

    builder = RowBuilder()
    columns = {"source_format": "atif", "source_hash": "h", "source_file": MAIN}
    builder.begin(Origin(0, "d", columns))
    text = json.dumps(RUN).encode()
    results = {"jobs/t1/result.json": dumped(RESULT)}
    CONVERTER.read(RawRecord(text, MAIN, 1, 0, len(text), side_files=results), builder, Losses())
    style = json.dumps({"layout": "spaced", "ascii": True, "final_newline": False})
    source = {"source_file": MAIN, "source_format": "atif", "framing": "json", "style": style}
    store = write_store(tmp_path / "s", builder, sources=[source])
    report = export(store, "atif", str(tmp_path / "out"))
    assert report.losses == {}
    assert (tmp_path / "out/jobs/t1/result.json").read_bytes() == dumped(RESULT)
    assert (tmp_path / "out" / MAIN).read_bytes() == text
    report = export(store, "atif", str(tmp_path / "one"), single="all.json")
    assert list(report.losses) == [
        "$.side_files.jobs/t1/result.json: it is written beside its own file only"
    ]
    report = export(store, "adp_v1", str(tmp_path / "v1"))
    assert any(loss.startswith("$.extra.trial") for loss in report.losses)


def job(folder):
    """A job with two trials, one of which keeps the agent's own sessions, one in a folder more."""
    session = "\n".join(
        json.dumps({"type": kind, "uuid": f"u{number}", "parentUuid": None, "sessionId": "s",
                    "cwd": "/w", "timestamp": "2026-01-02T03:04:05Z",
                    "message": {"role": kind, "content": "hello"}})
        for number, kind in enumerate(("user", "assistant"))
    )  # fmt: skip
    files = {
        "config.json": dumped({"job_name": "j", "jobs_dir": "jobs", "agents": [{"name": "a"}]}),
        "result.json": dumped({"id": "j", "n_total_trials": 2, "stats": {"n_trials": 2}}),
        "job.log": b"started",
    }
    for name, reward in (("t__1", 1.0), ("t__2", 0.0)):
        result = {**RESULT, "verifier_result": {"rewards": {"reward": reward}}}
        files |= {
            f"{name}/agent/trajectory.json": dumped(RUN),
            f"{name}/result.json": dumped(result),
            f"{name}/config.json": dumped({"trial_name": name, "trials_dir": "jobs/j"}),
            f"{name}/trial.log": b"the trial ran",
            f"{name}/verifier/reward.txt": f"{reward}".encode(),
            f"{name}/verifier/test-stdout.txt": b"1 passed",
            f"{name}/verifier/ctrf.json": dumped({"results": {"summary": {"tests": 1}}}),
        }
    inside = "t__1/agent/sessions/projects/w"
    files[f"{inside}/s.jsonl"] = session.encode()
    files[f"{inside}/s/subagents/agent-1.jsonl"] = session.encode()
    for name, data in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    return files


def test_a_job_is_its_trials(tmp_path):
    """Each trial once, with all of its files; what the agent logged itself is no other run."""
    files = job(tmp_path / "in")
    folder = str(tmp_path / "store")
    counts = adp.convert([str(tmp_path / "in")], folder).manifest.counts
    rows = adp.query(folder, "select * from trajectories order by seq").to_pylist()
    assert [(row["reward"], row["success"]) for row in rows] == [(1.0, True), (0.0, False)]
    kept = json.loads(rows[0]["extra"])["trial"]
    names = {name.removeprefix("t__1/") for name in files if name.startswith("t__1/")}
    assert set(kept) == names - {"agent/trajectory.json"}
    assert kept["verifier/test-stdout.txt"] == "1 passed"
    assert counts.trajectories == 2
    out = tmp_path / "out"
    export(Store.open(folder), "atif", str(out))
    for name in names:
        assert (out / "t__1" / name).read_bytes() == files[f"t__1/{name}"], name
