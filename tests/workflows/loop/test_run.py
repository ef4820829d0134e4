"""Running a loop without a model: each stage once, going on, doing again, and what is refused."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from adp.cli.main import main
from adp.curation import run as curation
from adp.rollouts.collecting.collect_options import CollectOptions, prepare_collect
from adp.workflows.loop import LoopOptions, make_plan, read_loop, run_loop
from adp.workflows.loop.hashes import store_hash
from adp.workflows.loop.ordered_store import write_ordered
from adp.workflows.loop.records import read_record
from adp_schema.errors import AdpError, FindingsError, OutputExistsError, UsageError
from adp_schema.store import Store

COLLECT = {"env": "toolworld", "policy": "expert", "tasks": "train:${tasks}", "n": 2}
STAGES = [
    {"collect": COLLECT, "as": "runs"},
    {"score": {"store": "${runs}", "with": ["efficiency"]}},
    {
        "curate": {
            "recipe": {
                "inputs": {"runs": "${runs}"},
                "ops": [
                    {"annotate": {"file": "${score}/columns.parquet"}},
                    {"filter": {"sql": "efficiency_calls <= ${most}"}},
                    {"dedup_exact": {"of": "trajectory"}},
                ],
            },
        },
        "as": "chosen",
    },
    {"export": {"store": "${chosen}", "to": "openai_chat"}},
    {"eval": {"suite": "toolworld", "tasks": "test:4", "policy": "expert"}},
]
PLAIN = {
    "loop": 1,
    "model": "none",
    "seed": 5,
    "variables": {"tasks": 4},
    "rounds": {"repeat": 2, "values": {"most": [9, 3]}, "stages": STAGES},
}


def run(out: Path, plain=PLAIN, *settings: str, **options) -> tuple[dict[str, str], list[str]]:
    """Run a loop: what its stages made, and what was done now."""
    done: list[str] = []

    def watch(news):
        if news.what == "begins":
            done.append(news.key)

    how = LoopOptions(**options, watch=watch)
    records = run_loop(make_plan(read_loop(plain, settings), out.parent), out, how)
    return {record.key: record.hash for record in records}, done


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, str]]:
    """A loop that ran undisturbed."""
    out = tmp_path_factory.mktemp("loop") / "whole"
    hashes, done = run(out)
    assert len(hashes) == len(done) == 10
    return out, hashes


@pytest.fixture
def copied(finished: tuple[Path, dict[str, str]], tmp_path: Path) -> Path:
    """A copy of it, somewhere else."""
    return Path(shutil.copytree(finished[0], tmp_path / "out"))


def test_every_stage_has_its_folder_and_its_line(finished):
    out, hashes = finished
    rows = [json.loads(line) for line in (out / "ledger.jsonl").read_text().splitlines()]
    assert [f"round-{row['round']}.{row['stage']}" for row in rows] == list(hashes)
    assert [row["values"]["most"] for row in rows] == [9] * 5 + [3] * 5
    for row in rows:
        assert (out / f"round-{row['round']}" / row["stage"]).is_dir()
        assert row["versions"]["adp"]
    runs = Store.open(str(out / "round-1" / "runs"))
    assert len(runs) == rows[0]["counts"]["episodes"] == 8
    assert rows[1]["inputs"]["round-1.runs"] == store_hash(out / "round-1" / "runs")
    chosen = Store.open(str(out / "round-2" / "chosen")).query("SELECT * FROM trajectories")
    calls = Store.open(str(out / "round-2" / "runs")).query(
        "SELECT trajectory_id, count(*) AS n FROM tool_calls GROUP BY ALL"
    )
    many = dict(zip(*calls.to_pydict().values(), strict=True))
    few = [name for name, count in many.items() if count <= 3]
    assert set(chosen["trajectory_id"].to_pylist()) <= set(few)
    assert not list((out / "work").glob("*"))


def test_it_equals_what_the_library_makes_by_itself(finished, tmp_path):
    out, _ = finished
    options = CollectOptions(
        env="toolworld",
        policy="expert",
        tasks="train:4",
        n=2,
        seed=5,
        dataset="runs-1",
        no_times=True,
        concurrency=1,
    )
    prepare_collect(options).run(tmp_path / "runs", seal=True)
    write_ordered(tmp_path / "runs", tmp_path / "ordered", tmp_path / "scratch")
    assert store_hash(tmp_path / "ordered") == store_hash(out / "round-1" / "runs")


def test_a_second_call_does_nothing_wherever_it_lies(finished, copied):
    hashes, done = run(copied)
    assert (hashes, done) == (finished[1], [])


def test_episodes_are_in_the_order_of_their_ids(finished):
    rows = Store.open(str(finished[0] / "round-1" / "runs")).query(
        "SELECT trajectory_id FROM trajectories WHERE parent_id IS NULL ORDER BY seq"
    )
    names = rows["trajectory_id"].to_pylist()
    assert names == sorted(names)
    assert len(names) == 8


def test_a_store_in_another_order_becomes_the_same(tmp_path):
    hashes = set()
    for name, tasks in (("a", "train:3"), ("b", "train:3")):
        options = CollectOptions(
            env="toolworld",
            policy="scripted:file=" + str(_lost(tmp_path)),
            tasks=tasks,
            expert_mode="informed:init_limit=1",
            dataset="d",
            no_times=True,
            concurrency=1,
        )
        prepared = prepare_collect(options)
        if name == "b":
            prepared.tasks.tasks.reverse()
        prepared.run(tmp_path / name, seal=True)
        assert len(Store.open(str(tmp_path / name))) > 6  # alternates are branches
        write_ordered(tmp_path / name, tmp_path / f"{name}-out", tmp_path / "scratch")
        hashes.add(store_hash(tmp_path / f"{name}-out"))
    assert len(hashes) == 1


def _lost(folder: Path) -> Path:
    path = folder / "lost.jsonl"
    turn = {"calls": [{"name": "lookup", "arguments": {}}]}
    path.write_text(json.dumps({"turns": [turn] * 8}) + "\n")
    return path


def test_only_and_until(tmp_path):
    out = tmp_path / "out"
    hashes, done = run(out, until="round-1.score")
    assert done == list(hashes) == ["round-1.runs", "round-1.score"]
    with pytest.raises(UsageError, match=r"round-2\.chosen needs round-2\.runs"):
        run(out, only="round-2.chosen")
    hashes, done = run(out, only="round-1.chosen")
    assert done == ["round-1.chosen"]
    assert len(hashes) == 3
    with pytest.raises(UsageError, match=r"name one of round-1\.chosen, round-2\.chosen"):
        run(out, only="chosen")
    with pytest.raises(UsageError, match="there is no stage 'choosen'"):
        run(out, until="choosen")


@pytest.mark.slow
def test_other_options_are_refused_and_done_again_when_that_is_asked_for(finished, copied):
    with pytest.raises(
        OutputExistsError, match=r"round-1\.runs was done with another tasks; --redo"
    ):
        run(copied, PLAIN, "tasks=3")
    # What comes of the first stage is done again, for its input is another one.
    hashes, done = run(copied, PLAIN, "tasks=3", redo=["round-1.runs", "round-2.runs"])
    assert len(hashes) == 10
    assert not {key for key in done if key.endswith(".eval")}
    assert {key for key in done if key.endswith(".chosen")} == {"round-1.chosen", "round-2.chosen"}
    same = {key for key in hashes if hashes[key] == finished[1][key]}
    assert {"round-1.eval", "round-2.eval"} <= same
    assert not {"round-1.runs", "round-1.chosen", "round-2.runs", "round-2.chosen"} & same


def test_doing_again_what_comes_out_the_same_does_nothing_else(finished, copied):
    hashes, done = run(copied, redo=["round-1.runs"])
    assert done == ["round-1.runs"]
    assert hashes == finished[1]
    record = read_record(copied, "round-1.chosen")
    assert record is not None
    assert not record.stale


def test_options_that_change_no_result_may_change(finished, copied):
    plain = json.loads(json.dumps(PLAIN))
    plain["rounds"]["stages"][0]["collect"]["concurrency"] = 1
    assert run(copied, plain) == (finished[1], [])


def test_a_file_that_an_option_names_counts_by_its_bytes(tmp_path):
    script = _lost(tmp_path)
    stage = {
        "collect": {**COLLECT, "tasks": "train:2", "policy": "scripted:file=${here}/lost.jsonl"}
    }
    plain = {"loop": 1, "model": "none", "rounds": {"stages": [stage]}}
    run(tmp_path / "out", plain)
    assert run(tmp_path / "out", plain)[1] == []
    script.write_text(json.dumps({"turns": [{"text": "no"}]}) + "\n")
    with pytest.raises(OutputExistsError, match=r"another file lost\.jsonl"):
        run(tmp_path / "out", plain)


def test_a_stage_that_cannot_be_done_stops_the_loop_and_can_be_mended(tmp_path):
    out = tmp_path / "out"
    plain = json.loads(json.dumps(PLAIN))
    plain["rounds"]["values"]["most"] = [0, 0]
    with pytest.raises(AdpError, match=r"round-1\.chosen: the recipe leaves nothing") as error:
        run(out, plain)
    assert error.value.exit_code == 10
    hashes, done = run(out)
    assert done[0] == "round-1.chosen"
    assert len(hashes) == 10


def test_a_figure_that_is_not_good_enough_stops_the_loop(tmp_path):
    stage = {"eval": {**STAGES[-1]["eval"], "max": {"success": 0.0}}}
    plain = {"loop": 1, "model": "none", "rounds": {"stages": [stage]}}
    for _ in range(2):
        with pytest.raises(FindingsError, match="success is"):
            run(tmp_path / "out", plain)


# ---- functions of the user's own -----------------------------------------------------------------

CODE = """
def make(out, seed, *, text="x"):
    out.mkdir()
    (out / "made.txt").write_text(f"{text} {seed}")
    return {"letters": len(text)}


