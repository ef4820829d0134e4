"""``adp score``, and its scores in SQL."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import adp
from adp.eval.metrics import folded
from adp.eval.scorer import Figure
from tests.eval.scoring.conftest import small_scorers  # noqa: F401
from tests.eval.scoring.small import grown
from tests.eval.scoring.small import run as one_run

pytestmark = pytest.mark.usefixtures("small_scorers")


@pytest.fixture
def rollouts(tmp_path):
    broken = one_run("b", 1, error_type="infrastructure", stop_reason="timeout", success=None)
    runs = [one_run("a"), one_run("a", 1, final_answer="raise", success=False), one_run("b")]
    return grown(tmp_path / "rollouts", *runs, broken).root


def rows(run, *words):
    return [json.loads(line) for line in run("query", *words, "--format", "jsonl").out.splitlines()]


def test_scores_are_printed_and_kept(run, rollouts):
    done = run("score", rollouts, "--with", "plain:mode=two,doubtful")
    assert (done.code, done.err) == (0, "")
    assert "success" in done.out
    assert "wilson" in done.out
    assert "the scorer raised KeyError: 'answer'" in done.out
    assert "1 trajectory broke: infrastructure" in done.out
    assert "4 trajectories, 8 new scores, in" in done.out
    assert "nothing was written" in run("score", rollouts, "--with", "plain:mode=two").out
    sql = "SELECT scorer, count(*) AS n, count(value) AS known FROM scores GROUP BY 1 ORDER BY 1"
    assert rows(run, rollouts, "-c", sql) == [
        {"scorer": "doubtful", "n": 8, "known": 4},
        {"scorer": "plain", "n": 12, "known": 9},
    ]


def test_as_json(run, rollouts):
    report = json.loads(run("score", rollouts, "--with", "plain", "--json").out)
    (scorer,) = report["scorers"]
    assert scorer["figures"][0]["name"] == "success"
    assert scorer["figures"][0]["infrastructure"] == 1
    assert report["broken"] == {"infrastructure": 1}
    assert Path(report["file"]).name == "run-00000.parquet"


def test_scores_of_several_stores_are_told_apart(run, rollouts, tmp_path):
    other = grown(tmp_path / "other", one_run("a", success=False)).root
    for store in (rollouts, other):
        run("score", store, "--with", "plain")
    sql = (
        "SELECT store, avg(value) AS mean FROM scores "
        "JOIN trajectories USING (store, trajectory_id) "
        "WHERE metric = 'success' GROUP BY 1 ORDER BY 1"
    )
    result = rows(run, rollouts, other, "-c", sql)
    assert result == [{"store": "other", "mean": 0.0}, {"store": "rollouts", "mean": 2 / 3}]


def test_scores_elsewhere(run, rollouts, tmp_path):
    adp.seal(rollouts)
    out = tmp_path / "scores of it"
    assert run("score", rollouts, "--with", "plain", "-o", out).code == 0
    count = "SELECT count(*) AS n FROM scores"
    assert rows(run, rollouts, "-c", count) == [{"n": 0}]
    assert rows(run, rollouts, "-c", count, "--scores", out) == [{"n": 12}]
    assert run("query", rollouts, rollouts, "-c", count, "--scores", out).code == 2
    refused = run("query", rollouts, "-c", f"SELECT * FROM '{out}/run-00000.parquet'")
    assert refused.code == 6


def test_a_reference(run, rollouts, tmp_path):
    gold = grown(tmp_path / "gold", one_run("a", final_answer="raise", task=None)).root
    report = json.loads(
        run("score", rollouts, "--with", "plain", "--reference", gold, "--json").out
    )
    right = next(item for item in report["scorers"][0]["figures"] if item["name"] == "right")
    assert right["value"] == pytest.approx(2 / 3)
    assert run("score", rollouts, "--with", "plain", "--tasks", gold).code == 0
    both = run("score", rollouts, "--with", "plain", "--reference", gold, "--tasks", gold)
    assert (both.code, "exclude each other" in both.err) == (2, True)


def test_wrong_calls(run, rollouts, tmp_path):
    assert "--with NAME" in run("score", rollouts).err
    assert run("score", rollouts, "--with", "nothing").code == 2
    assert run("score", tmp_path / "no store", "--with", "plain").code == 5
    listed = run("score", rollouts, "--list").out
    assert "Success, calls and answers." in listed
    assert (
        json.loads(run("score", rollouts, "--list", "--json").out)["scorers"][1]["name"] == "plain"
    )
    assert "scores" in run("query", rollouts, "-c", "SELECT * FROM scorez").err


def test_the_view_scores_is_described(run, rollouts):
    described = rows(run, rollouts, "-c", "DESCRIBE scores")
    assert [row["column_name"] for row in described][:3] == ["trajectory_id", "task_id", "attempt"]


def test_scorers_are_listed_without_a_store(run):
    listed = run("score", "--list")
    assert (listed.code, "what it measures" in listed.out) == (0, True)
    done = run("score", "--with", "outcome")
    assert (done.code, "name a store" in done.err) == (2, True)


def test_what_is_missing_for_one_reason_is_one_line():
    missing = [Figure(f"m{n}", None, unscored=3, reason="no call") for n in range(12)]
    other = [Figure("a", 1.0, count=3), Figure("b", None, unscored=1, reason="no answer")]
    names = [item.name for item in folded([other[0], *missing, other[1]])]
    assert names == ["a", "m0, m1 and 10 more", "b"]
    assert list(folded([*missing[:3], *other])) == [*missing[:3], *other]
    counts = [Figure(f"c{n}", None, count=n, reason="no call") for n in range(1, 6)]
    assert list(folded(counts)) == counts
