"""Scores are kept beside a store: once, with their history, and never 0 for unscored."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest
from filelock import FileLock

import adp
from adp.eval.scoring import ScoreOptions, read_scores, references, score_store
from adp.eval.scoring.choose import choose
from adp.eval.scoring.references import from_store, put_over
from adp_schema.errors import StoreError, UsageError
from adp_schema.model import Task, Trajectory
from adp_schema.scores import score_files
from adp_schema.store import Store
from tests.eval.scoring.small import Doubtful, Plain, chosen, grown, run


def figures(report):
    return {figure.name: figure for figure in report.scorers[0].figures}


def latest(store, sql="SELECT * FROM scores ORDER BY ALL"):
    return Store.open(store.root).query(sql).to_pylist()


@pytest.fixture
def store(tmp_path):
    runs = [run("a"), run("a", 1, success=False), run("b"), run("b", 1, final_answer="3")]
    return grown(tmp_path / "store", *runs)


def test_scores_are_rows_and_figures(store):
    report = score_store(store, [chosen()])
    assert (report.trajectories, report.scorers[0].new, report.broken) == (4, 4, {})
    result = figures(report)
    assert (result["success"].value, result["success"].count, result["success"].tasks) == (
        0.75,
        4,
        2,
    )
    assert (result["right"].value, result["pass@2"].value, result["pass^2"].value) == (0.75, 1, 0.5)
    rows = latest(store)
    assert len(rows) == 12
    assert {(row["scorer"], row["version"], row["run"]) for row in rows} == {("plain", "1", 0)}
    assert sum(row["value"] for row in rows if row["metric"] == "calls") == 4
    assert json.loads(next(row["evidence"] for row in rows if row["metric"] == "calls")) == {
        "calls": 1
    }


def test_a_task_that_is_stored_once_is_known_to_each_attempt(tmp_path):
    store = grown(tmp_path / "s", run("a"), run("a", 1, task=None), run("b", task=None))
    scorer = Plain()
    report = score_store(store, [chosen(scorer)])
    assert [item.task and item.task.answers for item in scorer.items] == ['["2"]', '["2"]', None]
    assert report.scorers[0].unscored == {"no answer is known": 1}
    assert figures(report)["right"].unscored == 1


def test_the_same_again_writes_nothing(store):
    first = score_store(store, [chosen()])
    before = contents(Path(first.folder))
    again = score_store(store, [chosen()])
    assert (again.file, again.scorers[0].new) == (None, 0)
    assert contents(Path(first.folder)) == before
    assert again.scorers[0].figures == first.scorers[0].figures


def test_only_what_is_new_or_different_is_written(store):
    score_store(store, [chosen()])
    with Store.grow(store.root) as growing:
        growing.append(run("c", success=None))
    report = score_store(Store.open(store.root), [chosen()])
    assert report.scorers[0].new == 1
    assert figures(report)["success"].unscored == 1

    class Newer(Plain):
        version = "2"

        def score(self, item):
            return super().score(item)[:1]

    assert score_store(Store.open(store.root), [chosen(Newer())]).scorers[0].new == 5
    rows = latest(store)
    assert {(row["version"], row["metric"]) for row in rows} == {("2", "success")}
    assert latest(store, "SELECT count(*) AS n FROM score_history") == [{"n": 20}]
    (result,) = read_scores(Store.open(store.root))
    assert (result.version, len(result.rows)) == ("2", 5)


def test_settings_and_references_stand_side_by_side(store):
    score_store(store, [chosen(mode=1), chosen(mode=2)])
    gold = references("gold", [Task(task_id="a", answers='["7"]')])
    report = score_store(store, [chosen(mode=1)], ScoreOptions(references=gold))
    assert figures(report)["right"].value == 0.25
    assert len({row["settings_hash"] for row in latest(store)}) == 3
    (label,) = {json.loads(row["settings"]).get("$reference") for row in latest(store)} - {None}
    assert label.startswith("gold ")


def test_what_broke_is_unscored_and_told_apart(tmp_path):
    broken = [
        run("a", 1, error_type="infrastructure", stop_reason="http_500", success=None),
        run("b", 1, error_type="environment", success=None, steps=[]),
        run("c", 1, error_type="policy", success=True),
    ]
    store = grown(tmp_path / "s", run("a"), *broken, run("d", error_type="Timeout"))
    report = score_store(store, [chosen()])
    assert report.broken == {"environment": 1, "infrastructure": 1, "policy": 1}
    success = figures(report)["success"]
    assert (success.count, success.unscored, success.infrastructure) == (2, 3, 3)
    assert report.scorers[0].unscored == {
        "environment failed": 3,
        "infrastructure failed: http_500": 3,
        "policy failed": 3,
    }
    rows = [row for row in latest(store) if row["value"] is None]
    assert len(rows) == 9
    assert all(row["infrastructure"] for row in rows)


def test_a_scorer_that_raises_is_said_and_stops_nothing(tmp_path):
    answers = ["raise", "nan", "true", "2"]
    runs = [run(f"t{index}", final_answer=answer) for index, answer in enumerate(answers)]
    store = grown(tmp_path / "s", *runs)
    report = score_store(store, [chosen(Doubtful()), chosen()])
    text = "the scorer raised KeyError: 'answer'"
    assert report.scorers[0].raised == {text: 1}
    rows = latest(store, "SELECT * FROM scores WHERE scorer = 'doubtful' ORDER BY task_id, metric")
    assert [(row["task_id"], row["metric"], row["value"], row["reason"]) for row in rows] == [
        ("t0", "one", None, text),
        ("t0", "\ufffdtwo", None, text),
        ("t1", "one", None, "the number is nan"),
        ("t2", "one", 1.0, None),
        ("t3", "one", 1.0, None),
        ("t3", "\ufffdtwo", 2.0, None),
    ]
    assert json.loads(rows[2]["evidence"]) == {"value": "inf"}
    assert score_store(store, [chosen(Doubtful())]).file is None

    class Worst(Doubtful):
        def figures(self, rows):
            raise ZeroDivisionError("n")

    (figure,) = score_store(store, [chosen(Worst())]).scorers[0].figures
    assert (figure.value, figure.reason) == (None, "adding up raised ZeroDivisionError: n")


def test_branches_are_scored_on_request_with_the_steps_of_their_parent(tmp_path):
    parent = run("a")
    branch = Trajectory(dataset="sums", source_id="x", parent_id="sums/a/attempt-0", parent_step=2,
                        branch_kind="alternate", steps=[parent.steps[2].model_copy()])  # fmt: skip
    branch.steps[0].step = 2
    store = grown(tmp_path / "s", parent, branch)
    assert score_store(store, [chosen()]).trajectories == 1
    scorer = Plain()
    report = score_store(store, [chosen(scorer)], ScoreOptions(branches=True))
    assert (report.trajectories, report.scorers[0].new) == (2, 1)
    assert [len(item.trajectory.steps) for item in scorer.items] == [3, 3]


def test_figures_are_about_what_was_looked_at(tmp_path):
    other = Trajectory(dataset="sums", source_id="sub", parent_id="sums/a/attempt-0", task_id="a",
                       branch_kind="subagent", success=False, steps=run("a").steps)  # fmt: skip
    store = grown(tmp_path / "s", run("a"), other)
    alone = figures(score_store(store, [chosen()]))["success"]
    both = figures(score_store(store, [chosen()], ScoreOptions(branches=True)))["success"]
    again = figures(score_store(store, [chosen()]))["success"]
    assert (alone.value, both.value, again) == (1, 0.5, alone)


def test_a_branch_is_no_attempt_at_its_task(tmp_path):
    """pass@k counts attempts that were made from the start; means count all that was scored."""
    branch = Trajectory(dataset="sums", source_id="alt", parent_id="sums/a/attempt-0", task_id="a",
                        parent_step=2, branch_kind="alternate", success=False,
                        steps=run("a").steps[2:])  # fmt: skip
    store = grown(tmp_path / "s", run("a"), run("a", 1), branch)
    (outcome,) = choose(["outcome"])
    result = figures(score_store(store, [outcome], ScoreOptions(branches=True)))
    assert result["success"].value == pytest.approx(2 / 3)
    assert [result[name].value for name in ("pass@1", "pass^2")] == [1, 1]
    assert "pass@3" not in result


def test_a_branch_without_its_parent_is_unscored_and_stops_nothing(tmp_path):
    lost = Trajectory(dataset="sums", source_id="lost", parent_id="sums/nowhere", parent_step=1,
                      branch_kind="alternate", steps=run("a").steps[1:])  # fmt: skip
    store = grown(tmp_path / "s", run("a"), lost)
    report = score_store(store, [chosen()], ScoreOptions(branches=True))
    assert (report.trajectories, report.scorers[0].raised) == (2, {})
    result = figures(report)["success"]
    assert (result.value, result.count, result.unscored, result.infrastructure) == (1, 1, 1, 0)
    (reason,) = report.scorers[0].unscored
    assert "the store has no trajectory 'sums/nowhere'" in reason


def test_branches_of_each_other_are_unscored_and_stop_nothing(tmp_path):
    entry, other = (
        Trajectory(dataset="sums", source_id=name, parent_id=f"sums/{parent}", parent_step=1,
                   branch_kind="alternate", steps=run("a").steps[1:])
        for name, parent in (("x", "y"), ("y", "x"))
    )  # fmt: skip
    store = grown(tmp_path / "s", run("a"), entry, other)
    report = score_store(store, [chosen()], ScoreOptions(branches=True))
    result = figures(report)["success"]
    assert (result.value, result.count, result.unscored, result.infrastructure) == (1, 1, 2, 0)
    (reason,) = report.scorers[0].unscored
    assert "the branches 'sums/x', 'sums/y' are each other's parents" in reason


def test_a_run_of_another_store_is_the_reference(tmp_path, store):
    gold = grown(tmp_path / "gold", run("a", success=False), run("a", 1, final_answer="9"),
                 run("b", success=None))  # fmt: skip
    result = from_store(gold)
    assert sorted(key.task_id for key in result.tasks) == ["a", "b"]
    (gold_of_a,) = (task for key, task in result.tasks.items() if key.task_id == "a")
    task = put_over(Task(task_id="a", instruction="own"), gold_of_a)
    assert (task.instruction, task.answers) == ("own", '["9"]')
    assert json.loads(task.expected_calls) == [{"name": "add", "arguments": {"a": 1}}]
    roles = [message["role"] for message in json.loads(task.gold_trajectory)]
    assert roles == ["user", "assistant", "tool", "assistant"]
    report = score_store(store, [chosen()], ScoreOptions(references=result))
    assert figures(report)["right"].value == 0.25


def test_scores_go_elsewhere(tmp_path, store):
    out = tmp_path / "elsewhere"
    report = score_store(store, [chosen()], ScoreOptions(out=str(out)))
    assert report.folder == str(out)
    assert not (Path(store.root) / "scores").exists()
    assert latest(store) == []
    assert len(read_scores(store, str(out))[0].rows) == 12
    with pytest.raises(UsageError, match="-o FOLDER"):
        score_store(Store("hf://datasets/a/b", store.manifest), [chosen()])


def test_a_second_run_at_the_same_time_and_a_damaged_file_are_errors(store):
    folder = Path(score_store(store, [chosen()]).folder)
    with FileLock(folder / ".lock"), pytest.raises(StoreError, match="wait for that run"):
        score_store(store, [chosen(mode=3)])
    (folder / "run-00001.parquet").write_bytes(b"PAR1 and no more")
    with pytest.raises(StoreError, match="remove the file and score again"):
        score_store(store, [chosen(mode=3)])
    assert not list(folder.glob(".run-*"))


def contents(folder):
    """Name -> hash of all files."""
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in folder.rglob("*")
        if path.is_file() and path.name != ".lock"
    }


def test_the_same_scores_make_the_same_bytes_and_a_store_does_not_change(tmp_path, store):
    adp.seal(store.root)
    sealed = Store.open(store.root)
    before = contents(Path(store.root))
    first = Path(score_store(sealed, [chosen()]).file)
    second = Path(score_store(sealed, [chosen()], ScoreOptions(out=str(tmp_path / "x"))).file)
    assert first.read_bytes() == second.read_bytes()
    after = contents(Path(store.root))
    assert set(after) - set(before) == {"scores/run-00000.parquet"}
    assert {name: after[name] for name in before} == before


def test_what_is_made_of_a_store_leaves_its_scores_behind(tmp_path, store):
    adp.seal(store.root)
    score_store(Store.open(store.root), [chosen()])
    assert adp.validate(store.root, verify=True).failed("error") == []
    dropped = adp.drop(store.root, "success = false", tmp_path / "dropped")
    other = grown(tmp_path / "other", run("z"))
    adp.seal(other.root)
    merged = adp.merge([store.root, other.root], tmp_path / "merged")
    from adp.stores.redact.run import redact

    redact(Store.open(store.root), str(tmp_path / "redacted"))
    for made in (dropped, merged, Store.open(str(tmp_path / "redacted"))):
        assert score_files(made.root) == []
        assert latest(made) == []
    assert len(latest(store)) == 12