def fail(out, seed):
    raise KeyError("no")


def nothing(out, seed):
    pass
"""


def coded(function, **options):
    """A loop with one stage of a function."""
    stage = {"python": {"function": f"code.py:{function}", "options": options}, "as": "made"}
    return {"loop": 1, "model": "none", "seed": 4, "rounds": {"stages": [stage]}}


def coded_run(folder: Path, plain, **more):
    """Run it; the code lies beside its file."""
    (folder / "code.py").write_text(CODE)
    plan = make_plan(read_loop(plain), folder, **more)
    return run_loop(plan, folder / "out", LoopOptions())


def test_a_function_makes_files_and_counts(tmp_path):
    (record,) = coded_run(tmp_path, coded("make", text="abc"), allow_python=True)
    assert (tmp_path / "out" / "round-1" / "made" / "made.txt").read_text() == "abc 4"
    assert record.counts == {"letters": 3}
    with pytest.raises(OutputExistsError, match="another options"):
        coded_run(tmp_path, coded("make", text="abcd"), allow_python=True)


@pytest.mark.parametrize(
    ("function", "options", "words"),
    [
        ("make", {"word": 1}, "cannot be called with these options"),
        ("fail", {}, "failed: KeyError"),
        ("nothing", {}, "left no folder"),
        ("other", {}, "other"),
    ],
)
def test_a_function_that_does_not_fit_is_one_sentence(tmp_path, function, options, words):
    with pytest.raises(AdpError, match=words):
        coded_run(tmp_path, coded(function, **options), allow_python=True)


def test_code_needs_the_word_of_the_call(tmp_path):
    with pytest.raises(UsageError, match="add --allow-python"):
        coded_run(tmp_path, coded("make"))


class Killed(BaseException):
    """What a kill does to a call, but for what `finally` does."""


@pytest.mark.parametrize("stage", ["before", "after"])
def test_a_call_that_was_stopped_in_a_stage_goes_on(tmp_path, finished, monkeypatch, stage):
    real = curation.write_stores

    def stop(*args):
        if stage == "after":
            real(*args)
        raise Killed

    monkeypatch.setattr(curation, "write_stores", stop)
    with pytest.raises(Killed):
        run(tmp_path / "out")
    monkeypatch.undo()
    hashes, done = run(tmp_path / "out")
    assert hashes == finished[1]
    assert done[0] == "round-1.chosen"


def test_a_folder_with_something_else_is_left_alone(tmp_path):
    (tmp_path / "file").write_text("mine")
    with pytest.raises(OutputExistsError, match="holds no loop"):
        run(tmp_path)


# ---- the command ---------------------------------------------------------------------------------


def test_the_command_says_what_it_did_and_writes_a_report(tmp_path, capsys):
    file = tmp_path / "loop.yaml"
    file.write_text(json.dumps(PLAIN))
    assert main(["loop", str(file), "-o", str(tmp_path / "out"), "--until", "round-1.eval"]) == 0
    text = capsys.readouterr().out
    assert "round-1.runs: 8 episodes, success" in text
    assert "5 stages done, 5 left" in text
    page = (tmp_path / "out" / "report.md").read_text()
    assert "| 1 | eval | most 9 | 4 |" in page
    assert main(["loop", str(file), "-o", str(tmp_path / "out"), "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert [item["round"] for item in printed["evaluations"]] == [1, 2]
    first = printed["evaluations"][0]
    store = Store.open(str(tmp_path / "out" / "round-1" / "eval"))
    rows = store.query("SELECT success FROM trajectories")["success"].to_pylist()
    assert first["success"]["value"] == sum(rows) / len(rows)
    calls = store.query("SELECT count(*) AS n FROM tool_calls")["n"][0].as_py()
    assert first["calls"]["value"] == pytest.approx(calls / len(rows))
    assert first["calls"]["low"] <= first["calls"]["value"] <= first["calls"]["high"]
    assert len(printed["stages"]) == 10
    html = (tmp_path / "out" / "report.html").read_text()
    assert html.count("data:image/svg+xml;base64") >= 4
    assert "<script" not in html


def test_the_command_lists_plans_and_copies(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["loop", "--list"]) == 0
    assert "et_agent" in capsys.readouterr().out
    assert main(["new", "loop", "m3"]) == 0
    assert (tmp_path / "m3.yaml").exists()
    assert main(["loop", "--schema"]) == 0
    file = tmp_path / "loop.yaml"
    file.write_text(json.dumps(PLAIN))
    capsys.readouterr()
    assert main(["loop", str(file), "--dry-run"]) == 0
    assert "2 rounds, 10 stages; dry run" in capsys.readouterr().out
    assert main(["loop", str(file)]) == 2
    assert main(["loop"]) == 2
