"""`adp evolve` as a user calls it: the example of its page."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from adp_schema.store import Store

MODELS = ("--env", "calculator", "--policy", "models.py:hasty", "--refiner", "models.py:careful")


@pytest.fixture
def here(run, tmp_path, monkeypatch):
    """A folder with the example, and a store of what the agent does alone."""
    shutil.copytree("examples/evolving", tmp_path / "here")
    monkeypatch.chdir(tmp_path / "here")
    done = run("collect", *MODELS[:4], "--tasks", "test:12", "-o", "sums")
    assert "success: 0.333 (4 of 12 scored)" in done.out
    return tmp_path / "here"


def test_the_example(run, here):
    words = ("evolve", "sums", *MODELS, "-o", "evolved", "--rounds", 3)
    done = run(*words, "--rft", "rft", "--flywheel", "records.json")
    assert done.code == 0, done.err
    lines = done.out.splitlines()
    assert lines[0].startswith("12 tasks, 0 left; 12 trajectories to begin with, 120 entries")
    assert "tasks with a right trajectory, by round: 4 12 12 12" in lines
    assert lines[-2].startswith("rft: 68 of 120 trajectories, 68 rows")
    assert lines[-1] == "flywheel: 12 records in records.json"
    assert len(json.loads((here / "records.json").read_text())) == 12
    again = json.loads(run(*words, "--json").out)
    assert again["made_now"] == 0
    assert again["solved_by_round"] == [4, 12, 12, 12]
    assert run("stats", "evolved").code == 0
    assert run("export", "rft/selected/data", "--to", "et_agent_results", "-o", "tagged").code == 0


def test_an_operator_alone(run, here):
    done = run("evolve", "sums", *MODELS, "--ops", "step_hint", "--rounds", 1, "-o", "hinted")
    assert done.code == 0, done.err
    assert len(Store.open("hinted")) == 12 + 8
    done = run("evolve", "sums", *MODELS[:4], "--ops", "re_rollout", "--rounds", 1, "-o", "again")
    assert done.code == 0, "it asks nobody"


def test_tasks_without_answers_are_said_and_leave_nothing_for_rft(run, here):
    Path("tasks.jsonl").write_text('{"question": "What is 2 + 3? Answer with it."}', "utf-8")
    done = run("collect", *MODELS[:4], "--tasks", "tasks.jsonl", "-o", "plain")
    assert done.code == 0, done.err
    words = ("evolve", "plain", *MODELS, "--correct", "qa", "-o", "out", "--rounds", 1)
    done = run(*words, "--rft", "rft", "--flywheel", "records.json")
    assert "not judged: the task has no reference answers: 4" in done.out.splitlines()
    assert "flywheel: 1 record in records.json" in done.out
    assert done.code != 0
    assert "--rft: nothing is fit for it" in done.err
    assert not Path("rft").exists()
    again = json.loads(run(*words, "--json").out)
    assert again["not_judged"] == {"the task has no reference answers": 4}


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ((), "--env, --policy and -o"),
        (("sums", "-o", "x"), "--env, --policy and -o"),
        (("sums", *MODELS[:4], "-o", "x"), "redundant_step asks a refiner"),
        (("sums", *MODELS, "-o", "x", "--ops", "step_hnt"), "step_hint"),
        (("sums", *MODELS, "-o", "x", "--correct", "luck"), "there is no such rule"),
        (("sums", "--env", "toolworld", *MODELS[2:], "-o", "x"), "none of toolworld"),
        (("sums", *MODELS, "-o", "sums"), "adp evolve did not make"),
        (("nothing", *MODELS, "-o", "x"), "nothing"),
        (("sums", *MODELS, "-o", "x", "--rft", "r", "--keep-open"), "adp seal x"),
    ],
)
def test_what_is_wrong_with_a_call_is_one_sentence(run, here, words, text):
    done = run("evolve", *words)
    assert done.code not in (0, 70)
    assert text in done.err
    assert "Traceback" not in done.err
    assert not (here / "x").exists() or "adp seal x" in text


def test_the_operators_are_listed(run):
    lines = run("evolve", "--list").out.splitlines()
    assert [line.split()[0] for line in lines] == [
        *("re_rollout", "redundant_step", "global_refinement"),
        *("step_refine", "step_hint", "trajectory_hint"),
    ]
