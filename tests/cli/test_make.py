"""`adp make` as a user calls it."""

import json

import pytest

from tests.rollouts.judging.endpoints import answering
from tests.workflows.m3_raw import SAMPLES
from tests.workflows.test_m3_thoughts import reply

ENV = "benchmarks/shop_environment.py:Shop"


@pytest.mark.parametrize(
    "words",
    [("templates", "-e", ENV), ("synthetic", "-e", ENV), ("chains", "-e", ENV),
     ("teacher", "-e", ENV, "-p", "benchmarks/trial_teacher.py:teacher")],
)  # fmt: skip
def test_each_generator(run, tmp_path, words):
    done = run("make", *words, "-n", 12, "-o", tmp_path / "made")
    assert done.code == 0, done.err
    assert "12 samples of 12 asked for kept of " in done.out
    assert "covered: " in done.out
    again = json.loads(run("make", *words, "-n", 12, "-o", tmp_path / "made", "--json").out)
    assert (again["kept"], again["kept_before"], again["sealed"]) == (12, 12, True)
    assert again["coverage"]["by_tool"]["get_order"]["parameters"].keys() == {"order_id"}
    assert run("validate", tmp_path / "made").code == 0
    assert run("stats", tmp_path / "made").code == 0
    assert run("make", words[0], "--help").code == 0


def test_a_recipe_takes_what_was_made(run, tmp_path):
    assert run("make", "synthetic", "-e", "weather", "-n", 9, "-o", tmp_path / "made").code == 0
    (tmp_path / "recipe.yaml").write_text(
        f"recipe: 1\nname: r\nseed: 0\ninputs: {{made: {tmp_path}/made}}\n"
        "ops:\n- filter: {sql: success}\noutputs:\n  data: {}\n"
    )
    assert run("curate", tmp_path / "recipe.yaml", "-o", tmp_path / "out").code == 0
    counted = run("query", "-c", "SELECT count(*) n FROM trajectories", tmp_path / "out" / "data")
    assert "9" in counted.out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("synthetic", "-e", "nothing"), "nothing"),
        (("chains", "-e", ENV, "--form", "other"), "form"),
        (("templates", "-e", ENV, "--templates-file", "none.yaml"), "none.yaml"),
    ],
)
def test_a_fault_is_one_sentence(run, tmp_path, words, message):
    done = run("make", *words, "-o", tmp_path / "made")
    assert done.code in (2, 3)
    assert message in done.err
    assert "Traceback" not in done.err


def test_ground_truth_of_m3(run, tmp_path, monkeypatch):
    monkeypatch.setenv("ADP_CACHE", str(tmp_path / "cache"))
    (tmp_path / "raw").mkdir()
    (tmp_path / "raw/gardens.json").write_text(json.dumps(SAMPLES))
    done = run("make", "m3-turns", tmp_path / "raw", "-o", tmp_path / "turns")
    assert done.code == 0, done.err
    assert "20 samples of 1 domain = 3 kept + 17 left out" in done.out
    assert "left out: a hop without a tool call: 1" in done.out
    words = ("collect", "--env", f"m3:store={tmp_path / 'turns'}", "-p", "expert", "-t", "test:9")
    acted = run(*words, "-o", tmp_path / "runs")
    assert "success: 1.000 (3 of 3 scored)" in acted.out
    with answering(reply) as server:
        policy = f"openai:model=m,base_url={server.url}"
        words = ("make", "m3-thoughts", tmp_path / "turns", "--policy", policy)
        done = run(*words, "--cutoff", "2:3", "-o", tmp_path / "thoughts")
        assert done.code == 0, done.err
        assert "3 samples of 1 domain = 2 kept + 1 left out" in done.out
        assert "asked: 8 requests, 80 tokens in, 24 out" in done.out
        assert run(*words, "-o", tmp_path / "thoughts").code == 5
        plain = json.loads(run(*words, "--cutoff", "2:3", "-o", tmp_path / "o", "--json").out)
    assert (plain["train_samples"], plain["tokens_in"], len(server.seen)) == (2, 0, 8)
    for cutoff in ("3", "0:2", "5:2", "a:b"):
        wrong = run(*words, "--cutoff", cutoff, "-o", tmp_path / "wrong")
        assert wrong.code == 2
        assert "such as 5:10" in wrong.err
    words = ("collect", "--env", f"m3:store={tmp_path / 'thoughts'}", "-p", "expert")
    acted = run(*words, "-t", "test:9", "-o", tmp_path / "runs2")
    assert "success: 1.000 (2 of 2 scored)" in acted.out
