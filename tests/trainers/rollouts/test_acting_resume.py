"""A training in an environment that is stopped goes on, and its store has each episode once."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from adp.trainers.rollouts.rollout_counts import rollout_counts
from adp.trainers.rollouts.rollout_store import RolloutStore, TrainedRollout, seal_rollouts
from adp.trainers.run import TrainOptions, train
from adp_schema.model import Step, Trajectory
from adp_schema.store import Store
from tests.trainers.rollouts.acting_runs import acting_config, sums
from tests.trainers.small_runs import log_of
from tests.waiting import PATIENCE

pytestmark = [
    pytest.mark.train,
    pytest.mark.filterwarnings("ignore::FutureWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::UserWarning"),
]

SAVED = {"max_steps": 6, "save_strategy": "steps", "save_steps": 2, "logging_steps": 1}


def config_of(folder: Path) -> Any:
    """The model itself writes; its turns are random, and so are the rewards."""
    return acting_config(
        sums(folder),
        {"max_turns": 2},
        SAVED,
        max_completion_length=8,
        rewards=["my_length:reward"],
    )


def write_reward(folder: Path) -> None:
    """A reward that tells random turns apart."""
    (folder / "my_length.py").write_text(
        "def reward(trajectories, **_):\n"
        "    return [sum(t for s in x.steps for t in s.completion_token_ids or ()) % 97 / 97\n"
        "            for x in trajectories]\n"
    )


def rollouts_of(run: Path) -> dict[str, Any]:
    """All that the store of a training holds, by id."""
    return {
        str(row.trajectory_id): row.model_dump(exclude={"seq"})
        for row in Store.open(str(run / "rollouts")).trajectories()
    }


def measured(run: Path) -> list[dict[str, Any]]:
    return [{k: v for k, v in line.items() if k != "step_time"} for line in log_of(run)]


def weights(run: Path) -> bytes:
    return (run / "model" / "model.safetensors").read_bytes()


def same(first: Path, second: Path) -> None:
    assert measured(first) == measured(second)
    assert weights(first) == weights(second)
    assert rollouts_of(first) == rollouts_of(second)


def test_a_run_that_stopped_goes_on_as_if_it_had_not(tmp_path, monkeypatch):
    from adp.trainers.rollouts.batch import RolloutMaker

    monkeypatch.chdir(tmp_path)
    write_reward(tmp_path)
    config = config_of(tmp_path)
    train(config, tmp_path / "whole", TrainOptions(allow_python=True))
    assert len(rollouts_of(tmp_path / "whole")) == 48
    play = RolloutMaker.play

    def stops(maker: Any, rows: Any, step: int, *given: Any, **more: Any) -> Any:
        if step == 5:
            raise KeyboardInterrupt
        return play(maker, rows, step, *given, **more)

    with monkeypatch.context() as patched:
        patched.setattr(RolloutMaker, "play", stops)
        with pytest.raises(KeyboardInterrupt):
            train(config, tmp_path / "cut", TrainOptions(allow_python=True))
    # Step 4 was played, and comes after the last checkpoint.
    assert len(rollouts_of(tmp_path / "cut")) == 40
    train(config, tmp_path / "cut", TrainOptions(resume=True, allow_python=True))
    same(tmp_path / "whole", tmp_path / "cut")


@pytest.mark.slow
def test_a_run_that_was_killed_goes_on_as_if_it_had_not(tmp_path):
    write_reward(tmp_path)
    config = tmp_path / "train.yaml"
    config.write_text(json.dumps(config_of(tmp_path).model_dump(mode="json")))

    def start(out: str, *more: str) -> subprocess.Popen[bytes]:
        code = "import sys; from adp.cli.entry import run; sys.exit(run())"
        words = ["train", "grpo", "-c", str(config), "-o", out, "--allow-python", *more]
        return subprocess.Popen(
            [sys.executable, "-c", code, *words], cwd=tmp_path, stderr=subprocess.DEVNULL
        )

    assert start("whole").wait(PATIENCE) == 0
    process = start("cut")
    wait_for_step(tmp_path / "cut" / "metrics.jsonl", 3)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    assert start("cut", "--resume").wait(PATIENCE) == 0
    same(tmp_path / "whole", tmp_path / "cut")


def wait_for_step(path: Path, step: int) -> None:
    """Wait until the log has this step."""
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until:
        # The last line may be half written.
        lines = path.read_text().split("\n")[:-1] if path.exists() else []
        if any(json.loads(line).get("step") == step for line in lines):
            return
        time.sleep(0.02)
    raise AssertionError(f"no step {step} in {path}")


# ---- the store ---------------------------------------------------------------------------------


def episode(text: str) -> TrainedRollout:
    trajectory = Trajectory(
        dataset="grpo",
        source_id="step-000001/t/attempt-0",
        rewards='{"format": 1.0}',
        extra='{"seed": 3}',
        steps=[Step(step=0, source="agent", kind="llm_turn", text=text)],
    )
    return TrainedRollout(trajectory, {"step": 1}, {"format": 0.5, "none": None}, 0.25)


def test_the_same_episode_is_kept_once_and_another_one_beside_it(tmp_path):
    RolloutStore(tmp_path).keep([episode("first")])
    # As after a kill: another process makes the step again.
    again = RolloutStore(tmp_path)
    again.keep([episode("first")])
    again.keep([episode("second")])
    seal_rollouts(tmp_path)
    rows = {row.trajectory_id: row for row in Store.open(str(tmp_path / "rollouts")).trajectories()}
    name = "grpo/step-000001/t/attempt-0"
    assert list(rows) == [name, f"{name}#2"]
    # What the environment says wins over a reward of the training with that name.
    assert json.loads(rows[name].rewards or "") == {"format": 1.0}
    assert json.loads(rows[name].extra or "") == {
        "seed": 3,
        "grpo": {"step": 1, "rewards": {"format": 0.5, "none": None}, "advantage": 0.25},
    }


def test_of_an_episode_that_was_made_again_the_last_one_counts(tmp_path):
    assert rollout_counts(tmp_path) is None
    broken = episode("second")
    broken.trajectory.error_type, broken.trajectory.error_message = "environment", "it fell"
    RolloutStore(tmp_path).keep([episode("first"), broken])
    seal_rollouts(tmp_path)
    assert rollout_counts(tmp_path) == {
        "episodes": 1,
        "broken": 1,
        "errors": {"environment": 1},
        "error_messages": {"environment": "it fell"},
        "without_reward": 0,
    }


def test_a_sealed_store_of_a_run_that_was_killed_at_its_end_is_left_as_it_is(tmp_path):
    RolloutStore(tmp_path).keep([episode("first")])
    seal_rollouts(tmp_path)
    RolloutStore(tmp_path).keep([episode("second")])
    seal_rollouts(tmp_path)
    assert len(rollouts_of(tmp_path)) == 1


def test_what_the_store_cannot_hold_is_kept_as_far_as_it_can(tmp_path):
    wrong = episode("x")
    wrong.trajectory.task_id = "t"
    wrong.trajectory.steps[0].extra = "no json"
    RolloutStore(tmp_path).keep([wrong, episode("second")])
    seal_rollouts(tmp_path)
    rows = rollouts_of(tmp_path)
    assert sorted(row["stop_reason"] or "" for row in rows.values()) == ["", "unstorable"]
