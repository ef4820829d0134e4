"""The loop in small: from random weights to an agent that answers, in about a minute of one core.

Numbers of steps are fixed. DPO takes only a few steps here: that it improves the model is measured
by `make loop`.
"""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

pytest.importorskip("trl", reason="needs the train extra")

import adp
from examples.loop import run
from examples.loop.arms import ARMS
from examples.loop.methods import METHODS, method
from examples.loop.scale import QUICK
from examples.loop.work import Work

pytestmark = [
    pytest.mark.slow,  # trains for a minute; the tutorials train in the plain run
    pytest.mark.train,
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning"),
    pytest.mark.filterwarnings("ignore::UserWarning"),
]


def test_random_weights_become_an_agent(tmp_path, monkeypatch):
    monkeypatch.setenv("ADP_CACHE", str(tmp_path / "cache"))
    work = Work(tmp_path / "loop", inline=True)
    began = run.begun(work, QUICK, 0)
    assert began["base"]["stage0_accuracy"] >= 0.97
    assert began["base"]["lesson_accuracy"] >= 0.95
    assert began["before"]["success"] < 0.05
    assert began["pool"] == {"episodes": QUICK.pool, "broken": 0}
    assert began["leaked"] == {"episodes": QUICK.leaked * QUICK.leaks, "broken": 0}

    facts = run.supervised(work, QUICK, 0)
    assert_curated(work)
    assert facts["sft"]["last_loss"] < facts["sft"]["first_loss"] / 4
    print(json.dumps(facts))
    assert facts["after_sft"]["held_out"]["success"] > 0.6
    (attempt,) = facts["sft"]["attempts"]
    assert attempt["name_loss"] <= run.LEARNT

    for title, (name, _) in METHODS.items():
        done = method(work, QUICK, 0, title, facts["sft"]["model"])
        assert done["training"]["passes"] > 0
        assert done["held_out"]["tasks"] == QUICK.held_out
        assert work.path(name, "model", "config.json").is_file()


def test_a_training_that_does_not_copy_is_begun_anew(tmp_path, monkeypatch):
    monkeypatch.setenv("ADP_CACHE", str(tmp_path / "cache"))
    work = Work(tmp_path / "loop", inline=True)
    monkeypatch.setattr(run, "LEARNT", 0.0)
    monkeypatch.setattr(run, "RETRIES", 1)
    hasty = replace(QUICK, pool=60, curated=20, leaked=2, sft_steps=1, copy_steps=1, lesson_steps=1)
    run.begun(work, hasty, 3)
    work.once("curated", lambda: run.curate(work, hasty, 3))
    facts = run.learn(work, hasty, 3, "sft", "curated/data")
    assert [attempt["seed"] for attempt in facts["attempts"]] == [3, 1003]
    assert not facts["learnt"]
    assert facts["model"] == "sft-1/model"
    # Another start, which has other weights; what is trained on is the same.
    starts = [work.path(name, "model.safetensors").read_bytes() for name in ("base", "base-1003")]
    assert starts[0] != starts[1]
    assert run.learn(work, hasty, 3, "sft", "curated/data") == facts


def test_an_arm_leaves_one_part_of_the_curation_out(tmp_path, monkeypatch):
    monkeypatch.setenv("ADP_CACHE", str(tmp_path / "cache"))
    work = Work(tmp_path / "loop", inline=True)
    small = replace(QUICK, pool=150, curated=40, leaked=5, informed=3, copy_steps=1, lesson_steps=1)
    run.begun(work, small, 1)
    run.curate(work, small, 1)
    leaked = {
        json.loads(line)["task_id"] for line in work.path("leaked.jsonl").read_text().splitlines()
    }
    arms = {"curated": facts_of(work, "curated", leaked)}
    for name, change in ARMS.items():
        run.curate(work, small, 1, name, change)
        arms[name] = facts_of(work, name, leaked)
    everything = small.pool + small.leaked * small.leaks + small.informed
    assert arms["curated"] == (small.curated, {"masked", "solved"})
    assert arms["raw"] == (everything, {"leaked", "unsolved", "solved", "circles"})
    assert arms["random subset"][0] == small.curated
    assert arms["random subset"][1] >= {"masked", "unsolved"}
    assert arms["no mask"] == (small.curated, {"solved"})
    assert arms["no decontamination"] == (small.curated, {"masked", "solved", "leaked"})
    assert arms["wrong answers kept"] == (small.curated, {"masked", "solved", "unsolved"})
    assert arms["circles kept"] == (small.curated, {"masked", "solved", "circles"})


def facts_of(work, name, leaked):
    """How many trajectories a data set has, and what there is among them."""
    trajectories = list(adp.open(work.path(name, "data")).trajectories())
    kinds = set()
    for trajectory in trajectories:
        kinds.add("solved" if trajectory.success else "unsolved")
        if trajectory.task_id in leaked:
            kinds.add("leaked")
        if any(step.loss_weight == 0 for step in trajectory.steps if step.source == "agent"):
            kinds.add("masked")
        labels = [label for step in trajectory.steps for label in step.labels or ()]
        if labels.count("redundant") > 2:
            kinds.add("circles")
    return len(trajectories), kinds


def assert_curated(work):
    """Nothing that leaked, solved runs without circles, as many of each kind, errors masked."""
    store = adp.open(work.path("curated", "data"))
    leaked = {
        json.loads(line)["task_id"] for line in work.path("leaked.jsonl").read_text().splitlines()
    }
    kinds = {}
    for trajectory in store.trajectories():
        assert trajectory.success
        assert trajectory.task_id not in leaked
        assert [label for step in trajectory.steps for label in step.labels or ()].count(
            "redundant"
        ) <= 2
        kind = trajectory.task.difficulty
        kinds[kind] = kinds.get(kind, 0) + 1
        for step in trajectory.steps:
            if {"wrong", "malformed"} & set(step.labels or ()) or step.actor == "agent":
                assert step.loss_weight == 0
    assert set(kinds.values()) == {QUICK.curated / len(QUICK.kinds)}
