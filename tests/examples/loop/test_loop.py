"""The loop in small: from random weights to an agent that answers, in about a minute of one core.

Numbers of steps are fixed. DPO takes only a few steps here: that it improves the model is measured
by `make loop`.
"""

from __future__ import annotations

import json

import pytest

pytest.importorskip("trl", reason="needs the train extra")

import adp
from examples.loop import run, stages
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
    work.root.mkdir()
    stages.write_tasks(work, QUICK, 0)
    base = run.base(work, QUICK, 0)
    assert base["stage0_accuracy"] >= 0.97
    before = stages.evaluate(work, "base", "base", "held_out.jsonl")
    assert before["success"] < 0.05

    assert stages.collect(work, QUICK, 0) == {"episodes": QUICK.pool, "broken": 0}
    stages.collect_informed(work, QUICK, 0)
    run.curate(work, QUICK, 0)
    assert_curated(work)
    loss = run.train_sft(work, QUICK, 0, "sft", "curated/data")
    assert loss["last_loss"] < loss["first_loss"] / 4
    after = stages.evaluate(work, "sft", "sft/model", "held_out.jsonl")
    print(json.dumps(after))
    assert after["success"] > 0.6

    stages.probe(work, QUICK, 0, "sft/model", "probes")
    assert run.pairs(work)["pairs"] > 5
    run.train_dpo(work, QUICK, 0, "dpo", "[sigmoid, sft]")
    assert work.path("dpo", "model", "config.json").is_file()


def assert_curated(work):
    """Nothing of a held-out task, solved runs only, as many of each kind, errors masked."""
    store = adp.open(work.path("curated", "data"))
    held_out = {
        json.loads(line)["task_id"] for line in work.path("held_out.jsonl").read_text().splitlines()
    }
    kinds = {}
    for trajectory in store.trajectories():
        assert trajectory.success
        assert trajectory.task_id not in held_out
        kind = trajectory.task.difficulty
        kinds[kind] = kinds.get(kind, 0) + 1
        for step in trajectory.steps:
            if {"wrong", "malformed"} & set(step.labels or ()) or step.actor == "agent":
                assert step.loss_weight == 0
    assert set(kinds.values()) == {QUICK.curated / len(QUICK.kinds)}
