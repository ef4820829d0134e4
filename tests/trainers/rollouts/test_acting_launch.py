"""A training in an environment by two processes on the CPU: groups stay whole, nothing is lost."""

from __future__ import annotations

import json
import os
from collections import Counter
from pathlib import Path

import pytest

from adp.trainers.run import train
from adp_schema.store import Store
from tests.trainers.rollouts.acting_runs import acting_config, sums
from tests.trainers.small_runs import log_of

pytestmark = [pytest.mark.train, pytest.mark.slow]


def test_two_processes_share_the_groups_and_write_one_store(tmp_path: Path, monkeypatch) -> None:
    # The command starts each process anew; it has to find this checkout.
    source = str(Path(__file__).parents[3] / "src")
    paths = os.pathsep.join(filter(None, [source, os.environ.get("PYTHONPATH")]))
    monkeypatch.setenv("PYTHONPATH", paths)
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    config = acting_config(sums(tmp_path, 8), {"max_turns": 2}, max_completion_length=8)
    launch = config.launch.model_copy(update={"processes": 2})
    config = config.model_copy(update={"launch": launch})
    train(config, tmp_path / "run")
    rows = list(Store.open(str(tmp_path / "run" / "rollouts")).trajectories())
    # Two steps of two processes with eight episodes each.
    assert len(rows) == 32
    assert len({row.trajectory_id for row in rows}) == 32
    groups = Counter(
        (facts["step"], facts["group"])
        for facts in (json.loads(row.extra or "{}")["grpo"] for row in rows)
    )
    assert set(groups.values()) == {4}
    assert len(groups) == 8
    lines = [line for line in log_of(tmp_path / "run") if "loss" in line]
    assert [line["rollouts/broken"] for line in lines] == [0, 0]
