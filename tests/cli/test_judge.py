"""``adp judge``: verdicts against labels, and two stores in both orders, over a real server."""

from __future__ import annotations

import json

import pytest

from adp.converters.run import convert
from adp_schema.store import Store
from tests.rollouts.judging.endpoints import answering, material

TASKS = 6


def write(folder, name, answers):
    """A store with a run for each answer; two attempts at each task."""
    rows = [
        {
            "id": f"{name}-{number}", "task_id": f"t{number % TASKS}",
            "messages": [{"role": "user", "content": f"Question {number % TASKS}"},
                         {"role": "assistant", "content": text}],
            "success": "right" in text if number != 5 else None,
        }
        for number, text in enumerate(answers)
    ]  # fmt: skip
    (folder / f"{name}_source").mkdir()
    source = folder / f"{name}_source" / "chat.jsonl"
    source.write_text("".join(json.dumps(row) + "\n" for row in rows))
    convert([str(source)], str(folder / name))
    return folder / name


@pytest.fixture
def runs(tmp_path, monkeypatch):
    monkeypatch.setenv("ADP_CACHE", str(tmp_path / "cache"))
    right = [2, 3, 4, 7, 8, 9, 10]
    return write(
        tmp_path, "runs", ["It is right." if n in right else "It is wrong." for n in range(12)]
    )


def policy(server):
    return f"openai:model=m,base_url={server.url},retries=0"


def test_agreement_with_known_answers(run, runs, tmp_path):
    asked = []

    def reply(prompt, messages):
        shown = material(prompt)["RUN"]
        asked.append(shown)
        if "Question 1" in shown:
            return "no idea"
        if "Question 0" in shown:
            return ("yes", "no")[len(asked) % 2]
        if "Question 2" in shown:
            return "Conclusion: no"
        return "yes" if "right" in shown else "no"

    with answering(reply) as server:
        spec = f"judge:policy='{policy(server)}',rubric=binary,votes=2,combine=majority"
        scored = run("score", runs, "--with", spec, "--concurrency", 1, "--json")
        scorer = json.loads(scored.out)["scorers"][0]
    assert scorer["costs"]["m"]["asked"] == 24 + 4
    assert scorer["costs"]["m"]["again"] == 4
    reports = json.loads(run("judge", "agreement", runs, "--json").out)["judges"]
    (report,) = reports
    assert report["states"]["unscored"] == 2
    assert report["states"]["scored"] + report["states"]["tie"] == 10
    assert report["unlabelled"] == 1
    figures = {item["name"]: item for item in report["figures"]}
    wrong = report["judged"] - round(figures["accuracy"]["value"] * report["judged"])
    assert sorted(report["wrong"]) == sorted(_wrong(runs))
    assert wrong == len(report["wrong"])
    assert sum(report["confusion"].values()) == report["judged"]
    assert figures["alpha:nominal"]["count"] == 12
    assert {"kappa", "brier", "calibration_error", "length_with_error"} <= figures.keys()
    labels = tmp_path / "labels.csv"
    labels.write_text("trajectory_id,label\nopenai_chat/none,yes\n")
    text = run("judge", "agreement", runs, "--labels", labels).out
    assert "0 runs with a verdict and a label" in text
    labels.write_text("trajectory_id,label\nx,perhaps\n")
    assert "'perhaps' is no truth" in run("judge", "agreement", runs, "--labels", labels).err


def _wrong(runs):
    """Runs of which verdict and success differ, by SQL over the scores."""
    sql = (
        "SELECT trajectory_id FROM scores JOIN trajectories USING (trajectory_id) WHERE "
        "metric = 'judged_success' AND value IS NOT NULL AND (value = 1) <> success"
    )
    return [row["trajectory_id"] for row in Store.open(str(runs)).query(sql).to_pylist()]


def test_two_stores_in_both_orders(run, runs, tmp_path):
    other = write(tmp_path, "other", ["It is right."] * 6)

    def reply(prompt, messages):
        first, second = material(prompt)["FIRST RUN"], material(prompt)["SECOND RUN"]
        if "Question 5" in first:
            return "Conclusion: first"
        if "Question 4" in first:
            return 503
        good = ["right" in first, "right" in second]
        return "tie" if good[0] == good[1] else "first" if good[0] else "second"

    with answering(reply) as server:
        out = tmp_path / "verdicts.jsonl"
        command = ["judge", "compare", runs, other, "--judge", policy(server), "--price", "m=2,8"]
        done = json.loads(run(*command, "-o", out, "--json").out)
        count = len(server.seen)
        again = run(*command)
        assert len(server.seen) - count == 2  # what failed is asked again
    assert done["counts"] == {"second": 2, "tie": 2, "inconsistent": 1, "unscored": 1}
    figures = {item["name"]: item for item in done["figures"]}
    assert figures["win_rate"]["value"] == pytest.approx((2 + 1 + 0.5) / 5)
    assert figures["win_rate"]["unscored"] == 1
    assert figures["consistent"]["value"] == 0.8
    assert figures["shown_first_wins"]["value"] == (2 + 2) / 6
    assert done["left_out"] == 6
    assert done["costs"]["m"]["cost_usd"] == pytest.approx(10 * (20 + 24) / 1e6)
    lines = [json.loads(line) for line in out.read_text().splitlines()]
    assert [line["winner"] for line in lines].count(None) == 1
    assert all(line["first"] != line["second"] for line in lines)
    assert "10 from the cache" in again.out
    assert "2 won by the second" in again.out


def test_what_a_user_may_do_wrong(run, runs, tmp_path):
    assert "no scores of a judge" in run("judge", "agreement", runs).err
    command = [
        "judge",
        "compare",
        runs,
        runs,
        "--judge",
        "openai:model=m,base_url=http://127.0.0.1:1",
    ]
    for price in ("m", "m=1", "m=-1,2", "m=nan,2", "m=1,2,3"):
        assert f"--price '{price}' is not NAME=IN,OUT" in run(*command, "--price", price).err
    (tmp_path / "there").touch()
    assert "is there already" in run(*command, "-o", tmp_path / "there").err
    assert "no folder" in run(*command, "-o", tmp_path / "no" / "file").err
    assert "prices names n" in run(*command, "--price", "n=1,2").err
